package plot

import (
	"image/color"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/aclements/go-moremath/scale"
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"bpfbench/report"
)

// colors are those of Okabe and Ito, which people who see fewer colors can tell apart too.
var colors = []color.Color{
	color.RGBA{0, 114, 178, 255}, color.RGBA{213, 94, 0, 255}, color.RGBA{0, 158, 115, 255}, color.RGBA{204, 121, 167, 255},
	color.RGBA{230, 159, 0, 255}, color.RGBA{86, 180, 233, 255}, color.RGBA{90, 90, 90, 255},
}

var (
	glyphs = []draw.GlyphDrawer{draw.CircleGlyph{}, draw.SquareGlyph{}, draw.TriangleGlyph{}, draw.PyramidGlyph{}, draw.RingGlyph{}, draw.BoxGlyph{}}
	dashes = [][]vg.Length{nil, {vg.Points(5), vg.Points(3)}, {vg.Points(2), vg.Points(2)}}
)

func colorOf(i int) color.Color { return colors[i%len(colors)] }

// dashOf changes where the colors begin again.
func dashOf(i int) []vg.Length { return dashes[i/len(colors)%len(dashes)] }

// key is what r is called beside others that differ from it in some parameters, in their benchmark or their kernel.
func key(rec *report.Record, r *report.Result, params []string, benchmark, kernel bool) string {
	var parts []string
	if kernel {
		parts = append(parts, rec.Kernel(r))
	}
	if benchmark {
		parts = append(parts, short(rec, r.Benchmark))
	}
	named := len(params) > 1
	for _, name := range params {
		p, ok := r.Param(name)
		if !ok {
			continue
		}
		s := p.Text()
		if _, number := p.Number(); named || number {
			s = name + "=" + s
		}
		parts = append(parts, s)
	}
	return strings.Join(parts, " ")
}

// short is a benchmark's name without the parts that all of rec's begin with: kprobe of fetcharg-kprobe beside
// fetcharg-fprobe.
func short(rec *report.Record, name string) string { return name[len(prefix(rec)):] }

// prefix is the parts of names that all of rec's benchmarks begin with: fetcharg-.
func prefix(rec *report.Record) string {
	names := benchmarks(rec)
	if len(names) < 2 {
		return ""
	}
	prefix := names[0][:strings.LastIndexByte(names[0], '-')+1]
	for _, n := range names {
		for !strings.HasPrefix(n, prefix) {
			prefix = prefix[:strings.LastIndexByte(strings.TrimSuffix(prefix, "-"), '-')+1]
		}
	}
	return prefix
}

// subject is what rec is about, for a title: fetcharg (kprobe, fprobe).
func subject(rec *report.Record) string {
	names := benchmarks(rec)
	p := prefix(rec)
	switch {
	case len(names) > 6:
		return strings.TrimSpace(strings.TrimSuffix(p, "-") + " (" + strconv.Itoa(len(names)) + " benchmarks)")
	case len(names) < 2 || p == "":
		return strings.Join(names, ", ")
	}
	var shorts []string
	for _, n := range names {
		shorts = append(shorts, short(rec, n))
	}
	return strings.TrimSuffix(p, "-") + " (" + strings.Join(shorts, ", ") + ")"
}

// benchmarks are the names of rec's benchmarks, each once.
func benchmarks(rec *report.Record) []string {
	var names []string
	for _, r := range rec.Results {
		if !slices.Contains(names, r.Benchmark) {
			names = append(names, r.Benchmark)
		}
	}
	return names
}

// machine are the lines of the subtitle: where rec was measured, and what its results have in common.
func machine(rec *report.Record) []string {
	lines := hostLines(rec.Session.Hosts)
	if rec.Session.Unit == report.Instructions {
		lines = append(lines, "Exact mode: instructions are counted, and no time is measured.")
	}
	if common := rec.Common(); common != "" {
		lines = append(lines, common)
	}
	return lines
}

// hostLines are the facts of hosts, once where they differ in their kernels alone: those are in the legend.
func hostLines(hosts []report.Host) []string {
	var lines, without []string
	for _, h := range hosts {
		if line := h.Text(); !slices.Contains(lines, line) {
			lines = append(lines, line)
		}
		h.Kernel = ""
		if line := h.Text(); !slices.Contains(without, line) {
			without = append(without, line)
		}
	}
	if len(without) == 1 && len(lines) > 1 {
		return without
	}
	if len(lines) > 3 {
		lines = append(lines[:2], "and "+strconv.Itoa(len(lines)-2)+" more kernels")
	}
	return lines
}

// numbers are the values of a parameter in results, each once and in ascending order. It is not ok where one of them is no
// number.
func numbers(results []*report.Result, name string) (values []float64, ok bool) {
	for _, r := range results {
		p, has := r.Param(name)
		if !has {
			continue
		}
		v, ok := p.Number()
		if !ok {
			return nil, false
		}
		values = append(values, v)
	}
	slices.Sort(values)
	return slices.Compact(values), true
}

// geometric says whether values grow by about the same factor, and by more than they would by the same step.
func geometric(values []float64) bool {
	if len(values) < 3 || values[0] <= 0 {
		return false
	}
	least, most := math.Inf(1), 0.
	for i := range values[1:] {
		f := values[i+1] / values[i]
		least, most = min(least, f), max(most, f)
	}
	return least >= 1.4 && most/least < 1.6
}

// niceTicks are at round values, at most ten of them with a label.
var niceTicks = plot.TickerFunc(func(low, high float64) []plot.Tick {
	major, minor := scale.Linear{Min: low, Max: high}.Ticks(scale.TickOptions{Max: 10})
	var all []plot.Tick
	for _, v := range minor {
		label := ""
		// Both are multiples that were computed, as 0.30000000000000004 is.
		if slices.ContainsFunc(major, func(m float64) bool { return math.Abs(m-v) <= (high-low)*1e-9 }) {
			label = strconv.FormatFloat(v, 'g', 6, 64)
			if math.Abs(v) >= 1e5 {
				label = strconv.FormatFloat(v, 'f', 0, 64)
			}
		}
		all = append(all, plot.Tick{Value: v, Label: label})
	}
	return all
})

// ticks are at the values of a sweep. Labels are left out where they would touch.
func ticks(values []float64, place func(float64) float64, room vg.Length) plot.ConstantTicks {
	var all plot.ConstantTicks
	free := math.Inf(-1) // from where on there is room, as a share
	for i := len(values) - 1; i >= 0; i-- {
		label := strconv.FormatFloat(values[i], 'f', -1, 64)
		half := float64((tickStyle.Width(label)/2 + vg.Points(4)) / room)
		at := 1 - place(values[i])
		if at-half < free {
			label = ""
		} else {
			free = at + half
		}
		all = append(all, plot.Tick{Value: values[i], Label: label})
	}
	slices.Reverse(all)
	return all
}
