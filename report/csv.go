package report

import (
	"bytes"
	"cmp"
	"encoding/csv"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
)

type csvWriter struct{ w io.Writer }

// NewCSV gives the writer of comma-separated values (RFC 4180), written at the end: a header, then a row for each run and
// metric, with the parameters and facts as columns; all in base units. A result that was not measured has one row, with its status
// and its reason and without a metric.
func NewCSV(w io.Writer) Writer { return csvWriter{w} }

func (csvWriter) Begin(*Record) error    { return nil }
func (csvWriter) Run(*Record, int) error { return nil }

// The columns before those of the parameters, and behind them. A parameter of the same name gets param_ before it.
var (
	csvFirst = []string{"benchmark", "kernel", "arch", "cpu_model", "status", "reason", "producers", "consumers", "pinned"}
	csvLast  = []string{"run", "cpu", "metric", "value", "unit"}
)

func (c csvWriter) End(rec *Record) error {
	var b bytes.Buffer
	w := csv.NewWriter(&b)
	names, facts := namesOf(rec.Results, paramsOf), namesOf(rec.Results, factsOf)
	header := slices.Clone(csvFirst)
	for _, n := range names {
		if slices.Contains(csvFirst, n) || slices.Contains(csvLast, n) {
			n = "param_" + n
		}
		header = append(header, n)
	}
	for _, n := range facts {
		header = append(header, "fact_"+n)
	}
	rows := [][]string{append(header, csvLast...)}
	for _, r := range rec.Results {
		rows = append(rows, csvRows(rec, r, names, facts)...)
	}
	if err := w.WriteAll(rows); err != nil {
		return fmt.Errorf("encode csv: %w", err)
	}
	if _, err := c.w.Write(b.Bytes()); err != nil {
		return fmt.Errorf("write csv: %w", err)
	}
	return nil
}

// namesOf are the names of all parameters or facts, in the order in which they come.
func namesOf(results []*Result, of func(*Result) []Param) []string {
	var names []string
	for _, r := range results {
		for _, p := range of(r) {
			if !slices.Contains(names, p.Name) {
				names = append(names, p.Name)
			}
		}
	}
	return names
}

func csvRows(rec *Record, r *Result, params, facts []string) [][]string {
	h := hostOf(rec, r)
	head := []string{
		r.Benchmark, kernelOf(rec, r), h.Arch, h.CPUModel, string(r.Status), r.Reason,
		strconv.Itoa(r.Producers), strconv.Itoa(r.Consumers), strconv.FormatBool(r.Pinned),
	}
	add := func(names []string, of []Param) {
		for _, n := range names {
			cell := ""
			if p, ok := lookup(of, n); ok {
				cell = bare(p)
			}
			head = append(head, cell)
		}
	}
	add(params, r.Params)
	add(facts, r.Facts)
	if unfit(r) != "" || len(r.Runs) == 0 {
		return [][]string{append(head, "", "", "", "", "")}
	}
	var rows [][]string
	for i, run := range r.Runs {
		for _, m := range metricsOf(run, rec.Session.Unit) {
			rows = append(rows, append(slices.Clone(head), strconv.Itoa(i), m.cpu, m.name, m.value, m.unit))
		}
	}
	return rows
}

// hostOf is the host that r ran on, or one that nothing is known of.
func hostOf(rec *Record, r *Result) Host {
	if r.Host < 0 || r.Host >= len(rec.Session.Hosts) {
		return Host{}
	}
	return rec.Session.Hosts[r.Host]
}

// metric is a number that a run comes to, of one CPU or of all.
type metric struct{ cpu, name, value, unit string }

// The units of rates and costs, with no scale.
func rateUnit(u Unit) string {
	if u == Instructions {
		return "events/1e9 insn"
	}
	return "events/s"
}

func costUnit(u Unit) string { return string(u) + "/op" }

// metricsOf are the metrics of a run: first of all CPUs together, then of each.
func metricsOf(run *Run, unit Unit) []metric {
	rate, _ := run.Rate()
	all := totals(run, "total", rate, unit)
	real := func(name string, v float64, ok bool, unit string) {
		if ok {
			all = append(all, metric{"total", name, formatFloat(v), unit})
		}
	}
	gross, measured := run.Cost()
	loop, twin := run.LoopCost()
	real("loop_cost", loop, measured && twin, costUnit(unit))
	real("net_cost", gross-loop, measured && twin, costUnit(unit))
	all = append(all, metric{"total", "setup", strconv.FormatUint(run.Setup, 10), string(unit)})
	for _, g := range run.Gauges {
		all = append(all, metric{"total", g.Name, formatFloat(g.Value), cmp.Or(g.Unit, "1")})
	}
	parts := byPlace([]*Run{run})
	for _, p := range slices.SortedFunc(maps.Keys(parts), place.compare) {
		part := parts[p][0]
		all = append(all, totals(part, p.label(), tally(part.Samples).rate(), unit)...)
	}
	return all
}

// totals are the metrics that a run has as a whole, and for each CPU. The rate is of the whole or of the CPU.
func totals(run *Run, cpu string, rate float64, unit Unit) []metric {
	var out []metric
	t := tally(run.Samples)
	if t.ops > 0 {
		out = append(out, metric{cpu, "rate", formatFloat(rate), rateUnit(unit)})
	}
	if cost, ok := t.cost(); ok {
		out = append(out, metric{cpu, "cost", formatFloat(cost), costUnit(unit)})
	}
	var drops, misses uint64
	for _, s := range run.Samples {
		drops += s.Drops
		misses += s.Misses
	}
	whole := func(name string, v uint64, unit string) {
		out = append(out, metric{cpu, name, strconv.FormatUint(v, 10), unit})
	}
	whole("samples", uint64(t.samples), "1")
	whole("ops", t.ops, "1")
	whole("elapsed", t.elapsed, string(unit))
	whole("drops", drops, "1")
	whole("misses", misses, "1")
	return out
}

// formatFloat writes v with all its digits, and without an exponent, which not every spreadsheet reads.
func formatFloat(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }
