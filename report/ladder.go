package report

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
)

type ladderWriter struct{ textWriter }

// NewLadder gives the writer of text that shows several results in ascending order of what they cost: net of their driver,
// the same loop without what is measured, and behind that how many times the cheapest hook's cost it is. Results whose names
// end in -count, -base or -baseline have no hook: they are what drives the others, and come first. There is a ladder for each kernel.
func NewLadder(w io.Writer, opt TextOptions) Writer { return &ladderWriter{textWriter{w: w, opt: opt}} }

func (l *ladderWriter) End(rec *Record) error {
	if l.opt.Quiet || len(rec.Results) < 2 {
		return l.textWriter.End(rec)
	}
	var p page
	for host := range rec.Session.Hosts {
		ladderOf(rec, host).write(&p)
	}
	return l.write(&p)
}

// ladder is what was measured on one kernel.
type ladder struct {
	rec       *Record // whose results are those with numbers, in order
	names     []string
	summaries []Summary
	host      int
	skipped   []string // of the others, why they have none
}

func ladderOf(rec *Record, host int) *ladder {
	type rung struct {
		result  *Result
		summary Summary
	}
	var rungs []rung
	without := make(map[string][]string) // names of results without numbers, by why that is
	var reasons []string
	for _, r := range rec.Results {
		if r.Host != host {
			continue
		}
		reason := unfit(r)
		if reason == "" {
			rungs = append(rungs, rung{r, Summarize(r)})
			continue
		}
		if without[reason] == nil {
			reasons = append(reasons, reason)
		}
		without[reason] = append(without[reason], rungName(rec, r))
	}
	slices.SortStableFunc(rungs, func(a, b rung) int {
		return cmp.Or(cmp.Compare(order(a.result, a.summary), order(b.result, b.summary)),
			cmp.Compare(ladderCost(a.result, a.summary), ladderCost(b.result, b.summary)))
	})
	shown := *rec
	shown.Results = nil
	l := &ladder{rec: &shown, host: host}
	for _, r := range rungs {
		shown.Results = append(shown.Results, r.result)
		l.names = append(l.names, rungName(rec, r.result))
		l.summaries = append(l.summaries, r.summary)
	}
	for _, reason := range reasons {
		l.skipped = append(l.skipped, strings.Join(without[reason], ", ")+": "+reason)
	}
	return l
}

// order is 0 for what drives the others, 1 for hooks and 2 for what has no rate.
func order(r *Result, s Summary) int {
	switch {
	case s.Cost == nil:
		return 2
	case hookless(r):
		return 0
	}
	return 1
}

// hookless reports whether r is of what drives the others.
func hookless(r *Result) bool {
	return isBaseline(r) || strings.HasSuffix(r.Benchmark, "-count") || strings.HasSuffix(r.Benchmark, "-base")
}

// ladderCost is what the ladder is sorted by. What drives the others is all driver, and where no driver was timed, the gross
// cost is all there is.
func ladderCost(r *Result, s Summary) float64 {
	switch {
	case s.Cost == nil:
		return 0
	case s.Cost.Net == nil || hookless(r):
		return s.Cost.Gross.Mean
	}
	return s.Cost.Net.Mean
}

// rungName is r's benchmark with what tells it from the others of that name.
func rungName(rec *Record, r *Result) string {
	same := slices.DeleteFunc(slices.Clone(rec.Results), func(other *Result) bool { return other.Benchmark != r.Benchmark || other.Host != r.Host })
	all := func(r *Result) []Param { return slices.Concat(r.Params, workersOf(r)) }
	words := []string{r.Benchmark}
	for _, p := range all(r) {
		if varies(same, all, p.Name) {
			words = append(words, p.Name+"="+p.Text())
		}
	}
	return strings.Join(words, " ")
}

func (l *ladder) write(p *page) {
	words := wordingOf(l.rec.Session.Unit)
	p.WriteByte('\n')
	if len(l.rec.Session.Hosts) > 1 {
		p.line(fmt.Sprintf("Linux %s:", l.rec.Session.Hosts[l.host].Kernel))
	}
	if len(l.rec.Results) > 0 {
		l.writeRungs(p, words)
	}
	for _, s := range l.skipped {
		p.line(s)
	}
}

func (l *ladder) writeRungs(p *page, words wording) {
	cols := []column{
		{head: "benchmark", left: true, cells: l.names},
		totalColumn(l.rec.Results, l.summaries, words),
	}
	costs := costColumns(l.summaries, words)
	net := len(costs) == 3
	var legend []string
	if net {
		costs[1].head = "driver"
		times, cheapest := l.times()
		costs = append(costs, times)
		legend = append(legend, "Net: gross without the driver, the same loop without the hook.")
		if cheapest != "" {
			legend = append(legend, fmt.Sprintf("×: net against that of the cheapest hook, %s.", cheapest))
		}
	}
	cols = append(cols, costs...)
	marks, notes := footnotes(l.rec, l.summaries)
	if net {
		notes = l.markGross(marks, notes)
	}
	if len(notes) > 0 {
		cols = append(cols, column{cells: marks, left: true})
	}
	p.WriteString(render(cols))
	p.WriteByte('\n')
	for i, n := range notes {
		p.line(mark(i) + " " + n)
	}
	p.line(strings.Join(append(legend, "±: one standard deviation."), " "))
	if remark := remarkLine(l.rec, l.summaries); remark != "" {
		p.line(remark)
	}
}

// times is the column of net costs over that of the cheapest hook, and the name of that.
func (l *ladder) times() (c column, cheapest string) {
	c = column{head: "×"}
	least := 0.0
	for i, s := range l.summaries {
		if s.Cost == nil || s.Cost.Net == nil || s.Cost.Net.Mean <= 0 || hookless(l.rec.Results[i]) {
			c.cells = append(c.cells, none)
			continue
		}
		if least == 0 {
			least, cheapest = s.Cost.Net.Mean, l.names[i]
		}
		c.cells = append(c.cells, fixed(s.Cost.Net.Mean/least, 2))
	}
	return c, cheapest
}

// markGross marks hooks that stand where they do by their gross cost.
func (l *ladder) markGross(marks, notes []string) []string {
	const note = "its driver alone was not timed: it stands where its gross cost puts it"
	for i, s := range l.summaries {
		if s.Cost == nil || s.Cost.Net != nil || hookless(l.rec.Results[i]) {
			continue
		}
		if marks[i] != "" {
			marks[i] += " "
		}
		marks[i] += footnote(note, &notes)
	}
	return notes
}
