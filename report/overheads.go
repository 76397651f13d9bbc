package report

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"

	"bpfbench/report/stats"
)

// The names that a result must have to have a place in the table of overheads.
const (
	ArgsParam  = "args"     // a parameter: the number of arguments, which is the column
	TargetFact = "target"   // a fact, of a baseline a parameter: what is called in the loop
	NoEngine   = "baseline" // how the name of a benchmark ends whose results are baselines
)

// Overhead is what an operation takes more than one of the baseline, by the rates of both in operations in 1e9 units.
func Overhead(rate, baseline float64) float64 { return 1e9/rate - 1e9/baseline }

type overheadsWriter struct {
	textWriter
}

// NewOverheads gives the writer of text that shows benchmarks as rows and their numbers of arguments as columns, rates above
// overheads, a table for each host and each setting of the other parameters.
func NewOverheads(w io.Writer, opt TextOptions) Writer {
	return &overheadsWriter{textWriter{w: w, opt: opt}}
}

func (o *overheadsWriter) End(rec *Record) error {
	if o.opt.Quiet {
		return o.textWriter.End(rec)
	}
	var p page
	o.lateFacts(&p, rec)
	var notes []string
	for _, b := range overheadBlocks(rec) {
		b.write(&p, rec, &notes)
	}
	p.line("Overhead: of no argument against the baseline, of more against none of the same probe. <: below resolution, which is twice the standard error.")
	for i, n := range notes {
		p.line(mark(i) + " " + n)
	}
	return o.write(&p)
}

// overheadBlock is one table: results that differ in their benchmark and their number of arguments alone.
type overheadBlock struct {
	host      int
	setting   string // the parameters that the block's results have in common and others have not
	baselines []*Result
	rows      [][]*Result // of one benchmark each, by the number of arguments
}

// overheadBlocks parts the results. Baselines are in every block of their host.
func overheadBlocks(rec *Record) []*overheadBlock {
	var blocks []*overheadBlock
	vary := variedNames(rec.Results, paramsOf)
	for _, r := range rec.Results {
		if isBaseline(r) {
			continue
		}
		var setting []string
		for _, p := range r.Params {
			if p.Name != ArgsParam && slices.Contains(vary, p.Name) && differs(rec.Results, p.Name) {
				setting = append(setting, p.Name+"="+p.Text())
			}
		}
		name := strings.Join(setting, " ")
		i := slices.IndexFunc(blocks, func(b *overheadBlock) bool { return b.host == r.Host && b.setting == name })
		if i < 0 {
			i = len(blocks)
			blocks = append(blocks, &overheadBlock{host: r.Host, setting: name})
		}
		blocks[i].add(r)
	}
	for _, b := range blocks {
		for _, r := range rec.Results {
			if isBaseline(r) && r.Host == b.host {
				b.baselines = append(b.baselines, r)
			}
		}
	}
	return blocks
}

func isBaseline(r *Result) bool { return strings.HasSuffix(r.Benchmark, NoEngine) }

// differs reports whether results that have a parameter have different values of it.
func differs(results []*Result, name string) bool {
	first := ""
	for _, r := range results {
		if p, ok := lookup(r.Params, name); ok && first == "" {
			first = p.Text()
		} else if ok && p.Text() != first {
			return true
		}
	}
	return false
}

func (b *overheadBlock) add(r *Result) {
	i := slices.IndexFunc(b.rows, func(row []*Result) bool { return row[0].Benchmark == r.Benchmark })
	if i < 0 {
		b.rows = append(b.rows, []*Result{r})
		return
	}
	b.rows[i] = append(b.rows[i], r)
}

// baseline is what r's overhead without arguments is against: the rate of the function alone, and the standard error of its
// cost. Where there is no baseline of the same function, it is the result's own loop with the event switched off.
func (b *overheadBlock) baseline(r *Result, s Summary) (rate, stdErr float64, ok bool) {
	target, _ := lookup(r.Facts, TargetFact)
	for _, base := range b.baselines {
		of, _ := lookup(base.Params, TargetFact)
		if bs := Summarize(base); of.Text() == target.Text() && bs.Rate != nil {
			return bs.Rate.Mean, standardError(bs.Cost.Gross), true
		}
	}
	if s.Cost.Loop != nil && s.Cost.Loop.Mean > 0 {
		return 1e9 / s.Cost.Loop.Mean, standardError(*s.Cost.Loop), true
	}
	return 0, 0, false
}

func standardError(s stats.Summary) float64 { return s.StdDev / math.Sqrt(float64(s.N)) }

