package report

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"

	"bpfbench/report/stats"
)

// none stands in a cell for what was not measured.
const none = "-"

// sheet is a table of results, and what is said of it.
type sheet struct {
	cols   []column
	notes  []string // of single results, in the order of their marks in the table
	legend string
	remark string // what stands out in the results
}

// sheetOf puts the results of rec side by side.
func sheetOf(rec *Record) sheet {
	summaries := make([]Summary, len(rec.Results))
	for i, r := range rec.Results {
		if unfit(r) == "" {
			summaries[i] = Summarize(r)
		}
	}
	words := wordingOf(rec.Session.Unit)
	cols := append(keyColumns(rec), factColumns(rec)...)
	cols = append(cols, rateColumns(rec, summaries, words)...)
	cols = append(cols, dropColumn(summaries, words)...)
	cols = append(cols, costColumns(summaries, words)...)
	cols = append(cols, spreadColumn(summaries))
	cols = append(cols, gaugeColumns(summaries)...)
	marks, notes := footnotes(rec, summaries)
	if len(notes) > 0 {
		cols = append(cols, column{cells: marks, left: true})
	}
	s := sheet{cols: cols, notes: notes}
	if slices.ContainsFunc(summaries, func(s Summary) bool { return s.Rate != nil }) {
		s.legend = legend(rec, summaries)
		s.remark = remarkLine(rec, summaries)
	}
	return s
}

// writeTable writes the results of rec side by side, and below them what has to be said of single ones.
func writeTable(p *page, rec *Record) {
	s := sheetOf(rec)
	p.WriteByte('\n')
	p.WriteString(render(s.cols))
	p.WriteByte('\n')
	for i, n := range s.notes {
		p.line(mark(i) + " " + n)
	}
	if s.legend != "" {
		p.line(s.legend)
	}
	if s.remark != "" {
		p.line(s.remark)
	}
}

// keyColumns are the columns that tell the results apart.
func keyColumns(rec *Record) []column {
	var cols []column
	if len(rec.Session.Hosts) > 1 {
		cols = append(cols, textColumn("kernel", rec.Results, func(r *Result) string { return kernelOf(rec, r) }))
	}
	name := func(r *Result) string { return r.Benchmark }
	if c := textColumn("benchmark", rec.Results, name); len(slices.Compact(slices.Clone(c.cells))) > 1 {
		cols = append(cols, c)
	}
	for _, n := range variedNames(rec.Results, paramsOf) {
		cols = append(cols, paramColumn(rec.Results, paramsOf, n))
	}
	for _, n := range variedNames(rec.Results, workersOf) {
		cols = append(cols, paramColumn(rec.Results, workersOf, n))
	}
	return cols
}

// workersOf are the numbers of workers, which tell results apart where they differ.
func workersOf(r *Result) []Param {
	return []Param{{Name: "producers", Value: r.Producers}, {Name: "consumers", Value: r.Consumers}}
}

// factColumns are those of the facts that follow from what varies.
func factColumns(rec *Record) []column {
	var cols []column
	for _, n := range variedNames(rec.Results, factsOf) {
		if !factVaries(rec.Results, n) {
			continue
		}
		c := paramColumn(rec.Results, factsOf, n)
		if c.unit != "" {
			c.head, c.unit = c.unit+" "+c.head, ""
		}
		cols = append(cols, c)
	}
	return cols
}

func textColumn(head string, results []*Result, cell func(*Result) string) column {
	c := column{head: head, left: true}
	for _, r := range results {
		c.cells = append(c.cells, flat(cell(r)))
	}
	return c
}

// kernelOf is the release of the kernel that r ran on, with a number where another kernel has the same release.
func kernelOf(rec *Record, r *Result) string {
	hosts := rec.Session.Hosts
	if r.Host < 0 || r.Host >= len(hosts) {
		return none
	}
	release := hosts[r.Host].Kernel
	for i, h := range hosts {
		if i != r.Host && h.Kernel == release {
			return fmt.Sprintf("%s #%d", release, r.Host+1)
		}
	}
	return release
}

// variedNames are the names of the parameters that vary: first those of a sweep, then those that follow them.
func variedNames(results []*Result, of func(*Result) []Param) []string {
	var swept, others []string
	for _, r := range results {
		for _, q := range of(r) {
			switch {
			case slices.Contains(swept, q.Name) || slices.Contains(others, q.Name) || !varies(results, of, q.Name):
			case slices.Contains(r.Varied, q.Name):
				swept = append(swept, q.Name)
			default:
				others = append(others, q.Name)
			}
		}
	}
	return append(swept, others...)
}

func paramColumn(results []*Result, of func(*Result) []Param, name string) column {
	c := column{head: flat(name)}
	for _, r := range results {
		q, ok := lookup(of(r), name)
		if !ok {
			c.cells = append(c.cells, none)
			continue
		}
		if q.Unit != "" {
			c.unit = flat(q.Unit)
		}
		q.Unit = ""
		c.cells = append(c.cells, flat(q.Text()))
		if !isNumber(bare(q)) || q.Note != "" {
			c.left = true
		}
	}
	// What only some benchmarks have, with one value, follows from the name of the benchmark.
	values := slices.DeleteFunc(slices.Clone(c.cells), func(cell string) bool { return cell == none })
	swept := slices.ContainsFunc(results, func(r *Result) bool { return slices.Contains(r.Varied, name) })
	c.optional = !swept && len(slices.Compact(values)) == 1
	return c
}

