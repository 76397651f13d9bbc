package suite

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/btf"
	"github.com/spf13/pflag"

	"bpfbench/bench/harness"
	"bpfbench/fetcharg"
	"bpfbench/internal/jit"
	"bpfbench/internal/kernel"
	"bpfbench/internal/number"
	"bpfbench/report"
)

// fetchKind is a kind of probe event, what it is put on, and what it fetches there by default.
type fetchKind struct {
	name    string
	summary string
	hook    string // of package kernel
	kind    fetcharg.Kind
	targets []fetchTarget // the first that the kernel has
}

// fetchTarget is something that probes can be put on, and how it is made to be hit.
type fetchTarget struct {
	name   string
	spot   func() (where string, offset uint64, err error) // the event's Target and Offset
	driver func(producers int) (*fetchDriver, error)
	has    func() error // nil where the kernel has it
	// args are the reference arguments: a register or value, a double dereference, a single dereference.
	args [3]string
	// want are the values that they fetch, as the driver passes them; a value of several is one that the kernel computes.
	want func() ([3][]uint64, error)
}

// fetchBaseline is the name of the benchmark that has no probe.
const fetchBaseline = "baseline"

func init() {
	for _, k := range fetchKinds {
		summary := "Hits " + k.summary + " event, with a number of fetchargs."
		if k.name == fetchBaseline {
			summary = "Calls the function that the fetcharg benchmarks probe, without a probe."
		}
		harness.Register(&harness.Benchmark{
			Name:    "fetcharg-" + k.name,
			Op:      "hit",
			Summary: summary,
			Timing: "Timed: calls of the probed function in a loop, in the kernel where the function is there. The same loop with the event " +
				"switched off is timed, too, so that the cost of a hit is also given net of it. Not timed: defining the event, and reading " +
				"what it recorded, which is compared with what was passed in.",
			Longer:    "--nr_loops",
			Requires:  k.requires(),
			Producers: harness.Workers{Min: 1, Default: 1, Max: harness.AnyNumber},
			New:       func() harness.Config { return &fetchConfig{kind: k} },
		})
	}
}

func (k *fetchKind) requires() []func() error {
	if k.hook == "" {
		return []func() error{hasLoop}
	}
	return []func() error{hook(k.hook)}
}

func (k *fetchKind) targetNames() []string {
	var names []string
	for _, t := range k.targets {
		names = append(names, t.name)
	}
	return names
}

// target is the first of the kind's targets that this kernel has, or the one of the name, if it has that.
func (k *fetchKind) target(name string) (*fetchTarget, error) {
	var first error
	for i := range k.targets {
		t := &k.targets[i]
		if name != "" && t.name != name {
			continue
		}
		err := t.has()
		if err == nil {
			return t, nil
		}
		if first == nil {
			first = err
		}
	}
	return nil, first
}

// hasFunction is a probe of a function of the kernel, in its types, which is asked once. A kernel that lacks it lacks a feature,
// for which it needs something.
func hasFunction(name, feature, needs string) func() error {
	return sync.OnceValue(func() error {
		spec, err := btf.LoadKernelSpec()
		if err != nil {
			return kernel.Explain(err, "read the kernel's types (BTF)")
		}
		var f *btf.Func
		if err := spec.TypeByName(name, &f); err != nil {
			return &kernel.Error{Feature: feature, Outcome: kernel.Missing, Needs: needs, Err: err}
		}
		return nil
	})
}

// hookProbes are the probes of the kernel's hooks, each of which attaches and detaches once, whoever asks.
var hookProbes = func() map[string]func() error {
	probes := make(map[string]func() error)
	for _, h := range kernel.Hooks() {
		probes[h.Name] = sync.OnceValue(h.Probe)
	}
	return probes
}()

// hook is the probe of a hook of the kernel.
func hook(name string) func() error { return hookProbes[name] }

// FetchProbes are the kinds of probe that there are fetcharg benchmarks of, in the order of tables.
func FetchProbes() []string {
	var names []string
	for _, k := range fetchKinds {
		if k.name != fetchBaseline {
			names = append(names, k.name)
		}
	}
	return names
}

// fetchConfig is the parameters of a fetcharg benchmark.
type fetchConfig struct {
	kind      *fetchKind
	args      uint64 // how many of the reference arguments
	fetchargs string // arguments of the user's own
	engine    string
	record    string // of the bpf engine: what becomes of a record
	jit       string // of the bpf engine: a jit.State
	skip      bool   // leave out what the bpf engine cannot express
	dump      bool   // print the bpf engine's program in place of measuring
	called    string // of the baseline: the name of the target
	nrLoops   uint64 // calls in a sample

	fs     *pflag.FlagSet
	parsed []fetcharg.Arg // of fetchargs
}

// The engines that evaluate fetchargs.
const (
	engineLegacy = "legacy" // the kernel's interpreter
	engineNative = "native" // the compiler of kernels that have one, which they can switch off
	engineBPF    = "bpf"    // this project's compiler
)

var (
	engines = []string{engineLegacy, engineBPF, engineNative}
	records = []string{"ringbuf", "none", "perf"}
	jits    = []string{string(jit.Keep), string(jit.On), string(jit.Off)}
)

