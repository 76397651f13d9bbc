package suite

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/spf13/pflag"

	"bpfbench/bench/harness"
	"bpfbench/internal/number"
	"bpfbench/report"
)

func init() {
	harness.Register(&harness.Benchmark{
		Name:    "noop",
		Op:      "noop",
		Summary: "Does nothing, in user space: it tests and measures the core itself.",
		Timing: "Timed: a loop of nr_loops iterations that do nothing, as one batch; with --method=counter the producer counts them " +
			"and is read at ticks. Not timed: handing over a batch.",
		Longer:    "--nr_loops",
		Producers: harness.Workers{Min: 1, Default: 1, Max: harness.AnyNumber},
		New:       func() harness.Config { return new(noop) },
	})
}

// noop is the parameters of the benchmark noop.
type noop struct {
	method  string
	nrLoops uint64 // iterations in a batch, or between two updates of the counter
}

const (
	methodBatch   = "batch"
	methodCounter = "counter"
)

func (c *noop) Flags(fs *pflag.FlagSet) {
	fs.StringVar(&c.method, "method", methodBatch, "`how` the core measures: batch (timed batches) or counter (read at ticks)")
	number.Var(fs, &c.nrLoops, "nr_loops", 1000000, "iterations in a batch, or between two updates of the counter")
}

func (c *noop) Resolve() error {
	errs := []error{number.Within("nr_loops", c.nrLoops, 1, 1<<40)}
	if c.method != methodBatch && c.method != methodCounter {
		errs = append(errs, fmt.Errorf("--method=%s: must be %s or %s", c.method, methodBatch, methodCounter))
	}
	return errors.Join(errs...)
}

func (c *noop) Params() []report.Param {
	return []report.Param{{Name: "method", Value: c.method}, {Name: "nr_loops", Value: c.nrLoops}}
}

func (c *noop) Facts() []report.Param { return nil }

// FlagValues are what a shell completes behind the flags.
func (c *noop) FlagValues() map[string][]string {
	return map[string][]string{"method": {methodBatch, methodCounter}}
}

// padded is a producer's counter, on cache lines of its own: two, as CPUs fetch pairs of them.
type padded struct {
	ops atomic.Uint64
	_   [120]byte
}

func (c *noop) Setup(_ context.Context, env harness.Env) (*harness.Instance, error) {
	counters := make([]padded, env.Producers)
	return &harness.Instance{
		Producer: func(w *harness.Worker) (harness.Producer, error) {
			if c.method == methodCounter {
				return harness.Producer{Spin: func() error { return c.spin(w, &counters[w.ID].ops) }}, nil
			}
			return harness.Producer{Batch: func() (report.Sample, error) { return c.batch(w) }}, nil
		},
		Count: func(into []harness.Count) {
			for i := range into {
				into[i].Ops = counters[i].ops.Load()
			}
		},
		Close: func() error { return nil },
	}, nil
}

// slice is how many iterations pass between two looks at whether to stop: some 10 ms.
const slice = 1 << 24

func (c *noop) batch(w *harness.Worker) (report.Sample, error) {
	start := time.Now()
	var done uint64
	for done < c.nrLoops && !w.Aborted() {
		n := min(c.nrLoops-done, slice)
		empty(n)
		done += n
	}
	return report.Sample{CPU: w.CPU, Ops: done, Elapsed: uint64(time.Since(start))}, nil
}

func (c *noop) spin(w *harness.Worker, ops *atomic.Uint64) error {
	for !w.Stopped() {
		n := min(c.nrLoops, slice)
		empty(n)
		ops.Add(n)
	}
	return nil
}

// empty is what noop measures. The compiler keeps a loop even where it has no effect.
//
//go:noinline
func empty(n uint64) {
	for i := uint64(0); i < n; i++ {
	}
}
