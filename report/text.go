package report

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"bpfbench/report/stats"
)

// TextOptions are for the text that people read.
type TextOptions struct {
	// Quiet leaves nothing but rates, in millions: with the CPU's label in front where producers were not pinned, and
	// with the varied parameters' values where there are several results.
	Quiet bool
	// Live leaves out why a single result has no numbers: who runs bench is told that by its messages.
	Live bool
}

type textWriter struct {
	w    io.Writer
	opt  TextOptions
	told []string // facts that are for the heading
}

// NewText gives the writer of the text that people read: a heading at the beginning; at the end the lines of a single
// result, or a table of several. The letters "cpu" are in the lines of single CPUs' results only, for `grep cpu`.
func NewText(w io.Writer, opt TextOptions) Writer { return &textWriter{w: w, opt: opt} }

func (t *textWriter) Begin(rec *Record) error {
	var p page
	if !t.opt.Quiet && slices.ContainsFunc(rec.Results, func(r *Result) bool { return !t.opt.Live || unfit(r) == "" }) {
		heading(&p, rec)
	}
	t.told = factTexts(commonFacts(rec.Results))
	return t.write(&p)
}

func (t *textWriter) Run(*Record, int) error { return nil }

func (t *textWriter) End(rec *Record) error {
	var p page
	switch {
	case len(rec.Results) == 0:
	case t.opt.Quiet:
		quiet(&p, rec)
	case len(rec.Results) == 1:
		t.single(&p, rec)
	default:
		t.lateFacts(&p, rec)
		writeTable(&p, rec)
	}
	return t.write(&p)
}

func (t *textWriter) write(p *page) error {
	if p.Len() == 0 {
		return nil
	}
	if _, err := io.WriteString(t.w, p.String()); err != nil {
		return fmt.Errorf("write text: %w", err)
	}
	return nil
}

// lateFacts writes the common facts that became known after the heading.
func (t *textWriter) lateFacts(p *page, rec *Record) {
	late := slices.DeleteFunc(factTexts(commonFacts(rec.Results)), func(f string) bool { return slices.Contains(t.told, f) })
	p.pieces(separated(late, ","))
}

// single writes the only result of rec.
func (t *textWriter) single(p *page, rec *Record) {
	r := rec.Results[0]
	if verdict := unfit(r); verdict != "" {
		if !t.opt.Live {
			p.line(r.Benchmark + ": " + verdict)
		}
		return
	}
	t.lateFacts(p, rec)
	s, words := Summarize(r), wordingOf(rec.Session.Unit)
	if s.Rate != nil {
		for _, c := range s.CPUs {
			cpuResult(p, r.Op, c, scaleOf(s.Rate.Mean), words)
		}
		if lines := formLines(r, s, words); lines != nil {
			p.WriteString(strings.Join(lines, "\n") + "\n")
		} else {
			p.pieces(total(r, s.Rate, words))
		}
		p.pieces(drops(s, words))
		for _, pieces := range afterwards(rec, r, s) {
			p.pieces(pieces)
		}
	} else if s.Runs > 0 {
		p.line(r.Benchmark + ": no operation was counted, so there is no rate")
	}
	if note := cutShort(rec, r, s); note != "" {
		p.line(r.Benchmark + ": " + note)
	}
}

// unfit says of a result that has no numbers to show why that is so.
func unfit(r *Result) string {
	if r.Status != Skipped && r.Status != Failed {
		return ""
	}
	s := string(r.Status)
	if r.Reason != "" {
		s += ": " + r.Reason
	}
	return s
}

// cutShort says of an interrupted result how much of it there is.
func cutShort(rec *Record, r *Result, s Summary) string {
	if r.Status != Interrupted {
		return ""
	}
	return fmt.Sprintf("interrupted after %d of %s", s.Runs, count(rec.Session.Plan.Runs, "run"))
}

