package suite

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/btf"
	"github.com/spf13/pflag"

	"bpfbench/bench/harness"
	"bpfbench/internal/cpuset"
	"bpfbench/internal/kernel"
	"bpfbench/internal/number"
	"bpfbench/producers"
	"bpfbench/progs"
	"bpfbench/report"
)

func init() {
	harness.Register(&harness.Benchmark{
		Name:    "bpf-loop",
		Op:      "iteration",
		Summary: "Calls the helper bpf_loop with an empty callback.",
		Timing: "Timed in the kernel: calls of bpf_loop, each of nr_loops iterations and as many as it says it has done, in an outer bpf_loop, " +
			"which is timed by itself, too, so that the cost is also given net of it. An iteration has its share of the call, and none of " +
			"the one that starts the program.",
		Form:      report.FormThroughput,
		Requires:  []func() error{kernel.RawTracepoint, bpfLoop},
		Producers: harness.Workers{Min: 1, Default: 1, Max: harness.AnyNumber},
		New:       func() harness.Config { return &loop{usual: 10} },
	})
	harness.Register(&harness.Benchmark{
		Name:    "bpf-for",
		Op:      "iteration",
		Summary: "Runs the open-coded iterator over numbers, bpf_iter_num, with an empty body.",
		Timing: "Timed in the kernel: iterators over nr_loops numbers, which are counted as they come, in an outer bpf_loop, which is timed by itself, " +
			"too, so that the cost is also given net of it. An iteration has its share of making and destroying the iterator, and none of " +
			"the call that starts the program.",
		Form:      report.FormThroughput,
		Requires:  []func() error{kernel.RawTracepoint, bpfLoop, kfunc("bpf_iter_num_new", "Linux 6.4")},
		Producers: harness.Workers{Min: 1, Default: 1, Max: harness.AnyNumber},
		New:       func() harness.Config { return &loop{usual: 1000, iterator: true} },
	})
	loopSuite("loop", "bpf-loop", "Calls of bpf_loop of several lengths, by several producers.")
	loopSuite("for", "bpf-for", "Open-coded iterators of several lengths, by several producers.")
}

// bpfLoop probes for the helper bpf_loop.
func bpfLoop() error { return kernel.Helper(ebpf.RawTracepoint, asm.FnLoop) }

// kfunc returns the probe of a function that the kernel has for programs from a version on.
func kfunc(name, since string) func() error {
	return func() error {
		fn, err := kernelFunc(name)
		if fn == nil && err == nil {
			err = &kernel.Error{Feature: "kfunc " + name, Outcome: kernel.Missing, Needs: since + " with CONFIG_DEBUG_INFO_BTF=y"}
		}
		return err
	}
}

// kernelFunc finds a function in the kernel's BTF, by which programs are linked to it. It is nil where it is not there.
func kernelFunc(name string) (*btf.Func, error) {
	spec, err := btf.LoadKernelSpec()
	var fn *btf.Func
	if err == nil {
		err = spec.TypeByName(name, &fn)
	}
	if errors.Is(err, btf.ErrNotFound) || errors.Is(err, ebpf.ErrNotSupported) {
		return nil, nil
	}
	return fn, err
}

// loopSample is about how many iterations a sample has: a few milliseconds of them.
const loopSample = 1 << 20

// loop is the parameters of bpf-loop and bpf-for.
type loop struct {
	iterator bool
	usual    uint64 // default of nrLoops
	nrLoops  uint64
}

func (c *loop) Flags(fs *pflag.FlagSet) {
	number.Var(fs, &c.nrLoops, "nr_loops", c.usual, "iterations of a loop, 1 to 8388608; a sample is as many loops as come to 2^20 iterations, one at least")
}

func (c *loop) Resolve() error { return number.Within("nr_loops", c.nrLoops, 1, producers.MaxLoop) }

func (c *loop) Params() []report.Param { return []report.Param{{Name: "nr_loops", Value: c.nrLoops}} }

func (c *loop) Facts() []report.Param { return nil }

// FlagValues are what a shell completes behind the flags.
func (c *loop) FlagValues() map[string][]string { return nil }

func (c *loop) Setup(_ context.Context, env harness.Env) (*harness.Instance, error) {
	k, err := c.load(env.Producers)
	if err != nil {
		return nil, err
	}
	return &harness.Instance{Producer: func(w *harness.Worker) (harness.Producer, error) { return c.producer(k, w), nil }, Close: k.close}, nil
}

// load loads the program, with a slot for each producer.
func (c *loop) load(producers int) (*work, error) {
	spec, err := progs.LoadLoop()
	if err != nil {
		return nil, fmt.Errorf("read the program: %w", err)
	}
	if err := setConstants(spec, map[string]any{progs.LoopVarIterator: c.iterator}); err != nil {
		return nil, err
	}
	return loadWork(spec, triggerTestRun, producers, nil)
}

// producer readies a producer. A loop that is short of 1<<16 iterations is never split, as then its beginning counts.
func (c *loop) producer(k *work, w *harness.Worker) harness.Producer {
	batch := func(mode progs.LoopMode) func() (report.Sample, error) {
		s := k.split(w, uint32(mode), "loop", c.nrLoops, max(loopSample/c.nrLoops, 1))
		s.Whole = c.nrLoops <= wholePass
		return s.Batch
	}
	return harness.Producer{Batch: batch(progs.LoopModeMODE_WORK), Twin: batch(progs.LoopModeMODE_TWIN)}
}

// loopSuite registers the suite of a loop: its lengths and the numbers of producers.
func loopSuite(name, benchmark, summary string) {
	lines := func(whole bool) (lines [][]string) {
		lengths := []int{10, 1000, 100000}
		if whole {
			lengths = []int{10, 100, 500, 1000, 5000, 10000, 50000, 100000, 500000, 1000000}
		}
		for _, threads := range upTo(usableCPUs(), 1, 4, 8, 12, 16) {
			for _, length := range lengths {
				lines = append(lines, []string{benchmark, "-a", "-p", strconv.Itoa(threads), "--nr_loops", strconv.Itoa(length)})
			}
		}
		return lines
	}
	harness.RegisterSuite(&harness.Suite{Name: name, Summary: summary, Lines: lines})
}

// usableCPUs is how many CPUs producers can be bound to.
func usableCPUs() int {
	usable, err := cpuset.Usable()
	if err != nil {
		return 1
	}
	return len(usable)
}

// upTo returns those of ns that are not above limit.
func upTo(limit int, ns ...int) (fit []int) {
	for _, n := range ns {
		if n <= limit {
			fit = append(fit, n)
		}
	}
	return fit
}
