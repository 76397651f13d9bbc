package report

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"bpfbench/report/stats"
)

// WriteJSON writes c as one JSON document. Centers are in c.Unit; ratios, spreads and thresholds are shares.
func (c *Comparison) WriteJSON(w io.Writer) error {
	b, err := indented(c)
	if err != nil {
		return err
	}
	if _, err := w.Write(b); err != nil {
		return fmt.Errorf("write comparison: %w", err)
	}
	return nil
}

// WriteText writes c for people, 80 columns wide: a table for each new side, or where that is too wide a paragraph for each
// row.
func (c *Comparison) WriteText(w io.Writer) error {
	var p page
	p.line(c.title())
	for _, line := range c.sides() {
		p.line(line)
	}
	if params := constants(c.results(c.Rows)); len(params) > 0 {
		p.pieces(params)
	}
	for i := range c.New {
		s := c.sheet(i)
		if len(s.cols) == 0 {
			continue
		}
		p.WriteByte('\n')
		if len(c.New) > 1 {
			p.line(c.New[i].Name + ":")
		}
		if fits(s.cols) {
			p.WriteString(render(s.cols))
			p.WriteByte('\n')
		} else {
			c.paragraphs(&p, i)
		}
		for k, n := range s.notes {
			p.line(mark(k) + " " + n)
		}
	}
	p.WriteByte('\n')
	for _, line := range c.remarks() {
		p.line(line)
	}
	if _, err := io.WriteString(w, p.String()); err != nil {
		return fmt.Errorf("write comparison: %w", err)
	}
	return nil
}

// WriteMarkdown writes c as Markdown, with a table for each new side.
func (c *Comparison) WriteMarkdown(w io.Writer) error {
	var d document
	d.block("### " + markdown(flat(c.title())))
	items := c.sides()
	if params := constants(c.results(c.Rows)); len(params) > 0 {
		items = append(items, strings.Join(params, " "))
	}
	for i := range items {
		items[i] = markdown(flat(items[i]))
	}
	d.items(items)
	for i := range c.New {
		s := c.sheet(i)
		if len(s.cols) == 0 {
			continue
		}
		if len(c.New) > 1 {
			d.paragraph(c.New[i].Name + ":")
		}
		d.block(renderMarkdown(s.cols))
		for k, n := range s.notes {
			d.paragraph(mark(k) + " " + n)
		}
	}
	for _, line := range c.remarks() {
		d.paragraph(line)
	}
	if _, err := io.WriteString(w, d.String()); err != nil {
		return fmt.Errorf("write comparison: %w", err)
	}
	return nil
}

// Summary counts the verdicts: 2 worse, 1 better, 13 same, 0 inconclusive.
func (c *Comparison) Summary() string {
	var parts []string
	for _, v := range []Verdict{Worse, Better, Same, Inconclusive} {
		n := 0
		for _, r := range c.Rows {
			if r.Verdict == v {
				n++
			}
		}
		parts = append(parts, fmt.Sprintf("%d %s", n, v))
	}
	return strings.Join(parts, ", ")
}

// fails counts the rows that fail, and says whether a gate had them fail otherwise than by being worse.
func (c *Comparison) fails() (n int, gated bool) {
	for _, r := range c.Rows {
		if r.Fails {
			n++
		}
		gated = gated || r.Information || r.Direction == AnyChange
	}
	return n, gated
}

func (c *Comparison) title() string {
	var names []string
	for _, s := range c.New {
		names = append(names, s.Name)
	}
	var benchmarks []string
	for _, r := range c.Rows {
		if !slices.Contains(benchmarks, r.Benchmark) {
			benchmarks = append(benchmarks, r.Benchmark)
		}
	}
	what := ""
	if len(benchmarks) == 1 {
		what = ": " + benchmarks[0]
	}
	return strings.Join(names, ", ") + " against " + c.Old.Name + what
}

// sides say where both were measured, once if that was the same place.
func (c *Comparison) sides() []string {
	var lines, facts []string
	for _, s := range append([]Side{c.Old}, c.New...) {
		f := strings.Join(hostFacts(s.Host), ", ")
		switch {
		case s.Host.Kernel == "":
			continue
		case s.Name == s.Host.Kernel:
			lines = append(lines, f)
		default:
			lines = append(lines, s.Name+": "+f)
		}
		facts = append(facts, f)
	}
	if len(facts) > 1 && len(slices.Compact(facts)) == 1 {
		lines = facts[:1]
	}
	if c.Exact {
		lines = append(lines, "Exact mode: instructions are counted, and no time is measured.")
	}
	return lines
}

// results are rows as results, for what tables know of those.
func (c *Comparison) results(rows []Row) []*Result {
	var out []*Result
	for _, r := range rows {
		out = append(out, &Result{Benchmark: r.Benchmark, Params: r.Params, Producers: r.Producers})
	}
	return out
}

// ofSide are the rows of one new side.
func (c *Comparison) ofSide(side int) []Row {
	return slices.DeleteFunc(slices.Clone(c.Rows), func(r Row) bool { return r.Side != side })
}

// keys are the columns of what varies over all the rows, with the cells of one side.
func (c *Comparison) keys(side int) []column {
	cols := keyColumns(&Record{Results: c.results(c.Rows)})
	for i := range cols {
		var own []string
		for k, r := range c.Rows {
			if r.Side == side {
				own = append(own, cols[i].cells[k])
			}
		}
		cols[i].cells = own
	}
	return cols
}

// form writes a center, and gives the unit that it is then in.
func (c *Comparison) form() (form func(float64) string, unit string) {
	if c.Metric == RateMetric {
		words, largest := wordingOf(Nanoseconds), 0.0
		if c.Exact {
			words = wordingOf(Instructions)
		}
		for _, r := range c.Rows {
			largest = max(largest, r.Old.Median, r.New.Median)
		}
		scale := scaleOf(largest)
		return scale.cell, scale.unit(words)
	}
	return decimals(2), c.Unit
}

