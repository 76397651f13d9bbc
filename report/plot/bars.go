package plot

import (
	"errors"
	"fmt"
	"image/color"
	"slices"
	"strconv"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"bpfbench/report"
)

// bar is one value of a group, with one standard deviation between its runs.
type bar struct {
	value, err float64
	text       string // at its end
	ok         bool
}

// chart is groups of bars, one of each series.
type chart struct {
	groups, series []string
	bars           map[[2]string]bar // by group and series
}

func (c *chart) add(group, series string, b bar) {
	if c.bars == nil {
		c.bars = make(map[[2]string]bar)
	}
	if !slices.Contains(c.groups, group) {
		c.groups = append(c.groups, group)
	}
	if !slices.Contains(c.series, series) {
		c.series = append(c.series, series)
	}
	b.ok = true
	c.bars[[2]string{group, series}] = b
}

// Table draws what an operation costs, with its loop, as bars: a group for each benchmark and set of parameters that are
// numbers, in it a bar for each kernel and each value of parameters that are none, such as the engine. What was not measured
// leaves a gap. It is an error if nothing was measured.
func Table(rec *report.Record) (*Figure, error) {
	var numeric, named []string
	for _, n := range rec.Varying() {
		if _, ok := numbers(rec.Results, n); ok {
			numeric = append(numeric, n)
		} else {
			named = append(named, n)
		}
	}
	several := len(benchmarks(rec)) > 1
	var c chart
	for _, r := range rec.Results {
		if !r.Measured() {
			continue
		}
		group := key(rec, r, numeric, several || len(numeric) == 0, false)
		series := key(rec, r, named, false, len(rec.Session.Hosts) > 1)
		if series == "" {
			series = short(rec, r.Benchmark) // a baseline, beside results of several engines
		}
		if len(named) == 0 && len(rec.Session.Hosts) <= 1 {
			series = ""
		}
		cost := report.Summarize(r).Cost.Gross
		c.add(group, series, bar{value: cost.Mean, err: cost.StdDev, text: digits(cost.Mean)})
	}
	if len(c.bars) == 0 {
		return nil, errors.New("plot the table: nothing was measured")
	}
	unit := rec.Session.Unit.CostUnit()
	f := &Figure{title: subject(rec) + ": cost of an operation", subtitle: machine(rec)}
	f.explain(rec.Results)
	if err := f.addBars(c, "cost with its loop, "+unit); err != nil {
		return nil, fmt.Errorf("plot the table: %w", err)
	}
	return f, nil
}

// Comparison draws the medians of both sides as bars, with ratio and verdict at the new one's.
func Comparison(c *report.Comparison) (*Figure, error) {
	rec := &report.Record{}
	for _, r := range c.Rows {
		rec.Results = append(rec.Results, &report.Result{Benchmark: r.Benchmark, Params: r.Params, Producers: r.Producers})
	}
	if len(rec.Results) == 0 {
		return nil, errors.New("plot the comparison: it has no rows")
	}
	scale, unit := 1., c.Unit
	if c.Metric == report.RateMetric {
		scale, unit = 1e6, "M "+c.Unit
	}
	params := rec.Varying()
	several := len(benchmarks(rec)) > 1
	pairs := len(c.New) > 1 && c.Old.Host.Kernel == "" // kernel by kernel, each with an old side of its own
	var ch chart
	for i, r := range c.Rows {
		group := key(rec, rec.Results[i], params, several || len(params) == 0, false)
		center := func(m report.Center, text string) bar {
			return bar{value: m.Median / scale, err: m.Spread * m.Median / scale, text: text}
		}
		old, new := c.Old.Name, c.New[r.Side].Name
		if pairs {
			group, new = strings.TrimSpace(new+" "+group), "new"
		}
		ch.add(group, old, center(r.Old, ""))
		ch.add(group, new, center(r.New, fmt.Sprintf("%.3f %s", r.Ratio, r.Verdict)))
	}
	f := &Figure{title: fmt.Sprintf("%s: %s of %s", subject(rec), c.Metric, sideNames(c))}
	hosts := []report.Host{c.Old.Host}
	for _, s := range c.New {
		hosts = append(hosts, s.Host)
	}
	f.subtitle = hostLines(slices.DeleteFunc(hosts, func(h report.Host) bool { return h.Kernel == "" }))
	if common := rec.Common(); common != "" {
		f.subtitle = append(f.subtitle, common)
	}
	f.subtitle = append(f.subtitle, "Medians of the runs, with one standard deviation between them to each side; ratio of new to old, and the verdict.")
	if err := f.addBars(ch, string(c.Metric)+", "+unit); err != nil {
		return nil, fmt.Errorf("plot the comparison: %w", err)
	}
	return f, nil
}

