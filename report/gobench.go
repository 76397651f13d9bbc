package report

import (
	"bytes"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode"

	"golang.org/x/perf/benchfmt"
)

type goWriter struct{ w io.Writer }

// NewGo gives the writer of the Go benchmark format (golang.org/design/14313-benchmark-format), which benchstat reads. It
// is written at the end: the units, the facts of the host as configuration, and a line for each run:
//
//	BenchmarkBpfHashmapLookup/key_size=4/…/producers=1 999424 19.7 ns/op 14.8 net-ns/op 5.07e+07 events/s
//
// The iterations are the operations that the run did. In exact mode there are insn/op and net-insn/op only.
// Gauges come behind them. Results that were not measured are comments.
func NewGo(w io.Writer) Writer { return goWriter{w} }

func (goWriter) Begin(*Record) error    { return nil }
func (goWriter) Run(*Record, int) error { return nil }

func (g goWriter) End(rec *Record) error {
	var b bytes.Buffer
	w := benchfmt.NewWriter(&b)
	for _, u := range goUnits(rec.Session.Unit) {
		if err := w.Write(u); err != nil {
			return fmt.Errorf("encode go benchmarks: %w", err)
		}
	}
	if len(rec.Results) > 0 {
		b.WriteByte('\n')
	}
	for _, r := range rec.Results {
		if note := unfit(r); note != "" {
			fmt.Fprintf(&b, "# %s: %s\n", goName(r), flat(note))
			continue
		}
		for _, run := range r.Runs {
			res, ok := goResult(rec, r, run)
			if !ok {
				continue
			}
			if err := w.Write(res); err != nil {
				return fmt.Errorf("encode go benchmarks: %w", err)
			}
		}
	}
	if _, err := g.w.Write(b.Bytes()); err != nil {
		return fmt.Errorf("write go benchmarks: %w", err)
	}
	return nil
}

// goUnits say of each unit which way is better. Unknown to benchstat are all but ns/op.
func goUnits(unit Unit) []*benchfmt.UnitMetadata {
	better := func(unit, value string) *benchfmt.UnitMetadata {
		return &benchfmt.UnitMetadata{UnitMetadataKey: benchfmt.UnitMetadataKey{Unit: unit, Key: "better"}, OrigUnit: unit, Value: value}
	}
	units := []*benchfmt.UnitMetadata{better(costUnit(unit), "lower"), better("net-"+costUnit(unit), "lower")}
	if unit != Instructions {
		units = append(units, better(rateUnit(unit), "higher"))
	}
	return units
}

// goResult is the line of a run. It is not ok for one that did nothing.
func goResult(rec *Record, r *Result, run *Run) (*benchfmt.Result, bool) {
	cost, ok := run.Cost()
	rate, _ := run.Rate()
	if !ok {
		return nil, false
	}
	unit := rec.Session.Unit
	values := []benchfmt.Value{{Value: cost, Unit: costUnit(unit)}}
	if loop, ok := run.LoopCost(); ok {
		values = append(values, benchfmt.Value{Value: cost - loop, Unit: "net-" + costUnit(unit)})
	}
	if unit != Instructions {
		values = append(values, benchfmt.Value{Value: rate, Unit: rateUnit(unit)})
	}
	for _, g := range run.Gauges {
		values = append(values, benchfmt.Value{Value: g.Value, Unit: goGaugeUnit(g)})
	}
	return &benchfmt.Result{
		Config: goConfig(rec, r),
		Name:   benchfmt.Name(goName(r)),
		Iters:  int(tally(run.Samples).ops),
		Values: values,
	}, true
}

// goGaugeUnit is the name of a gauge with its unit behind it, as in memory_peak-B, which benchstat scales by that unit.
func goGaugeUnit(g Gauge) string {
	if g.Unit == "" {
		return goWord(g.Name)
	}
	return goWord(g.Name) + "-" + strings.ReplaceAll(g.Unit, " ", "_")
}

// goConfig are the facts of the host that tell measurements apart. benchstat puts results whose configurations differ into
// different tables, so that what hardly matters is not among them.
func goConfig(rec *Record, r *Result) []benchfmt.Config {
	h := hostOf(rec, r)
	var config []benchfmt.Config
	for _, c := range [][2]string{
		{"kernel", kernelOf(rec, r)}, {"arch", h.Arch}, {"cpu", h.CPUModel}, {"hypervisor", h.Hypervisor}, {"accel", h.Accel}, {"jit", h.JIT},
	} {
		if value := flat(c[1]); value != "" && value != none {
			config = append(config, benchfmt.Config{Key: c[0], Value: []byte(value), File: true})
		}
	}
	return config
}

// goName is the benchmark's name as Go would write it, and behind it the parameters: BpfHashmapLookup/key_size=4/producers=1.
// The number of producers is last in any case, so that no parameter's end is taken for Go's number of CPUs.
func goName(r *Result) string {
	var b strings.Builder
	up := true
	for _, c := range r.Benchmark {
		switch {
		case !unicode.IsLetter(c) && !unicode.IsDigit(c):
			up = true
			continue
		case up:
			c = unicode.ToUpper(c)
		}
		up = false
		b.WriteRune(c)
	}
	for _, p := range r.Params {
		b.WriteString("/" + goWord(p.Name) + "=" + goWord(bare(p)))
	}
	if r.Consumers > 0 {
		b.WriteString("/consumers=" + strconv.Itoa(r.Consumers))
	}
	b.WriteString("/producers=" + strconv.Itoa(r.Producers))
	return b.String()
}

// goWord is s without what would end a part of a name.
func goWord(s string) string {
	return strings.Map(func(c rune) rune {
		if unicode.IsSpace(c) || unicode.IsControl(c) || c == '/' {
			return '_'
		}
		return c
	}, s)
}
