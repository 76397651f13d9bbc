package report

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"bpfbench/report/stats"
)

// pairing is what is compared with what.
type pairing struct {
	old, new []*Result
	side     int  // index into Comparison.New
	host     Host // of old
}

// byBenchmark is p for each benchmark alone, in the order in which they come.
func (p pairing) byBenchmark() []pairing {
	var names []string
	of := func(results []*Result, name string) []*Result {
		return slices.DeleteFunc(slices.Clone(results), func(r *Result) bool { return r.Benchmark != name })
	}
	var parts []pairing
	for _, r := range slices.Concat(p.old, p.new) {
		if !slices.Contains(names, r.Benchmark) {
			names = append(names, r.Benchmark)
			parts = append(parts, pairing{of(p.old, r.Benchmark), of(p.new, r.Benchmark), p.side, p.host})
		}
	}
	return parts
}

// setup is what makes a result the same measurement as another: its parameters and its workers.
func setup(r *Result) []Param {
	return append(slices.Clone(r.Params),
		Param{Name: "producers", Value: r.Producers},
		Param{Name: "consumers", Value: r.Consumers},
		Param{Name: "pinned", Value: strconv.FormatBool(r.Pinned)})
}

// keys are what results are paired by, in their order. The second of results that are alike in all that is not ignored has
// a number in its key, so that it is paired with the second of the other side.
func keys(results []*Result, ignore []string) []string {
	seen := make(map[string]int)
	var out []string
	for _, r := range results {
		parts := []string{r.Benchmark}
		for _, p := range setup(r) {
			if !slices.Contains(ignore, p.Name) {
				parts = append(parts, p.Name+"="+p.Text())
			}
		}
		key := strings.Join(parts, "\x00")
		seen[key]++
		out = append(out, key+"\x00#"+strconv.Itoa(seen[key]))
	}
	return out
}

// constantly are the parameters that have one value in all of old and another one, or none, in all of new, with a text of
// both. All results are of one benchmark.
func constantly(old, new []*Result) (names, texts []string) {
	if len(old) == 0 || len(new) == 0 {
		return nil, nil
	}
	one := func(results []*Result, name string) (value string, ok bool) {
		for i, r := range results {
			v := "none"
			if p, has := lookup(setup(r), name); has {
				v = p.Text()
			}
			if i > 0 && v != value {
				return "", false
			}
			value = v
		}
		return value, true
	}
	for _, p := range slices.Concat(setup(old[0]), setup(new[0])) {
		a, ok := one(old, p.Name)
		b, too := one(new, p.Name)
		if ok && too && a != b && !slices.Contains(names, p.Name) {
			names = append(names, p.Name)
			texts = append(texts, fmt.Sprintf("%s (%s, %s)", p.Name, a, b))
		}
	}
	return names, texts
}

// pair adds a row for each result of old that has its like in new, and what is left to the unpaired. All are of one
// benchmark.
func (c *Comparison) pair(p pairing, opt CompareOptions) {
	var ignore []string
	if opt.Force {
		var texts []string
		ignore, texts = constantly(p.old, p.new)
		if len(texts) > 0 {
			c.Notes = append(c.Notes, fmt.Sprintf("between %s and %s differ the parameters of %s: %s",
				c.Old.Name, c.New[p.side].Name, p.old[0].Benchmark, strings.Join(texts, ", ")))
		}
	}
	oldKeys, newKeys := keys(p.old, ignore), keys(p.new, ignore)
	for i, key := range oldKeys {
		r := p.old[i]
		k := slices.Index(newKeys, key)
		if k < 0 {
			c.unpaired(r, p.side, r, nil)
			continue
		}
		row, ok := c.row(r, p.new[k], p.side)
		if !ok {
			c.unpaired(p.new[k], p.side, r, p.new[k])
			continue
		}
		c.noteFacts(r, p.new[k], p.side)
		row.rule(opt.Gate, c.Threshold)
		c.Rows = append(c.Rows, row)
	}
	for k, key := range newKeys {
		if !slices.Contains(oldKeys, key) {
			c.unpaired(p.new[k], p.side, nil, p.new[k])
		}
	}
}

