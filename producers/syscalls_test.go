package producers

import (
	"errors"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

func TestSyscall(t *testing.T) {
	group := uintptr(unix.Getpgrp())
	s := Syscall{Name: "getpgid", Nr: unix.SYS_GETPGID, Returned: group}
	for _, n := range []uint64{0, 1, 1000} {
		if took, err := s.Call(n); err != nil || (took > 0) != (n > 0) {
			t.Errorf("%d calls took %v, %v", n, took, err)
		}
	}
	s.Args[0] = 1 << 30 // which no process can have
	if _, err := s.Call(10); !errors.Is(err, unix.ESRCH) {
		t.Errorf("error %v, want %v", err, unix.ESRCH)
	}
	s = Syscall{Name: "getpgid", Nr: unix.SYS_GETPGID, Returned: group + 1}
	if _, err := s.Call(10); err == nil || !strings.Contains(err.Error(), "want") {
		t.Errorf("another answer: error %v", err)
	}
}

// The system call is made exactly so often.
func TestSyscallCount(t *testing.T) {
	var fd [2]int
	if err := unix.Pipe2(fd[:], unix.O_NONBLOCK); err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd[0])
	defer unix.Close(fd[1])
	text := []byte("x")
	s := Syscall{Name: "write", Nr: unix.SYS_WRITE, Args: [3]uintptr{uintptr(fd[1]), uintptr(unsafe.Pointer(&text[0])), 1}, Returned: 1}
	if _, err := s.Call(77); err != nil {
		t.Fatal(err)
	}
	runtime.KeepAlive(text)
	if n, err := unix.Read(fd[0], make([]byte, 100)); n != 77 || err != nil {
		t.Errorf("%d bytes were written, %v; want 77", n, err)
	}
}

func TestAdd(t *testing.T) {
	var counter atomic.Uint64
	for _, n := range []uint64{0, 1, 1000} {
		if took := Add(&counter, n); (took > 0) != (n > 0) {
			t.Errorf("%d additions took %v", n, took)
		}
	}
	if n := counter.Load(); n != 1001 {
		t.Errorf("the counter is %d, want 1001", n)
	}
}

func TestCalls(t *testing.T) {
	for _, n := range []uint64{0, 1, 1000} {
		if took := Calls(n); (took > 0) != (n > 0) {
			t.Errorf("%d calls took %v", n, took)
		}
	}
}
