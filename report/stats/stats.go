// Package stats holds the few statistics that reports are made of. Its functions leave their input as it is, and no NaN
// and no infinity comes out of them: where a value is not defined they say so by a bool.
package stats

import (
	"math"

	"github.com/montanaflynn/stats"
	"golang.org/x/perf/benchmath"
)

// Summary describes a set of values, in their own unit.
type Summary struct {
	N      int     `json:"n"` // number of values
	Mean   float64 `json:"mean"`
	StdDev float64 `json:"stddev"` // of the sample, with n-1; 0 for a single value, which has none
	Median float64 `json:"median"`
	Min    float64 `json:"min"`
	Max    float64 `json:"max"`
}

// Summarize describes values. It is not ok, and the summary is empty, when there are no values or when one of them, or
// anything computed from them, is not finite.
func Summarize(values []float64) (s Summary, ok bool) {
	if len(values) == 0 || !finite(values...) {
		return Summary{}, false
	}
	// Errors are for no values, and for a single one in StandardDeviationSample; neither comes to pass here.
	s.N = len(values)
	s.Min, _ = stats.Min(values)
	s.Max, _ = stats.Max(values)
	s.Median, _ = stats.Median(values)
	if s.Min == s.Max {
		// The rounded sum of equal values may give another mean, and then a deviation of its rounding error.
		s.Mean = s.Min
		return s, true
	}
	s.Mean, _ = stats.Mean(values)
	s.StdDev, _ = stats.StandardDeviationSample(values)
	if !finite(s.Mean, s.StdDev, s.Median) {
		return Summary{}, false
	}
	return s, true
}

// Relative is the standard deviation as a share of the mean: 0.01 is one percent. It is 0 where the mean is.
func (s Summary) Relative() float64 {
	r := s.StdDev / math.Abs(s.Mean)
	if !finite(r) {
		return 0
	}
	return r
}

// Confidence is the least probability with which an Interval holds the median.
const Confidence = 0.95

// MinInterval is the least number of values that have an Interval: of n values the smallest and the largest hold the
// median between them with a probability of 1 - 2/2^n, which is at least 0.95 from n = 6.
const MinInterval = 6

// Interval is where the median of a population is likely to be, or the ratio of two populations, whatever the
// distribution: it takes values, or quotients of them, by their rank.
type Interval struct {
	Center     float64 `json:"center"` // the sample's median, or the median of the quotients
	Lo         float64 `json:"lo"`
	Hi         float64 `json:"hi"`
	Confidence float64 `json:"confidence"` // what the ranks really give: what was asked for, or more
}

// MedianInterval gives the interval of values. It is not ok for fewer than MinInterval values, and for values that are
// not finite.
func MedianInterval(values []float64) (i Interval, ok bool) {
	if len(values) < MinInterval || !finite(values...) {
		return Interval{}, false
	}
	own := append([]float64(nil), values...) // NewSample sorts what it is given
	s := benchmath.AssumeNothing.Summary(benchmath.NewSample(own, &benchmath.DefaultThresholds), Confidence)
	if !finite(s.Center, s.Lo, s.Hi) {
		return Interval{}, false
	}
	return Interval{Center: s.Center, Lo: s.Lo, Hi: s.Hi, Confidence: s.Confidence}, true
}

func finite(values ...float64) bool {
	for _, v := range values {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return false
		}
	}
	return true
}
