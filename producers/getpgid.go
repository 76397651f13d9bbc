package producers

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// Getpgid is the system call that programs on the tracepoint syscalls/sys_enter_getpgid are asked through: by a pid that no
// process can have, as pids end at 1<<22 (PID_MAX_LIMIT), plus an argument.
type Getpgid struct{ pid uintptr }

// getpgidMagic is GETPGID_MAGIC of the programs.
const getpgidMagic = 0x40000000

// NewGetpgid returns the caller with argument arg, which is below 1<<30.
func NewGetpgid(arg uint32) *Getpgid { return &Getpgid{pid: uintptr(getpgidMagic + arg)} }

// Run makes the call once.
func (g *Getpgid) Run() error {
	if _, _, errno := unix.Syscall(unix.SYS_GETPGID, g.pid, 0, 0); errno != unix.ESRCH {
		return fmt.Errorf("call getpgid of a process that cannot be: want %w, got %w", unix.ESRCH, errno)
	}
	return nil
}
