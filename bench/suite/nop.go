package suite

import (
	"context"
	"errors"
	"fmt"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/spf13/pflag"
	"golang.org/x/sys/unix"

	"bpfbench/bench/harness"
	"bpfbench/internal/kernel"
	"bpfbench/progs"
	"bpfbench/report"
)

func init() {
	harness.Register(&harness.Benchmark{
		Name:    "bpf-nop",
		Op:      "iteration",
		Summary: "Runs an empty loop in BPF, to find what a loop around a measured operation costs.",
		Timing: "Timed in the kernel: a loop over an index with may_goto and nothing else in it, which is the cheapest that BPF has, " +
			"and not the bpf_loop that most benchmarks here have around their operations (see bpf-loop). Not timed: the call that starts the program.",
		Form:      report.FormTiming,
		Requires:  []func() error{kernel.RawTracepoint, mayGoto},
		Producers: harness.Workers{Min: 1, Default: 1, Max: harness.AnyNumber},
		New:       func() harness.Config { return nop{} },
	})
}

// mayGoto probes whether the verifier knows the instruction may_goto.
func mayGoto() error {
	const jcond = asm.OpCode(0xe5) // BPF_JMP | BPF_JCOND
	prog, err := ebpf.NewProgram(&ebpf.ProgramSpec{
		Type:         ebpf.RawTracepoint,
		Instructions: asm.Instructions{asm.Mov.Imm(asm.R0, 0), {OpCode: jcond, Offset: 1}, asm.Mov.Imm(asm.R0, 0), asm.Return()},
		License:      "Dual MIT/GPL",
	})
	if errors.Is(err, unix.EINVAL) {
		return &kernel.Error{Feature: "may_goto", Outcome: kernel.Missing, Needs: "Linux 6.9", Err: err}
	}
	if err != nil {
		return kernel.Explain(err, "may_goto", kernel.CapBPF, kernel.CapPerfmon)
	}
	return prog.Close()
}

// nop is the parameters of bpf-nop: none.
type nop struct{}

// A sample of bpf-nop is nopCalls calls of nopLoop iterations each. Kernels in which may_goto looks at the clock do so after 65535
// iterations (BPF_MAX_TIMED_LOOPS), and end the loop where 250 ms have passed, on a busy machine in vain.
const (
	nopLoop  = 63 << 10
	nopCalls = 64
)

func (nop) Flags(*pflag.FlagSet)            {}
func (nop) Resolve() error                  { return nil }
func (nop) Params() []report.Param          { return nil }
func (nop) Facts() []report.Param           { return nil }
func (nop) FlagValues() map[string][]string { return nil }

func (nop) Setup(_ context.Context, env harness.Env) (*harness.Instance, error) {
	spec, err := progs.LoadNop()
	if err != nil {
		return nil, fmt.Errorf("read the program: %w", err)
	}
	k, err := loadWork(spec, triggerTestRun, env.Producers, nil)
	if err != nil {
		return nil, err
	}
	return &harness.Instance{Close: k.close, Producer: func(w *harness.Worker) (harness.Producer, error) {
		s := k.split(w, uint32(progs.NopModeMODE_WORK), "loop", nopLoop, nopCalls)
		s.Whole, s.Most = true, nopLoop
		return harness.Producer{Batch: s.Batch}, nil
	}}, nil
}
