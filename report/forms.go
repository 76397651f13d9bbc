package report

import (
	"fmt"

	"bpfbench/report/stats"
)

// The gauges that lines of the kernel's own bench need, of each run.
const (
	GaugeFalseHits     = "false_hits"     // their number
	GaugeImportantHits = "important_hits" // their number
	GaugeMemoryMean    = "memory_mean"    // bytes
	GaugeMemoryPeak    = "memory_peak"    // bytes
	GaugeTicks         = "ticks_per_gp"   // of the CPU, in a grace period
)

// formLines are the lines that the kernel's own bench has for r, in its words and widths, for scripts that look for them. ±
// is one standard deviation between the runs, 0 for a single one. There are none where r has no form, or lacks what its
// form needs.
func formLines(r *Result, s Summary, words wording) []string {
	if s.Rate == nil || s.Cost == nil {
		return nil
	}
	producers := float64(max(r.Producers, 1))
	switch r.Form {
	case FormHits:
		return hitsForm(r, s, words, producers)
	case FormThroughput:
		return throughputForm(s, words, producers, 1e6, "M", words.cost, 1)
	case FormSlow:
		return throughputForm(s, words, producers, 1e3, "K", words.milli+"/op", 1e6)
	case FormFalseHits:
		return falseHitsForm(s)
	case FormStorage:
		return storageForm(r, s, words)
	case FormCreates:
		return []string{fmt.Sprintf("Summary: creates %s (%7.3fk/prod), %d total",
			formRate(s.Rate.Summary, 1e3, "k/"+words.per), s.Rate.Mean/1e3/producers, s.Ops)}
	case FormMemory:
		return memoryForm(s, words, producers)
	case FormGrace:
		return graceForm(s, words)
	case FormTiming:
		return timingForm(r, s, words)
	}
	return nil
}

// formRate writes a rate with its deviation.
func formRate(rate stats.Summary, scale float64, unit string) string {
	return fmt.Sprintf("%8.3f ± %5.3f%s", rate.Mean/scale, rate.StdDev/scale, unit)
}

// hitsForm counts what was lost as operations, too.
func hitsForm(r *Result, s Summary, words wording, producers float64) []string {
	all := overRuns(r, func(run *Run, rate float64) float64 { return rate + run.DropRate() })
	if all == nil {
		return nil
	}
	var drops stats.Summary
	if s.Drops != nil {
		drops = *s.Drops
	}
	unit := "M/" + words.per
	return []string{fmt.Sprintf("Summary: hits %s (%7.3fM/prod), drops %s, total operations %s",
		formRate(s.Rate.Summary, 1e6, unit), s.Rate.Mean/1e6/producers, formRate(drops, 1e6, unit), formRate(*all, 1e6, unit))}
}

// throughputForm has the cost as it was measured, and not the inverse of the rate.
func throughputForm(s Summary, words wording, producers, scale float64, letter, cost string, costScale float64) []string {
	return []string{fmt.Sprintf("Summary: throughput %s (%7.3f%s ops/prod), latency %8.3f %s",
		formRate(s.Rate.Summary, scale, " "+letter+" ops/"+words.per), s.Rate.Mean/scale/producers, letter, s.Cost.Gross.Mean/costScale, cost)}
}

func falseHitsForm(s Summary) []string {
	hits, ok := s.gauge(GaugeFalseHits)
	if !ok {
		return nil
	}
	number := hits.Mean * float64(hits.N)
	return []string{fmt.Sprintf("Summary: %.0f false hits of %d total operations. Percentage =  %.2f %%", number, s.Ops, 100*number/float64(s.Ops))}
}

func storageForm(r *Result, s Summary, words wording) []string {
	important := overRuns(r, func(run *Run, rate float64) float64 {
		hits, _ := run.gauge(GaugeImportantHits)
		return rate * hits / float64(max(tally(run.Samples).ops, 1))
	})
	if _, ok := s.gauge(GaugeImportantHits); !ok || important == nil {
		return nil
	}
	unit := " M ops/" + words.per
	return []string{fmt.Sprintf("Summary: hits throughput %s, hits latency %8.3f %s, important_hits throughput %s",
		formRate(s.Rate.Summary, 1e6, unit), s.Cost.Gross.Mean, words.cost, formRate(*important, 1e6, unit))}
}

func memoryForm(s Summary, words wording, producers float64) []string {
	mean, ok := s.gauge(GaugeMemoryMean)
	peak, okPeak := s.gauge(GaugeMemoryPeak)
	if !ok || !okPeak {
		return nil
	}
	const mib = 1 << 20
	return []string{fmt.Sprintf("Summary: per-prod-op %7.2f ± %7.2fk/%s, memory usage %7.2f ± %7.2fMiB, peak memory usage %7.2fMiB",
		s.Rate.Mean/1e3/producers, s.Rate.StdDev/1e3/producers, words.per, mean.Mean/mib, mean.StdDev/mib, peak.Max/mib)}
}

func graceForm(s Summary, words wording) []string {
	lines := []string{fmt.Sprintf("SUMMARY tasks_trace grace period latency\tavg %.3f %s\tstddev %.3f %s",
		s.Cost.Gross.Mean/1e3, words.micro, s.Cost.Gross.StdDev/1e3, words.micro)}
	if ticks, ok := s.gauge(GaugeTicks); ok {
		lines = append(lines, fmt.Sprintf("SUMMARY ticks per tasks_trace grace period\tavg %.3f\tstddev %.3f", ticks.Mean, ticks.StdDev))
	}
	return lines
}

// timingForm is of single samples, all of them: none is left out as an outlier.
func timingForm(r *Result, s Summary, words wording) []string {
	d := describe(sampleCosts(r.Runs))
	if d == nil || s.Scatter == nil || s.Batch == nil {
		return nil
	}
	return []string{fmt.Sprintf("%s: median %.2f %s, stddev %.2f, p99 %.2f (%s)", clean(r.Benchmark), d.Median, words.cost, d.StdDev, s.Batch.P99, count(d.N, "sample"))}
}

// overRuns describes what of makes of each run that has samples, and of its rate.
func overRuns(r *Result, of func(run *Run, rate float64) float64) *stats.Summary {
	var values []float64
	for _, run := range r.Runs {
		if rate, ok := run.Rate(); ok {
			values = append(values, of(run, rate))
		}
	}
	return describe(values)
}
