package report

import (
	"math"
	"regexp"
	"slices"
	"strings"
	"testing"

	"bpfbench/report/stats"
)

// aForm is a result of two producers with a form, with the gauges given as if they were so in the first run.
func aForm(form Form, runs int, gauges ...Gauge) *Result {
	r := aResult(4096, 19708000, runs, 0, 1)
	r.Benchmark, r.Form = "bpf-"+strings.ReplaceAll(string(form), "_", "-"), form
	for i, run := range r.Runs {
		for _, g := range gauges {
			g.Value *= 1 + float64(i)/100
			run.Gauges = append(run.Gauges, g)
		}
	}
	return r
}

// forms are results of each form, with what it needs.
var forms = map[string]func(runs int) *Result{
	"hits": func(runs int) *Result {
		r := aForm(FormHits, runs)
		for _, run := range r.Runs {
			run.Samples[1].Drops = 2e6 + uint64(run.Round)*1e5
		}
		return r
	},
	"throughput": func(runs int) *Result { return aForm(FormThroughput, runs) },
	"slow":       func(runs int) *Result { return aForm(FormSlow, runs) },
	"false-hits": func(runs int) *Result { return aForm(FormFalseHits, runs, Gauge{Name: GaugeFalseHits, Value: 171400}) },
	"storage":    func(runs int) *Result { return aForm(FormStorage, runs, Gauge{Name: GaugeImportantHits, Value: 1.5e6}) },
	"creates":    func(runs int) *Result { return aForm(FormCreates, runs) },
	"memory": func(runs int) *Result {
		return aForm(FormMemory, runs, Gauge{GaugeMemoryMean, 720000, "B"}, Gauge{GaugeMemoryPeak, 4 << 20, "B"})
	},
	"grace": func(runs int) *Result { return aForm(FormGrace, runs, Gauge{Name: GaugeTicks, Value: 8.5}) },
	"timing": func(runs int) *Result {
		return aForm(FormTiming, runs, Gauge{"full", 25, "%"}, Gauge{"cpu_hops", 3, ""})
	},
}

func init() {
	for name, make := range forms {
		texts["form-"+name] = func() *Record { return aRecord(make(6)) }
	}
	texts["form-one-run"] = func() *Record { return aRecord(forms["hits"](1)) }
	texts["form-memory-exact"] = func() *Record { return exact(aRecord(forms["memory"](2))) }
	texts["table-gauges"] = func() *Record {
		rec := aRecord(forms["memory"](6), forms["hits"](6), forms["creates"](6))
		rec.Results[0].Runs[0].Samples[0].Drops = 1
		for _, r := range rec.Results {
			r.Producers = 1
			for _, run := range r.Runs {
				run.Samples = slices.DeleteFunc(run.Samples, func(s Sample) bool { return s.Worker > 0 })
			}
		}
		return rec
	}
	slow := func(r *Result) *Result {
		for _, run := range r.Runs {
			for i := range run.Samples {
				run.Samples[i].Ops /= 2048
			}
		}
		return r
	}
	texts["slow"] = func() *Record { return aRecord(slow(forms["memory"](6))) }
	texts["table-slow"] = func() *Record { return aRecord(slow(aResult(4096, 19708000, 6, 1)), slow(aResult(8192, 5e9, 6, 1))) }
}

// original are the lines of the kernel's own bench, as patterns in which # is a number with its padding.
var original = map[string]string{
	"hits":       `Summary: hits # ± #M/s \(#M/prod\), drops # ± #M/s, total operations # ± #M/s`,
	"throughput": `Summary: throughput # ± # M ops/s \(#M ops/prod\), latency # ns/op`,
	"slow":       `Summary: throughput # ± # K ops/s \(#K ops/prod\), latency # ms/op`,
	"false-hits": `Summary: \d+ false hits of \d+ total operations. Percentage =  # %`,
	"storage":    `Summary: hits throughput # ± # M ops/s, hits latency # ns/op, important_hits throughput # ± # M ops/s`,
	"creates":    `Summary: creates # ± #k/s \(#k/prod\), \d+ total`,
	"memory":     `Summary: per-prod-op # ± #k/s, memory usage # ± #MiB, peak memory usage #MiB`,
	"grace":      "SUMMARY tasks_trace grace period latency\tavg # us\tstddev # us\nSUMMARY ticks per tasks_trace grace period\tavg #\tstddev #",
	"timing":     `bpf-timing: median # ns/op, stddev #, p99 # \(\d+ samples\)`,
}

func TestForms(t *testing.T) {
	for name, make := range forms {
		want := regexp.MustCompile("(?m)^" + strings.ReplaceAll(original[name], "#", ` *\d+\.\d+`) + "$")
		for _, runs := range []int{1, 6} {
			text := string(write(t, aRecord(make(runs)), toText))
			if !want.MatchString(text) || strings.Contains(text, "total: ") {
				t.Errorf("%s: no %s in\n%s", name, want, text)
			}
		}
		// What a form needs is missing, or nothing was done: then there is no such line.
		bare := make(6)
		for _, run := range bare.Runs {
			run.Gauges = nil
		}
		needs := slices.Contains([]string{"false-hits", "storage", "memory"}, name)
		if text := string(write(t, aRecord(bare), toText)); needs != strings.Contains(text, "total: ") {
			t.Errorf("%s without gauges:\n%s", name, text)
		}
		idle := make(6)
		for _, run := range idle.Runs {
			for i := range run.Samples {
				run.Samples[i].Ops = 0
			}
		}
		for _, r := range []*Result{idle, make(0), ended(make(0), Skipped, "no BPF")} {
			if lines := formLines(r, Summarize(r), wordingOf(Nanoseconds)); lines != nil {
				t.Errorf("%s of nothing: %q", name, lines)
			}
		}
	}
}

