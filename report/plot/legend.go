package plot

import (
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

const (
	thumbWidth = 22 * vg.Length(1)
	legendGap  = 18 * vg.Length(1) // between columns
)

type entry struct {
	name   string
	thumbs []plot.Thumbnailer
}

// newEntry is an entry whose name is cut to fit.
func newEntry(name string, thumbs ...plot.Thumbnailer) entry {
	return entry{cut(tickStyle, name, width-2*margin-thumbWidth-legendGap-vg.Points(5)), thumbs}
}

// cut is s, or as much of its beginning and end as has room.
func cut(style text.Style, s string, room vg.Length) string {
	letters := []rune(s)
	for n := len(letters); n > 2 && style.Width(s) > room; n-- {
		s = string(letters[:n/2]) + "…" + string(letters[len(letters)-n/2:])
	}
	return s
}

// legendColumns is how many entries stand in a row, and how wide each is: as many as fit.
func (f *Figure) legendColumns() (n int, each vg.Length) {
	for _, e := range f.legend {
		each = max(each, thumbWidth+vg.Points(5)+tickStyle.Width(e.name)+legendGap)
	}
	if each == 0 {
		return 1, 0
	}
	n = max(1, int((width-2*margin)/each))
	return min(n, len(f.legend)), each
}

// legendHeight is 0 for a figure without a legend.
func (f *Figure) legendHeight() vg.Length {
	if len(f.legend) == 0 {
		return 0
	}
	n, _ := f.legendColumns()
	rows := (len(f.legend) + n - 1) / n
	return vg.Length(rows)*lineHeight(tickStyle) + margin/2
}

// drawLegend fills c row by row.
func (f *Figure) drawLegend(c draw.Canvas) {
	n, each := f.legendColumns()
	h := lineHeight(tickStyle)
	left := c.Min.X + (c.Max.X-c.Min.X-(vg.Length(n)*each-legendGap))/2 // centered
	left = max(left, c.Min.X)
	for i, e := range f.legend {
		x, y := left+vg.Length(i%n)*each, c.Max.Y-margin/2-vg.Length(i/n)*h
		icon := c
		icon.Min, icon.Max = vg.Point{X: x, Y: y - h*0.8}, vg.Point{X: x + thumbWidth, Y: y - h*0.1}
		for _, t := range e.thumbs {
			t.Thumbnail(&icon)
		}
		c.FillText(tickStyle, vg.Point{X: x + thumbWidth + vg.Points(5), Y: y}, e.name)
	}
}
