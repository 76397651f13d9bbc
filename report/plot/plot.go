// Package plot draws records and comparisons: lines over a swept parameter, and bars for tables. It is a package of its own
// so that nothing but plots needs the library for them.
package plot

import (
	"bytes"
	"fmt"
	"image/color"
	"io"
	"os"
	"path/filepath"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"
	"gonum.org/v1/plot/vg/vgsvg"

	"bpfbench/report"
)

// A figure is 800 pixels of 1/96 inch wide.
const (
	width  = 600 * vg.Length(1)
	dpi    = 96
	margin = 10 * vg.Length(1)
)

// Figure is a plot with its title above and its legend below.
type Figure struct {
	plot     *plot.Plot
	title    string
	subtitle []string // lines, wrapped where they are too long
	legend   []entry
	height   vg.Length // of the plot without title and legend
}

// Of draws rec in the way that fits: as a sweep if a parameter was swept, or else as a table.
func Of(rec *report.Record) (*Figure, error) {
	if f, err := Sweep(rec); err == nil {
		return f, nil
	}
	return Table(rec)
}

// explain adds what the bars are at points, or at the ends of bars, if there can be any.
func (f *Figure) explain(results []*report.Result) {
	for _, r := range results {
		if len(r.Runs) > 1 {
			f.subtitle = append(f.subtitle, "Error bars: one standard deviation between the runs, to each side.")
			return
		}
	}
}

// CheckPath says whether a figure can be saved as path: whether its extension is .svg or .png.
func CheckPath(path string) error {
	switch ext := strings.ToLower(filepath.Ext(path)); ext {
	case ".svg", ".png":
		return nil
	default:
		return fmt.Errorf("plot %s: the extension %q is not known: name it .svg or .png", path, ext)
	}
}

// Save writes f to a file, in the format of its extension: .svg or .png.
func (f *Figure) Save(path string) error {
	if err := CheckPath(path); err != nil {
		return err
	}
	var b bytes.Buffer
	if err := f.Write(&b, strings.ToLower(filepath.Ext(path))[1:]); err != nil {
		return fmt.Errorf("plot %s: %w", path, err)
	}
	if err := os.WriteFile(path, b.Bytes(), 0o666); err != nil {
		return fmt.Errorf("write the plot: %w", err)
	}
	return nil
}

// Write writes f in a format: "svg" or "png".
func (f *Figure) Write(w io.Writer, format string) error {
	height := f.totalHeight()
	switch format {
	case "svg":
		c := vgsvg.New(width, height)
		f.draw(draw.New(c))
		var b bytes.Buffer
		if _, err := c.WriteTo(&b); err != nil {
			return fmt.Errorf("draw svg: %w", err)
		}
		// Where the font is missing, viewers are to take one of the same widths.
		svg := bytes.ReplaceAll(b.Bytes(), []byte("font-family:"+family+";"), []byte("font-family:'"+family+"',Arial,Helvetica,sans-serif;"))
		if _, err := w.Write(svg); err != nil {
			return fmt.Errorf("write svg: %w", err)
		}
	case "png":
		c := vgimg.NewWith(vgimg.UseWH(width, height), vgimg.UseDPI(dpi))
		f.draw(draw.New(c))
		if _, err := (vgimg.PngCanvas{Canvas: c}).WriteTo(w); err != nil {
			return fmt.Errorf("write png: %w", err)
		}
	default:
		return fmt.Errorf("the format %q is not known: use svg or png", format)
	}
	return nil
}

// family is the font that the library embeds.
const family = "Liberation Sans"

func textStyle(size float64, c color.Color) text.Style {
	return text.Style{
		Color: c, Handler: plot.DefaultTextHandler, YAlign: draw.YTop,
		Font: font.From(font.Font{Typeface: "Liberation", Variant: "Sans"}, vg.Points(size)),
	}
}

var (
	titleStyle    = textStyle(13, color.Black)
	subtitleStyle = textStyle(9, color.Gray{96})
	labelStyle    = textStyle(10.5, color.Black)
	tickStyle     = textStyle(9.5, color.Black)
)

// lineHeight is from one line of a style to the next.
func lineHeight(s text.Style) vg.Length { return s.FontExtents().Height * 1.15 }

// newPlot is a plot without data, its axes titled.
func newPlot(x, y string) *plot.Plot {
	p := plot.New()
	for _, a := range []*plot.Axis{&p.X, &p.Y} {
		size, rotation := labelStyle, a.Label.TextStyle.Rotation
		align, yalign := a.Label.TextStyle.XAlign, a.Label.TextStyle.YAlign
		a.Label.TextStyle = size
		a.Label.TextStyle.Rotation, a.Label.TextStyle.XAlign, a.Label.TextStyle.YAlign = rotation, align, yalign
		align, yalign = a.Tick.Label.XAlign, a.Tick.Label.YAlign
		a.Tick.Label = tickStyle
		a.Tick.Label.XAlign, a.Tick.Label.YAlign = align, yalign
		a.Label.Padding = vg.Points(4)
	}
	p.X.Label.Text, p.Y.Label.Text = x, y
	p.X.Tick.Marker, p.Y.Tick.Marker = niceTicks, niceTicks
	p.BackgroundColor = nil
	return p
}

// draw draws all of it: title, plot, legend, from top to bottom.
func (f *Figure) draw(c draw.Canvas) {
	c.FillPolygon(color.White, []vg.Point{c.Min, {X: c.Min.X, Y: c.Max.Y}, c.Max, {X: c.Max.X, Y: c.Min.Y}})
	y := c.Max.Y - margin
	line := func(s text.Style, lines []string) {
		for _, l := range lines {
			c.FillText(s, vg.Point{X: c.Min.X + margin, Y: y}, l)
			y -= lineHeight(s)
		}
	}
	line(titleStyle, f.titleLines())
	line(subtitleStyle, f.subtitleLines())
	legend := f.legendHeight()
	f.plot.Draw(draw.Crop(c, margin, -margin, margin+legend, y-margin/2-c.Max.Y))
	f.drawLegend(draw.Crop(c, margin, -margin, margin, legend+margin-(c.Max.Y-c.Min.Y)))
}

func (f *Figure) titleLines() []string { return wrap(titleStyle, f.title) }

func (f *Figure) subtitleLines() []string {
	var lines []string
	for _, s := range f.subtitle {
		lines = append(lines, wrap(subtitleStyle, s)...)
	}
	return lines
}

func (f *Figure) totalHeight() vg.Length {
	return 2*margin + margin/2 + vg.Length(len(f.titleLines()))*lineHeight(titleStyle) +
		vg.Length(len(f.subtitleLines()))*lineHeight(subtitleStyle) + f.height + f.legendHeight()
}

// wrap breaks s between words into lines that fit.
func wrap(style text.Style, s string) []string {
	var lines []string
	line := ""
	for word := range strings.FieldsSeq(s) {
		longer := strings.TrimSpace(line + " " + word)
		if line != "" && style.Width(longer) > width-2*margin {
			lines = append(lines, line)
			longer = word
		}
		line = longer
	}
	if line != "" {
		lines = append(lines, line)
	}
	return lines
}
