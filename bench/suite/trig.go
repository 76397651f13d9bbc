package suite

import (
	"context"
	"errors"
	"time"

	"github.com/spf13/pflag"
	"golang.org/x/sys/unix"

	"bpfbench/bench/harness"
	"bpfbench/internal/host"
	"bpfbench/internal/kernel"
	"bpfbench/internal/number"
	"bpfbench/producers"
	"bpfbench/progs"
	"bpfbench/report"
)

// trigKind is a way to make a program run in the kernel, and the driver that uses it.
type trigKind struct {
	name    string // after "trig-"
	what    string // the driver's calls hit
	hook    string // of package kernel
	driver  string // the program that calls
	program string // that is hit; empty where the driver counts its own calls
	at      attach
	all     func(functions ...string) attach // of the program on all other functions; nil for none
}

// What the drivers call: a helper function, and a kfunc that does nothing but hit a tracepoint.
const (
	numaNode  = "bpf_get_numa_node_id"
	triggerTp = "bpf_trigger_tp"
)

var trigKinds = []trigKind{
	{name: "kernel-count", driver: progs.TriggerProgCallCounted},
	{name: "kprobe", what: "a kprobe", hook: "kprobe", program: progs.TriggerProgOnKprobe, at: atKprobe(numaNode)},
	{name: "kretprobe", what: "a kretprobe", hook: "kretprobe", program: progs.TriggerProgOnKprobe, at: atKretprobe(numaNode)},
	{name: "kprobe-multi", what: "a kprobe by a link for many (fprobe)", hook: "kprobe.multi", program: progs.TriggerProgOnKprobeMulti, at: atKprobeMulti(numaNode)},
	{name: "kretprobe-multi", what: "a kretprobe by a link for many (fprobe)", hook: "kprobe.multi", program: progs.TriggerProgOnKprobeMulti, at: atKretprobeMulti(numaNode)},
	{name: "kprobe-multi-all", what: "a kprobe by a link for many, while there is one on nearly all functions of the kernel", hook: "kprobe.multi",
		program: progs.TriggerProgOnKprobeMulti, at: atKprobeMulti(numaNode), all: atKprobeMulti},
	{name: "kretprobe-multi-all", what: "a kretprobe by a link for many, while there is one on nearly all functions of the kernel", hook: "kprobe.multi",
		program: progs.TriggerProgOnKprobeMulti, at: atKretprobeMulti(numaNode), all: atKretprobeMulti},
	{name: "fentry", what: "an fentry program", hook: "fentry", program: progs.TriggerProgOnFentry, at: atFunction},
	{name: "fexit", what: "an fexit program", hook: "fentry", program: progs.TriggerProgOnFexit, at: atFunction},
	{name: "fmodret", what: "an fmod_ret program", hook: "fentry", driver: progs.TriggerProgCallKfunc, program: progs.TriggerProgOnFmodret, at: atFunction},
	{name: "tp", what: "a tracepoint", hook: "tracepoint", driver: progs.TriggerProgCallKfunc, program: progs.TriggerProgOnTp, at: atTracepoint("bpf_test_run", triggerTp)},
	{name: "rawtp", what: "a raw tracepoint", hook: "raw_tp", driver: progs.TriggerProgCallKfunc, program: progs.TriggerProgOnRawtp, at: atRawTracepoint(triggerTp)},
}

func init() {
	for i := range trigKinds {
		k := &trigKinds[i]
		if k.driver == "" {
			k.driver = progs.TriggerProgCallHelper
		}
		harness.Register(k.describe())
	}
	registerUser(&harness.Benchmark{
		Name: "trig-usermode-count", Op: "call", Summary: "Calls an empty function in user space.",
		Timing: "Timed: a loop of calls, as one batch. Not timed: handing over a batch.",
	}, usermodeCount)
	registerUser(&harness.Benchmark{
		Name: "trig-syscall-count", Op: "call", Summary: "Makes the system call getpgid(0).",
		Timing: "Timed: a loop of the system call, in assembly, in which each answer is compared with the right one. Not timed: handing over a batch.",
	}, syscallCount)
	harness.RegisterSuite(&harness.Suite{
		Name:    "trigger",
		Ladder:  true,
		Summary: "Compares the ways to make a program run in the kernel.",
		Lines: func(bool) [][]string {
			var lines [][]string
			for _, name := range []string{"usermode-count", "kernel-count", "syscall-count", "fentry", "fexit", "fmodret", "rawtp", "tp", "kprobe",
				"kretprobe", "kprobe-multi", "kretprobe-multi", "kprobe-multi-all", "kretprobe-multi-all"} {
				lines = append(lines, []string{"trig-" + name})
			}
			return lines
		},
	})
}

