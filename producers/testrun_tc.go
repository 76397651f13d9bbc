package producers

import (
	"fmt"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// TestRunTC runs a tc program once by each call, on a packet of zeros with a mark.
type TestRunTC struct {
	attr testRunAttr
	skb  skBuff
}

// skBuff is the beginning of struct __sk_buff (<linux/bpf.h>). The kernel takes the rest to be zero.
type skBuff struct{ len, pktType, mark uint32 }

// packet is of the smallest size of Ethernet: the kernel refuses what is shorter than a header. It is never written.
var packet [60]byte

// NewTestRunTC returns the caller of the program with descriptor fd on a packet with the mark.
func NewTestRunTC(fd int, mark uint32) *TestRunTC {
	t := &TestRunTC{skb: skBuff{mark: mark}}
	t.attr = testRunAttr{progFD: uint32(fd), ctxSizeIn: uint32(unsafe.Sizeof(t.skb)), ctxIn: unsafe.Pointer(&t.skb),
		dataIn: uint64(uintptr(unsafe.Pointer(&packet))), dataSizeIn: uint32(len(packet))}
	return t
}

// Run runs the program once, on this thread's CPU.
func (t *TestRunTC) Run() error {
	_, _, errno := unix.Syscall(unix.SYS_BPF, unix.BPF_PROG_TEST_RUN, uintptr(unsafe.Pointer(&t.attr)), unsafe.Sizeof(t.attr))
	runtime.KeepAlive(t)
	if errno != 0 {
		return fmt.Errorf("run program by test_run: %w", errno)
	}
	return nil
}
