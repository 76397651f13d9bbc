package suite

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"time"
	"unsafe"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"bpfbench/bench/harness"
	"bpfbench/fetcharg"
	"bpfbench/internal/kernel"
	"bpfbench/producers"
	"bpfbench/progs"
)

// fetchDriver calls a target.
type fetchDriver struct {
	// call returns what makes count×passes calls as producer w.
	call  func(w *harness.Worker) (func(first, count, passes uint32) (producers.Done, error), error)
	close func() error
}

// What the drivers pass in, for the arguments a, b and c.
const (
	passedA = 8 // a number: bpf_strncmp's second argument is the size of a pointer
	passedB = 77
	passedC = uint64('b') | 'e'<<8 | 'n'<<16 | 'c'<<24 // the first bytes of the text "bench"
)

var passed = [3][]uint64{{passedA}, {passedB}, {passedC}}

func wantPassed() ([3][]uint64, error) { return passed, nil }

var fetchKinds = []*fetchKind{
	{name: fetchBaseline, targets: []fetchTarget{strncmp([3]string{}, wantPassed), triggerTarget("", ""), leaf}},
	{name: "kprobe", hook: "kprobe-event", summary: "a kprobe", kind: fetcharg.Kprobe, targets: []fetchTarget{strncmp(entryArgs, wantPassed)}},
	{name: "kretprobe", hook: "kretprobe-event", summary: "a kretprobe", kind: fetcharg.Kretprobe,
		targets: []fetchTarget{strncmp(returnArgs, wantMemory(1, 0xffffffff))}}, // strncmp returns 1 or -1 in the kernel
	{name: "fprobe", hook: "fprobe-event", summary: "an fprobe", kind: fetcharg.Fprobe, targets: []fetchTarget{strncmp(entryArgs, wantPassed)}},
	{name: "tprobe", hook: "tprobe-event", summary: "a tprobe", kind: fetcharg.Tprobe, targets: []fetchTarget{triggerTarget("bpf_trigger_tp", "a=$arg1")}},
	{name: "eprobe", hook: "eprobe-event", summary: "an eprobe", kind: fetcharg.Eprobe,
		targets: []fetchTarget{triggerTarget("bpf_test_run.bpf_trigger_tp", "a=$nonce"), mincore}},
	{name: "uprobe", hook: "uprobe", summary: "a uprobe", kind: fetcharg.Uprobe, targets: []fetchTarget{leaf}},
}

var (
	entryArgs = [3]string{"a=$arg2", "b=+0(+0($arg1)):u32", "c=+0($arg3):u32"}
	// A return probe has the returned value; the arguments may be gone by then, so memory of the kernel is read instead.
	returnArgs = [3]string{"a=$retval:x32", memoryB, memoryC}
)

// Memory of the kernel with a pointer to read and to follow, and some text.
const (
	memoryB = "b=+0(@saved_command_line):u32"
	memoryC = "c=@linux_banner:u32"
)

// wantMemory is what a, memoryB and memoryC fetch.
func wantMemory(a ...uint64) func() ([3][]uint64, error) {
	return func() ([3][]uint64, error) {
		cmdline, err := os.ReadFile("/proc/cmdline")
		if err != nil || len(cmdline) < 4 {
			return [3][]uint64{}, fmt.Errorf("read the kernel's command line: %d bytes, %w", len(cmdline), err)
		}
		first := func(s string) uint64 { return uint64(s[0]) | uint64(s[1])<<8 | uint64(s[2])<<16 | uint64(s[3])<<24 }
		return [3][]uint64{a, {first(string(cmdline))}, {first("Linux version")}}, nil
	}
}

// strncmp is the BPF helper bpf_strncmp, called by a program.
func strncmp(args [3]string, want func() ([3][]uint64, error)) fetchTarget {
	return fetchTarget{
		name:   "strncmp",
		spot:   func() (string, uint64, error) { return "bpf_strncmp", 0, nil },
		driver: func(producers int) (*fetchDriver, error) { return loadDriver(progs.FetchargProgCallStrncmp, producers) },
		has:    hasLoop,
		args:   args,
		want:   want,
	}
}

// triggerTarget is the tracepoint bpf_trigger_tp, hit by a program through a kfunc. a is what fetches the number it passes.
func triggerTarget(spot, a string) fetchTarget {
	return fetchTarget{
		name:   "trigger",
		spot:   func() (string, uint64, error) { return spot, 0, nil },
		driver: func(producers int) (*fetchDriver, error) { return loadDriver(progs.FetchargProgCallTrigger, producers) },
		has:    func() error { return errors.Join(hasLoop(), hasTrigger()) },
		args:   [3]string{a, memoryB, memoryC},
		want:   wantMemory(passedA),
	}
}

// hasTrigger is nil where the kernel has the kfunc that hits the tracepoint.
var hasTrigger = hasFunction("bpf_modify_return_test_tp", "the tracepoint bpf_trigger_tp", "Linux 6.10")

// mincore is the system call of that name, which nobody else is likely to call just now, with arguments that it refuses.
var mincore = fetchTarget{
	name: "mincore",
	spot: func() (string, uint64, error) { return "syscalls.sys_enter_mincore", 0, nil },
	driver: func(int) (*fetchDriver, error) {
		return &fetchDriver{call: callMincore, close: func() error { return nil }}, nil
	},
	has:  func() error { return nil },
	args: [3]string{"a=$len", "b=+u0(+u0($start)):u32", "c=+u0($vec):u32"},
	want: wantPassed,
}

