package producers

import (
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func TestThreads(t *testing.T) {
	threads := NewThreads(10)
	for range 20 {
		if made, err := threads.Make(); err != nil || made != 10 {
			t.Fatalf("%d threads of 10: %v", made, err)
		}
		for i, tid := range threads.tids {
			if tid != 0 {
				t.Fatalf("thread %d has not ended: %d", i, tid)
			}
		}
	}
}

func TestSleepers(t *testing.T) {
	s, err := StartSleepers(5, 10*time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	time.Sleep(30 * time.Millisecond)
	pids := s.pids
	for _, pid := range pids {
		if err := unix.Kill(pid, 0); err != nil {
			t.Errorf("process %d: %v", pid, err)
		}
	}
	if err := s.Stop(); err != nil {
		t.Error(err)
	}
	for _, pid := range pids {
		if err := unix.Kill(pid, 0); err != unix.ESRCH {
			t.Errorf("process %d: %v, want %v", pid, err, unix.ESRCH)
		}
	}
}
