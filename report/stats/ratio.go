package stats

import (
	"math"
	"slices"
	"sync"

	"github.com/aclements/go-moremath/mathx"
	"github.com/aclements/go-moremath/stats"
	montana "github.com/montanaflynn/stats"
	"golang.org/x/perf/benchmath"
)

// RatioConfidence is the least probability with which the interval of RatioOf holds the ratio. An interval of 90 % that lies
// inside a band is a test at Level that the ratio does (two one-sided tests).
const RatioConfidence = 0.90

// RatioOf is by which factor values are above those of base: the estimator of Hodges and Lehmann, for factors instead of
// differences. Its center is the median of the quotients of each of values by each of base. Its interval holds the factors
// that a Mann-Whitney test of values against base multiplied by the factor does not refuse: that asks nothing of the
// distribution but that both have the same up to the factor. The confidence is what the ranks really give,
// RatioConfidence or more. It is not ok where the test can refuse nothing (fewer than 3 values against 3), and for values
// that are not finite or not above zero.
func RatioOf(base, values []float64) (r Interval, ok bool) {
	k, confidence := ratioRank(len(base), len(values))
	if k == 0 || !finite(base...) || !finite(values...) {
		return Interval{}, false
	}
	quotients := make([]float64, 0, len(base)*len(values))
	for _, b := range base {
		for _, v := range values {
			if b <= 0 || v <= 0 || v/b == 0 || !finite(v/b) {
				return Interval{}, false
			}
			quotients = append(quotients, v/b)
		}
	}
	slices.Sort(quotients)
	center, _ := montana.Median(quotients)
	return Interval{Center: center, Lo: quotients[k-1], Hi: quotients[len(quotients)-k], Confidence: confidence}, true
}

type rank struct {
	k          int
	confidence float64
}

// ranks remembers ratioRank by the two numbers of values, as the distribution takes a while.
var ranks sync.Map

// ratioRank is the greatest k for which the k-th smallest and the k-th greatest of n1*n2 quotients are an interval of
// RatioConfidence; 0 where there is none.
func ratioRank(n1, n2 int) (k int, confidence float64) {
	key := [2]int{n1, n2}
	if r, ok := ranks.Load(key); ok {
		return r.(rank).k, r.(rank).confidence
	}
	dist := stats.UDist{N1: n1, N2: n2}
	if n1 > 0 && n2 > 0 {
		for 2*dist.CDF(float64(k)) <= 1-RatioConfidence+1e-12 { // 3 against 3 are 0.1, but for rounding
			confidence = 1 - 2*dist.CDF(float64(k))
			k++
		}
	}
	ranks.Store(key, rank{k, confidence})
	return k, confidence
}

// MannWhitney is the probability that two sets as different as a and b come from one distribution, two-sided. It is exact
// up to 50 values each, or 25 where some are equal. It is 1 where nothing speaks for a difference: for empty sets, or
// values that are all the same.
func MannWhitney(a, b []float64) float64 {
	sample := func(values []float64) *benchmath.Sample {
		return benchmath.NewSample(slices.Clone(values), &benchmath.DefaultThresholds)
	}
	return min(1, benchmath.AssumeNothing.Compare(sample(a), sample(b)).P)
}

// MinP is the smallest p that MannWhitney can give for n1 values against n2: that of sets that do not overlap.
func MinP(n1, n2 int) float64 {
	if n1 < 1 || n2 < 1 {
		return 1
	}
	return min(1, 2/mathx.Choose(n1+n2, n1))
}

// NeededRuns is the least number of values on each side with which one of tests comparisons can reach Level by itself
// after AdjustP.
func NeededRuns(tests int) int {
	n := 1
	for MinP(n, n)*float64(max(tests, 1)) > Level {
		n++
	}
	return n
}

// AdjustP corrects the p of several tests after Benjamini and Hochberg: of the differences that are found where the
// corrected p is below Level, a share of at most Level is expected to be none.
func AdjustP(p []float64) []float64 {
	n := len(p)
	order := make([]int, n)
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(i, j int) int {
		switch {
		case p[i] < p[j]:
			return -1
		case p[i] > p[j]:
			return 1
		}
		return 0
	})
	adjusted := make([]float64, n)
	least := 1.
	for rank := n; rank > 0; rank-- {
		i := order[rank-1]
		least = math.Min(least, p[i]*float64(n)/float64(rank))
		adjusted[i] = least
	}
	return adjusted
}