// TestFormValues holds the numbers of the lines against ones that are known.
func TestFormValues(t *testing.T) {
	two := func(form Form, gauges ...[]Gauge) *Result {
		r := &Result{Benchmark: "b", Form: form, Producers: 2}
		for i, g := range gauges {
			s := Sample{Elapsed: 1e9, Ops: 2e6 + uint64(i)*1e6, Drops: 1e6}
			other := s
			other.Worker, other.CPU = 1, 1
			r.Runs = append(r.Runs, &Run{Samples: []Sample{s, other}, Gauges: g})
		}
		return r
	}
	gauge := func(name string, values ...float64) (g [][]Gauge) {
		for _, v := range values {
			g = append(g, []Gauge{{Name: name, Value: v}})
		}
		return g
	}
	for want, r := range map[string]*Result{
		"Summary: hits    5.000 ± 1.414M/s (  2.500M/prod), drops    2.000 ± 0.000M/s, total operations    7.000 ± 1.414M/s": two(FormHits, nil, nil),
		"Summary: throughput    5.000 ± 1.414 M ops/s (  2.500M ops/prod), latency  416.667 ns/op":                           two(FormThroughput, nil, nil),
		"Summary: throughput 5000.000 ± 1414.214 K ops/s (2500.000K ops/prod), latency    0.000 ms/op":                       two(FormSlow, nil, nil),
		"Summary: 2000000 false hits of 10000000 total operations. Percentage =  20.00 %":                                    two(FormFalseHits, gauge(GaugeFalseHits, 5e5, 15e5)...),
		"Summary: hits throughput    5.000 ± 1.414 M ops/s, hits latency  416.667 ns/op, important_hits throughput    2.500 ± 0.707 M ops/s": two(FormStorage,
			gauge(GaugeImportantHits, 2e6, 3e6)...),
		"Summary: creates 4000.000 ± 0.000k/s (2000.000k/prod), 4000000 total": two(FormCreates, nil),
		"Summary: per-prod-op 2000.00 ±    0.00k/s, memory usage    1.50 ±    0.00MiB, peak memory usage    2.00MiB": two(FormMemory,
			[]Gauge{{GaugeMemoryMean, 1.5 * (1 << 20), "B"}, {GaugeMemoryPeak, 2 << 20, "B"}}),
		"SUMMARY tasks_trace grace period latency\tavg 0.417 us\tstddev 0.118 us": two(FormGrace, nil, nil),
		"b: median 416.67 ns/op, stddev 96.23, p99 500.00 (4 samples)":            two(FormTiming, nil, nil),
	} {
		if got := strings.Join(formLines(r, Summarize(r), wordingOf(Nanoseconds)), "\n"); got != want {
			t.Errorf("%s:\n%s\nwant\n%s", r.Form, got, want)
		}
	}
}

func of(v float64) stats.Summary { return *describe([]float64{v}) }

func TestGauges(t *testing.T) {
	r := aResult(4096, 19708000, 3, 1)
	r.Runs[0].Gauges = []Gauge{{"a", 1, "B"}, {"b", 4, ""}}
	r.Runs[2].Gauges = []Gauge{{"c", math.NaN(), ""}, {"a", 3, "B"}}
	got := Summarize(r).Gauges
	if len(got) != 2 || got[0].Name != "a" || got[0].Unit != "B" || got[0].N != 2 || got[0].Mean != 2 || got[0].StdDev != math.Sqrt2 || got[1].N != 1 {
		t.Errorf("%+v", got)
	}
	for want, g := range map[string]GaugeSummary{
		"a 0 B": {Unit: "B"}, "a 1023 B": {Unit: "B", Summary: of(1023)}, "a 1 KiB": {Unit: "B", Summary: of(1024)}, "a -1.50 GiB": {Unit: "B", Summary: of(-1.5 * (1 << 30))},
		"a 2048 TiB": {Unit: "B", Summary: of(1 << 51)}, "a 999 ns": {Unit: "ns", Summary: of(999)}, "a 1.25 us": {Unit: "ns", Summary: of(1250)}, "a 7200 s": {Unit: "ns", Summary: of(7.2e12)},
		"a 25 %": {Unit: "%", Summary: of(25)}, "a 1234567": {Summary: of(1234567)}, "a 2.50 K insn": {Unit: "insn", Summary: of(2500)}, "a 12000 widgets": {Unit: "widgets", Summary: of(12000)},
	} {
		g.Name = "a"
		if got := gaugePieces([]GaugeSummary{g})[1]; got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
