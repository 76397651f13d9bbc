// Package tracefs gives access to the kernel's tracing file system.
package tracefs

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// path is where tracefs belongs (Documentation/trace/ftrace.rst).
const path = "/sys/kernel/tracing"

// Mount makes sure that tracefs is mounted where it belongs. undo unmounts what this call has mounted, unless someone else
// uses it by then. It fails without CAP_SYS_ADMIN, and where the kernel has no tracefs.
func Mount() (undo func() error, err error) {
	mounted, err := isTracefs(path)
	if err != nil {
		return nil, fmt.Errorf("look for tracefs: %w: the kernel needs CONFIG_TRACING", err)
	}
	if mounted {
		return func() error { return nil }, nil
	}
	if err := unix.Mount("tracefs", path, "tracefs", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, ""); err != nil {
		return nil, fmt.Errorf("mount tracefs: %w: as root: mount -t tracefs tracefs %s", err, path)
	}
	return func() error {
		if err := unix.Unmount(path, 0); err != nil && !errors.Is(err, unix.EBUSY) {
			return fmt.Errorf("unmount tracefs: %w", err)
		}
		return nil
	}, nil
}

func isTracefs(dir string) (bool, error) {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return false, err
	}
	return st.Type == unix.TRACEFS_MAGIC, nil
}
