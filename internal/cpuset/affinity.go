package cpuset

import (
	"errors"
	"fmt"
	"math/bits"
	"os"
	"slices"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

const sysCPU = "/sys/devices/system/cpu/"

const wordBits = bits.UintSize

// maxMask bounds the growing affinity mask, in words: 1 Mi CPUs on a 64-bit machine, far above NR_CPUS.
const maxMask = 1 << 20 / wordBits

// The mask is taken before main runs, as Pin changes that of a thread, and the main thread may be one of those.
var atStart, errAtStart = affinity(0)

// Online returns the CPUs that are online, ascending, from /sys/devices/system/cpu/online.
func Online() ([]int, error) {
	cpus, err := sysList("online")
	if err != nil {
		return nil, fmt.Errorf("read online cpus: %w", err)
	}
	return cpus, nil
}

// Allowed returns the CPUs that the process was allowed to run on when it started (taskset, cpuset cgroup), ascending.
func Allowed() ([]int, error) {
	if errAtStart != nil {
		return nil, fmt.Errorf("get allowed cpus: %w", errAtStart)
	}
	return slices.Clone(atStart), nil
}

// Usable returns the CPUs that are online and allowed, ascending. It is an error if there are none.
func Usable() ([]int, error) {
	online, err := Online()
	if err != nil {
		return nil, err
	}
	allowed, err := Allowed()
	if err != nil {
		return nil, err
	}
	usable := intersect(online, allowed)
	if len(usable) == 0 {
		return nil, fmt.Errorf("no usable cpu: %s online, %s allowed to this process", Format(online), Format(allowed))
	}
	return usable, nil
}

// Check returns an error that names every CPU of list that is not in usable, says why it is not (it does not exist, is
// offline, or is not allowed to this process) and lists those that are.
func Check(list, usable []int) error {
	// Where sysfs does not tell, a CPU is only known to be unusable.
	present, _ := sysList("present")
	online, _ := sysList("online")
	return check(list, usable, present, online)
}

func check(list, usable, present, online []int) error {
	var missing, offline, barred, other []int
	for _, cpu := range list {
		switch {
		case slices.Contains(usable, cpu):
		case present != nil && !slices.Contains(present, cpu):
			missing = append(missing, cpu)
		case online != nil && !slices.Contains(online, cpu):
			offline = append(offline, cpu)
		case online != nil:
			barred = append(barred, cpu)
		default:
			other = append(other, cpu)
		}
	}
	var problems []string
	add := func(cpus []int, one, several string) {
		switch len(cpus) {
		case 0:
		case 1:
			problems = append(problems, fmt.Sprintf("cpu %d %s", cpus[0], one))
		default:
			problems = append(problems, fmt.Sprintf("cpus %s %s", Format(cpus), several))
		}
	}
	add(missing, "does not exist", "do not exist")
	add(offline, "is offline", "are offline")
	add(barred, "is not allowed to this process (taskset or a cpuset cgroup)",
		"are not allowed to this process (taskset or a cpuset cgroup)")
	add(other, "cannot be used", "cannot be used")
	if problems == nil {
		return nil
	}
	return fmt.Errorf("%s: usable are %s", strings.Join(problems, "; "), Format(usable))
}

// Pin binds the calling thread to a CPU. The caller has locked its goroutine to the thread (runtime.LockOSThread) and
// lets the thread die with it, as there is no way back.
func Pin(cpu int) error {
	if cpu < 0 || cpu > Max {
		return fmt.Errorf("pin to cpu %d: want a number from 0 to %d", cpu, Max)
	}
	mask := make([]uint, cpu/wordBits+1)
	mask[cpu/wordBits] = 1 << (cpu % wordBits)
	_, _, errno := unix.RawSyscall(unix.SYS_SCHED_SETAFFINITY, 0, uintptr(len(mask)*wordBits/8),
		uintptr(unsafe.Pointer(unsafe.SliceData(mask))))
	if errno == unix.EINVAL {
		return fmt.Errorf("pin to cpu %d: it is offline, not allowed to this process, or does not exist: %w", cpu, errno)
	}
	if errno != 0 {
		return fmt.Errorf("pin to cpu %d: %w", cpu, errno)
	}
	got, err := affinity(0)
	if err != nil {
		return fmt.Errorf("pin to cpu %d: verify: %w", cpu, err)
	}
	if !slices.Equal(got, []int{cpu}) {
		return fmt.Errorf("pin to cpu %d: the thread is allowed to run on %s", cpu, Format(got))
	}
	return nil
}

// affinity returns the CPUs that a thread may run on; tid 0 is the calling one. The kernel answers EINVAL to a mask
// that is shorter than its own (kernel/sched/syscalls.c), of which it does not tell the size.
func affinity(tid int) ([]int, error) {
	return growing(func(mask []uint) (int, error) {
		n, _, errno := unix.RawSyscall(unix.SYS_SCHED_GETAFFINITY, uintptr(tid), uintptr(len(mask)*wordBits/8),
			uintptr(unsafe.Pointer(unsafe.SliceData(mask))))
		if errno != 0 {
			return 0, errno
		}
		return int(n), nil
	})
}

// growing calls get with larger and larger masks until it does not answer EINVAL, and returns the CPUs in the mask. get
// returns how many bytes it has written.
func growing(get func(mask []uint) (int, error)) ([]int, error) {
	for words := 1024 / wordBits; ; words *= 2 {
		mask := make([]uint, words)
		n, err := get(mask)
		if errors.Is(err, unix.EINVAL) && words < maxMask {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("sched_getaffinity of a mask of %d bits: %w", words*wordBits, err)
		}
		var cpus []int
		for i, word := range mask[:min(words, n*8/wordBits)] {
			for ; word != 0; word &= word - 1 {
				cpus = append(cpus, i*wordBits+bits.TrailingZeros(word))
			}
		}
		return cpus, nil
	}
}

// sysList reads a CPU list of sysfs.
func sysList(name string) ([]int, error) {
	b, err := os.ReadFile(sysCPU + name)
	if err != nil {
		return nil, err
	}
	return Parse(strings.TrimSpace(string(b)))
}

func intersect(a, b []int) []int {
	var both []int
	for _, cpu := range a {
		if slices.Contains(b, cpu) {
			both = append(both, cpu)
		}
	}
	return both
}