func isNumber(s string) bool {
	_, err := strconv.ParseFloat(s, 64)
	_, errInt := strconv.ParseInt(s, 0, 64)
	return err == nil || errInt == nil
}

// labels are the CPUs that have columns of their own: up to two, if all have as many producers and none wandered. It is empty where
// a column of the total says more.
func labels(rec *Record, summaries []Summary) []string {
	var all []string
	for i, s := range summaries {
		if n := rec.Results[i].Producers; len(s.CPUs) > n || n != rec.Results[0].Producers {
			return nil
		}
		for _, c := range s.CPUs {
			if !slices.Contains(all, c.Label) {
				all = append(all, c.Label)
			}
		}
	}
	if len(all) > 2 {
		return nil
	}
	// A label of more digits belongs to a higher CPU, and workers come last.
	slices.SortFunc(all, func(a, b string) int { return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b)) })
	return all
}

// scaleIn is the scale that the rates of a table have in common.
func scaleIn(summaries []Summary) rateScale {
	largest := 0.0
	for _, s := range summaries {
		if s.Rate != nil {
			largest = max(largest, s.Rate.Mean)
		}
	}
	return scaleOf(largest)
}

func rateColumns(rec *Record, summaries []Summary, words wording) []column {
	scale := scaleIn(summaries)
	var cols []column
	for _, l := range labels(rec, summaries) {
		c := column{head: flat(l), unit: scale.unit(words)}
		for i, s := range summaries {
			cell := status(rec.Results[i])
			if k := slices.IndexFunc(s.CPUs, func(c CPU) bool { return c.Label == l }); k >= 0 {
				cell = rateCell(s.CPUs[k].Rate, scale)
			}
			c.cells = append(c.cells, cell)
		}
		cols = append(cols, c)
	}
	if len(cols) > 0 {
		return cols
	}
	return append(cols, totalColumn(rec.Results, summaries, words))
}

// totalColumn is of the rates of all CPUs together.
func totalColumn(results []*Result, summaries []Summary, words wording) column {
	scale := scaleIn(summaries)
	c := column{head: "rate", unit: scale.unit(words)}
	several := slices.ContainsFunc(results, func(r *Result) bool { return r.Producers > 1 })
	if several {
		c.head = "total"
	}
	for i, s := range summaries {
		cell := status(results[i])
		switch {
		case s.Rate == nil:
		case several:
			cell = rateCell(&s.Rate.Summary, scale)
		default:
			cell = rateCell(s.Sample, scale)
		}
		c.cells = append(c.cells, cell)
	}
	return c
}

func rateCell(s *stats.Summary, scale rateScale) string {
	if s == nil {
		return none
	}
	return plusMinus(s.N, s.Mean, s.StdDev, scale.cell)
}

// status stands where a result has no rate.
func status(r *Result) string {
	if unfit(r) != "" {
		return string(r.Status)
	}
	return none
}

func costColumns(summaries []Summary, words wording) []column {
	gross := column{head: "gross", unit: words.cost}
	loop := column{head: "loop", unit: words.cost, optional: true}
	net := column{head: "net", unit: words.cost}
	var any, twin bool
	for _, s := range summaries {
		g, l, n := none, none, none
		if c := s.Cost; c != nil {
			any = true
			g = fixed(c.Gross.Mean, 2)
			if c.Loop != nil && c.Net != nil {
				twin = true
				l, n = fixed(c.Loop.Mean, 2), fixed(c.Net.Mean, 2)
			}
		}
		gross.cells, loop.cells, net.cells = append(gross.cells, g), append(loop.cells, l), append(net.cells, n)
	}
	switch {
	case twin:
		return []column{gross, loop, net}
	case any:
		return []column{gross}
	}
	return nil
}

func spreadColumn(summaries []Summary) column {
	c := column{head: "spread", unit: "%"}
	for _, s := range summaries {
		cell := none
		if s.Rate != nil && s.Rate.N > 1 {
			cell = fixed(100*s.Rate.Spread, 2)
		}
		c.cells = append(c.cells, cell)
	}
	return c
}

// footnotes gives each result the mark of what has to be said of it, and the texts in the order of the marks. What holds
// for several results is said once.
func footnotes(rec *Record, summaries []Summary) (marks, notes []string) {
	for i, r := range rec.Results {
		note := cutShort(rec, r, summaries[i])
		switch {
		case unfit(r) != "":
			note = unfit(r)
		case note == "" && summaries[i].Runs > 0 && summaries[i].Rate == nil:
			note = "no operation was counted, so there is no rate"
		}
		if note == "" {
			marks = append(marks, "")
			continue
		}
		k := slices.Index(notes, note)
		if k < 0 {
			k = len(notes)
			notes = append(notes, note)
		}
		marks = append(marks, mark(k))
	}
	return marks, notes
}

func mark(note int) string { return fmt.Sprintf("[%d]", note+1) }

func legend(rec *Record, summaries []Summary) string {
	between := len(labels(rec, summaries)) == 0 && slices.ContainsFunc(rec.Results, func(r *Result) bool { return r.Producers > 1 })
	if between {
		return "±: one standard deviation between runs; spread: the same in percent."
	}
	return "±: one standard deviation of the samples; spread: that between the runs."
}
