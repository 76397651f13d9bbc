package report

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"bpfbench/report/stats"
)

// DefaultThreshold is the share below which a difference does not matter: 2 percent.
const DefaultThreshold = 0.02

// Metric is the number of a run that is compared.
type Metric string

const (
	RateMetric Metric = "rate" // total operations in 1e9 of the session's unit; more is better
	CostMetric Metric = "cost" // of an operation with its loop, in the session's unit; less is better
	NetMetric  Metric = "net"  // of an operation without its loop, as the twin has it; less is better
)

// CompareOptions say how two measurements are compared.
type CompareOptions struct {
	// Threshold is the share below which a difference does not matter; 0 stands for DefaultThreshold.
	Threshold float64
	// Metric is what is compared. Empty stands for the rate, and in exact mode, where there is no rate, for the cost.
	Metric Metric
	// Force compares what may not be comparable: machines that differ, and parameters that differ between old and new but
	// in neither of them. What differs is in the comparison's notes.
	Force bool
	Gate  *Gate // thresholds of single benchmarks, or nil
	// Old and New name the two sides, such as by their files; by default "old" and "new".
	Old, New string
}

// Verdict is what a comparison of two measurements comes to.
type Verdict string

const (
	Better       Verdict = "better"
	Worse        Verdict = "worse"
	Same         Verdict = "same" // the interval of the ratio is inside the threshold
	Inconclusive Verdict = "inconclusive"
)

// Comparison sets two or more measurements side by side.
type Comparison struct {
	Schema    int     `json:"schema"`
	Metric    Metric  `json:"metric"`
	Unit      string  `json:"unit"`            // of the centers, such as "events/s" or "ns/op"
	Exact     bool    `json:"exact,omitempty"` // instructions: compared without a test, as they repeat
	Threshold float64 `json:"threshold"`       // where a gate does not say otherwise
	Level     float64 `json:"level"`           // that a corrected p must reach
	Tests     int     `json:"tests"`           // rows that p is corrected over
	Old       Side    `json:"old"`
	New       []Side  `json:"new"` // one, or each kernel that is compared with the first
	Rows      []Row   `json:"rows"`
	// Unpaired are rows that cannot be compared: only one side has them, or measured them.
	Unpaired []Unpaired `json:"unpaired,omitempty"`
	Notes    []string   `json:"notes,omitempty"` // what else differs between the sides
}

// Side is one measurement.
type Side struct {
	Name string `json:"name"`
	Host Host   `json:"host"`
}

// Row compares one benchmark with one set of parameters.
type Row struct {
	Benchmark string  `json:"benchmark"`
	Params    []Param `json:"params"`
	Producers int     `json:"producers"`
	Side      int     `json:"side,omitempty"` // index into Comparison.New
	Old       Center  `json:"old"`
	New       Center  `json:"new"`
	// Ratio is new over old: the center of the interval, or without one the quotient of the centers.
	Ratio    float64         `json:"ratio"`
	Interval *stats.Interval `json:"interval,omitempty"` // nil in exact mode, and for fewer than 3 runs against 3
	// P is the probability of a difference like this between measurements of the same thing; nil in exact mode.
	P *float64 `json:"p,omitempty"`
	// AdjustedP is P corrected for the number of rows. The verdict goes by it.
	AdjustedP   *float64  `json:"adjusted_p,omitempty"`
	Threshold   float64   `json:"threshold"`
	Direction   Direction `json:"direction"`             // which verdict fails the row
	Information bool      `json:"information,omitempty"` // no verdict fails it
	Verdict     Verdict   `json:"verdict"`
	Reason      string    `json:"reason,omitempty"` // of an inconclusive verdict, with what to do about it
	Fails       bool      `json:"fails"`
}

// Center is the median of the runs' values of one side.
type Center struct {
	Median float64 `json:"median"` // in Comparison.Unit
	Spread float64 `json:"spread"` // standard deviation of the runs over their mean
	Runs   int     `json:"runs"`
}

// Unpaired is a benchmark with one set of parameters that was not measured on both sides.
type Unpaired struct {
	Benchmark string  `json:"benchmark"`
	Params    []Param `json:"params"`
	Side      int     `json:"side,omitempty"`     // index into Comparison.New
	Measured  string  `json:"measured,omitempty"` // the side that measured it: "old", "new", or neither
	Reason    string  `json:"reason"`
}

// Worse reports whether a row fails: by default because it is worse, or as its gate has it.
func (c *Comparison) Worse() bool {
	return slices.ContainsFunc(c.Rows, func(r Row) bool { return r.Fails })
}

// Missing reports whether the new side lacks what the old one measured.
func (c *Comparison) Missing() bool {
	return slices.ContainsFunc(c.Unpaired, func(u Unpaired) bool { return u.Measured == "old" })
}

// Compare compares each benchmark and set of parameters of two records. Records of several kernels each are compared
// kernel by kernel. It is an error, unless opt.Force is set, if the machines differ, or if no benchmark has the same
// parameters in both; and in any case if the units differ or nothing was measured that both have. Rows that only one of
// them has are listed.
func Compare(old, new *Record, opt CompareOptions) (*Comparison, error) {
	c, err := comparison(old, new, opt)
	if err != nil {
		return nil, err
	}
	pairs := []pairing{{old.Results, new.Results, 0, c.Old.Host}}
	c.New = []Side{side(new, 0, cmp.Or(opt.New, "new"))}
	switch n, m := len(old.Session.Hosts), len(new.Session.Hosts); {
	case n > 1 && m > 1:
		pairs = c.kernels(old, new)
	case n > 1 || m > 1:
		return nil, fmt.Errorf("compare: %s has %s and %s has %s: compare records of one kernel each, or the kernels of one record",
			c.Old.Name, count(n, "kernel"), c.New[0].Name, count(m, "kernel"))
	}
	return c.finish(pairs, opt)
}

// kernels pairs the kernels of two records by their names.
func (c *Comparison) kernels(old, new *Record) []pairing {
	var pairs []pairing
	c.New, c.Old.Host = nil, Host{}
	hosts := make(map[string]Host)
	for i, h := range old.Session.Hosts {
		hosts[kernelOf(old, &Result{Host: i})] = h
	}
	for i := range new.Session.Hosts {
		label := kernelOf(new, &Result{Host: i})
		pairs = append(pairs, pairing{ofKernel(old, label), ofKernel(new, label), len(c.New), hosts[label]})
		c.New = append(c.New, side(new, i, label))
		delete(hosts, label)
	}
	for i := range old.Session.Hosts { // what only old has is listed beside the first
		if label := kernelOf(old, &Result{Host: i}); hosts[label].Kernel != "" {
			pairs = append(pairs, pairing{ofKernel(old, label), nil, 0, hosts[label]})
		}
	}
	return pairs
}

// CompareHosts compares the other kernels of a record with its first, as Compare does with two records.
func CompareHosts(rec *Record, opt CompareOptions) (*Comparison, error) {
	if n := len(rec.Session.Hosts); n < 2 {
		return nil, fmt.Errorf("compare: the record has %s: measure several, or give two records", count(n, "kernel"))
	}
	c, err := comparison(rec, rec, opt)
	if err != nil {
		return nil, err
	}
	var pairs []pairing
	c.Old = side(rec, 0, kernelOf(rec, &Result{}))
	for i := 1; i < len(rec.Session.Hosts); i++ {
		label := kernelOf(rec, &Result{Host: i})
		pairs = append(pairs, pairing{ofKernel(rec, c.Old.Name), ofKernel(rec, label), len(c.New), c.Old.Host})
		c.New = append(c.New, side(rec, i, label))
	}
	return c.finish(pairs, opt)
}

