package kernel

import (
	"errors"
	"fmt"
	"os"
	"reflect"
	"strings"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/features"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"

	"bpfbench/internal/tracefs"
)

// What probes attach to: places that every kernel has, and that hardly anyone comes by.
const (
	// target is a function that takes any kind of probe. Only the test_run of tracing programs calls it
	// (net/bpf/test_run.c, Linux 5.5).
	target = "bpf_fentry_test1"
	// The tracepoint is passed when a task is made (include/trace/events/task.h).
	tracepointGroup, tracepointName = "task", "task_newtask"
)

// attach loads a program that does nothing, attaches it and takes it away again.
func attach(spec ebpf.ProgramSpec, to func(*ebpf.Program) (link.Link, error)) error {
	spec.License = "Dual MIT/GPL"
	spec.Instructions = asm.Instructions{asm.Mov.Imm(asm.R0, 0), asm.Return()}
	prog, err := ebpf.NewProgram(&spec)
	if err != nil {
		return fmt.Errorf("load program: %w", err)
	}
	defer func() { _ = prog.Close() }()
	l, err := to(prog)
	if err != nil {
		return fmt.Errorf("attach: %w", err)
	}
	if err := l.Close(); err != nil {
		return fmt.Errorf("detach: %w", err)
	}
	return nil
}

func attachRawTracepoint() error {
	return attach(ebpf.ProgramSpec{Type: ebpf.RawTracepoint}, func(prog *ebpf.Program) (link.Link, error) {
		return link.AttachRawTracepoint(link.RawTracepointOptions{Name: tracepointName, Program: prog})
	})
}

func attachTracepoint() error {
	return withTracefs(func() error {
		return attach(ebpf.ProgramSpec{Type: ebpf.TracePoint}, func(prog *ebpf.Program) (link.Link, error) {
			return link.Tracepoint(tracepointGroup, tracepointName, prog, nil)
		})
	})
}

func attachFentry() error {
	spec := ebpf.ProgramSpec{Type: ebpf.Tracing, AttachType: ebpf.AttachTraceFEntry, AttachTo: target}
	return attach(spec, func(prog *ebpf.Program) (link.Link, error) {
		return link.AttachTracing(link.TracingOptions{Program: prog})
	})
}

// attachKprobe attaches by a perf event; where the kernel does not make one, the library goes by tracefs.
func attachKprobe() error {
	return withTracefs(func() error {
		return attach(ebpf.ProgramSpec{Type: ebpf.Kprobe}, func(prog *ebpf.Program) (link.Link, error) {
			return link.Kprobe(target, prog, nil)
		})
	})
}

func attachKretprobe() error {
	return withTracefs(func() error {
		return attach(ebpf.ProgramSpec{Type: ebpf.Kprobe}, func(prog *ebpf.Program) (link.Link, error) {
			return link.Kretprobe(target, prog, nil)
		})
	})
}

func attachKprobeMulti() error {
	spec := ebpf.ProgramSpec{Type: ebpf.Kprobe, AttachType: ebpf.AttachTraceKprobeMulti}
	return attach(spec, func(prog *ebpf.Program) (link.Link, error) {
		return link.KprobeMulti(prog, link.KprobeMultiOptions{Symbols: []string{target}})
	})
}

func attachUprobe() error {
	exe, offset, err := userTarget()
	if err != nil {
		return err
	}
	return withTracefs(func() error {
		return attach(ebpf.ProgramSpec{Type: ebpf.Kprobe}, func(prog *ebpf.Program) (link.Link, error) {
			return exe.Uprobe("", prog, &link.UprobeOptions{Address: offset, PID: os.Getpid()})
		})
	})
}

func attachUprobeMulti() error {
	exe, offset, err := userTarget()
	if err != nil {
		return err
	}
	// Asked first, as the kernel answers EINVAL to what it does not know and to what is wrong.
	if err := features.HaveBPFLinkUprobeMulti(); err != nil {
		return err
	}
	spec := ebpf.ProgramSpec{Type: ebpf.Kprobe, AttachType: ebpf.AttachTraceUprobeMulti}
	return attach(spec, func(prog *ebpf.Program) (link.Link, error) {
		return exe.UprobeMulti(nil, prog, &link.UprobeMultiOptions{Addresses: []uint64{offset}, PID: uint32(os.Getpid())})
	})
}

// probed is for user probes. Nobody calls it.
//
//go:noinline
func probed() int { return os.Getpid() }

// userTarget returns this program and the offset of probed in its file. It needs no symbols, which may be stripped.
func userTarget() (*link.Executable, uint64, error) {
	exe, err := link.OpenExecutable("/proc/self/exe")
	if err != nil {
		return nil, 0, err
	}
	maps, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		return nil, 0, err
	}
	pc := uint64(reflect.ValueOf(probed).Pointer())
	for line := range strings.Lines(string(maps)) {
		var start, end, offset uint64
		var mode string
		if _, err := fmt.Sscanf(line, "%x-%x %s %x", &start, &end, &mode, &offset); err == nil && start <= pc && pc < end {
			return exe, pc - start + offset, nil
		}
	}
	return nil, 0, fmt.Errorf("find function at %#x in /proc/self/maps: it is in none of the mappings", pc)
}

// fillRingBuffer has a program put a record into a ring buffer.
func fillRingBuffer() error {
	ring, err := ebpf.NewMap(&ebpf.MapSpec{Type: ebpf.RingBuf, MaxEntries: uint32(os.Getpagesize())})
	if errors.Is(err, unix.EINVAL) {
		return fmt.Errorf("create map: %w (%w)", ebpf.ErrNotSupported, err)
	}
	if err != nil {
		return fmt.Errorf("create map: %w", err)
	}
	defer func() { _ = ring.Close() }()
	prog, err := ebpf.NewProgram(&ebpf.ProgramSpec{
		Type: ebpf.RawTracepoint, License: "Dual MIT/GPL",
		Instructions: asm.Instructions{
			asm.Mov.Imm(asm.R1, 42), asm.StoreMem(asm.RFP, -8, asm.R1, asm.DWord),
			asm.LoadMapPtr(asm.R1, ring.FD()), asm.Mov.Reg(asm.R2, asm.RFP), asm.Add.Imm(asm.R2, -8),
			asm.Mov.Imm(asm.R3, 8), asm.Mov.Imm(asm.R4, 0), asm.FnRingbufOutput.Call(), asm.Return(),
		},
	})
	if err != nil {
		return fmt.Errorf("load program: %w", err)
	}
	defer func() { _ = prog.Close() }()
	got, err := prog.Run(&ebpf.RunOptions{})
	if err != nil {
		return fmt.Errorf("run program: %w", err)
	}
	if got != 0 {
		return fmt.Errorf("put a record into the ring buffer: %w", unix.Errno(-int32(got)))
	}
	return nil
}

func loop() error { return Helper(ebpf.RawTracepoint, asm.FnLoop) }

// withTracefs does something with tracefs mounted. The library looks for it once only, and remembers that it was not there.
func withTracefs(do func() error) error {
	if err := tracefs.Mount(); err != nil {
		return Explain(err, "mount tracefs", CapSysAdmin)
	}
	return do()
}
