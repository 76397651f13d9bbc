// Package harness is the core: it describes benchmarks, keeps their registry, and runs them. A benchmark is made ready
// afresh for each run; its producers and consumers are workers on operating system threads of their own, bound to CPUs
// where asked, which start at a barrier. The package knows nothing of BPF.
package harness

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/spf13/pflag"

	"bpfbench/report"
)

// Benchmark describes one benchmark. A file of package suite registers each in its init function.
type Benchmark struct {
	Name    string
	Aliases []string // other names, by which users may know it
	Op      string   // what is counted, in the singular, such as "lookup"
	Summary string   // one sentence: what is measured
	Timing  string   // one or two sentences: what is timed and what is not
	// Longer is the flag to raise when batches are too short and to lower when they are too long, such as "--nr_loops".
	Longer string
	// Form is of the lines that the kernel's own bench has for it, beside those that all results have.
	Form report.Form
	// Requires are probes of what it needs of the kernel. Each returns nil where that is there. An error that is
	// [errors.ErrUnsupported] makes the result a skip, any other a failure.
	Requires  []func() error
	Producers Workers
	Consumers Workers
	New       func() Config // a configuration with every parameter at its default
}

// Workers bounds a number of workers. Max 0 means that there can be none.
type Workers struct {
	Min, Default, Max int
	Why               string // of bounds that follow from parameters: which, for errors
}

// AnyNumber is a Max that only the machine bounds.
const AnyNumber = 1 << 16

// Config is a benchmark's parameters.
type Config interface {
	// Flags binds the parameters to flags of fs. It is called once.
	Flags(fs *pflag.FlagSet)
	// Resolve is called when the flags are parsed: it derives the defaults that depend on other parameters and
	// returns all that is wrong with them, joined.
	Resolve() error
	// Params are the parameters as understood, Facts what follows from them and belongs beside them in a report.
	Params() []report.Param
	Facts() []report.Param
	// Setup makes the benchmark ready for one run. On error it leaves nothing behind. It returns soon after ctx is done.
	Setup(ctx context.Context, env Env) (*Instance, error)
}

// Workers returns how many producers and consumers a configuration of b can have. One whose parameters bound that has the method
// of this name; for others it is as b says.
func (b *Benchmark) Workers(c Config) (producers, consumers Workers) {
	if c, ok := c.(interface {
		Workers() (producers, consumers Workers)
	}); ok {
		return c.Workers()
	}
	return b.Producers, b.Consumers
}

// Env tells a set-up what it is for.
type Env struct {
	Producers, Consumers int
	// Warn adds a warning to the result; the same warning is kept once.
	Warn func(report.Warning)
	// Fact adds to the result what is known from the set-up on only; a fact of the same name is replaced.
	Fact func(report.Param)
}

// Instance is a benchmark made ready for one run.
type Instance struct {
	// Producer makes producer w ready, on the thread that will run it and on its CPU.
	Producer func(w *Worker) (Producer, error)
	// Consumer drains what the producers make, until w.Stopped. Wake makes blocked consumers look at w.Stopped.
	Consumer func(w *Worker) error
	Wake     func()
	// Count sets into[i] to the cumulative counts of producer i, where producers spin.
	Count func(into []Count)
	// Check judges a finished run: an error fails it. It adds the run's gauges, if there are any.
	Check func(run *report.Run) error
	// Close undoes the set-up.
	Close func() error
}

// Producer makes events happen, in one of two ways: timed batches, or a loop that is counted at ticks.
type Producer struct {
	// Batch does one batch and says where it ran, what was done and how long that took. When w.Aborted it returns soon,
	// with what it has done. It neither allocates nor locks for each operation.
	Batch func() (report.Sample, error)
	// Twin is like Batch, but for the operation itself: the same loop, empty. It may be nil.
	Twin func() (report.Sample, error)
	// Spin produces until w.Stopped, and counts where Instance.Count finds it. It is used where Batch is nil.
	Spin func() error
}

// Count is what a producer has done since it started.
type Count struct{ Ops, Drops, Misses uint64 }

// Worker is one producer or consumer: a locked operating system thread.
type Worker struct {
	ID  int // from 0, of its kind
	CPU int // that it is bound to; -1 for none

	stop  atomic.Bool  // the phase is over
	abort *atomic.Bool // the session is over; nil never
}

// Stopped reports whether the worker is to end its loop.
func (w *Worker) Stopped() bool { return w.stop.Load() || w.Aborted() }

// Aborted reports whether the worker is to end at once, even inside a batch.
func (w *Worker) Aborted() bool { return w.abort != nil && w.abort.Load() }

var registry = map[string]*Benchmark{}

// Register adds a benchmark. It panics when the name is taken, as that is a mistake of the programmer.
func Register(b *Benchmark) {
	if _, taken := registry[b.Name]; taken {
		panic(fmt.Sprintf("harness: benchmark %q is registered twice", b.Name))
	}
	registry[b.Name] = b
}

// All returns the registered benchmarks by name.
func All() []*Benchmark {
	return slices.SortedFunc(maps.Values(registry), func(a, b *Benchmark) int { return strings.Compare(a.Name, b.Name) })
}

// Suite is a number of benchmarks that belong together, or one with a number of settings, measured as one table.
type Suite struct {
	Name    string
	Summary string // one sentence
	Ladder  bool   // its table is in the order of the costs (report.NewLadder), not of the lines
	// Lines are what it measures, each as a command line has it: a benchmark's name and flags. whole asks for all there
	// is, else it is what takes minutes. Of the flags that all benchmarks have, a line may have those of the workers.
	Lines func(whole bool) [][]string
}

var suites = map[string]*Suite{}

// RegisterSuite adds a suite. It panics when the name is taken, as that is a mistake of the programmer.
func RegisterSuite(s *Suite) {
	if _, taken := suites[s.Name]; taken {
		panic(fmt.Sprintf("harness: suite %q is registered twice", s.Name))
	}
	suites[s.Name] = s
}

// Suites returns the registered suites by name.
func Suites() []*Suite {
	return slices.SortedFunc(maps.Values(suites), func(a, b *Suite) int { return strings.Compare(a.Name, b.Name) })
}