// comparison is one that has no rows yet.
func comparison(old, new *Record, opt CompareOptions) (*Comparison, error) {
	c := &Comparison{
		Schema: Schema, Threshold: opt.Threshold, Metric: opt.Metric, Level: stats.Level,
		Old: side(old, 0, cmp.Or(opt.Old, "old")), Rows: []Row{},
	}
	if c.Threshold == 0 {
		c.Threshold = DefaultThreshold
	}
	if c.Threshold < 0 || c.Threshold >= 1 {
		return nil, fmt.Errorf("compare: threshold %v: must be a share above 0 and below 1, such as 0.02 for 2 %%", opt.Threshold)
	}
	unit := old.Session.Unit
	if unit != new.Session.Unit {
		return nil, fmt.Errorf("compare: %s is in %s and %s in %s: times and instructions cannot be compared",
			c.Old.Name, unit, cmp.Or(opt.New, "new"), new.Session.Unit)
	}
	c.Exact = unit == Instructions
	switch {
	case c.Metric == "" && c.Exact:
		c.Metric = CostMetric
	case c.Metric == "":
		c.Metric = RateMetric
	}
	switch c.Metric {
	case RateMetric:
		c.Unit = rateUnit(unit)
	case CostMetric, NetMetric:
		c.Unit = costUnit(unit)
	default:
		return nil, fmt.Errorf("compare: unknown metric %q: must be %s, %s or %s", c.Metric, RateMetric, CostMetric, NetMetric)
	}
	return c, nil
}

func side(rec *Record, host int, name string) Side {
	return Side{Name: name, Host: hostOf(rec, &Result{Host: host})}
}

func ofKernel(rec *Record, label string) []*Result {
	var of []*Result
	for _, r := range rec.Results {
		if kernelOf(rec, r) == label {
			of = append(of, r)
		}
	}
	return of
}

// finish compares the pairs and comes to the verdicts.
func (c *Comparison) finish(pairs []pairing, opt CompareOptions) (*Comparison, error) {
	var errs []error
	for _, p := range pairs {
		if len(p.old) > 0 && len(p.new) > 0 {
			errs = append(errs, c.machines(p.host, c.New[p.side], opt.Force))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return nil, fmt.Errorf("compare: %w", err)
	}
	for _, p := range pairs {
		for _, part := range p.byBenchmark() {
			c.pair(part, opt)
		}
	}
	if len(c.Rows) == 0 {
		return nil, fmt.Errorf("compare: %w", c.nothing(pairs))
	}
	c.judge()
	if opt.Gate != nil {
		c.Notes = append(c.Notes, opt.Gate.unused(c)...)
	}
	return c, nil
}

// machines notes what differs between the machine of old and that of s, and refuses what makes them unlike.
func (c *Comparison) machines(a Host, s Side, force bool) error {
	b := s.Host
	var unlike, notes []string
	differ := func(list *[]string, name, old, new string) {
		if old != new {
			*list = append(*list, fmt.Sprintf("%s (%s, %s)", name, cmp.Or(old, "none"), cmp.Or(new, "none")))
		}
	}
	differ(&unlike, "architecture", a.Arch, b.Arch)
	if a.CPUModel != "" && b.CPUModel != "" { // where one is not known there is nothing to say
		differ(&unlike, "CPU model", a.CPUModel, b.CPUModel)
	}
	differ(&unlike, "hypervisor", a.Hypervisor, b.Hypervisor)
	differ(&unlike, "accelerator", a.Accel, b.Accel)
	differ(&notes, "JIT", a.JIT, b.JIT)
	differ(&notes, "CPUs", strconv.Itoa(a.CPUs), strconv.Itoa(b.CPUs))
	differ(&notes, "clock source", a.ClockSource, b.ClockSource)
	differ(&notes, "governor", a.Governor, b.Governor)
	differ(&notes, "SMT", a.SMT, b.SMT)
	if len(unlike) > 0 && !force {
		return fmt.Errorf("%s and %s come from different machines: %s: measure both on one machine, or use --force",
			c.Old.Name, s.Name, strings.Join(unlike, ", "))
	}
	if all := append(unlike, notes...); len(all) > 0 {
		c.Notes = append(c.Notes, fmt.Sprintf("between %s and %s differ: %s", c.Old.Name, s.Name, strings.Join(all, ", ")))
	}
	return nil
}
