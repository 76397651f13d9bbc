package report

import (
	"encoding/json"
	"math"
	"strconv"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"bpfbench/report/stats"
)

var approx = cmpopts.EquateApprox(1e-12, 0)

// TestSummarize is worked by hand: two runs of two CPUs, one of them with samples of unlike lengths.
func TestSummarize(t *testing.T) {
	r := &Result{Producers: 2, Runs: []*Run{
		{
			Setup: 10,
			Samples: []Sample{
				{Worker: 1, CPU: 3, Elapsed: 500, Ops: 100}, // 2e8
				{Worker: 0, CPU: 1, Elapsed: 100, Ops: 10},  // 1e8
				{Worker: 0, CPU: 1, Elapsed: 300, Ops: 60},  // 2e8
			},
			Twin: []Sample{{CPU: 1, Elapsed: 170, Ops: 170}},
		},
		{Setup: 1000}, // without samples: counts for nothing
		{
			Setup: 30,
			Samples: []Sample{
				{Worker: 0, CPU: 1, Elapsed: 400, Ops: 40},   // 1e8
				{Worker: 1, CPU: 3, Elapsed: 1000, Ops: 100}, // 1e8
				{Worker: 1, CPU: 3, Elapsed: 0, Ops: 7},      // took no time: no measurement
			},
			Twin: []Sample{{CPU: 1, Elapsed: 300, Ops: 100}},
		},
	}}
	cpu1 := stats.Summary{N: 3, Mean: 4e8 / 3, StdDev: 1e8 / math.Sqrt(3), Median: 1e8, Min: 1e8, Max: 2e8}
	cpu3 := stats.Summary{N: 2, Mean: 1.5e8, StdDev: 1e8 / math.Sqrt2, Median: 1.5e8, Min: 1e8, Max: 2e8}
	// Run 0: 70/400 and 100/500, in 1e9: 1.75e8 + 2e8. Run 2: 1e8 + 1e8.
	rate := stats.Summary{N: 2, Mean: 2.875e8, StdDev: 1.75e8 / math.Sqrt2, Median: 2.875e8, Min: 2e8, Max: 3.75e8}
	pair := func(a, b float64) stats.Summary {
		return stats.Summary{N: 2, Mean: (a + b) / 2, StdDev: math.Abs(a-b) / math.Sqrt2, Median: (a + b) / 2, Min: min(a, b), Max: max(a, b)}
	}
	loop, net := pair(1, 3), pair(900./170-1, 10-3)
	// CPU 1 ran at 1.75e8 and 1e8; only its first run has two samples. CPU 3 has one sample a run.
	within := math.Sqrt2 / 3
	scatter1 := Scatter{
		CV: cpu1.StdDev / cpu1.Mean, Batch: &Batch{P50: 10, P90: 10, P99: 10},
		Variation: &Variation{Between: 0.75 / 1.375 / math.Sqrt2, Within: within, Excess: 0.75 / 1.375 / math.Sqrt2 / within * math.Sqrt(1.5)},
	}
	scatter3 := Scatter{CV: cpu3.StdDev / cpu3.Mean, Batch: &Batch{P50: 5, P90: 10, P99: 10}, Variation: &Variation{Between: math.Sqrt2 / 3}}
	total := Scatter{
		CV: math.Sqrt(0.3) / 1.4, Batch: &Batch{P50: 10, P90: 10, P99: 10},
		Variation: &Variation{Between: rate.StdDev / rate.Mean, Within: within, Excess: rate.StdDev / rate.Mean / within * math.Sqrt(2.5)},
	}
	want := Summary{
		Runs: 2, Ops: 310, Setup: 20,
		CPUs: []CPU{
			{Label: "cpu01", CPU: 1, Worker: -1, Samples: 3, Ops: 110, Elapsed: 800. / 3, Rate: &cpu1, Scatter: &scatter1},
			{Label: "cpu03", CPU: 3, Worker: -1, Samples: 2, Ops: 200, Elapsed: 750, Rate: &cpu3, Scatter: &scatter3},
		},
		Sample:  &stats.Summary{N: 5, Mean: 1.4e8, StdDev: 1e8 * math.Sqrt(0.3), Median: 1e8, Min: 1e8, Max: 2e8},
		Rate:    &Rate{Summary: rate, Spread: rate.StdDev / rate.Mean},
		Cost:    &Cost{Gross: pair(900./170, 10), Loop: &loop, Net: &net},
		Scatter: &total,
	}
	if d := gocmp.Diff(want, Summarize(r), approx); d != "" {
		t.Error(d)
	}
}

func TestSummarizeWorkers(t *testing.T) {
	r := &Result{Runs: []*Run{{Samples: []Sample{
		{Worker: 10, CPU: -1, Elapsed: 1, Ops: 1},
		{Worker: 2, CPU: -1, Elapsed: 1, Ops: 1},
		{Worker: 0, CPU: 100, Elapsed: 1, Ops: 1},
		{Worker: 0, CPU: 99, Elapsed: 1, Ops: 1},
	}}}}
	var got []string
	for _, c := range Summarize(r).CPUs {
		got = append(got, c.Label)
	}
	if s := strings.Join(got, " "); s != "cpu99 cpu100 prod02 prod10" {
		t.Error(s)
	}
}

// TestInterval holds that an interval needs six runs, and is the smallest and the largest of six.
func TestInterval(t *testing.T) {
	var r Result
	for i := range 6 {
		if s := Summarize(&r); s.Rate != nil && s.Rate.Interval != nil {
			t.Errorf("%d runs have an interval", i)
		}
		r.Runs = append(r.Runs, &Run{Samples: []Sample{{Elapsed: 1e9, Ops: uint64(10 + i)}}})
	}
	want := stats.Interval{Center: 12.5, Lo: 10, Hi: 15, Confidence: 0.96875}
	if d := gocmp.Diff(&want, Summarize(&r).Rate.Interval, approx); d != "" {
		t.Error(d)
	}
}