func callMincore(*harness.Worker) (func(first, count, passes uint32) (producers.Done, error), error) {
	b, c := newPassed()
	return func(_, count, passes uint32) (producers.Done, error) {
		n := uint64(count) * uint64(passes)
		start := time.Now()
		for range n {
			// An address that is not a page's: EINVAL.
			if _, _, errno := unix.RawSyscall(unix.SYS_MINCORE, uintptr(unsafe.Pointer(b)), passedA, uintptr(unsafe.Pointer(c))); errno != unix.EINVAL {
				return producers.Done{}, fmt.Errorf("call mincore with an address that is none: want %w, got %w", unix.EINVAL, errno)
			}
		}
		took := time.Since(start)
		runtime.KeepAlive(b)
		return producers.Done{CPU: currentCPU(), Ops: n, Elapsed: uint64(took)}, nil
	}, nil
}

// leaf is a function of this binary.
var leaf = fetchTarget{
	name: "leaf",
	spot: producers.LeafLocation,
	driver: func(int) (*fetchDriver, error) {
		return &fetchDriver{call: callLeaf, close: func() error { return nil }}, nil
	},
	has:  func() error { return nil },
	args: leafArgs[runtime.GOARCH],
	want: wantPassed,
}

// leafArgs fetch from the registers of C's first three arguments.
var leafArgs = map[string][3]string{
	"amd64": {"a=%di", "b=+0(+0(%si)):u32", "c=+0(%dx):u32"},
	"arm64": {"a=%x0", "b=+0(+0(%x1)):u32", "c=+0(%x2):u32"},
}

func callLeaf(*harness.Worker) (func(first, count, passes uint32) (producers.Done, error), error) {
	b, c := newPassed()
	l := &producers.Leaf{A: passedA, B: b, C: c}
	return func(_, count, passes uint32) (producers.Done, error) {
		n := uint64(count) * uint64(passes)
		took := l.Call(n)
		return producers.Done{CPU: currentCPU(), Ops: n, Elapsed: uint64(took)}, nil
	}, nil
}

// newPassed returns what is passed to functions of user space as b and c.
func newPassed() (b **uint32, c *byte) {
	number, text := new(uint32), []byte("bench\x00\x00\x00")
	*number = passedB
	// The second of two is never at the begin of a page, which mincore would take.
	pointers := &[2]*uint32{1: number}
	return &pointers[1], &text[0]
}

// currentCPU is the CPU that the thread runs on, or has until just now.
func currentCPU() int {
	var cpu uint32
	if _, _, errno := unix.RawSyscall(unix.SYS_GETCPU, uintptr(unsafe.Pointer(&cpu)), 0, 0); errno != 0 {
		return -1
	}
	return int(cpu)
}

// loadDriver loads a program that calls a function, with a slot for each producer.
func loadDriver(name string, n int) (*fetchDriver, error) {
	spec, err := progs.LoadFetcharg()
	if err != nil {
		return nil, fmt.Errorf("read the driver: %w", err)
	}
	for other := range spec.Programs {
		if other != name {
			delete(spec.Programs, other)
		}
	}
	spec.Maps[progs.FetchargMapSlots].MaxEntries = uint32(n)
	coll, err := ebpf.NewCollection(spec)
	if err != nil {
		return nil, kernel.Explain(err, "load the driver", kernel.CapBPF, kernel.CapPerfmon)
	}
	slots, err := mapSlots(coll.Maps[progs.FetchargMapSlots])
	if err != nil {
		coll.Close()
		return nil, err
	}
	call := func(w *harness.Worker) (func(first, count, passes uint32) (producers.Done, error), error) {
		c := new(driverCall)
		slot := unsafe.Slice((*byte)(unsafe.Pointer(&c.slot)), unsafe.Sizeof(c.slot))
		c.exchange = exchange{memory: slots[w.ID*len(slot):][:len(slot)], run: producers.NewTestRun(coll.Programs[name].FD(), uint64(w.ID)),
			slot: slot, request: len(slot)}
		return c.do, nil
	}
	return &fetchDriver{call: call, close: func() error {
		coll.Close()
		return unix.Munmap(slots)
	}}, nil
}

// driverCall asks the driver for calls through a slot.
type driverCall struct {
	exchange
	slot progs.FetchargFetchSlot
}

func (c *driverCall) do(_, count, passes uint32) (producers.Done, error) {
	loops := uint64(count) * uint64(passes)
	c.slot = progs.FetchargFetchSlot{Loops: uint32(loops), Nonce: passedA, Value: passedB}
	if err := c.exchange.do(); err != nil {
		return producers.Done{}, err
	}
	s := &c.slot
	if s.Calls != 1 || s.Ops != loops {
		return producers.Done{}, fmt.Errorf("the driver ran %d times and made %d calls of %d", s.Calls, s.Ops, loops)
	}
	return producers.Done{CPU: int(s.Cpu), Ops: s.Ops, Elapsed: s.Ns}, nil
}
