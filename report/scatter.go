package report

import (
	"maps"
	"math"
	"slices"

	"bpfbench/report/stats"
)

// Scatter is how much measurements of one thing differ, on one CPU or on all of them.
type Scatter struct {
	CV float64 `json:"cv"` // coefficient of variation of the samples' rates: standard deviation over mean
	// Batch are percentiles of what an operation cost in single samples; nil where no operation was done.
	Batch *Batch `json:"batch_cost,omitempty"`
	// Variation tells the runs from their samples; nil for fewer than two runs.
	Variation *Variation `json:"variation,omitempty"`
}

// Batch are percentiles of batches, by nearest rank: a batch p99 of 20 ns/op means that in 99 % of the batches an operation
// took 20 ns or less on average. Of single operations it says nothing.
type Batch struct {
	P50 float64 `json:"p50"`
	P90 float64 `json:"p90"`
	P99 float64 `json:"p99"`
}

// Variation sets the spread between runs against that inside them. All three are without unit.
type Variation struct {
	Between float64 `json:"between"` // standard deviation of the runs' rates over their mean
	// Within is the standard deviation of the samples from the mean of their CPU in their run, over that mean; pooled over
	// runs and CPUs. It is 0 where no run has two samples of a CPU.
	Within float64 `json:"within"`
	// Excess is Between over what Within alone would make it, as a run is the mean of several samples: 1 where runs differ no
	// more than their samples, 5 where what is fixed inside a run (code placement, hash seed) decides. 0 where Within is.
	Excess float64 `json:"excess"`
}

// Outlier is a run, or a sample, whose rate is outside of Tukey's fences: of the rates of all runs, or of all samples of
// its CPU.
type Outlier struct {
	Run       int         `json:"run"`       // index into the result's runs
	Sample    int         `json:"sample"`    // index into the run's samples; -1 for a run
	Label     string      `json:"label"`     // of the CPU or worker; "total" for a run
	Rate      float64     `json:"rate"`      // operations in 1e9 of the session's unit
	Deviation float64     `json:"deviation"` // from the median of the rates: -0.05 where it is 5 % lower
	Fence     stats.Fence `json:"fence"`
}

// byPlace parts the samples of runs, run by run. A place has the runs that it has samples in.
func byPlace(runs []*Run) map[place][]*Run {
	parts := make(map[place][]*Run)
	for _, run := range runs {
		own := make(map[place]*Run)
		for _, s := range run.Samples {
			p := placeOf(s)
			if own[p] == nil {
				own[p] = &Run{Round: run.Round}
				parts[p] = append(parts[p], own[p])
			}
			own[p].Samples = append(own[p].Samples, s)
		}
	}
	return parts
}

// scatter computes the scatter of the samples of runs, and of what the runs as a whole reached.
func scatter(runs []*Run, whole []float64) *Scatter {
	s := new(Scatter)
	var rates []float64
	for _, run := range runs {
		for _, sample := range run.Samples {
			if sample.Elapsed > 0 {
				rates = append(rates, sample.Rate())
			}
		}
	}
	costs := sampleCosts(runs)
	if d := describe(rates); d != nil {
		s.CV = d.Relative()
	}
	p50, ok := stats.Percentile(costs, 50)
	p90, _ := stats.Percentile(costs, 90)
	p99, _ := stats.Percentile(costs, 99)
	if ok {
		s.Batch = &Batch{p50, p90, p99}
	}
	if between := describe(whole); between != nil && between.N > 1 {
		s.Variation = variation(between, runs)
	}
	return s
}

// sampleCosts are what an operation took in each sample that has any.
func sampleCosts(runs []*Run) []float64 {
	var costs []float64
	for _, run := range runs {
		for _, s := range run.Samples {
			if s.Elapsed > 0 && s.Ops > 0 {
				costs = append(costs, float64(s.Elapsed)/float64(s.Ops))
			}
		}
	}
	return costs
}

// placeRates are the rates of one place in runs. Workers that ran there took turns: their operations and their times add up.
func placeRates(runs []*Run) []float64 {
	var rates []float64
	for _, run := range runs {
		if t := tally(run.Samples); t.samples > 0 {
			rates = append(rates, t.rate())
		}
	}
	return rates
}

// variation pools the variances of groups of samples: those of one CPU in one run.
func variation(between *stats.Summary, runs []*Run) *Variation {
	v := &Variation{Between: between.Relative()}
	var squares, free float64 // squared relative deviations, and how many of them are free to vary
	var samples int
	for _, run := range runs {
		rates := make(map[place][]float64)
		for _, s := range run.Samples {
			if s.Elapsed > 0 {
				rates[placeOf(s)] = append(rates[placeOf(s)], s.Rate())
			}
		}
		for _, p := range slices.SortedFunc(maps.Keys(rates), place.compare) {
			d := describe(rates[p])
			if d == nil || d.Mean == 0 {
				continue
			}
			samples += d.N
			squares += float64(d.N-1) * d.Relative() * d.Relative()
			free += float64(d.N - 1)
		}
	}
	if free == 0 {
		return v
	}
	v.Within = math.Sqrt(squares / free)
	// A run's rate is the sum over its CPUs of means of so many samples, whose deviations partly cancel.
	perRun := float64(samples) / float64(between.N)
	if excess := v.Between / (v.Within / math.Sqrt(perRun)); v.Within > 0 && !math.IsInf(excess, 0) {
		v.Excess = excess
	}
	return v
}

// outliers labels the runs and the samples of a result whose summary is s, but for its outliers.
func outliers(runs []*Run, s Summary) []Outlier {
	var rates []float64
	var all []Outlier
	for i, run := range runs {
		if rate, ok := run.Rate(); ok {
			rates = append(rates, rate)
			all = append(all, Outlier{Run: i, Sample: -1, Label: "total", Rate: rate})
		}
	}
	out := labelled(all, rates)
	samples := make(map[place][]Outlier)
	for i, run := range runs {
		for k, s := range run.Samples {
			if p := placeOf(s); s.Elapsed > 0 {
				samples[p] = append(samples[p], Outlier{Run: i, Sample: k, Rate: s.Rate()})
			}
		}
	}
	for _, c := range s.CPUs {
		all, rates = samples[place{c.CPU, c.Worker}], nil
		for i := range all {
			all[i].Label = c.Label
			rates = append(rates, all[i].Rate)
		}
		out = append(out, labelled(all, rates)...)
	}
	return out
}

// labelled are those of all whose rates are outside of the fences.
func labelled(all []Outlier, rates []float64) []Outlier {
	d := describe(rates)
	if d == nil || d.Median == 0 {
		return nil
	}
	var out []Outlier
	for i, fence := range stats.Outliers(rates) {
		if fence != "" {
			o := all[i]
			o.Fence = fence
			o.Deviation = o.Rate/d.Median - 1
			out = append(out, o)
		}
	}
	return out
}
