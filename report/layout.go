package report

import (
	"fmt"
	"slices"
	"unicode/utf8"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
)

// column is a column of a table of results, with a cell for each.
type column struct {
	head     string
	unit     string // below the head
	cells    []string
	left     bool // aligned; numbers are to the right
	optional bool // may go where the table is too wide, as it follows from the others
}

// In some locales ± counts as two columns wide, though hardly a terminal shows it so. The same record is to give the same
// bytes everywhere.
func init() { text.OverrideRuneWidthEastAsianWidth(false) }

// render lays the columns out, closer together and without optional ones where they are too wide.
func render(cols []column) string {
	gap := 2
	if width(cols, gap) > columns {
		gap = 1
	}
	if width(cols, gap) > columns {
		cols = slices.DeleteFunc(slices.Clone(cols), func(c column) bool { return c.optional })
	}
	style := table.Style{Name: "plain", Options: table.OptionsNoBordersAndSeparators}
	style.Box.PaddingRight = fmt.Sprintf("%*s", gap, "")
	t := newTable(cols, clean)
	t.SetStyle(style)
	t.SuppressTrailingSpaces()
	t.AppendHeader(row(cols, func(c column) string { return clean(c.head) }))
	t.AppendHeader(row(cols, func(c column) string { return clean(c.unit) }))
	return t.Render()
}

// fits says whether render's table is no wider than the screen.
func fits(cols []column) bool {
	return width(slices.DeleteFunc(slices.Clone(cols), func(c column) bool { return c.optional }), 1) <= columns
}

// renderMarkdown gives the table that render gives, for Markdown: all the columns, and units beside their heads.
func renderMarkdown(cols []column) string {
	t := newTable(cols, markdown)
	t.AppendHeader(row(cols, func(c column) string {
		switch {
		case c.unit == "":
			return markdown(c.head)
		case c.head == "":
			return markdown(c.unit)
		}
		return markdown(c.head + " (" + c.unit + ")")
	}))
	return t.RenderMarkdown()
}

// newTable is a table of cols without a header, its cells in a form.
func newTable(cols []column, form func(string) string) table.Writer {
	t := table.NewWriter()
	var configs []table.ColumnConfig
	for i, c := range cols {
		align := text.AlignRight
		if c.left {
			align = text.AlignLeft
		}
		configs = append(configs, table.ColumnConfig{Number: i + 1, Align: align, AlignHeader: align})
	}
	t.SetColumnConfigs(configs)
	for i := range cols[0].cells {
		t.AppendRow(row(cols, func(c column) string { return form(c.cells[i]) }))
	}
	return t
}

func row(cols []column, cell func(column) string) table.Row {
	var r table.Row
	for _, c := range cols {
		r = append(r, cell(c))
	}
	return r
}

// width is the number of columns of the screen that cols take.
func width(cols []column, gap int) int {
	n := -gap
	for _, c := range cols {
		w := 0
		for _, s := range append([]string{c.head, c.unit}, c.cells...) {
			w = max(w, utf8.RuneCountInString(s))
		}
		n += w + gap
	}
	return n
}
