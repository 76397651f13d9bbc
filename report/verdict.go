package report

import (
	"fmt"
	"math"

	"bpfbench/report/stats"
)

// judge corrects the p of the rows and comes to their verdicts.
func (c *Comparison) judge() {
	var ps []float64
	for _, r := range c.Rows {
		if r.P != nil {
			ps = append(ps, *r.P)
		}
	}
	c.Tests = len(ps)
	adjusted := stats.AdjustP(ps)
	for i := range c.Rows {
		r := &c.Rows[i]
		if c.Exact {
			r.Verdict = r.beyond(c.Metric)
			if r.Verdict == "" {
				r.Verdict = Same
			}
		} else {
			r.AdjustedP = &adjusted[i]
			r.Verdict, r.Reason = r.tested(c.Metric, least(ps, i, stats.MinP(r.Old.Runs, r.New.Runs)), c.Tests)
		}
		r.Fails = !r.Information && (r.Verdict == Worse || r.Verdict == Better && r.Direction == AnyChange)
	}
}

// least is the smallest corrected p that the i-th of several tests can give, beside the others as they are.
func least(ps []float64, i int, p float64) float64 {
	own := append([]float64(nil), ps...)
	own[i] = p
	return stats.AdjustP(own)[i]
}

// beyond says on which side of the threshold the ratio lies: Better, Worse, or empty for neither.
func (r *Row) beyond(m Metric) Verdict {
	if math.Abs(r.Ratio-1) <= r.Threshold {
		return ""
	}
	if (r.Ratio > 1) == (m == RateMetric) {
		return Better
	}
	return Worse
}

// tested is the verdict of a row of which least is the smallest corrected p that its numbers of runs can give.
//
// A difference is called one when the test sees it and the estimate is beyond the threshold. Rows are the same when the
// whole interval is inside the threshold, whatever the test says: then there may be a difference, but it does not matter.
func (r *Row) tested(m Metric, least float64, tests int) (v Verdict, reason string) {
	needs := fmt.Sprintf("needs --runs %d", stats.NeededRuns(tests))
	if stats.MinP(r.Old.Runs, r.New.Runs) > stats.Level {
		return Inconclusive, needs
	}
	if i := r.Interval; i != nil && i.Lo >= 1-r.Threshold && i.Hi <= 1+r.Threshold {
		return Same, ""
	}
	switch v := r.beyond(m); {
	case *r.AdjustedP <= stats.Level && v != "":
		return v, ""
	case *r.AdjustedP <= stats.Level:
		return Inconclusive, fmt.Sprintf("it differs, but perhaps by less than %s: raise --runs or lower --threshold", shareText(r.Threshold))
	case least > stats.Level:
		return Inconclusive, needs
	}
	return Inconclusive, "what is seen may be chance, and the interval reaches beyond the threshold: raise --runs"
}
