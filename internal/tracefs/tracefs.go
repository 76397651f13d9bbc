// Package tracefs gives access to the kernel's tracing file system.
package tracefs

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// path is where tracefs belongs (Documentation/trace/ftrace.rst).
const path = "/sys/kernel/tracing"

// Mount makes sure that tracefs is mounted where it belongs. It stays mounted, as on nearly every system: who else uses it
// meanwhile cannot be known, and would lose it. Mount fails without CAP_SYS_ADMIN, and where the kernel has no tracefs.
func Mount() error {
	mounted, err := isTracefs(path)
	if err != nil {
		return fmt.Errorf("look for tracefs: %w: the kernel needs CONFIG_TRACING", err)
	}
	if mounted {
		return nil
	}
	err = unix.Mount("tracefs", path, "tracefs", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, "")
	if err != nil && !errors.Is(err, unix.EBUSY) { // someone else was faster
		return fmt.Errorf("mount tracefs: %w: as root: mount -t tracefs tracefs %s", err, path)
	}
	return nil
}

func isTracefs(dir string) (bool, error) {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return false, err
	}
	return st.Type == unix.TRACEFS_MAGIC, nil
}
