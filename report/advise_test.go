package report

import (
	"strings"
	"testing"

	"bpfbench/report/stats"
)

var six = []float64{1, 1.001, 0.999, 1, 1.001, 0.999}

// advised are rates of runs, and what is said of them.
var advised = []struct {
	name   string
	rates  []float64
	change func(*Record)
	want   string // of all warnings, with | between
}{
	{name: "nothing to say", rates: six},
	{name: "one run", rates: six[:1], want: "1 run has no 95 % interval: --runs 6"},
	{name: "five runs", rates: six[:5], want: "5 runs have no 95 % interval: --runs 6"},
	{name: "interrupted", rates: six[:2], change: func(r *Record) { r.Results[0].Status = Interrupted }},
	{name: "failed", rates: six[:2], change: func(r *Record) { r.Results[0].Status = Failed }},
	{name: "spread", rates: []float64{1, 1.05, 0.95, 1.03, 0.97, 1},
		want: "runs differ by 3.7 % (one standard deviation), which hides differences below 6.8 %: raise --runs"},
	{name: "spread, not pinned", rates: []float64{1, 1.05, 0.95, 1.03, 0.97, 1}, change: func(r *Record) { r.Results[0].Pinned = false },
		want: "runs differ by 3.7 % (one standard deviation), which hides differences below 6.8 %: pin with -a, raise --runs"},
	{name: "first slower", rates: []float64{0.98, 0.985, 0.99, 0.995, 1, 1.005},
		want: "the first runs are 1.5 % slower than the last: raise -w"},
	{name: "first faster", rates: []float64{1.005, 1, 0.995, 0.99, 0.985, 0.98},
		want: "the first runs are 1.5 % faster than the last: fix the frequency, or let the machine cool down"},
	{name: "drift too small to matter", rates: []float64{1, 1.001, 1.002, 1.003, 1.004, 1.005}},
	{name: "outlier", rates: []float64{1, 1.001, 0.999, 0.97, 1.001, 0.999},
		want: "run 4 is 3.0 % slower than the median of the runs: look for other load, raise --runs"},
	{name: "two outliers", rates: []float64{1, 1.001, 0.999, 0.97, 1.001, 0.999, 1.0005, 1.02, 1, 1},
		want: "run 4 is 3.0 % slower, run 8 is 2.0 % faster than the median of the runs: look for other load, raise --runs"},
	{name: "outlier too small to matter", rates: []float64{1, 1.0001, 0.9999, 0.995, 1.0001, 0.9999}},
	{name: "samples", rates: six, change: func(r *Record) {
		for _, run := range r.Results[0].Runs {
			first := run.Samples[0]
			for i := range 12 {
				s := first
				if i == 5 {
					s.Elapsed *= 2
				}
				run.Samples = append(run.Samples, s)
			}
		}
	}, want: "6 of 78 samples are far from the others: look for other load, pin with -a"},
	{name: "exact", rates: []float64{0.98, 0.985, 0.99, 0.995, 1, 1.005}, change: func(r *Record) { r.Session.Unit = Instructions }},
	{name: "exact, two runs", rates: six[:2], change: func(r *Record) { r.Session.Unit = Instructions }},
	{name: "exact, spread", rates: []float64{1, 1.05, 0.95}, change: func(r *Record) { r.Session.Unit = Instructions },
		want: "runs differ by 5.0 % (one standard deviation) in their instructions: raise --runs"},
}

func TestAdvise(t *testing.T) {
	for _, tt := range advised {
		rec := ratesRecord(tt.rates)
		if tt.change != nil {
			tt.change(rec)
		}
		for range 2 { // the second time adds nothing
			Advise(rec)
			var got []string
			for _, w := range rec.Results[0].Warnings {
				got = append(got, w.String())
			}
			if s := strings.Join(got, "|"); s != tt.want {
				t.Errorf("%s:\n%s, want\n%s", tt.name, s, tt.want)
			}
		}
	}
}

