package report

import (
	"fmt"
	"io"
	"slices"
	"strings"
)

type markdownWriter struct{ w io.Writer }

// NewMarkdown gives the writer of Markdown, written at the end: the tables of the text, with all their columns, under a
// heading of the third level. A single result has a table of its CPUs.
func NewMarkdown(w io.Writer) Writer { return markdownWriter{w} }

func (markdownWriter) Begin(*Record) error    { return nil }
func (markdownWriter) Run(*Record, int) error { return nil }

func (m markdownWriter) End(rec *Record) error {
	if len(rec.Results) == 0 {
		return nil
	}
	var d document
	d.session(rec)
	if r := rec.Results[0]; len(rec.Results) == 1 && unfit(r) == "" && Summarize(r).Rate != nil {
		d.single(rec, r)
	} else {
		s := sheetOf(rec)
		d.block(renderMarkdown(s.cols))
		for i, n := range s.notes {
			d.paragraph(mark(i) + " " + n)
		}
		d.paragraph(s.legend)
		d.paragraph(s.remark)
	}
	if _, err := io.WriteString(m.w, d.String()); err != nil {
		return fmt.Errorf("write markdown: %w", err)
	}
	return nil
}

// document is Markdown as it is put together, in blocks with an empty line between.
type document struct{ strings.Builder }

func (d *document) block(s string) {
	if d.Len() > 0 {
		d.WriteByte('\n')
	}
	d.WriteString(s)
	d.WriteByte('\n')
}

// paragraph adds s, if there is anything in it.
func (d *document) paragraph(s string) {
	if s = flat(s); s != "" {
		d.block(markdown(s))
	}
}

func (d *document) items(items []string) {
	if len(items) > 0 {
		d.block("- " + strings.Join(items, "\n- "))
	}
}

// session adds the heading of the text: what was measured, where, with which parameters.
func (d *document) session(rec *Record) {
	var names []string
	for _, r := range rec.Results {
		if !slices.Contains(names, r.Benchmark) {
			names = append(names, r.Benchmark)
		}
	}
	d.block("### " + markdown(flat(strings.Join(names, ", "))))
	var items []string
	add := func(s string) {
		if s != "" {
			items = append(items, markdown(flat(s)))
		}
	}
	for _, h := range rec.Session.Hosts {
		add(strings.Join(hostFacts(h), ", "))
	}
	add(emulation(&rec.Session))
	add(strings.Join(constants(rec.Results), " "))
	add(strings.Join(plan(rec), ", "))
	d.items(items)
}

// single adds a table of the CPUs of the only result, and what holds for all of them.
func (d *document) single(rec *Record, r *Result) {
	s, words := Summarize(r), wordingOf(rec.Session.Unit)
	scale := scaleOf(s.Rate.Mean)
	cols := []column{
		{head: "CPU", left: true}, {head: "samples"}, {head: "rate", unit: scale.unit(words)},
		{head: "batch p50", unit: words.cost}, {head: "batch p90", unit: words.cost}, {head: "batch p99", unit: words.cost},
		{head: "CV", unit: "%"},
	}
	for _, c := range s.CPUs {
		cells := []string{c.Label, fmt.Sprint(c.Samples), none, none, none, none, none}
		if c.Rate != nil {
			cells[2] = rateCell(c.Rate, scale)
		}
		if c.Scatter != nil {
			cells[6] = fixed(100*c.CV, 2)
		}
		if c.Scatter != nil && c.Batch != nil {
			cells[3], cells[4], cells[5] = fixed(c.Batch.P50, 2), fixed(c.Batch.P90, 2), fixed(c.Batch.P99, 2)
		}
		for i := range cols {
			cols[i].cells = append(cols[i].cells, cells[i])
		}
	}
	d.block(renderMarkdown(cols))
	var items []string
	for _, pieces := range append([][]string{total(r, s.Rate, words), drops(s, words)}, afterwards(rec, r, s)...) {
		if pieces == nil {
			continue
		}
		items = append(items, markdown(flat(strings.Join(pieces, " "))))
	}
	if note := cutShort(rec, r, s); note != "" {
		items = append(items, markdown(flat(note)))
	}
	d.items(items)
}

// markdown is s with nothing in it that Markdown takes for markup of its own.
func markdown(s string) string {
	return strings.NewReplacer("&", "&amp;", "<", "&lt;", "*", `\*`, "`", "\\`").Replace(s)
}
