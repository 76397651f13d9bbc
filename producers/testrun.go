package producers

import (
	"fmt"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// TestRun runs a raw tracepoint program once by each call, with one argument. It needs Linux 5.10.
//
// The library's Program.Run makes several allocations a call and repeats a call that was interrupted; here a call is a
// measurement, so it does neither.
type TestRun struct {
	attr testRunAttr
	args [1]uint64
}

// testRunAttr is the part of union bpf_attr that BPF_PROG_TEST_RUN reads (<linux/bpf.h>).
type testRunAttr struct {
	progFD, retval          uint32
	dataSizeIn, dataSizeOut uint32
	dataIn, dataOut         uint64
	repeat, duration        uint32
	ctxSizeIn, ctxSizeOut   uint32
	ctxIn                   unsafe.Pointer
	ctxOut                  uint64
	flags, cpu, batchSize   uint32
	_                       uint32
}

// NewTestRun returns the caller of the program with descriptor fd and argument arg.
func NewTestRun(fd int, arg uint64) *TestRun {
	t := &TestRun{args: [1]uint64{arg}}
	t.attr = testRunAttr{progFD: uint32(fd), ctxSizeIn: uint32(unsafe.Sizeof(t.args)), ctxIn: unsafe.Pointer(&t.args)}
	return t
}

// Run runs the program once, on this thread's CPU.
func (t *TestRun) Run() error {
	_, _, errno := unix.Syscall(unix.SYS_BPF, unix.BPF_PROG_TEST_RUN, uintptr(unsafe.Pointer(&t.attr)), unsafe.Sizeof(t.attr))
	return t.ran(errno)
}

func (t *TestRun) ran(errno unix.Errno) error {
	runtime.KeepAlive(t)
	if errno != 0 {
		return fmt.Errorf("run program by test_run: %w", errno)
	}
	return nil
}

// BriefTestRun is a TestRun of a program that takes less than a millisecond. Go's scheduler is not told of the call: it would
// wake up time and again to look whether it lasts, and its timer's interrupts would be in what is measured.
type BriefTestRun struct{ *TestRun }

// Run runs the program once, on this thread's CPU.
func (t BriefTestRun) Run() error {
	_, _, errno := unix.RawSyscall(unix.SYS_BPF, unix.BPF_PROG_TEST_RUN, uintptr(unsafe.Pointer(&t.attr)), unsafe.Sizeof(t.attr))
	return t.ran(errno)
}