// seedRates are what the original printed for 4096, 8192 ... 65536 entries of 65536 with nr_loops=1000000, in M/s
// (shared/seeds/hashmap-lookup.txt: the commit message of the kernel's benchmark).
const seedRates = "50.739 47.751 45.153 43.826 41.971 41.034 39.946 38.256 36.580 36.252 35.200 34.061 34.374 33.244 32.182 31.497"

// wholePasses is how many lookups are done of the nr_loops that are asked for, and reported has a sample of the time that
// they took when nrLoops in that time were reported as rate.
func wholePasses(nrLoops, entries uint64) uint64 { return nrLoops / entries * entries }

func reported(rate float64, nrLoops, entries uint64) Sample {
	return Sample{Elapsed: uint64(math.Round(float64(nrLoops) / rate * 1e9)), Ops: wholePasses(nrLoops, entries)}
}

// TestParameterIsNoCount is case 1 of the wrong numbers that users got: the original takes nr_loops for the number of
// lookups, where it does whole passes over the entries only.
func TestParameterIsNoCount(t *testing.T) {
	want := strings.Fields("50.710 47.723 44.942 43.801 41.259 40.338 38.941 37.607 36.409 35.637 34.891 33.483 32.946 32.408 31.636 30.963")
	last, lowest, highest := math.Inf(1), math.Inf(1), 0.
	for i, field := range strings.Fields(seedRates) {
		rate, err := strconv.ParseFloat(field, 64)
		must(t, err)
		s := Summarize(&Result{Runs: []*Run{{Samples: []Sample{reported(rate*1e6, 1000000, uint64(4096*(i+1)))}}}})
		got := s.CPUs[0].Rate.Mean
		if m := scaleOf(got).text(got); m != want[i]+"M" {
			t.Errorf("row %d: %s, want %s", i, m, want[i])
		}
		if got >= last {
			t.Errorf("row %d: %f is not below %f, of a map less full", i, got, last)
		}
		last = got
		wrong := 100 * (rate*1e6/got - 1)
		lowest, highest = min(lowest, wrong), max(highest, wrong)
	}
	if lo, hi := fixed(lowest, 2), fixed(highest, 2); lo != "0.06" || hi != "4.33" {
		t.Errorf("errors from %s %% to %s %%", lo, hi)
	}

	s := Summarize(&Result{Runs: []*Run{{Samples: []Sample{reported(30e6, 1000000, 700000)}}}})
	if wrong := fixed(100*(30e6/s.Rate.Mean-1), 1); wrong != "42.9" {
		t.Errorf("error with 700000 entries: %s %%", wrong)
	}
}

// TestZeroOperations is case 2: no operations, and a rate all the same.
func TestZeroOperations(t *testing.T) {
	zero := Sample{Elapsed: 33}
	for name, runs := range map[string][]*Run{
		"no run":        nil,
		"no sample":     {{}, {}},
		"no operation":  {{Samples: []Sample{zero, zero}, Twin: []Sample{zero}}},
		"no time":       {{Samples: []Sample{{Ops: 1000000}}}},
		"nothing":       {{Samples: []Sample{{}}}},
		"a twin though": {{Samples: []Sample{zero}, Twin: []Sample{{Elapsed: 1, Ops: 1}}}},
	} {
		s := Summarize(&Result{Runs: runs})
		if s.Sample != nil || s.Rate != nil || s.Cost != nil || s.Ops != 0 {
			t.Errorf("%s: %+v", name, s)
		}
		for _, c := range s.CPUs {
			if c.Rate != nil {
				t.Errorf("%s: %+v", name, c)
			}
		}
		if _, err := json.Marshal(s); err != nil {
			t.Errorf("%s: %v", name, err) // NaN and Inf are errors
		}
	}
}

// TestMeasuredTime is case 10: ticks that come late are longer, and not of more operations in the nominal time.
func TestMeasuredTime(t *testing.T) {
	var r Run
	for _, elapsed := range []uint64{1000000000, 1354000000, 646000000, 1000300000} {
		r.Samples = append(r.Samples, Sample{CPU: -1, Elapsed: elapsed, Ops: elapsed / 50})
	}
	s := Summarize(&Result{Runs: []*Run{&r}})
	want := stats.Summary{N: 4, Mean: 20e6, Median: 20e6, Min: 20e6, Max: 20e6}
	if d := gocmp.Diff(&want, s.CPUs[0].Rate); d != "" {
		t.Error(d)
	}
	if s.Rate.Mean != 20e6 || s.Cost.Gross.Mean != 50 {
		t.Errorf("%+v %+v", s.Rate, s.Cost)
	}
}

// TestBaseUnits is case 11: what machines read is in events a second, whatever people are shown.
func TestBaseUnits(t *testing.T) {
	rec := aRecord(aResult(4096, 19708000, 1, 1))
	rec.Results[0].Runs[0].Samples = []Sample{{CPU: 1, Elapsed: 250000000, Ops: 5000}}
	var doc struct{ Results []struct{ Summary Summary } }
	must(t, json.Unmarshal(write(t, rec, toJSON), &doc))
	s := doc.Results[0].Summary
	if s.Rate.Mean != 20000 || s.CPUs[0].Rate.Mean != 20000 || s.CPUs[0].Elapsed != 250000000 || s.Cost.Gross.Mean != 50000 {
		t.Errorf("%+v", s)
	}
}
