package stats

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestPercentile(t *testing.T) {
	ten := []float64{10, 3, 9, 1, 8, 2, 7, 4, 6, 5}
	for percent, want := range map[float64]float64{50: 5, 90: 9, 99: 10, 100: 10, 1: 1} {
		if got, ok := Percentile(ten, percent); got != want || !ok {
			t.Errorf("%v: %v, %v, want %v", percent, got, ok, want)
		}
	}
	for name, values := range map[string][]float64{"none": nil, "NaN": {1, math.NaN()}} {
		if got, ok := Percentile(values, 50); ok {
			t.Errorf("%s: %v", name, got)
		}
	}
	if _, ok := Percentile(ten, 101); ok {
		t.Error("a percentile of 101")
	}
}

// TestOutliers is worked by hand: of 1 to 10 the quartiles are 3 and 8, so that the fences are at -4.5 and 15.5, -12 and 23.
func TestOutliers(t *testing.T) {
	ten := []float64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}
	for v, want := range map[float64]Fence{10: "", 15: "", 16: Mild, 23: Mild, 24: Extreme} {
		values := append([]float64(nil), ten...)
		values[9] = v
		got := Outliers(values)
		if got[9] != want {
			t.Errorf("%v: %q, want %q", v, got[9], want)
		}
		if d := cmp.Diff(make([]Fence, 9), got[:9]); d != "" {
			t.Errorf("%v: %s", v, d)
		}
	}
	for name, values := range map[string][]float64{
		"none": nil, "five": {1, 1, 1, 1, 100}, "NaN": {1, 2, 3, 4, 5, math.NaN(), 100}, "equal": {2, 2, 2, 2, 2, 2},
	} {
		if d := cmp.Diff(make([]Fence, len(values)), Outliers(values)); d != "" {
			t.Errorf("%s: %s", name, d)
		}
	}
	if got := Outliers([]float64{2, 2, 2, 2, 2, 3}); got[5] != Extreme || got[0] != "" {
		t.Error(got)
	}
}

func TestDrift(t *testing.T) {
	for _, tt := range []struct {
		name   string
		values []float64
		want   Drift
	}{
		{"six up", []float64{1, 2, 3, 4, 5, 6}, Drift{Tau: 1, First: 2./5 - 1, Trend: true, Values: 6}},
		{"six down", []float64{6, 5, 4, 3, 2, 1}, Drift{Tau: -1, First: 5./2 - 1, Trend: true, Values: 6}},
		{"one pair out of place", []float64{1, 2, 4, 3, 5, 6}, Drift{Tau: 13. / 15, First: 2./5 - 1, Trend: true, Values: 6}},
		{"two", []float64{2, 1, 4, 3, 5, 6}, Drift{Tau: 11. / 15, First: 2./5 - 1, Values: 6}},
		{"five up", []float64{1, 2, 3, 4, 5}, Drift{Tau: 1, First: 1.5/4.5 - 1, Trend: true, Values: 5}},
		{"five but one pair", []float64{2, 1, 3, 4, 5}, Drift{Tau: 0.8, First: 1.5/4.5 - 1, Values: 5}},
		// Ties: 14 pairs go up and one neither way, tau-b = 14/sqrt(15*14).
		{"ties", []float64{1, 2, 3, 4, 5, 5}, Drift{Tau: 14 / math.Sqrt(15*14), First: 2./5 - 1, Trend: true, Values: 6}},
	} {
		got, ok := DriftOf(tt.values)
		if d := cmp.Diff(tt.want, got, approx); d != "" || !ok {
			t.Errorf("%s: %v\n%s", tt.name, ok, d)
		}
	}
	for name, values := range map[string][]float64{
		"four": {1, 2, 3, 4}, "equal": {1, 1, 1, 1, 1}, "zero": {0, 0, 1, 2, 3}, "NaN": {1, 2, 3, 4, math.NaN()}, "infinite": {1, 2, 3, 4, math.Inf(1)},
	} {
		if got, ok := DriftOf(values); ok || got != (Drift{}) {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// TestDetectable is by the tables of Student's t: of 10 degrees of freedom 2.228 at 0.975 and 0.879 at 0.8.
func TestDetectable(t *testing.T) {
	got, ok := Detectable(6, 0.01)
	if want := (2.228 + 0.879) * 0.01 * math.Sqrt(math.Pi/9); !ok || math.Abs(got-want) > 1e-5 {
		t.Errorf("%v, %v, want %v", got, ok, want)
	}
	if got, ok := Detectable(6, 0); !ok || got != 0 {
		t.Errorf("no spread: %v, %v", got, ok)
	}
	for n, spread := range map[int]float64{3: 0.01, 0: 0.01, 6: math.Inf(1)} {
		if got, ok := Detectable(n, spread); ok {
			t.Errorf("%d, %v: %v", n, spread, got)
		}
	}
}