func sideNames(c *report.Comparison) string {
	var names []string
	for _, s := range c.New {
		names = append(names, s.Name)
	}
	return strings.Join(names, ", ") + " against " + c.Old.Name
}

// digits is v with about three digits.
func digits(v float64) string {
	switch {
	case v >= 100:
		return strconv.FormatFloat(v, 'f', 0, 64)
	case v >= 10:
		return strconv.FormatFloat(v, 'f', 1, 64)
	}
	return strconv.FormatFloat(v, 'f', 2, 64)
}

const (
	barWidth = 12 * vg.Length(1)
	groupGap = 0.75 // of a bar's width
)

// addBars adds the groups from top to bottom. Bars lie, so that there is room for the names of the groups. On the y axis
// the width of a bar is 1.
func (f *Figure) addBars(c chart, axis string) error {
	f.plot = newPlot(axis, "")
	grid := plotter.NewGrid()
	grid.Horizontal.Width = 0
	f.plot.Add(grid)
	thumbs := make([]plot.Thumbnailer, len(c.series))
	var names plot.ConstantTicks
	most, longest, label, y := 0., vg.Length(0), vg.Length(0), 0.
	for _, g := range c.groups {
		top := y
		for s, name := range c.series {
			b := c.bars[[2]string{g, name}]
			if !b.ok {
				continue
			}
			thumb, err := f.addBar(b, y-0.5, colorOf(s))
			if err != nil {
				return err
			}
			thumbs[s] = thumb
			most, longest = max(most, b.value+b.err), max(longest, tickStyle.Width(b.text))
			y--
		}
		name := cut(tickStyle, g, width*0.4)
		names = append(names, plot.Tick{Value: (top + y) / 2, Label: name})
		label = max(label, tickStyle.Width(name))
		y -= groupGap
	}
	for s, name := range c.series {
		if name != "" {
			f.legend = append(f.legend, newEntry(name, thumbs[s]))
		}
	}
	f.height = vg.Length(-y)*barWidth + vg.Points(45)
	f.plot.Y.Tick.Marker, f.plot.Y.Tick.LineStyle.Width, f.plot.Y.Width = names, 0, 0
	f.plot.Y.Min, f.plot.Y.Max = y+groupGap/2, groupGap/2
	// Room at the right for what stands at the ends of the bars.
	room := width - 2*margin - label - vg.Points(25)
	f.plot.X.Min, f.plot.X.Max = 0, most*float64(room/max(room-longest-vg.Points(8), room/4))
	return nil
}

// addBar adds a bar with its deviation and its text, and gives its thumbnail.
func (f *Figure) addBar(b bar, y float64, c color.Color) (plot.Thumbnailer, error) {
	rect, err := plotter.NewBarChart(plotter.Values{b.value}, barWidth)
	if err != nil {
		return nil, err
	}
	rect.Horizontal, rect.XMin, rect.Color, rect.LineStyle.Width = true, y, c, 0
	f.plot.Add(rect)
	if b.err > 0 {
		bars, err := plotter.NewXErrorBars(struct {
			plotter.XYs
			plotter.XErrors
		}{plotter.XYs{{X: b.value, Y: y}}, plotter.XErrors{{Low: min(b.err, b.value), High: b.err}}})
		if err != nil {
			return nil, err
		}
		bars.LineStyle, bars.CapWidth = draw.LineStyle{Color: color.Black, Width: vg.Points(0.8)}, vg.Points(4)
		f.plot.Add(bars)
	}
	if b.text == "" {
		return rect, nil
	}
	text, err := plotter.NewLabels(plotter.XYLabels{XYs: plotter.XYs{{X: b.value + b.err, Y: y}}, Labels: []string{b.text}})
	if err != nil {
		return nil, err
	}
	text.TextStyle[0] = tickStyle
	text.TextStyle[0].YAlign = draw.YCenter
	text.Offset = vg.Point{X: vg.Points(4), Y: vg.Points(1)}
	f.plot.Add(text)
	return rect, nil
}
