package cpuset

import (
	"errors"
	"runtime"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func TestUsable(t *testing.T) {
	usable, err := Usable()
	if err != nil {
		t.Fatal(err)
	}
	if !slices.IsSorted(usable) {
		t.Errorf("usable: %v is not ascending", usable)
	}
	if len(usable) > runtime.NumCPU() {
		t.Errorf("usable: %v, but the runtime counts %d CPUs", usable, runtime.NumCPU())
	}
	if err := Check(usable, usable); err != nil {
		t.Error(err)
	}
	if err := Check([]int{usable[0], Max}, usable); err == nil || !strings.Contains(err.Error(), "8191 does not exist") {
		t.Errorf("check of cpu 8191: %v", err)
	}
}

// TestGrowing stands in for a kernel with more CPUs than a cpu_set_t holds.
func TestGrowing(t *testing.T) {
	const cpus = 4096
	calls := 0
	got, err := growing(func(mask []uint) (int, error) {
		calls++
		if len(mask)*wordBits < cpus {
			return 0, unix.EINVAL
		}
		mask[0] = 0b101
		mask[3000/wordBits] = 1 << (3000 % wordBits)
		return cpus / 8, nil
	})
	if err != nil || !slices.Equal(got, []int{0, 2, 3000}) || calls != 3 {
		t.Errorf("got %v, %v after %d calls; want 0, 2 and 3000 after 3", got, err, calls)
	}
	_, err = growing(func([]uint) (int, error) { return 0, unix.EINVAL })
	if !errors.Is(err, unix.EINVAL) {
		t.Errorf("a kernel that takes no mask: %v", err)
	}
	_, err = growing(func([]uint) (int, error) { return 0, unix.ESRCH })
	if !errors.Is(err, unix.ESRCH) {
		t.Errorf("no such thread: %v", err)
	}
}

func TestPin(t *testing.T) {
	usable, err := Usable()
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error)
	for _, cpu := range usable {
		go func() {
			runtime.LockOSThread() // and never unlocked, so that the thread dies
			err := Pin(cpu)
			if got, _ := affinity(0); err == nil && !slices.Equal(got, []int{cpu}) {
				err = errors.New("pinned to " + Format(got))
			}
			done <- err
		}()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	if allowed, err := Allowed(); err != nil || len(allowed) < len(usable) {
		t.Errorf("pinning threads changed the allowed CPUs to %v, %v", allowed, err)
	}
	for _, cpu := range []int{-1, Max, Max + 1} {
		go func() {
			runtime.LockOSThread()
			done <- Pin(cpu)
		}()
		if err := <-done; err == nil {
			t.Errorf("pinned to cpu %d", cpu)
		}
	}
}

func TestCheck(t *testing.T) {
	present, online := []int{0, 1, 2, 3, 4, 5}, []int{0, 1, 4, 5}
	for _, c := range []struct {
		list            []int
		present, online []int
		want            string
	}{
		{[]int{0, 1}, present, online, ""},
		{[]int{0, 2}, present, online, "cpu 2 is offline: usable are 0-1"},
		{[]int{2, 3, 9, 4}, present, online, "cpu 9 does not exist; cpus 2-3 are offline; " +
			"cpu 4 is not allowed to this process (taskset or a cpuset cgroup): usable are 0-1"},
		{[]int{2, 9}, nil, nil, "cpus 2,9 cannot be used: usable are 0-1"},
	} {
		got := ""
		if err := check(c.list, []int{0, 1}, c.present, c.online); err != nil {
			got = err.Error()
		}
		if got != c.want {
			t.Errorf("check %v: %q, want %q", c.list, got, c.want)
		}
	}
}
