package suite

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/pflag"

	"bpfbench/bench/harness"
	"bpfbench/producers"
	"bpfbench/report"
)

func init() {
	for _, c := range []struct {
		name, summary string
		shared        bool
	}{
		{"count-global", "Counts in user space, all producers by one counter.", true},
		{"count-local", "Counts in user space, each producer by a counter of its own.", false},
	} {
		registerUser(&harness.Benchmark{
			Name: c.name, Op: "add", Summary: c.summary,
			Timing: "Timed: a loop of atomic additions, as one batch. Not timed: handing over a batch.",
		}, func(env harness.Env) *harness.Instance { return countRun(c.shared, env) })
	}
}

// registerUser registers a benchmark of user space without parameters and with nothing to undo.
func registerUser(b *harness.Benchmark, setup func(harness.Env) *harness.Instance) {
	b.Form = report.FormHits
	b.Producers = harness.Workers{Min: 1, Default: 1, Max: harness.AnyNumber}
	b.New = func() harness.Config { return &userConfig{setup: setup} }
	harness.Register(b)
}

// flagless is the part of a configuration that is about parameters, where there are none.
type flagless struct{}

func (flagless) Flags(*pflag.FlagSet)            {}
func (flagless) Resolve() error                  { return nil }
func (flagless) Params() []report.Param          { return []report.Param{} }
func (flagless) Facts() []report.Param           { return nil }
func (flagless) FlagValues() map[string][]string { return nil }

type userConfig struct {
	flagless
	setup func(harness.Env) *harness.Instance
}

func (c *userConfig) Setup(_ context.Context, env harness.Env) (*harness.Instance, error) {
	inst := c.setup(env)
	inst.Close = func() error { return nil }
	return inst, nil
}

// inUser are batches of n operations of producer w, in user space: call does some and says how long they took.
func inUser(w *harness.Worker, n uint64, call func(n uint64) (time.Duration, error)) *producers.Split {
	return &producers.Split{Pass: 1, Passes: n, Whole: true, Aborted: w.Aborted, Call: func(_, count, passes uint32) (producers.Done, error) {
		ops := uint64(count) * uint64(passes)
		took, err := call(ops)
		return producers.Done{CPU: currentCPU(), Ops: ops, Elapsed: uint64(took)}, err
	}}
}

// tally is a counter for each producer.
type tally []padded

func (t tally) sum() uint64 {
	var sum uint64
	for i := range t {
		sum += t[i].ops.Load()
	}
	return sum
}

// countBatch is the additions of a batch: some 5 ms by a counter of one's own.
const countBatch = 1 << 20

// countRun counts by counters, all producers by the first or each by its own, and compares them with what was added.
func countRun(shared bool, env harness.Env) *harness.Instance {
	counters, added := make(tally, env.Producers), make(tally, env.Producers)
	return &harness.Instance{
		Producer: func(w *harness.Worker) (harness.Producer, error) {
			counter := &counters[0].ops
			if !shared {
				counter = &counters[w.ID].ops
			}
			return harness.Producer{Batch: inUser(w, countBatch, func(n uint64) (time.Duration, error) {
				added[w.ID].ops.Add(n)
				return producers.Add(counter, n), nil
			}).Batch}, nil
		},
		Check: func(*report.Run) error { return checkCount(counters, added) },
	}
}

func checkCount(counters, added tally) error {
	if got, want := counters.sum(), added.sum(); got != want {
		return fmt.Errorf("%d additions made %d", want, got)
	}
	return nil
}