// cpuResult writes the line that scripts look for, in the words of the kernel's own bench. There ± is two standard
// deviations, here one.
func cpuResult(p *page, op string, c CPU, scale rateScale, words wording) {
	rate := "nothing done"
	if c.Rate != nil {
		rate = fmt.Sprintf("%s ± %s %s", scale.text(c.Rate.Mean), scale.text(c.Rate.StdDev), words.rate)
	}
	p.cpuLine(fmt.Sprintf("%s: %s %s (approximated from %s of ~%s)",
		c.Label, printable(op), rate, count(c.Samples, "sample"), words.elapsed(c.Elapsed)))
}

// total is the line, as one piece, of all producers together; there is none where a CPU's says the same.
func total(r *Result, rate *Rate, words wording) []string {
	if r.Producers < 2 {
		return nil
	}
	return []string{fmt.Sprintf("total: %s %s %s (%s, %s)", r.Op, plusMinus(rate.N, rate.Mean, rate.StdDev, scaleOf(rate.Mean).text), words.rate,
		count(r.Producers, "producer"), count(rate.N, "run"))}
}

// drops is the line, as one piece, of what was lost.
func drops(s Summary, words wording) []string {
	d := s.Drops
	if d == nil {
		return nil
	}
	return []string{"drops: " + plusMinus(d.N, d.Mean, d.StdDev, scaleOf(d.Mean).text) + " " + words.rate}
}

// afterwards are the lines, in pieces, that hold for all CPUs: the spread between runs, the cost of an operation, the gauges,
// and what stands out.
func afterwards(rec *Record, r *Result, s Summary) [][]string {
	var lines [][]string
	rate, words := s.Rate, wordingOf(rec.Session.Unit)
	scale, runs := scaleOf(rate.Mean), []string{count(rate.N, "run") + ":"}
	if rate.N > 1 {
		runs = append(runs, "median "+scale.text(rate.Median)+",", "spread "+fixed(100*rate.Spread, 2)+" %,")
	}
	if i := rate.Interval; i != nil {
		runs = append(runs, fmt.Sprintf("95 %% interval %s to %s", scale.text(i.Lo), scale.text(i.Hi)))
	} else {
		runs = append(runs, fmt.Sprintf("95 %% interval needs %s", count(stats.MinInterval, "run")))
	}
	lines = append(lines, runs)
	if s.Cost != nil {
		lines = append(lines, costPieces(s.Cost, words))
	}
	if len(s.Gauges) > 0 {
		lines = append(lines, gaugePieces(s.Gauges))
	}
	if remark := remarkLine(rec, []Summary{s}); remark != "" {
		lines = append(lines, []string{remark})
	}
	return lines
}

func costPieces(c *Cost, words wording) []string {
	of := func(s stats.Summary) string { return plusMinus(s.N, s.Mean, s.StdDev, decimals(2)) }
	pieces := []string{"cost:", of(c.Gross) + " " + words.cost + " gross"}
	if c.Loop == nil || c.Net == nil {
		return pieces
	}
	pieces[1] += ","
	return append(pieces, of(*c.Loop)+" of the loop,", of(*c.Net)+" net")
}

// quiet writes nothing but rates: for a single result a line a CPU, for several a line each.
func quiet(p *page, rec *Record) {
	keys := keyColumns(rec)
	for i, r := range rec.Results {
		rates := quietRates(r)
		if len(rec.Results) == 1 {
			for _, rate := range rates {
				p.cpuLine(rate)
			}
			return
		}
		if len(rates) == 0 {
			rates = []string{quietStatus(r)}
		}
		var fields []string
		for _, c := range keys {
			fields = append(fields, clean(c.cells[i]))
		}
		p.cpuLine(strings.Join(append(fields, rates...), " "))
	}
}

func quietRates(r *Result) []string {
	if unfit(r) != "" {
		return nil
	}
	var rates []string
	for _, c := range Summarize(r).CPUs {
		if c.Rate == nil {
			continue
		}
		rate := fixed(c.Rate.Mean/1e6, 3)
		if !r.Pinned {
			rate = c.Label + " " + rate
		}
		rates = append(rates, rate)
	}
	return rates
}

// quietStatus stands in the place of rates that there are none of, so that no row is missing.
func quietStatus(r *Result) string {
	if r.Status == OK || r.Status == "" {
		return "-"
	}
	return string(r.Status)
}