// TestAdviseHasNoTime holds that of instructions nothing is said that is of times, nor in other warnings of exact mode.
func TestAdviseHasNoTime(t *testing.T) {
	for name, make := range texts {
		rec := exact(make())
		Advise(rec)
		for _, r := range rec.Results {
			for _, w := range r.Warnings {
				for _, word := range []string{"slow", "fast", "time", "second", "-w"} {
					if strings.Contains(w.String(), word) {
						t.Errorf("%s: %s", name, w)
					}
				}
			}
		}
	}
}

// TestRemark holds that what stands out is in the text, in one line more.
func TestRemark(t *testing.T) {
	calm, wild := aRecord(aResult(4096, 19708000, 6, 1)), aRecord(aResult(4096, 19708000, 6, 1))
	slow := func(r *Result) {
		for i := range r.Runs[2].Samples {
			r.Runs[2].Samples[i].Elapsed += 2e6
		}
	}
	slow(wild.Results[0])
	a, b := strings.Split(string(write(t, calm, toText)), "\n"), strings.Split(string(write(t, wild, toText)), "\n")
	if want := "Note: run 3 is 9.2 % slower than the median of the runs."; len(b) != len(a)+1 || b[len(b)-2] != want {
		t.Errorf("%q", b)
	}
	table := aSweep(1)
	slow(table.Results[1])
	lines := strings.Split(string(write(t, table, toText)), "\n")
	if want := "Note: outliers or drift in 1 of 4 results; see the warnings."; lines[len(lines)-2] != want {
		t.Errorf("%q", lines)
	}
}

// TestScatter is worked by hand: two runs of two samples, 1 and 3, and 5 and 7 operations in 1e9.
func TestScatter(t *testing.T) {
	sample := func(rate uint64) Sample { return Sample{Ops: rate, Elapsed: 1e9} }
	r := &Result{Runs: []*Run{{Samples: []Sample{sample(1), sample(3)}}, {Samples: []Sample{sample(5), sample(7)}}}}
	s := Summarize(r)
	// Deviations of sqrt(2) from means of 2 and 6: the pooled relative variance is (2/4 + 2/36) / 2.
	if v := s.Variation; v == nil || !near(v.Within*v.Within, (2./4+2./36)/2) {
		t.Errorf("%+v", v)
	} else if want := v.Between / (v.Within / 1.4142135623730951); !near(v.Excess, want) || !near(v.Between, 4/1.4142135623730951/4) {
		t.Errorf("%+v, want an excess of %v", v, want)
	}
	if b := s.Batch; b.P50 != 1e9/5. || b.P90 != 1e9 || b.P99 != 1e9 {
		t.Errorf("%+v", b)
	}
}

func near(a, b float64) bool { return a-b < 1e-12*b && b-a < 1e-12*b }

func TestOutlierLabels(t *testing.T) {
	rec := ratesRecord([]float64{1, 1.001, 0.999, 0.5, 1.001, 0.999})
	got := Summarize(rec.Results[0]).Outliers
	// The run, and its only sample. All six samples are of one CPU.
	if len(got) != 2 || got[0].Run != 3 || got[0].Sample != -1 || got[0].Label != "total" || got[1].Run != 3 || got[1].Sample != 0 ||
		got[1].Label != "cpu00" || got[0].Fence != stats.Extreme || got[0].Deviation > -0.49 {
		t.Errorf("%+v", got)
	}
	if got := Summarize(ratesRecord([]float64{1, 1, 1}).Results[0]).Outliers; len(got) > 0 {
		t.Errorf("%+v", got)
	}
}

// TestTurns holds that workers that took turns on a CPU are not added up as if they had run at the same time.
func TestTurns(t *testing.T) {
	r := &Result{Producers: 2, Runs: []*Run{{Samples: []Sample{{Worker: 0, Elapsed: 10, Ops: 10}, {Worker: 1, Elapsed: 30, Ops: 10}}}}}
	r.Runs = append(r.Runs, r.Runs[0])
	s := Summarize(r)
	if v := s.CPUs[0].Variation; v == nil || v.Between != 0 || s.Rate.Mean != 1e9+1e9/3. {
		t.Errorf("%+v", s)
	}
	for _, m := range metricsOf(r.Runs[0], Nanoseconds) {
		if m.name == "rate" && m.cpu == "cpu00" && m.value != "500000000" {
			t.Errorf("%+v", m)
		}
	}
}
