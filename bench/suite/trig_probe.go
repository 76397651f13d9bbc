package suite

import (
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"

	"bpfbench/internal/kernel"
	"bpfbench/internal/tracefs"
)

// keep removes all programs but these, which are all that is loaded then.
func keep(spec *ebpf.CollectionSpec, programs ...string) {
	maps.DeleteFunc(spec.Programs, func(name string, _ *ebpf.ProgramSpec) bool { return !slices.Contains(programs, name) })
}

// attach puts a program where it is to run.
type attach func(*ebpf.Program) (link.Link, error)

func atKprobe(function string) attach {
	return func(p *ebpf.Program) (link.Link, error) { return link.Kprobe(function, p, nil) }
}

func atKretprobe(function string) attach {
	return func(p *ebpf.Program) (link.Link, error) { return link.Kretprobe(function, p, nil) }
}

func atKprobeMulti(functions ...string) attach {
	return func(p *ebpf.Program) (link.Link, error) {
		return link.KprobeMulti(p, link.KprobeMultiOptions{Symbols: functions})
	}
}

func atKretprobeMulti(functions ...string) attach {
	return func(p *ebpf.Program) (link.Link, error) {
		return link.KretprobeMulti(p, link.KprobeMultiOptions{Symbols: functions})
	}
}

// atModule is for programs of security modules, which know their hook.
func atModule(p *ebpf.Program) (link.Link, error) {
	return link.AttachLSM(link.LSMOptions{Program: p})
}

// atFunction is for programs of the types fentry, fexit, fmod_ret and tp_btf, which know their function or tracepoint.
func atFunction(p *ebpf.Program) (link.Link, error) {
	return link.AttachTracing(link.TracingOptions{Program: p})
}

func atTracepoint(group, name string) attach {
	return func(p *ebpf.Program) (link.Link, error) {
		if err := tracefs.Mount(); err != nil {
			return nil, err
		}
		return link.Tracepoint(group, name, p, nil)
	}
}

func atRawTracepoint(name string) attach {
	return func(p *ebpf.Program) (link.Link, error) {
		return link.AttachRawTracepoint(link.RawTracepointOptions{Name: name, Program: p})
	}
}

// probe is a program that is attached, until it is detached, which several threads may ask for.
type probe struct {
	prog   *ebpf.Program
	link   link.Link
	once   sync.Once
	err    error  // of detaching
	missed uint64 // hits that the kernel knows it did not show to the program
}

func newProbe(prog *ebpf.Program, where string, at attach) (*probe, error) {
	l, err := at(prog)
	if err != nil {
		return nil, kernel.Explain(err, "attach to "+where, kernel.CapBPF, kernel.CapPerfmon)
	}
	return &probe{prog: prog, link: l}, nil
}

func (p *probe) detach() error {
	p.once.Do(func() {
		p.missed = missedBy(p.link)
		p.err = p.link.Close()
		if stats, err := p.prog.Stats(); err == nil {
			p.missed += stats.RecursionMisses
		}
	})
	return p.err
}

// missedBy is what a link tells of hits that the kernel was not ready for, such as for lack of a kretprobe's instance. Before
// Linux 6.7 it tells nothing.
func missedBy(l link.Link) uint64 {
	info, err := l.Info()
	if err != nil {
		return 0
	}
	if multi := info.KprobeMulti(); multi != nil {
		return multi.Missed
	}
	if event := info.PerfEvent(); event != nil {
		if k := event.Kprobe(); k != nil {
			return k.Missed
		}
	}
	return 0
}

// judge compares the hits that a program counted until it was detached with the calls that should have hit it.
func (p *probe) judge(hits, calls uint64) error {
	switch {
	case hits == calls:
		return nil
	case p.missed > 0:
		return fmt.Errorf("the program counted %d hits in %d calls, and the kernel missed %d, as another program ran on that CPU: bind the producers to CPUs of their own (-a)",
			hits, calls, p.missed)
	}
	return fmt.Errorf("the program counted %d hits in %d calls", hits, calls)
}