func (k *trigKind) describe() *harness.Benchmark {
	b := &harness.Benchmark{
		Name: "trig-" + k.name, Op: "hit", Form: report.FormHits,
		Summary: "Hits " + k.what + ", whose program counts.",
		Timing: "Timed in the kernel: a program's loop that calls what is hit, summed over the test_runs of a batch. The same loop with nothing " +
			"attached is timed, too, so that the cost of a hit is also given net of its call. Not timed: the test_runs themselves.",
		Requires:  []func() error{kernel.RawTracepoint},
		Producers: harness.Workers{Min: 1, Default: 1, Max: harness.AnyNumber},
		New:       func() harness.Config { return &trigConfig{kind: k} },
	}
	if k.program == "" {
		b.Op, b.Summary = "call", "Calls a helper function in the kernel and counts."
		b.Timing = "Timed in the kernel: a program's loop that counts and calls the helper, summed over the test_runs of a batch. The same loop, " +
			"empty, is timed, too. Not timed: the test_runs themselves."
		return b
	}
	b.Requires = append(b.Requires, hook(k.hook))
	if k.driver == progs.TriggerProgCallKfunc {
		b.Timing += " It calls a kfunc, which interpreted programs cannot."
		b.Requires = append(b.Requires, hasTrigger, compiles)
	}
	if k.all != nil {
		b.Timing += " All of the machine is slower while this runs."
	}
	return b
}

// compiles is nil where the kernel compiles programs: the verifier refuses calls of kfuncs to interpreted ones.
func compiles() error {
	if host.Facts().JIT != "off" {
		return nil
	}
	return &kernel.Error{Feature: "calls of kfuncs by interpreted programs", Outcome: kernel.Missing, Needs: "the JIT: sysctl net.core.bpf_jit_enable=1"}
}

// trigConfig is the parameters of a benchmark of the kernel's triggers.
type trigConfig struct {
	kind  *trigKind
	iters uint64 // calls of a test_run
	stack bool   // the program takes the kernel's stack, too
}

const maxIters = 1000

func (c *trigConfig) Flags(fs *pflag.FlagSet) {
	number.Var(fs, &c.iters, "trig-batch-iters", 100, "calls in a test_run, 1 to 1000")
	if c.kind.program != "" {
		fs.BoolVarP(&c.stack, "stacktrace", "s", false, "the program takes the kernel's stack, too, of up to 128 functions")
	}
}

func (c *trigConfig) FlagValues() map[string][]string { return nil }

func (c *trigConfig) Resolve() error { return number.Within("trig-batch-iters", c.iters, 1, maxIters) }

func (c *trigConfig) Params() []report.Param {
	params := []report.Param{{Name: "trig-batch-iters", Value: c.iters}}
	if c.kind.program != "" {
		stack := "no"
		if c.stack {
			stack = "yes"
		}
		params = append(params, report.Param{Name: "stacktrace", Value: stack})
	}
	return params
}

func (c *trigConfig) Facts() []report.Param { return nil }

func (c *trigConfig) Setup(ctx context.Context, env harness.Env) (*harness.Instance, error) {
	r := &trigRun{cfg: c, calls: make(tally, env.Producers)}
	if err := r.setup(ctx, env); err != nil {
		return nil, errors.Join(err, r.close())
	}
	return &harness.Instance{Producer: r.producer, Check: r.check, Close: r.close}, nil
}

// Calls of a batch: some ms.
const (
	usermodeBatch = 1 << 22
	syscallBatch  = 20000
)

func usermodeCount(harness.Env) *harness.Instance {
	return &harness.Instance{Producer: func(w *harness.Worker) (harness.Producer, error) {
		return harness.Producer{Batch: inUser(w, usermodeBatch, func(n uint64) (time.Duration, error) { return producers.Calls(n), nil }).Batch}, nil
	}}
}

func syscallCount(harness.Env) *harness.Instance {
	return &harness.Instance{Producer: func(w *harness.Worker) (harness.Producer, error) {
		getpgid := producers.Syscall{Name: "getpgid", Nr: unix.SYS_GETPGID, Returned: uintptr(unix.Getpgrp())}
		return harness.Producer{Batch: inUser(w, syscallBatch, getpgid.Call).Batch}, nil
	}}
}
