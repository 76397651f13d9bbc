package report

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"
)

// Direction says which verdicts fail a row of a comparison.
type Direction string

const (
	WorseOnly Direction = "worse" // only Worse
	AnyChange Direction = "any"   // Better as well, such as for instructions that must not change
)

// Gate says for single benchmarks what a comparison is to fail of. The first rule that matches a row holds; a row that none
// matches fails by the comparison's threshold when it is worse.
type Gate struct {
	Rules []Rule `json:"rules"`
}

// Rule is for the benchmarks that match it.
type Rule struct {
	Benchmark string         `json:"benchmark"` // a pattern like that of a file's name: "bpf-hashmap-*"
	Params    map[string]any `json:"params"`    // that must have these values; others may have any
	// Threshold is the share below which a difference does not matter; 0 for that of the comparison.
	Threshold float64   `json:"threshold"`
	Direction Direction `json:"direction"` // empty for WorseOnly
	// Information is set where a row is to be shown but never to fail.
	Information bool `json:"information"`
}

// ReadGate reads a gate: a JSON object with the list "rules". It reports all that is wrong with it. What it does not know
// is an error, as a misspelt threshold would let a regression pass.
func ReadGate(r io.Reader) (*Gate, error) {
	d := json.NewDecoder(r)
	d.DisallowUnknownFields()
	d.UseNumber()
	var g Gate
	if err := d.Decode(&g); err != nil {
		return nil, fmt.Errorf("read gate: %w", err)
	}
	if d.More() {
		return nil, errors.New("read gate: something follows its end: put all the rules into one list")
	}
	if len(g.Rules) == 0 {
		return nil, errors.New(`read gate: it has no rules: {"rules": [{"benchmark": "*", "threshold": 0.05}]}`)
	}
	var errs []error
	for i := range g.Rules {
		r := &g.Rules[i]
		bad := func(format string, args ...any) {
			errs = append(errs, fmt.Errorf("read gate: rule %d: "+format, append([]any{i + 1}, args...)...))
		}
		if _, err := path.Match(r.Benchmark, ""); err != nil || r.Benchmark == "" {
			bad("benchmark %q: must be a name or a pattern like bpf-*", r.Benchmark)
		}
		if r.Threshold < 0 || r.Threshold >= 1 {
			bad("threshold %v: must be a share below 1, such as 0.05 for 5 %%", r.Threshold)
		}
		switch r.Direction {
		case "":
			r.Direction = WorseOnly
		case WorseOnly, AnyChange:
		default:
			bad("direction %q: must be %q or %q", r.Direction, WorseOnly, AnyChange)
		}
		for name, v := range r.Params {
			switch v.(type) {
			case string, json.Number:
			default:
				bad("parameter %s: must be a number or a string", name)
			}
		}
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return &g, nil
}

func (r *Rule) matches(row *Row) bool {
	if ok, err := path.Match(r.Benchmark, row.Benchmark); !ok || err != nil {
		return false
	}
	for name, v := range r.Params {
		p, ok := lookup(row.Params, name)
		if want := fmt.Sprint(v); !ok || bare(p) != want {
			return false
		}
	}
	return true
}

// rule sets what holds for the row: the first rule of the gate that matches, or the comparison's threshold.
func (row *Row) rule(g *Gate, threshold float64) {
	row.Threshold, row.Direction = threshold, WorseOnly
	if g == nil {
		return
	}
	for i := range g.Rules {
		r := &g.Rules[i]
		if !r.matches(row) {
			continue
		}
		if r.Threshold > 0 {
			row.Threshold = r.Threshold
		}
		row.Direction, row.Information = r.Direction, r.Information
		return
	}
}

// unused says which rules match no row. The file may be for more than one comparison, so that this is no error.
func (g *Gate) unused(c *Comparison) []string {
	var notes []string
	for i := range g.Rules {
		r := &g.Rules[i]
		used := false
		for k := range c.Rows {
			used = used || r.matches(&c.Rows[k])
		}
		if !used {
			var params []string
			for name, v := range r.Params {
				params = append(params, fmt.Sprintf("%s=%v", name, v))
			}
			notes = append(notes, strings.Join(append([]string{fmt.Sprintf("rule %d of the gate matches no row: %s", i+1, r.Benchmark)}, slices.Sorted(slices.Values(params))...), " "))
		}
	}
	return notes
}
