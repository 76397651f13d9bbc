package stats

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

var approx = cmpopts.EquateApprox(1e-12, 0)

func TestSummarize(t *testing.T) {
	for _, tt := range []struct {
		name   string
		values []float64
		want   Summary
	}{
		{"single", []float64{7}, Summary{N: 1, Mean: 7, Median: 7, Min: 7, Max: 7}},
		// Deviations -3 -1 -1 -1 0 0 2 4, squares sum to 32: the textbook set whose population deviation is 2.
		{"by hand", []float64{9, 2, 4, 5, 4, 4, 7, 5}, Summary{N: 8, Mean: 5, StdDev: math.Sqrt(32. / 7), Median: 4.5, Min: 2, Max: 9}},
		{"odd", []float64{3, 1, 2}, Summary{N: 3, Mean: 2, StdDev: 1, Median: 2, Min: 1, Max: 3}},
		{"zeros", []float64{0, 0, 0}, Summary{N: 3}},
		// NIST StRD NumAcc1: certified.
		{"NumAcc1", []float64{10000001, 10000003, 10000002},
			Summary{N: 3, Mean: 10000002, StdDev: 1, Median: 10000002, Min: 10000001, Max: 10000003}},
		{"equal", []float64{0.1, 0.1, 0.1}, Summary{N: 3, Mean: 0.1, Median: 0.1, Min: 0.1, Max: 0.1}},
		{"negative", []float64{-1, 1}, Summary{N: 2, StdDev: math.Sqrt2, Min: -1, Max: 1}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, ok := Summarize(tt.values)
			if !ok {
				t.Fatal("not ok")
			}
			if d := cmp.Diff(tt.want, got, approx); d != "" {
				t.Error(d)
			}
		})
	}
}

// Michelson's 100 measurements of the speed of light (NIST StRD Michelso; certified: mean 299.8524, deviation
// 0.0790105478190518), in 1000 km/s above 299, in thousandths.
var michelson = []float64{
	850, 740, 900, 1070, 930, 850, 950, 980, 980, 880, 1000, 980, 930, 650, 760, 810, 1000, 1000, 960, 960,
	960, 940, 960, 940, 880, 800, 850, 880, 900, 840, 830, 790, 810, 880, 880, 830, 800, 790, 760, 800,
	880, 880, 880, 860, 720, 720, 620, 860, 970, 950, 880, 910, 850, 870, 840, 840, 850, 840, 840, 840,
	890, 810, 810, 820, 800, 770, 760, 740, 750, 760, 910, 920, 890, 860, 880, 720, 840, 850, 850, 780,
	890, 840, 780, 810, 760, 810, 790, 810, 820, 850, 870, 870, 810, 740, 810, 940, 950, 800, 810, 870,
}

func TestSummarizePublished(t *testing.T) {
	values := make([]float64, len(michelson))
	for i, v := range michelson {
		values[i] = 299 + v/1000
	}
	got, ok := Summarize(values)
	if !ok || math.Abs(got.Mean-299.8524) > 1e-10 || math.Abs(got.StdDev-0.0790105478190518) > 1e-12 {
		t.Errorf("got %+v, %v", got, ok)
	}
}

func TestUndefined(t *testing.T) {
	for name, values := range map[string][]float64{
		"none":      nil,
		"NaN":       {1, math.NaN(), 2, 3, 4, 5, 6},
		"infinite":  {1, math.Inf(1), 2, 3, 4, 5, 6},
		"overflows": {math.MaxFloat64, -math.MaxFloat64},
	} {
		if got, ok := Summarize(values); ok || got != (Summary{}) {
			t.Errorf("%s: Summarize = %+v, %v", name, got, ok)
		}
		if got, ok := MedianInterval(values); ok || got != (Interval{}) {
			t.Errorf("%s: MedianInterval = %+v, %v", name, got, ok)
		}
	}
}

func TestRelative(t *testing.T) {
	for _, tt := range []struct {
		s    Summary
		want float64
	}{
		{Summary{Mean: 50, StdDev: 1}, 0.02},
		{Summary{Mean: -50, StdDev: 1}, 0.02},
		{Summary{StdDev: 1}, 0},
		{Summary{}, 0},
	} {
		if got := tt.s.Relative(); got != tt.want {
			t.Errorf("%+v: got %v, want %v", tt.s, got, tt.want)
		}
	}
}

func TestMedianInterval(t *testing.T) {
	for _, tt := range []struct {
		name   string
		values []float64
		want   Interval
		ok     bool
	}{
		// 1 - 2/2^5 = 0.9375 is below 0.95.
		{"five", []float64{1, 2, 3, 4, 5}, Interval{}, false},
		// 1 - 2/2^6 = 0.96875.
		{"six", []float64{6, 1, 5, 2, 4, 3}, Interval{3.5, 1, 6, 0.96875}, true},
		// The published ranks for n = 10 are 2 and 9, with 1 - 2(1+10)/2^10 = 0.978515625.
		{"ten", []float64{10, 9, 8, 7, 6, 5, 4, 3, 2, 1}, Interval{5.5, 2, 9, 0.978515625}, true},
		{"equal", []float64{2, 2, 2, 2, 2, 2}, Interval{2, 2, 2, 0.96875}, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, ok := MedianInterval(tt.values)
			if ok != tt.ok {
				t.Fatalf("ok = %v", ok)
			}
			if d := cmp.Diff(tt.want, got, approx); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestInputUntouched(t *testing.T) {
	values := []float64{3, 1, 2, 9, 7, 8, 0}
	before := append([]float64(nil), values...)
	Summarize(values)
	MedianInterval(values)
	if d := cmp.Diff(before, values); d != "" {
		t.Error(d)
	}
}

func FuzzFinite(f *testing.F) {
	f.Add(1., 2., 3.)
	f.Add(math.MaxFloat64, -math.MaxFloat64, math.SmallestNonzeroFloat64)
	f.Fuzz(func(t *testing.T, a, b, c float64) {
		values := []float64{a, b, c, a, b, c}
		s, _ := Summarize(values)
		i, _ := MedianInterval(values)
		if !finite(s.Mean, s.StdDev, s.Median, s.Min, s.Max, s.Relative(), i.Center, i.Lo, i.Hi, i.Confidence) {
			t.Errorf("%v: %+v %+v", values, s, i)
		}
	})
}