func (c *fetchConfig) Flags(fs *pflag.FlagSet) {
	c.fs = fs
	if c.kind.name == fetchBaseline {
		fs.StringVar(&c.called, report.TargetFact, c.kind.targets[0].name, "`what` is called: "+strings.Join(c.kind.targetNames(), ", "))
	} else {
		number.Var(fs, &c.args, "args", 0, "how many of the reference arguments are fetched, 0 to 3")
		fs.StringVar(&c.fetchargs, "fetchargs", "", "`ARGUMENTS` of your own in their place, such as 'a=$arg2 b=+0(+0($arg1)):u32'")
		fs.StringVar(&c.engine, "engine", engineLegacy, "`what` evaluates them: legacy (the kernel's interpreter), bpf (compiled to one BPF program), native (a kernel that compiles them itself)")
		fs.StringVar(&c.record, "record", records[0], "`where` the bpf engine's records go: ringbuf, none (the last is kept), or perf")
		fs.StringVar(&c.jit, "jit", jits[0], "`state` of the JIT for the bpf engine's program: keep, on or off")
		fs.BoolVar(&c.skip, "skip-unsupported", false, "leave out arguments that the bpf engine cannot express")
		fs.BoolVar(&c.dump, "dump", false, "print the bpf engine's program, and measure nothing")
	}
	number.Var(fs, &c.nrLoops, "nr_loops", 20000, "calls in a sample")
}

func (c *fetchConfig) FlagValues() map[string][]string {
	if c.kind.name == fetchBaseline {
		return map[string][]string{report.TargetFact: c.kind.targetNames()}
	}
	return map[string][]string{"engine": engines, "record": records, "jit": jits, "args": {"0", "1", "2", "3"}}
}

func (c *fetchConfig) Resolve() error {
	errs := []error{number.Within("args", c.args, 0, 3), number.Within("nr_loops", c.nrLoops, 1, 1<<40)}
	if c.kind.name == fetchBaseline {
		if !slices.Contains(c.kind.targetNames(), c.called) {
			errs = append(errs, fmt.Errorf("--target=%s: must be one of %s", c.called, strings.Join(c.kind.targetNames(), ", ")))
		}
		return errors.Join(errs...)
	}
	for _, choice := range []struct {
		flag, value string
		of          []string
	}{{"engine", c.engine, engines}, {"record", c.record, records}, {"jit", c.jit, jits}} {
		if !slices.Contains(choice.of, choice.value) {
			errs = append(errs, fmt.Errorf("--%s=%s: must be one of %s", choice.flag, choice.value, strings.Join(choice.of, ", ")))
		}
	}
	for _, flag := range []string{"record", "jit", "skip-unsupported", "dump"} {
		if c.fs.Changed(flag) && c.engine != engineBPF {
			errs = append(errs, fmt.Errorf("--%s: is for --engine=%s alone", flag, engineBPF))
		}
	}
	if c.fetchargs != "" {
		if c.fs.Changed("args") {
			errs = append(errs, errors.New("--args and --fetchargs: one or the other says what is fetched"))
		}
		var err error
		if c.parsed, err = fetcharg.Parse(c.fetchargs); err == nil {
			err = fetcharg.Check(c.parsed, c.kind.kind)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("--fetchargs=%q: %w", c.fetchargs, err))
		}
	}
	return errors.Join(errs...)
}

func (c *fetchConfig) Params() []report.Param {
	loops := report.Param{Name: "nr_loops", Value: c.nrLoops}
	if c.kind.name == fetchBaseline {
		return []report.Param{{Name: report.TargetFact, Value: c.called}, loops}
	}
	args := report.Param{Name: report.ArgsParam, Value: c.args}
	if c.fetchargs != "" {
		args = report.Param{Name: "fetchargs", Value: c.fetchargs}
	}
	params := []report.Param{args, {Name: "engine", Value: c.engine}}
	if c.engine == engineBPF {
		params = append(params, report.Param{Name: "jit", Value: c.jit}, report.Param{Name: "record", Value: c.record})
	}
	return append(params, loops)
}

// Facts has what is called: which baseline the result belongs to. In a baseline that is a parameter.
func (c *fetchConfig) Facts() []report.Param {
	if c.kind.name == fetchBaseline {
		return nil
	}
	return []report.Param{{Name: report.TargetFact, Value: c.kind.targets[0].name}}
}

// list is the arguments to fetch from t.
func (c *fetchConfig) list(t *fetchTarget) ([]fetcharg.Arg, error) {
	if c.fetchargs != "" {
		return c.parsed, nil
	}
	return fetcharg.Parse(strings.Join(t.args[:c.args], " "))
}

func (c *fetchConfig) Setup(ctx context.Context, env harness.Env) (*harness.Instance, error) {
	t, err := c.kind.target(c.called)
	if err != nil {
		return nil, err
	}
	r := &fetchRun{cfg: c, target: t}
	if err := r.setup(env); err != nil {
		return nil, errors.Join(err, r.close())
	}
	return &harness.Instance{Producer: r.producer, Check: r.check, Close: r.close}, nil
}

// hasLoop is nil where programs that call bpf_strncmp in a bpf_loop can run.
func hasLoop() error {
	return errors.Join(kernel.RawTracepoint(), kernel.Helper(ebpf.RawTracepoint, asm.FnLoop), kernel.Helper(ebpf.RawTracepoint, asm.FnStrncmp))
}
