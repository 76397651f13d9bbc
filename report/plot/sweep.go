package plot

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"bpfbench/report"
)

// maxCPUs is how many lines of CPUs are drawn; above that the total of all CPUs.
const maxCPUs = 8

// point is a measurement in a sweep, with the standard deviation between its runs.
type point struct{ x, y, err float64 }

type line struct {
	name   string
	points []point
}

// Sweep draws the rates of rec against the parameter that was swept, with a line for each CPU, and for each value of what
// else varies: kernel, benchmark, other parameters. Bars at the points are one standard deviation between the runs. In exact
// mode it draws instructions instead of rates. It is an error if nothing was swept, or nothing measured.
func Sweep(rec *report.Record) (*Figure, error) {
	var measured []*report.Result
	for _, r := range rec.Results {
		if r.Measured() {
			measured = append(measured, r)
		}
	}
	if len(measured) == 0 {
		return nil, errors.New("plot the sweep: nothing was measured")
	}
	name, values := swept(measured)
	if name == "" {
		return nil, errors.New("plot the sweep: no parameter with numbers was swept: give one several values, such as --nr_entries=4096,8192")
	}
	lines := linesOf(rec, measured, name)
	what, unit := "rate", "M "+rec.Session.Unit.RateUnit()
	if op := measured[0].Op; op != "" && len(benchmarks(rec)) == 1 {
		what = op + " rate"
	}
	if rec.Session.Unit == report.Instructions {
		what, unit = "cost", rec.Session.Unit.CostUnit()
	}
	xTitle := name
	if p, ok := measured[0].Param(name); ok && p.Unit != "" {
		xTitle += ", " + p.Unit
	}
	p := newPlot(xTitle, what+", "+unit)
	f := &Figure{
		plot: p, height: vg.Points(300), subtitle: machine(rec),
		title: fmt.Sprintf("%s: %s by %s", subject(rec), what, name),
	}
	f.explain(measured)
	if err := f.addLines(lines); err != nil {
		return nil, fmt.Errorf("plot the sweep: %w", err)
	}
	if geometric(values) {
		p.X.Scale = plot.LogScale{}
	}
	p.X.Min, p.X.Max = values[0], values[len(values)-1]
	p.X.Tick.Marker = ticks(values, p.X.Norm, width-2*margin-vg.Points(50))
	return f, nil
}

// swept is the parameter for the x axis: of those that were swept and are numbers, that with the most values.
func swept(results []*report.Result) (name string, values []float64) {
	for _, r := range results {
		for _, n := range r.Varied {
			if v, ok := numbers(results, n); ok && len(v) > max(1, len(values)) {
				name, values = n, v
			}
		}
	}
	return name, values
}

// linesOf are the lines over the parameter x, in the order in which they come.
func linesOf(rec *report.Record, measured []*report.Result, x string) []line {
	params := slices.DeleteFunc(rec.Varying(), func(n string) bool { return n == x })
	several := len(benchmarks(rec)) > 1
	var lines []line
	add := func(name string, p point) {
		i := slices.IndexFunc(lines, func(l line) bool { return l.name == name })
		if i < 0 {
			i = len(lines)
			lines = append(lines, line{name: name})
		}
		lines[i].points = append(lines[i].points, p)
	}
	perCPU := cpuLines(rec, measured)
	for _, r := range measured {
		p, ok := r.Param(x)
		at, number := p.Number()
		if !ok || !number {
			continue
		}
		s := report.Summarize(r)
		name := key(rec, r, params, several, len(rec.Session.Hosts) > 1)
		switch {
		case rec.Session.Unit == report.Instructions:
			add(name, point{at, s.Cost.Gross.Mean, s.Cost.Gross.StdDev})
		case perCPU:
			for _, c := range s.CPUs {
				if c.Rate == nil {
					continue
				}
				var between float64
				if c.Scatter != nil && c.Variation != nil {
					between = c.Variation.Between
				}
				add(strings.TrimSpace(name+" "+c.Label), point{at, c.Rate.Mean / 1e6, between * c.Rate.Mean / 1e6})
			}
		default:
			add(strings.TrimSpace(name+" total"), point{at, s.Rate.Mean / 1e6, s.Rate.StdDev / 1e6})
		}
	}
	for _, l := range lines {
		slices.SortStableFunc(l.points, func(a, b point) int {
			switch {
			case a.x < b.x:
				return -1
			case a.x > b.x:
				return 1
			}
			return 0
		})
	}
	return lines
}

// cpuLines says whether each CPU gets a line: if there are few, and no producer wandered between them.
func cpuLines(rec *report.Record, measured []*report.Result) bool {
	names := make(map[string]bool)
	for _, r := range measured {
		cpus := report.Summarize(r).CPUs
		if len(cpus) > r.Producers {
			return false
		}
		for _, c := range cpus {
			names[key(rec, r, nil, true, true)+c.Label] = true
		}
	}
	return len(names) <= maxCPUs
}

// addLines adds the lines with their points and bars, and an entry of the legend for each.
func (f *Figure) addLines(lines []line) error {
	grid := plotter.NewGrid()
	grid.Vertical.Width = 0
	f.plot.Add(grid)
	low, high := math.Inf(1), 0.
	for i, l := range lines {
		var xys plotter.XYs
		var errs plotter.YErrors
		for _, p := range l.points {
			xys = append(xys, plotter.XY{X: p.x, Y: p.y})
			errs = append(errs, struct{ Low, High float64 }{p.err, p.err})
			low, high = min(low, p.y-p.err), max(high, p.y+p.err)
		}
		path, dots, err := plotter.NewLinePoints(xys)
		if err != nil {
			return err
		}
		path.Color, path.Width, path.Dashes = colorOf(i), vg.Points(1.5), dashOf(i)
		dots.Color, dots.Shape, dots.Radius = colorOf(i), glyphs[i%len(glyphs)], vg.Points(2.6)
		bars, err := plotter.NewYErrorBars(struct {
			plotter.XYs
			plotter.YErrors
		}{xys, errs})
		if err != nil {
			return err
		}
		bars.LineStyle = draw.LineStyle{Color: colorOf(i), Width: vg.Points(1)}
		bars.CapWidth = vg.Points(5)
		f.plot.Add(path, bars, dots)
		f.legend = append(f.legend, newEntry(l.name, path, dots))
	}
	// From zero, unless that leaves most of the plot empty.
	f.plot.Y.Min, f.plot.Y.Max = 0, high+0.04*high
	if low > high/2 {
		f.plot.Y.Min = max(0, low-0.15*(high-low)-0.005*high)
		f.plot.Y.Max = high + 0.1*(high-low) + 0.005*high
	}
	return nil
}
