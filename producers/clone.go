package producers

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// clone makes a task by the system call clone, on the caller's stack, which the task does not touch. It ends at once or,
// with sleep, is ended by SIGKILL or with the thread that has made it: until then it sleeps that long, calls getpgid, and
// begins anew. What clone returns is the task's id or a negative errno.
//
//go:noescape
func clone(flags uintptr, tid *uint32, sleep *unix.Timespec) uintptr

// withoutSignals runs f with all signals blocked, as the tasks that it makes are to have none of Go's handlers run.
func withoutSignals(f func() error) (err error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var all, before unix.Sigset_t
	for i := range all.Val {
		all.Val[i] = ^uint64(0)
	}
	if err := unix.PthreadSigmask(unix.SIG_SETMASK, &all, &before); err != nil {
		return fmt.Errorf("block signals: %w", err)
	}
	defer func() { err = errors.Join(err, unix.PthreadSigmask(unix.SIG_SETMASK, &before, nil)) }()
	return f()
}

// Threads makes threads that end at once. It is for one goroutine.
type Threads struct{ tids []uint32 }

// NewThreads returns a maker of n threads at a time.
func NewThreads(n int) *Threads { return &Threads{tids: make([]uint32, n)} }

// Make makes the threads, waits until all have ended, and returns how many there were.
func (t *Threads) Make() (made int, err error) {
	const flags = unix.CLONE_VM | unix.CLONE_FS | unix.CLONE_FILES | unix.CLONE_SIGHAND | unix.CLONE_THREAD | unix.CLONE_SYSVSEM |
		unix.CLONE_PARENT_SETTID | unix.CLONE_CHILD_CLEARTID
	err = withoutSignals(func() error {
		for ; made < len(t.tids); made++ {
			// The kernel writes the id before the thread runs, and zero when it has ended.
			if tid := int(clone(flags, &t.tids[made], nil)); tid < 0 {
				return fmt.Errorf("make a thread: %w", unix.Errno(-tid))
			}
		}
		return nil
	})
	for i := range t.tids[:made] {
		for {
			tid := atomic.LoadUint32(&t.tids[i])
			if tid == 0 {
				break
			}
			// It returns at once if the thread has ended meanwhile. The kernel's wake-up is not a private one.
			_, _, _ = unix.Syscall6(unix.SYS_FUTEX, uintptr(unsafe.Pointer(&t.tids[i])), 0 /* FUTEX_WAIT */, uintptr(tid), 0, 0, 0)
		}
	}
	return made, err
}

// Sleepers are processes that sleep, call getpgid, and sleep again.
type Sleepers struct{ pids []int }

// StartSleepers forks n of them. Each sleeps a time of its own, at most longest, so that they do not wake up together.
func StartSleepers(n int, longest time.Duration) (*Sleepers, error) {
	s := &Sleepers{pids: make([]int, 0, n)}
	var unused uint32
	err := withoutSignals(func() error {
		for range n {
			sleep := unix.NsecToTimespec(1 + rand.Int64N(int64(longest)))
			pid := int(clone(uintptr(unix.SIGCHLD), &unused, &sleep))
			if pid < 0 {
				return fmt.Errorf("fork process %d of %d: %w", len(s.pids)+1, n, unix.Errno(-pid))
			}
			s.pids = append(s.pids, pid)
		}
		return nil
	})
	if err != nil {
		return nil, errors.Join(err, s.Stop())
	}
	return s, nil
}

// Stop ends the processes.
func (s *Sleepers) Stop() error {
	var errs []error
	for _, pid := range s.pids {
		errs = append(errs, unix.Kill(pid, unix.SIGKILL))
	}
	for _, pid := range s.pids {
		for {
			_, err := unix.Wait4(pid, nil, 0, nil)
			if err != unix.EINTR {
				errs = append(errs, err)
				break
			}
		}
	}
	return errors.Join(errs...)
}
