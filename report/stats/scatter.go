package stats

import (
	"math"

	"github.com/aclements/go-moremath/stats"
	montana "github.com/montanaflynn/stats"
)

// Percentile is the least of values that at least percent of a hundred of them do not exceed (the nearest rank, so it is
// one of the values). It is not ok for no values, for values that are not finite, and for a percent outside 0 to 100.
func Percentile(values []float64, percent float64) (p float64, ok bool) {
	if !finite(values...) {
		return 0, false
	}
	p, err := montana.PercentileNearestRank(values, percent)
	return p, err == nil
}

// Fence says which of Tukey's fences a value lies outside of. It is empty for a value inside of both.
type Fence string

const (
	Mild    Fence = "mild"    // more than 1.5 times the distance of the quartiles away from the nearer of them
	Extreme Fence = "extreme" // more than 3 times
)

// Outliers labels each of values. Fewer than six have no outliers: one of five shifts a quartile so far that it stays
// inside the fences.
func Outliers(values []float64) []Fence {
	labels := make([]Fence, len(values))
	if len(values) < 6 || !finite(values...) {
		return labels
	}
	found, err := montana.QuartileOutliers(values)
	if err != nil {
		return labels
	}
	// The library gives the values. Equal ones are on the same side of a fence.
	fences := make(map[float64]Fence)
	for _, v := range found.Mild {
		fences[v] = Mild
	}
	for _, v := range found.Extreme {
		fences[v] = Extreme
	}
	for i, v := range values {
		labels[i] = fences[v]
	}
	return labels
}

// Drift is how values change in the order in which they came.
type Drift struct {
	Tau    float64 `json:"tau"`    // Kendall's rank correlation with the order, tau-b: 1 where every value is above the one before
	First  float64 `json:"first"`  // median of the first half against that of the second: -0.03 where it is 3 % lower
	Trend  bool    `json:"trend"`  // Tau is further from 0 than chance makes it in 5 of 100 cases
	Values int     `json:"values"` // number of values
}

// DriftOf looks for a trend in values, from five on. It is not ok for fewer, and for values that are not finite, not above
// zero, or all the same.
//
// Whether there is a trend is read off the normal approximation of Kendall's statistic with its continuity correction,
// which takes 5 values in perfect order, and allows 6 values one pair out of place.
func DriftOf(values []float64) (d Drift, ok bool) {
	n := len(values)
	if n < 5 || !finite(values...) {
		return Drift{}, false
	}
	order := make([]float64, n)
	for i := range order {
		order[i] = float64(i)
	}
	tau, err := montana.KendallTau(order, values)
	first, _ := montana.Median(values[:n/2])
	last, _ := montana.Median(values[n-n/2:])
	if err != nil || first <= 0 || last <= 0 || !finite(tau, first/last) {
		return Drift{}, false
	}
	pairs := float64(n*(n-1)) / 2
	deviation := math.Sqrt(pairs * float64(2*n+5) / 9)
	p := 2 * montana.NormSf((math.Abs(tau)*pairs-1)/deviation, 0, 1)
	return Drift{Tau: tau, First: first/last - 1, Trend: p < Level, Values: n}, true
}

// Level is the probability of taking chance for an effect that tests allow.
const Level = 0.05

// Power is the probability of seeing an effect of the size that Detectable gives.
const Power = 0.8

// Detectable is the least relative difference between two sets of n values each, with a relative standard deviation of
// spread, that a Mann-Whitney test at Level sees with a probability of Power:
//
//	(t(1-Level/2) + t(Power)) * spread * sqrt(2 / (n * 3/pi))
//
// with the quantiles of Student's t at 2n-2 degrees of freedom. The factor 3/pi is the test's efficiency beside the
// t test, of values that are normally distributed. It is not ok where no difference can be seen because n is below 4.
func Detectable(n int, spread float64) (d float64, ok bool) {
	if MinP(n, n) > Level || !finite(spread) {
		return 0, false
	}
	t := stats.InvCDF(stats.TDist{V: float64(2*n - 2)})
	d = (t(1-Level/2) + t(Power)) * spread * math.Sqrt(2/(float64(n)*3/math.Pi))
	return d, finite(d)
}
