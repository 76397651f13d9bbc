package fetcharg

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"

	"bpfbench/internal/testutils"
	"bpfbench/producers"
	"bpfbench/progs"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/btf"
	"github.com/cilium/ebpf/link"
)

// stub is the name of a function that every kernel with BPF has, with three arguments, and that tests can have called.
const stub = "bpf_strncmp"

// driver is a program that calls a function of the kernel.
type driver struct {
	coll *ebpf.Collection
	run  *producers.TestRun
}

// newDriver loads one of progs' programs: progs.FetchargProgCallStrncmp or progs.FetchargProgCallTrigger.
func newDriver(t testing.TB, name string) *driver {
	t.Helper()
	testutils.NeedsBPF(t)
	spec, err := progs.LoadFetcharg()
	if err != nil {
		t.Fatal(err)
	}
	for other := range spec.Programs {
		if other != name {
			delete(spec.Programs, other)
		}
	}
	coll, err := ebpf.NewCollection(spec)
	if err != nil {
		t.Skipf("load the program that calls the function: %v", err)
	}
	t.Cleanup(coll.Close)
	return &driver{coll, producers.NewTestRun(coll.Programs[name].FD(), 0)}
}

// call makes so many calls, and returns how many nanoseconds they took.
func (d *driver) call(t testing.TB, loops, nonce, value uint32) uint64 {
	t.Helper()
	slots := d.coll.Maps[progs.FetchargMapSlots]
	slot := progs.FetchargFetchSlot{Loops: loops, Nonce: nonce, Value: value}
	if err := slots.Put(uint32(0), &slot); err != nil {
		t.Fatal(err)
	}
	if err := d.run.Run(); err != nil {
		t.Fatal(err)
	}
	if err := slots.Lookup(uint32(0), &slot); err != nil {
		t.Fatal(err)
	}
	if slot.Ops != uint64(loops) {
		t.Fatalf("%d calls of %d", slot.Ops, loops)
	}
	return slot.Ns
}

// leafEvent returns a probe on the function of package producers, without arguments.
func leafEvent(t testing.TB, kind Kind) Event {
	t.Helper()
	file, offset, err := producers.LeafLocation()
	if err != nil {
		t.Fatal(err)
	}
	return Event{Kind: kind, Target: file, Offset: offset}
}

// newLeaf returns what calls that function, with the arguments that the driver's has.
func newLeaf() *producers.Leaf {
	b, text := uint32(probedB), []byte(probedText)
	pointer := &b
	return &producers.Leaf{A: probedA, B: &pointer, C: &text[0]}
}

// load loads a compiled program. The verifier's log is in the test's if it refuses it.
func load(t testing.TB, c *Compiled) *ebpf.Collection {
	t.Helper()
	coll, err := ebpf.NewCollection(c.Spec)
	if err != nil {
		t.Fatal(explain(c, err))
	}
	t.Cleanup(coll.Close)
	return coll
}

// explain adds the verifier's log and the program to an error.
func explain(c *Compiled, err error) error {
	var dump bytes.Buffer
	if dumpErr := c.Dump(&dump); dumpErr != nil {
		return dumpErr
	}
	var refused *ebpf.VerifierError
	if errors.As(err, &refused) {
		return fmt.Errorf("%s\n%w\n%+v", c.event.Args, err, refused)
	}
	return fmt.Errorf("%w\n%s", err, dump.String())
}

// attach attaches a program to the event's target.
func attach(e Event, prog *ebpf.Program) (io.Closer, error) {
	switch e.Kind {
	case Kprobe:
		return link.Kprobe(e.Target, prog, &link.KprobeOptions{Offset: e.Offset})
	case Kretprobe:
		return link.Kretprobe(e.Target, prog, nil)
	case Fprobe:
		return link.KprobeMulti(prog, link.KprobeMultiOptions{Symbols: []string{e.Target}})
	case FprobeReturn:
		return link.KretprobeMulti(prog, link.KprobeMultiOptions{Symbols: []string{e.Target}})
	case Tprobe:
		return link.AttachRawTracepoint(link.RawTracepointOptions{Name: e.Target, Program: prog})
	case Eprobe:
		system, event, _ := strings.Cut(e.Target, ".")
		return link.Tracepoint(system, event, prog, nil)
	}
	binary, err := link.OpenExecutable(e.Target)
	if err != nil {
		return nil, err
	}
	opt := &link.UprobeOptions{Address: e.Offset, PID: os.Getpid()}
	if e.Kind == Uretprobe {
		return binary.Uretprobe("", prog, opt)
	}
	return binary.Uprobe("", prog, opt)
}

// mustAttach attaches a loaded program for the time of the test, or until the returned function is called.
func mustAttach(t testing.TB, e Event, coll *ebpf.Collection) (detach func()) {
	t.Helper()
	l, err := attach(e, coll.Programs[ProgramName])
	if err != nil {
		t.Fatalf("attach to %s: %v", e.Target, err)
	}
	open := true
	detach = func() {
		if open {
			open = false
			if err := l.Close(); err != nil {
				t.Error(err)
			}
		}
	}
	t.Cleanup(detach)
	return detach
}

// lastRecord returns the hits of all CPUs, and the record of one that has some.
func lastRecord(t testing.TB, coll *ebpf.Collection) (hits uint64, record []byte) {
	t.Helper()
	var values [][]byte
	if err := coll.Maps[mapLast].Lookup(uint32(0), &values); err != nil {
		t.Fatal(err)
	}
	for _, v := range values {
		if n := binary.NativeEndian.Uint64(v); n > 0 {
			hits += n
			record = v[LastOffset:]
		}
	}
	return hits, record
}

// symbols finds symbols in a table that is read once.
func symbols(t testing.TB) func(string) (uint64, error) {
	t.Helper()
	data, err := os.ReadFile("/proc/kallsyms")
	if err != nil {
		t.Fatal(err)
	}
	table := map[string]uint64{}
	for line := range strings.Lines(string(data)) {
		var address uint64
		var kind, name string
		if _, err := fmt.Sscanf(line, "%x %s %s", &address, &kind, &name); err != nil {
			t.Fatal(err)
		}
		if _, ok := table[name]; !ok {
			table[name] = address
		}
	}
	return func(name string) (uint64, error) {
		if address, ok := table[name]; ok {
			return address, nil
		}
		return 0, errors.New("there is no such symbol")
	}
}

// kernelBTF returns the running kernel's types, or nil if it has none.
func kernelBTF(t testing.TB) *btf.Spec {
	t.Helper()
	spec, err := btf.LoadKernelSpec()
	if err != nil {
		t.Logf("no BTF: %v", err)
	}
	return spec
}

// kernelLoads returns how programs for the running kernel read by loads, or nil. Debian's kernels from 6.12 on can.
func kernelLoads(t testing.TB) *Loads {
	t.Helper()
	loads, err := KernelLoads()
	if err != nil {
		t.Logf("no loads: %v", err)
		if version, known := runningVersion(t), os.Getenv(guestVar) != ""; known && !version.Before(v6_12) {
			t.Error(err)
		}
	}
	return loads
}
