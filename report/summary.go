package report

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"bpfbench/report/stats"
)

// Summary is what the raw samples of a result come to. Rates are in operations in 1e9 of the session's unit (events a
// second, or events in 1e9 instructions), costs and times in the session's unit; nothing is scaled. Every value is
// finite; one that is not defined is left out. A sample that took no time is no measurement and is left out as well.
type Summary struct {
	Runs  int     `json:"runs"`       // that have samples: all that follows is computed from those
	Ops   uint64  `json:"ops"`        // done in all samples
	Setup float64 `json:"setup_mean"` // elapsed while setting up a run, the mean of the runs
	CPUs  []CPU   `json:"cpus"`       // in ascending order, behind them the workers that were not pinned
	// Sample are the rates of all single samples, on whatever CPU. It is nil when no operation was done, as are Rate
	// and Cost: there is no such thing as the speed of nothing.
	Sample *stats.Summary `json:"sample_rate,omitempty"`
	Rate   *Rate          `json:"rate,omitempty"`
	Cost   *Cost          `json:"cost,omitempty"`
	// Scatter is of all samples, or nil. Its variation is of the total rates of the runs.
	*Scatter
	// Drops are the rates at which the runs lost operations; nil where none was lost.
	Drops    *stats.Summary `json:"drop_rate,omitempty"`
	Gauges   []GaugeSummary `json:"gauges,omitempty"`   // in the order of the runs' own
	Outliers []Outlier      `json:"outliers,omitempty"` // runs first; they are labelled, and part of all other values
	// Drift is of the rates of the runs in their order; nil for fewer than five.
	Drift *stats.Drift `json:"drift,omitempty"`
	// Detectable is the least relative difference to another measurement, of as many runs that differ as much, that
	// Compare is likely to see (stats.Detectable); nil for fewer than four runs.
	Detectable *float64 `json:"detectable,omitempty"`
}

// GaugeSummary describes a gauge by its values in the runs that have it.
type GaugeSummary struct {
	Name string `json:"name"`
	Unit string `json:"unit,omitempty"`
	stats.Summary
}

// CPU is what one CPU did in all runs; or one worker, where all that is known of a counter is whose it is.
type CPU struct {
	Label   string  `json:"label"`        // "cpu01", or "prod00" of a worker
	CPU     int     `json:"cpu"`          // -1 for a worker
	Worker  int     `json:"worker"`       // -1 for a CPU
	Samples int     `json:"samples"`      // number of samples
	Ops     uint64  `json:"ops"`          // operations in them
	Elapsed float64 `json:"elapsed_mean"` // of a sample
	// Rate are the rates of the samples. It is nil when no operation was done.
	Rate *stats.Summary `json:"rate,omitempty"`
	// Interval is of the median of the rates that the CPU reached in each run; nil for fewer than six runs.
	Interval *stats.Interval `json:"interval,omitempty"`
	*Scatter                 // nil when no operation was done
}

// Rate describes the total rates of the runs: in each, the sum of what its workers, which ran at the same time, reached.
type Rate struct {
	stats.Summary
	Spread   float64         `json:"spread"`             // standard deviation between runs over their mean; 0 for one run
	Interval *stats.Interval `json:"interval,omitempty"` // of the median; nil for fewer than six runs
}

// Cost describes what an operation takes, run by run: with its loop, the loop alone as its empty twin has it, and the
// difference of the two inside a run. The latter two are nil where no twin ran.
type Cost struct {
	Gross stats.Summary  `json:"gross"`
	Loop  *stats.Summary `json:"loop,omitempty"`
	Net   *stats.Summary `json:"net,omitempty"`
}

// Summarize computes the summary of r from its raw samples, and from nothing else.
func Summarize(r *Result) Summary {
	var s Summary
	var setup float64
	var rates, drops, samples []float64
	var measured []*Run
	for _, run := range r.Runs {
		rate, ok := run.Rate()
		if !ok {
			continue
		}
		s.Runs++
		measured = append(measured, run)
		drops = append(drops, run.DropRate())
		setup += float64(run.Setup)
		rates = append(rates, rate)
		s.Ops += tally(run.Samples).ops
		for _, sample := range run.Samples {
			if sample.Elapsed > 0 {
				samples = append(samples, sample.Rate())
			}
		}
	}
	s.CPUs = cpus(r.Runs)
	if d := describe(drops); d != nil && d.Max > 0 {
		s.Drops = d
	}
	s.Gauges = gauges(measured)
	if s.Runs > 0 {
		s.Setup = setup / float64(s.Runs)
	}
	if s.Ops > 0 {
		s.Sample = describe(samples)
		s.Rate = describeRuns(rates)
		s.Cost = cost(r.Runs)
		s.Scatter = scatter(r.Runs, rates)
		s.Outliers = outliers(r.Runs, s)
		if d, ok := stats.DriftOf(rates); ok {
			s.Drift = &d
		}
		if d, ok := stats.Detectable(len(rates), s.Rate.Spread); ok {
			s.Detectable = &d
		}
	}
	return s
}