func (b *overheadBlock) write(p *page, rec *Record, notes *[]string) {
	words := wordingOf(rec.Session.Unit)
	unit := strings.TrimSuffix(words.cost, "/op")
	title := b.setting
	if len(rec.Session.Hosts) > 1 {
		title = strings.TrimSpace("Linux " + rec.Session.Hosts[b.host].Kernel + " " + title)
	}
	p.WriteByte('\n')
	if title != "" {
		p.line(title + ":")
	}
	t := table.NewWriter()
	style := table.StyleDefault
	style.Options = table.Options{SeparateHeader: true}
	style.Box.PaddingLeft, style.Format.Header = "", text.FormatDefault
	t.SetStyle(style)
	columns := b.columns()
	header := table.Row{"Configuration"}
	configs := []table.ColumnConfig{}
	for i, n := range columns {
		header = append(header, count(n, "fetcharg"))
		configs = append(configs, table.ColumnConfig{Number: i + 2, Align: text.AlignRight, AlignHeader: text.AlignRight})
	}
	t.AppendHeader(append(header, ""))
	t.SetColumnConfigs(configs)
	rates := "loops/" + strings.TrimPrefix(words.rate, "events/")
	if rec.Session.Unit == Instructions {
		rates = "loops/1e9 insn"
	}
	for _, base := range b.baselines {
		target, _ := lookup(base.Params, TargetFact)
		b.row(t, "Baseline "+target.Text(), []*Result{base}, columns, rates, unit, notes)
	}
	for _, row := range b.rows {
		b.row(t, title1(row[0].Benchmark), row, columns, rates, unit, notes)
	}
	for line := range strings.Lines(t.Render() + "\n") {
		p.WriteString(strings.TrimRight(line, " \n") + "\n")
	}
}

// title1 is the last part of a benchmark's name, with a capital: Kprobe of fetcharg-kprobe.
func title1(benchmark string) string {
	last := benchmark[strings.LastIndexByte(benchmark, '-')+1:]
	return strings.ToUpper(last[:1]) + last[1:]
}

// columns are the numbers of arguments that there are, 0 always among them.
func (b *overheadBlock) columns() []int {
	columns := []int{0}
	for _, row := range b.rows {
		for _, r := range row {
			if n := argsOf(r); !slices.Contains(columns, n) {
				columns = append(columns, n)
			}
		}
	}
	slices.Sort(columns)
	return columns
}

func argsOf(r *Result) int {
	p, _ := lookup(r.Params, ArgsParam)
	n, _ := strconv.Atoi(bare(p))
	return n
}

// row adds a benchmark's two lines.
func (b *overheadBlock) row(t table.Writer, name string, results []*Result, columns []int, rates, unit string, notes *[]string) {
	top, below := table.Row{name}, table.Row{""}
	var none0 Summary // of no argument
	for _, n := range columns {
		i := slices.IndexFunc(results, func(r *Result) bool { return argsOf(r) == n })
		if i < 0 {
			top, below = append(top, none), append(below, none)
			continue
		}
		r := results[i]
		s := Summarize(r)
		if s.Rate == nil || unfit(r) != "" {
			top, below = append(top, string(r.Status)), append(below, footnote(unfitReason(r), notes))
			continue
		}
		if n == 0 {
			none0 = s
		}
		top = append(top, fixed(s.Rate.Mean, 0))
		below = append(below, b.overhead(r, n, s, none0))
	}
	t.AppendRow(append(top, rates))
	t.AppendRow(append(below, unit+" overhead"))
}

// overhead is the text of a cell: what n arguments take more than none, or no argument more than the baseline.
func (b *overheadBlock) overhead(r *Result, n int, s, without Summary) string {
	var base, baseErr float64
	switch {
	case isBaseline(r):
		return none
	case n == 0:
		var ok bool
		if base, baseErr, ok = b.baseline(r, s); !ok {
			return none
		}
	case without.Rate == nil:
		return none
	default:
		base, baseErr = without.Rate.Mean, standardError(without.Cost.Gross)
	}
	over := Overhead(s.Rate.Mean, base)
	if resolution := 2 * math.Hypot(standardError(s.Cost.Gross), baseErr); math.Abs(over) < resolution {
		return "<" + fixed(resolution, 2)
	}
	return fixed(over, 2)
}

func unfitReason(r *Result) string {
	if verdict := unfit(r); verdict != "" {
		return title1(r.Benchmark) + " is " + verdict
	}
	return fmt.Sprintf("%s has no run", title1(r.Benchmark))
}

// footnote is the mark of a note, which is added if it is new.
func footnote(note string, notes *[]string) string {
	i := slices.Index(*notes, note)
	if i < 0 {
		i = len(*notes)
		*notes = append(*notes, note)
	}
	return mark(i)
}
