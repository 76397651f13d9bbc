package stats

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestRatio has the ranks of the published tables of the Mann-Whitney distribution: with 3 and 3 values P(U<=0) = 1/20,
// with 4 and 4 P(U<=1) = 2/70, with 5 and 5 P(U<=4) = 12/252, with 6 and 6 P(U<=7) = 43/924.
func TestRatio(t *testing.T) {
	ones := func(n int) []float64 {
		values := make([]float64, n)
		for i := range values {
			values[i] = 1
		}
		return values
	}
	for _, tt := range []struct {
		n          int
		lo, hi     float64
		confidence float64
	}{
		{3, 1, 3, 1 - 2*1./20},   // the smallest and the greatest of 9 quotients
		{4, 1, 4, 1 - 2*2./70},   // the 2nd and the 15th of 16
		{5, 1, 5, 1 - 2*12./252}, // the 5th and the 21st of 25
		{6, 2, 5, 1 - 2*43./924}, // the 8th and the 29th of 36
	} {
		// Against equal values the quotients are the values, n times each.
		var values []float64
		for i := range tt.n {
			values = append(values, float64(i+1))
		}
		got, ok := RatioOf(ones(tt.n), values)
		want := Interval{Center: float64(tt.n+1) / 2, Lo: tt.lo, Hi: tt.hi, Confidence: tt.confidence}
		if d := cmp.Diff(want, got, approx); d != "" || !ok {
			t.Errorf("%d: %v\n%s", tt.n, ok, d)
		}
	}
	for name, pair := range map[string][2][]float64{
		"none": {nil, nil}, "two": {{1, 2}, {3, 4}}, "zero": {{0, 1, 1}, {1, 1, 1}}, "negative": {{1, 1, 1}, {1, 1, -1}},
		"infinite": {{1, 1, math.Inf(1)}, {1, 1, 1}}, "overflow": {{1e-300, 1, 1}, {1e300, 1, 1}}, "underflow": {{1e300, 1, 1}, {1e-300, 1, 1}},
	} {
		if got, ok := RatioOf(pair[0], pair[1]); ok || got != (Interval{}) {
			t.Errorf("%s: %+v", name, got)
		}
	}
	// Of unequal numbers: 2/C(9,3) = 0.0238, 2*2/84 = 0.0476, 2*4/84 = 0.0952.
	if r, ok := RatioOf([]float64{1, 1, 1}, []float64{1, 2, 3, 4, 5, 6}); !ok || math.Abs(r.Confidence-(1-8./84)) > 1e-12 {
		t.Errorf("%+v", r)
	}
}

// TestRatioCoverage holds that the interval has the true ratio in it as often as it says.
func TestRatioCoverage(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	const n = 2000
	for _, runs := range []int{3, 4, 6, 10, 20} {
		in, confidence := 0, 0.
		for range n {
			a, b := make([]float64, runs), make([]float64, runs)
			for i := range runs {
				a[i], b[i] = math.Exp(0.1*rng.NormFloat64()), 1.5*math.Exp(0.1*rng.NormFloat64())
			}
			r, _ := RatioOf(a, b)
			confidence = r.Confidence
			if r.Lo <= 1.5 && 1.5 <= r.Hi {
				in++
			}
		}
		if share := float64(in) / n; math.Abs(share-confidence) > 0.02 || confidence < RatioConfidence-1e-12 {
			t.Errorf("%d runs: %.3f, want %.3f", runs, share, confidence)
		}
	}
}

// TestMannWhitney has p that are worked by hand from the numbers of arrangements.
func TestMannWhitney(t *testing.T) {
	for _, tt := range []struct {
		name string
		a, b []float64
		want float64
	}{
		{"apart", []float64{1, 2, 3, 4}, []float64{5, 6, 7, 8}, 2. / 70},
		{"one pair crosses", []float64{1, 2, 3, 5}, []float64{4, 6, 7, 8}, 2 * 2. / 70},
		{"six apart", []float64{1, 2, 3, 4, 5, 6}, []float64{7, 8, 9, 10, 11, 12}, 2. / 924},
		{"in the middle", []float64{1, 4}, []float64{2, 3}, 1},
		{"equal", []float64{1, 1, 1, 1}, []float64{1, 1, 1, 1}, 1},
		{"none", nil, []float64{1}, 1},
		// Hollander and Wolfe, the permeability of the human chorioamnion: W = 35, one-sided 0.1272.
		{"published", []float64{0.80, 0.83, 1.89, 1.04, 1.45, 1.38, 1.91, 1.64, 0.73, 1.46}, []float64{1.15, 0.88, 0.90, 0.74, 1.21}, 0.2544},
	} {
		if got := MannWhitney(tt.a, tt.b); math.Abs(got-tt.want) > 5e-5 {
			t.Errorf("%s: %v, want %v", tt.name, got, tt.want)
		}
	}
}

func TestMinP(t *testing.T) {
	for n, want := range map[int]float64{1: 1, 2: 1. / 3, 3: 0.1, 4: 2. / 70, 6: 2. / 924} {
		if got := MinP(n, n); math.Abs(got-want) > 1e-15 {
			t.Errorf("%d: %v, want %v", n, got, want)
		}
	}
	if MinP(0, 6) != 1 || math.Abs(MinP(3, 5)-2./56) > 1e-15 {
		t.Error(MinP(0, 6), MinP(3, 5))
	}
	// 0.0286 for one test, 0.0079 for six, 0.0022 for 23, 0.0006 for 85.
	for tests, want := range map[int]int{0: 4, 1: 4, 2: 5, 6: 5, 7: 6, 23: 6, 24: 7, 85: 7, 86: 8} {
		if got := NeededRuns(tests); got != want {
			t.Errorf("%d tests need %d runs, want %d", tests, got, want)
		}
	}
}

// TestAdjustP has the 15 p of the example of Benjamini and Hochberg (1995, section 4), of which at 0.05 the four smallest
// are rejected.
func TestAdjustP(t *testing.T) {
	published := []float64{0.0201, 0.0001, 0.0004, 0.0019, 0.0095, 0.0278, 0.0298, 0.0344, 0.0459, 0.3240, 0.4262, 0.5719, 0.6528, 0.7590, 1}
	rejected := 0
	for i, p := range AdjustP(published) {
		if p <= Level {
			rejected++
			if published[i] > 0.0095 {
				t.Errorf("%v is rejected", published[i])
			}
		}
	}
	if rejected != 4 {
		t.Errorf("%d are rejected", rejected)
	}
	if d := cmp.Diff([]float64{0.04, 0.03, 0.5, 0.04}, AdjustP([]float64{0.03, 0.0075, 0.5, 0.02}), approx); d != "" {
		t.Error(d)
	}
	if got := AdjustP(nil); len(got) != 0 {
		t.Error(got)
	}
}
