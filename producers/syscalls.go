package producers

import (
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

// repeat makes a system call up to n times, n at least 1, as long as it returns want. It returns how many of these are left to be
// done, and what the last call returned.
func repeat(nr, a, b, c, want uintptr, n uint64) (left uint64, got uintptr)

// Syscall is a system call that is made time and again and returns the same each time.
type Syscall struct {
	Name     string
	Nr       uintptr
	Args     [3]uintptr // what they point to is the caller's to keep
	Returned uintptr    // by each call
}

// Call makes the call n times and returns how long that took. It is not interrupted by Go's scheduler, so it is not for long.
func (s *Syscall) Call(n uint64) (time.Duration, error) {
	if n == 0 {
		return 0, nil
	}
	start := time.Now()
	left, got := repeat(s.Nr, s.Args[0], s.Args[1], s.Args[2], s.Returned, n)
	took := time.Since(start)
	switch {
	case left == 0:
		return took, nil
	case int(got) < 0 && int(got) > -4096:
		return 0, fmt.Errorf("%s: %w", s.Name, unix.Errno(-int(got)))
	}
	return 0, fmt.Errorf("%s: it returned %d, want %d", s.Name, got, s.Returned)
}