// sheet is the table of a new side: what tells the rows apart, the two centers, how they compare.
func (c *Comparison) sheet(side int) sheet {
	rows := c.ofSide(side)
	if len(rows) == 0 {
		return sheet{}
	}
	cols := c.keys(side)
	form, unit := c.form()
	old, new := column{head: "old", unit: unit}, column{head: "new", unit: unit}
	ratio, interval := column{head: "ratio"}, column{head: "90 % interval"}
	p, verdict, marks := column{head: "p"}, column{head: "verdict", left: true}, column{left: true}
	var notes []string
	for _, r := range rows {
		old.cells, new.cells = append(old.cells, form(r.Old.Median)), append(new.cells, form(r.New.Median))
		ratio.cells = append(ratio.cells, fixed(r.Ratio, 3))
		interval.cells = append(interval.cells, intervalText(r.Interval))
		p.cells = append(p.cells, pText(r.AdjustedP))
		verdict.cells = append(verdict.cells, string(r.Verdict))
		note := c.note(&r)
		if note == "" {
			marks.cells = append(marks.cells, "")
			continue
		}
		k := slices.Index(notes, note)
		if k < 0 {
			k = len(notes)
			notes = append(notes, note)
		}
		marks.cells = append(marks.cells, mark(k))
	}
	cols = append(cols, old, new, ratio)
	if !c.Exact {
		cols = append(cols, interval, p)
	}
	cols = append(cols, verdict)
	if len(notes) > 0 {
		cols = append(cols, marks)
	}
	return sheet{cols: cols, notes: notes}
}

// note is what has to be said of a row.
func (c *Comparison) note(r *Row) string {
	var parts []string
	if r.Threshold != c.Threshold {
		parts = append(parts, "threshold "+shareText(r.Threshold))
	}
	if r.Reason != "" {
		parts = append(parts, string(r.Verdict)+": "+r.Reason)
	}
	if r.Information {
		parts = append(parts, "for information")
	}
	if r.Fails && r.Verdict == Better {
		parts = append(parts, "any change fails here")
	}
	return strings.Join(parts, "; ")
}

// paragraphs writes the rows of a side below each other, where a table would be too wide.
func (c *Comparison) paragraphs(p *page, side int) {
	rows, s := c.ofSide(side), c.sheet(side)
	keys := c.keys(side)
	form, unit := c.form()
	for i, r := range rows {
		var pieces []string
		for _, k := range keys {
			if k.head == "benchmark" || k.cells[i] == none {
				pieces = append(pieces, k.cells[i])
			} else {
				pieces = append(pieces, k.head+"="+k.cells[i])
			}
		}
		if len(pieces) > 0 {
			pieces[len(pieces)-1] += ":"
		}
		pieces = append(pieces, form(r.Old.Median)+" to "+form(r.New.Median)+" "+unit+",", "ratio "+fixed(r.Ratio, 3))
		if r.Interval != nil {
			pieces = append(pieces, "("+intervalText(r.Interval)+"),")
		}
		if r.AdjustedP != nil {
			pieces = append(pieces, "p "+pText(r.AdjustedP))
		}
		verdict := string(r.Verdict)
		if last := s.cols[len(s.cols)-1]; last.head == "" && last.cells[i] != "" {
			verdict += " " + last.cells[i]
		}
		pieces[len(pieces)-1] += ":"
		p.pieces(append(pieces, verdict))
	}
}

// remarks are the lines below the tables: what is not in them, what the numbers are, and the sum of it.
func (c *Comparison) remarks() []string {
	var lines []string
	all := c.results(c.Rows)
	for _, u := range c.Unpaired {
		all = append(all, &Result{Benchmark: u.Benchmark, Params: u.Params})
	}
	for _, u := range c.Unpaired {
		what := []string{u.Benchmark}
		for _, p := range u.Params {
			if varies(all, paramsOf, p.Name) {
				what = append(what, p.Name+"="+bare(p))
			}
		}
		lines = append(lines, "not compared: "+strings.Join(what, " ")+": "+u.Reason)
	}
	lines = append(lines, c.Notes...)
	what := map[Metric]string{RateMetric: "rates", CostMetric: "costs of an operation", NetMetric: "costs of an operation without its loop"}[c.Metric]
	if c.Exact {
		lines = append(lines, fmt.Sprintf("Medians of the runs' %s; same: within %s.", what, shareText(c.Threshold)))
	} else {
		over := ""
		if c.Tests > 1 {
			over = fmt.Sprintf(", corrected for %d rows (Benjamini-Hochberg)", c.Tests)
		}
		lines = append(lines, fmt.Sprintf("Medians of the runs' %s; ratio: each run of new to each of old; p: Mann-Whitney, exact%s; same: the interval is within %s.",
			what, over, shareText(c.Threshold)))
	}
	sum := c.Summary()
	if fails, gated := c.fails(); gated {
		sum += "; fails by " + count(fails, "row")
	}
	return append(lines, sum+".")
}

func intervalText(i *stats.Interval) string {
	if i == nil {
		return none
	}
	return fixed(i.Lo, 3) + " to " + fixed(i.Hi, 3)
}

func pText(p *float64) string {
	switch {
	case p == nil:
		return none
	case *p < 0.0005:
		return "<0.001"
	}
	return fixed(*p, 3)
}

// shareText writes a threshold as 2 % or 0.5 %.
func shareText(share float64) string {
	return strings.TrimRight(strings.TrimRight(fixed(100*share, 3), "0"), ".") + " %"
}