// Rate is the sum, over the workers of the run, of what each did in 1e9 units of the time that it took. It is not ok for
// a run without samples, and 0 for one whose samples hold no operation.
func (r *Run) Rate() (rate float64, ok bool) {
	workers := make(map[int]*sum)
	for _, s := range r.Samples {
		if s.Elapsed == 0 {
			continue
		}
		if workers[s.Worker] == nil {
			workers[s.Worker] = new(sum)
		}
		workers[s.Worker].add(s)
	}
	// In order, as the rounding of a sum depends on it.
	for _, w := range slices.Sorted(maps.Keys(workers)) {
		rate += workers[w].rate()
	}
	return rate, len(workers) > 0
}

// DropRate is what Rate is, of the operations that were lost.
func (r *Run) DropRate() float64 {
	lost := Run{Samples: slices.Clone(r.Samples)}
	for i := range lost.Samples {
		lost.Samples[i].Ops = lost.Samples[i].Drops
	}
	rate, _ := lost.Rate()
	return rate
}

// Cost is the elapsed time that an operation of the run took, its loop included. It is not ok without operations.
func (r *Run) Cost() (cost float64, ok bool) { return tally(r.Samples).cost() }

// LoopCost is what Cost is, of the empty twin.
func (r *Run) LoopCost() (cost float64, ok bool) { return tally(r.Twin).cost() }

// sum is the total of some samples.
type sum struct {
	samples      int
	ops, elapsed uint64
}

// tally is the sum of the samples that took time.
func tally(samples []Sample) sum {
	var t sum
	for _, s := range samples {
		t.add(s)
	}
	return t
}

func (t *sum) add(s Sample) {
	if s.Elapsed == 0 {
		return
	}
	t.samples++
	t.ops += s.Ops
	t.elapsed += s.Elapsed
}

func (t sum) rate() float64 { return Sample{Ops: t.ops, Elapsed: t.elapsed}.Rate() }

func (t sum) cost() (cost float64, ok bool) {
	if t.ops == 0 || t.elapsed == 0 {
		return 0, false
	}
	return float64(t.elapsed) / float64(t.ops), true
}

// place is where samples are reckoned to: a CPU, or a worker with CPU -1.
type place struct{ cpu, worker int }

func placeOf(s Sample) place {
	if s.CPU < 0 {
		return place{-1, s.Worker}
	}
	return place{s.CPU, -1}
}

func (p place) label() string {
	if p.cpu < 0 {
		return fmt.Sprintf("prod%02d", p.worker)
	}
	return fmt.Sprintf("cpu%02d", p.cpu)
}

// compare puts CPUs in ascending order, and workers behind them.
func (p place) compare(q place) int {
	if (p.cpu < 0) != (q.cpu < 0) {
		return cmp.Compare(q.cpu, p.cpu)
	}
	return cmp.Or(cmp.Compare(p.cpu, q.cpu), cmp.Compare(p.worker, q.worker))
}

func cpus(runs []*Run) []CPU {
	parts := byPlace(runs)
	out := []CPU{}
	for _, p := range slices.SortedFunc(maps.Keys(parts), place.compare) {
		var t sum
		var rates []float64
		for _, run := range parts[p] {
			for _, s := range run.Samples {
				if s.Elapsed > 0 {
					t.add(s)
					rates = append(rates, s.Rate())
				}
			}
		}
		if t.samples == 0 {
			continue
		}
		c := CPU{Label: p.label(), CPU: p.cpu, Worker: p.worker, Samples: t.samples, Ops: t.ops}
		c.Elapsed = float64(t.elapsed) / float64(t.samples)
		if t.ops > 0 {
			c.Rate = describe(rates)
			inRuns := placeRates(parts[p])
			c.Scatter = scatter(parts[p], inRuns)
			if i, ok := stats.MedianInterval(inRuns); ok {
				c.Interval = &i
			}
		}
		out = append(out, c)
	}
	return out
}

func describeRuns(rates []float64) *Rate {
	d := describe(rates)
	if d == nil {
		return nil
	}
	r := Rate{Summary: *d, Spread: d.Relative()}
	if i, ok := stats.MedianInterval(rates); ok {
		r.Interval = &i
	}
	return &r
}

func cost(runs []*Run) *Cost {
	var gross, loop, net []float64
	for _, run := range runs {
		g, ok := run.Cost()
		if !ok {
			continue
		}
		gross = append(gross, g)
		if l, ok := run.LoopCost(); ok {
			loop = append(loop, l)
			net = append(net, g-l)
		}
	}
	d := describe(gross)
	if d == nil {
		return nil
	}
	return &Cost{Gross: *d, Loop: describe(loop), Net: describe(net)}
}

// describe is stats.Summarize with nil for values that it cannot describe.
func describe(values []float64) *stats.Summary {
	s, ok := stats.Summarize(values)
	if !ok {
		return nil
	}
	return &s
}