// noteFacts notes facts in words that differ between two results, such as what triggered them. Numbers may differ from one
// set-up to the next.
func (c *Comparison) noteFacts(old, new *Result, side int) {
	for _, p := range old.Facts {
		q, ok := lookup(new.Facts, p.Name)
		if _, words := p.Value.(string); !ok || !words || p.Text() == q.Text() {
			continue
		}
		note := fmt.Sprintf("between %s and %s differ the facts of %s: %s (%s, %s)", c.Old.Name, c.New[side].Name, old.Benchmark, p.Name, p.Text(), q.Text())
		if !slices.Contains(c.Notes, note) {
			c.Notes = append(c.Notes, note)
		}
	}
}

// unpaired lists what is not on both sides, or not measured on both. The side that does not have it is nil.
func (c *Comparison) unpaired(of *Result, side int, old, new *Result) {
	u := Unpaired{Benchmark: of.Benchmark, Params: list(of.Params), Side: side}
	var reasons []string
	look := func(r *Result, name, label string) {
		switch _, why := c.values(r); {
		case r == nil:
			reasons = append(reasons, label+" does not have it")
		case why != "":
			reasons = append(reasons, label+": "+why)
		case u.Measured == "":
			u.Measured = name
		}
	}
	look(old, "old", c.Old.Name)
	look(new, "new", c.New[side].Name)
	u.Reason = strings.Join(reasons, "; ")
	c.Unpaired = append(c.Unpaired, u)
}

// values are those of the metric, of the runs of r; or why there are none.
func (c *Comparison) values(r *Result) (values []float64, why string) {
	if r == nil {
		return nil, none
	}
	if why := unfit(r); why != "" {
		return nil, why
	}
	for _, run := range r.Runs {
		v, ok := c.value(run)
		switch {
		case !ok:
		case v <= 0: // of a net cost, as others are positive
			return nil, "a run's net cost is not above zero"
		default:
			values = append(values, v)
		}
	}
	if len(values) == 0 {
		if c.Metric == NetMetric {
			return nil, "no twin ran, so there is no net cost"
		}
		return nil, "no operation was counted"
	}
	return values, ""
}

func (c *Comparison) value(run *Run) (v float64, ok bool) {
	cost, ok := run.Cost()
	switch c.Metric {
	case RateMetric:
		rate, _ := run.Rate()
		return rate, ok
	case NetMetric:
		loop, twin := run.LoopCost()
		return cost - loop, ok && twin
	}
	return cost, ok
}

// row is that of two results, before p is corrected and there is a verdict. It is not ok where one was not measured.
func (c *Comparison) row(old, new *Result, side int) (row Row, ok bool) {
	a, whyOld := c.values(old)
	b, whyNew := c.values(new)
	if whyOld != "" || whyNew != "" {
		return Row{}, false
	}
	x, y := describe(a), describe(b)
	if x == nil || y == nil {
		return Row{}, false
	}
	row = Row{
		Benchmark: new.Benchmark, Params: list(new.Params), Producers: new.Producers, Side: side,
		Old: Center{x.Median, x.Relative(), x.N}, New: Center{y.Median, y.Relative(), y.N},
		Ratio: y.Median / x.Median,
	}
	if c.Exact {
		return row, true
	}
	if ratio, ok := stats.RatioOf(a, b); ok {
		row.Ratio, row.Interval = ratio.Center, &ratio
	}
	p := stats.MannWhitney(a, b)
	row.P = &p
	return row, true
}

// nothing says why there is no row.
func (c *Comparison) nothing(pairs []pairing) error {
	for _, u := range c.Unpaired {
		if !strings.Contains(u.Reason, "does not have it") {
			return fmt.Errorf("nothing was measured on both sides: %s: %s", strings.Join(append([]string{u.Benchmark}, paramTexts(u.Params)...), " "), u.Reason)
		}
	}
	for _, p := range pairs {
		if len(p.old) == 0 || len(p.new) == 0 {
			continue
		}
		p = p.byBenchmark()[0]
		if _, texts := constantly(p.old, p.new); len(texts) > 0 {
			return fmt.Errorf("%s and %s have no benchmark with the same parameters: they differ in %s: measure both alike, or use --force",
				c.Old.Name, c.New[p.side].Name, strings.Join(texts, ", "))
		}
		return fmt.Errorf("%s and %s have no benchmark with the same parameters: measure both alike", c.Old.Name, c.New[p.side].Name)
	}
	return fmt.Errorf("%s or %s holds no results: measure it again", c.Old.Name, c.New[0].Name)
}

func paramTexts(params []Param) []string {
	var texts []string
	for _, p := range params {
		texts = append(texts, p.Name+"="+bare(p))
	}
	return texts
}
