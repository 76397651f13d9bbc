package report

import (
	"cmp"
	"math"
	"slices"
	"strings"
)

// gauges describes each gauge of runs, in the order in which they come.
func gauges(runs []*Run) []GaugeSummary {
	var found []Gauge
	values := make(map[string][]float64)
	for _, run := range runs {
		for _, g := range run.Gauges {
			if values[g.Name] == nil {
				found = append(found, g)
			}
			values[g.Name] = append(values[g.Name], g.Value)
		}
	}
	var out []GaugeSummary
	for _, g := range found {
		if d := describe(values[g.Name]); d != nil {
			out = append(out, GaugeSummary{g.Name, g.Unit, *d})
		}
	}
	return out
}

// gauge is the one of that name.
func (s *Summary) gauge(name string) (g GaugeSummary, ok bool) {
	i := slices.IndexFunc(s.Gauges, func(g GaugeSummary) bool { return g.Name == name })
	if i < 0 {
		return GaugeSummary{}, false
	}
	return s.Gauges[i], true
}

// gauge is the value of the one of that name.
func (r *Run) gauge(name string) (value float64, ok bool) {
	i := slices.IndexFunc(r.Gauges, func(g Gauge) bool { return g.Name == name })
	if i < 0 {
		return 0, false
	}
	return r.Gauges[i].Value, true
}

// gaugeScale is how people read values of a unit of which largest is the one furthest from zero: in which unit, divided by
// what.
func gaugeScale(unit string, largest float64) (name string, divisor float64) {
	names, step := []string{unit}, 1000.0
	switch unit {
	case "B":
		names, step = []string{"B", "KiB", "MiB", "GiB", "TiB"}, 1024
	case string(Nanoseconds):
		names = []string{"ns", "us", "ms", "s"}
	case string(Instructions):
		names = []string{"insn", "K insn", "M insn", "G insn"}
	}
	divisor = 1
	for len(names) > 1 && math.Abs(largest)/divisor >= step {
		names, divisor = names[1:], divisor*step
	}
	return names[0], divisor
}

// gaugeForm writes values that are like those given: without decimals where all of those are whole, or one is long.
func gaugeForm(values ...float64) func(float64) string {
	long := slices.ContainsFunc(values, func(v float64) bool { return math.Abs(v) >= 10000 })
	if long || !slices.ContainsFunc(values, func(v float64) bool { return v != math.Trunc(v) }) {
		return decimals(0)
	}
	return decimals(2)
}

// gaugePieces are the pieces of the line of gauges: each mean with its standard deviation between the runs, in a scale of
// its own.
func gaugePieces(gauges []GaugeSummary) []string {
	var pieces []string
	for _, g := range gauges {
		unit, by := gaugeScale(g.Unit, g.Mean)
		mean, stddev := g.Mean/by, g.StdDev/by
		text := g.Name + " " + plusMinus(g.N, mean, stddev, gaugeForm(mean, stddev))
		pieces = append(pieces, strings.TrimSpace(text+" "+unit))
	}
	return append([]string{"gauges:"}, separated(pieces, ",")...)
}

// gaugeColumns are those of the gauges' means, each in one scale.
func gaugeColumns(summaries []Summary) []column {
	var all []GaugeSummary
	for _, s := range summaries {
		for _, g := range s.Gauges {
			if !slices.ContainsFunc(all, func(h GaugeSummary) bool { return h.Name == g.Name }) {
				all = append(all, g)
			}
		}
	}
	var cols []column
	for _, g := range all {
		var means []float64
		for _, s := range summaries {
			if own, ok := s.gauge(g.Name); ok {
				means = append(means, own.Mean)
			}
		}
		unit, by := gaugeScale(g.Unit, slices.MaxFunc(means, func(a, b float64) int { return cmp.Compare(math.Abs(a), math.Abs(b)) }))
		for i := range means {
			means[i] /= by
		}
		form := gaugeForm(means...)
		c := column{head: flat(g.Name), unit: flat(unit)}
		for _, s := range summaries {
			cell := none
			if own, ok := s.gauge(g.Name); ok {
				cell = form(own.Mean / by)
			}
			c.cells = append(c.cells, cell)
		}
		cols = append(cols, c)
	}
	return cols
}

// dropColumn is that of the rates at which operations were lost, if any was.
func dropColumn(summaries []Summary, words wording) []column {
	scale := scaleIn(summaries)
	c := column{head: "drops", unit: scale.unit(words)}
	any := false
	for _, s := range summaries {
		cell := none
		switch {
		case s.Drops != nil:
			any = true
			if cell = scale.cell(s.Drops.Mean); cell == "0.000" {
				cell = "<0.001"
			}
		case s.Runs > 0:
			cell = "0"
		}
		c.cells = append(c.cells, cell)
	}
	if !any {
		return nil
	}
	return []column{c}
}
