package report

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"bpfbench/report/stats"
)

// From where on Advise speaks of what a Summary holds. All are shares: 0.01 is one percent.
const (
	// adviseSpread is of the runs' standard deviation over their mean. With six runs it hides a difference of twice that.
	adviseSpread = 0.02
	// adviseDeviation is how far a run must be from the median of the runs, or the first runs from the last: what chance
	// does not explain may still be too little to matter.
	adviseDeviation = 0.01
	// adviseSamples is the share of samples that are far from the others, in runs that are not.
	adviseSamples = 0.05
)

// Advise adds to each result of rec that was measured what its numbers suffer from, with what to do about it. What is
// there already is not added again. It is for when nothing more comes: before Writer.End.
func Advise(rec *Record) {
	for _, r := range rec.Results {
		if unfit(r) != "" {
			continue
		}
		for _, w := range advice(r, Summarize(r), rec.Session.Unit) {
			if !slices.Contains(r.Warnings, w) {
				r.Warnings = append(r.Warnings, w)
			}
		}
	}
}

// advice is what to warn of in a result.
func advice(r *Result, s Summary, unit Unit) []Warning {
	if s.Rate == nil {
		return nil
	}
	if unit == Instructions {
		if s.Rate.Spread <= adviseSpread {
			return nil
		}
		// The same instructions are executed in every run, unless the hash seed or the keys differ.
		return []Warning{{"runs differ by " + percent(s.Rate.Spread) + " (one standard deviation) in their instructions", "raise --runs"}}
	}
	var warnings []Warning
	if s.Runs < stats.MinInterval && r.Status != Interrupted {
		have := "have"
		if s.Runs == 1 {
			have = "has"
		}
		warnings = append(warnings, Warning{fmt.Sprintf("%s %s no 95 %% interval", count(s.Runs, "run"), have), fmt.Sprintf("--runs %d", stats.MinInterval)})
	}
	if s.Rate.Spread > adviseSpread {
		w := Warning{"runs differ by " + percent(s.Rate.Spread) + " (one standard deviation)", "raise --runs"}
		if s.Detectable != nil {
			w.What += ", which hides differences below " + percent(*s.Detectable)
		}
		if !r.Pinned {
			w.Remedy = "pin with -a, raise --runs"
		}
		warnings = append(warnings, w)
	}
	return append(warnings, remarks(s, unit)...)
}

// remarks are what to say of outliers and drift. Instructions have neither: where their number changes, there is a reason.
func remarks(s Summary, unit Unit) []Warning {
	if s.Rate == nil || unit == Instructions {
		return nil
	}
	var warnings []Warning
	far, runs := farRuns(s.Outliers)
	if len(far) > 0 {
		warnings = append(warnings, Warning{strings.Join(far, ", ") + " than the median of the runs", "look for other load, raise --runs"})
	}
	samples, extreme := 0, 0
	for _, c := range s.CPUs {
		samples += c.Samples
	}
	for _, o := range s.Outliers {
		if o.Sample >= 0 && isFar(o) && !slices.Contains(runs, o.Run) {
			extreme++
		}
	}
	if float64(extreme) > adviseSamples*float64(samples) {
		warnings = append(warnings, Warning{fmt.Sprintf("%d of %d samples are far from the others", extreme, samples), "look for other load, pin with -a"})
	}
	if d := s.Drift; d != nil && d.Trend {
		switch {
		case d.First <= -adviseDeviation:
			warnings = append(warnings, Warning{"the first runs are " + percent(-d.First) + " slower than the last", "raise -w"})
		case d.First >= adviseDeviation:
			warnings = append(warnings, Warning{"the first runs are " + percent(d.First) + " faster than the last", "fix the frequency, or let the machine cool down"})
		}
	}
	return warnings
}

// isFar says whether o is beyond the outer fences, and far enough to matter.
func isFar(o Outlier) bool {
	return o.Fence == stats.Extreme && math.Abs(o.Deviation) >= adviseDeviation
}

// farRuns says of the runs that are far from the others how far they are: run 4 is 7.8 % slower.
func farRuns(outliers []Outlier) (texts []string, runs []int) {
	for _, o := range outliers {
		if o.Sample >= 0 || !isFar(o) {
			continue
		}
		way := "slower"
		if o.Deviation > 0 {
			way = "faster"
		}
		runs = append(runs, o.Run)
		texts = append(texts, fmt.Sprintf("run %d is %s %s", o.Run+1, percent(math.Abs(o.Deviation)), way))
	}
	return texts, runs
}

// percent writes a share as 7.8 %.
func percent(share float64) string { return fixed(100*share, 1) + " %" }

// remarkLine is the line of the text that says what stands out in the results; it is empty where nothing does.
func remarkLine(rec *Record, summaries []Summary) string {
	var all []string
	for _, s := range summaries {
		var texts []string
		for _, w := range remarks(s, rec.Session.Unit) {
			texts = append(texts, w.What)
		}
		if len(texts) > 0 {
			all = append(all, strings.Join(texts, "; "))
		}
	}
	switch {
	case len(all) == 0:
		return ""
	case len(summaries) == 1:
		return "Note: " + all[0] + "."
	}
	return fmt.Sprintf("Note: outliers or drift in %d of %d results; see the warnings.", len(all), len(summaries))
}
