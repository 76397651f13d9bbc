package report

import (
	"bytes"
	"encoding/json"
	"io"
	"math/rand/v2"
	"strings"
	"testing"
	"unicode/utf8"
)

// noisy multiplies the elapsed times of each run of rec by a factor that scatters by sd.
func noisy(rec *Record, factor, sd float64, seed uint64) *Record {
	rng := rand.New(rand.NewPCG(seed, 1))
	for _, r := range rec.Results {
		for _, run := range r.Runs {
			f := factor * (1 + sd*rng.NormFloat64())
			for i := range run.Samples {
				run.Samples[i].Elapsed = uint64(float64(run.Samples[i].Elapsed) * f)
			}
		}
	}
	return rec
}

// TestKnownVerdicts has pairs of measurements whose verdicts are known.
func TestKnownVerdicts(t *testing.T) {
	steady := []float64{1, 1.001, 0.999, 1.002, 0.998, 1.0005}
	times := func(f float64, values []float64) []float64 {
		out := make([]float64, len(values))
		for i, v := range values {
			out[i] = f * v
		}
		return out
	}
	for _, tt := range []struct {
		name     string
		old, new []float64
		opt      CompareOptions
		want     Verdict
		reason   string
	}{
		// Two builds of one kernel: one of 16 pairs is in the other order, p = 0.0571.
		{name: "two groups of 4", old: []float64{1.329, 1.288, 1.329, 1.311}, new: []float64{1.274, 1.307, 1.279, 1.256}, want: Inconclusive, reason: "may be chance"},
		// The mean fell by 1.3 %, because of one run.
		{name: "one outlier", old: []float64{0.662, 0.684, 0.673, 0.680, 0.686}, new: []float64{0.673, 0.676, 0.683, 0.626, 0.683}, want: Inconclusive, reason: "may be chance"},
		{name: "a regression", old: steady, new: times(0.95, steady), want: Worse},
		{name: "a gain", old: steady, new: times(1.05, steady), want: Better},
		{name: "nothing", old: steady, new: steady, want: Same},
		{name: "a difference that does not matter", old: steady, new: times(0.99, steady), want: Same},
		{name: "unless it does", old: steady, new: times(0.99, steady), opt: CompareOptions{Threshold: 0.005}, want: Worse},
		{name: "at the threshold", old: steady, new: times(0.981, steady), want: Inconclusive, reason: "it differs, but perhaps by less than 2 %"},
		{name: "three runs", old: steady[:3], new: times(0.5, steady[:3]), want: Inconclusive, reason: "needs --runs 4"},
		{name: "one run", old: steady[:1], new: times(0.5, steady[:1]), want: Inconclusive, reason: "needs --runs 4"},
		{name: "four runs", old: steady[:4], new: times(0.5, steady[:4]), want: Worse},
		{name: "costs rise", old: steady, new: times(0.95, steady), opt: CompareOptions{Metric: CostMetric}, want: Worse},
		{name: "costs fall", old: steady, new: times(1.05, steady), opt: CompareOptions{Metric: CostMetric}, want: Better},
	} {
		c, err := Compare(ratesRecord(tt.old), ratesRecord(tt.new), tt.opt)
		must(t, err)
		r := c.Rows[0]
		if r.Verdict != tt.want || !strings.Contains(r.Reason, tt.reason) || tt.reason == "" && r.Reason != "" {
			t.Errorf("%s: %s: %s, want %s", tt.name, r.Verdict, r.Reason, tt.want)
		}
		if c.Worse() != (tt.want == Worse) || r.Fails != c.Worse() {
			t.Errorf("%s: fails: %v", tt.name, c.Worse())
		}
	}
}

// TestManyRows holds that p is corrected: what one row could say, a table of 24 with six runs each cannot.
func TestManyRows(t *testing.T) {
	same, slow := []float64{1, 1.03, 0.97, 1.01, 0.99, 1.02}, []float64{0.8, 0.83, 0.77, 0.81, 0.79, 0.82}
	for rows, want := range map[int]Verdict{1: Worse, 23: Worse, 24: Inconclusive} {
		var old, new [][]float64
		for range rows {
			old, new = append(old, same), append(new, same)
		}
		new[0] = slow
		c, err := Compare(ratesRecord(old...), ratesRecord(new...), CompareOptions{})
		must(t, err)
		if r := c.Rows[0]; r.Verdict != want || (want == Inconclusive) != (r.Reason == "needs --runs 7") || c.Tests != rows {
			t.Errorf("%d rows: %s: %s", rows, r.Verdict, r.Reason)
		}
	}
}

func TestCompareExact(t *testing.T) {
	rec := func(factor float64) *Record {
		rec := exact(aRecord(aResult(4096, 0, 1, 0)))
		for _, run := range rec.Results[0].Runs {
			for i := range run.Samples {
				run.Samples[i].Elapsed = uint64(float64(run.Samples[i].Elapsed) * factor)
			}
		}
		return rec
	}
	for factor, want := range map[float64]Verdict{1: Same, 1.019: Same, 1.021: Worse, 0.97: Better} {
		c, err := Compare(rec(1), rec(factor), CompareOptions{})
		must(t, err)
		r := c.Rows[0]
		if r.Verdict != want || r.P != nil || r.Interval != nil || c.Unit != "insn/op" || c.Tests != 0 {
			t.Errorf("%v: %s, want %s: %+v", factor, r.Verdict, want, r)
		}
	}
}

func TestCompareRefuses(t *testing.T) {
	one := func(change func(*Record)) *Record {
		rec := aRecord(aResult(4096, 19708000, 6, 1))
		change(rec)
		return rec
	}
	nothing := func(*Record) {}
	for want, pair := range map[string]struct {
		old, new *Record
		opt      CompareOptions
		forced   bool // that it works by force
	}{
		"different machines: CPU model (Example cpu 3950X 16-Core Processor, X): measure both on one machine, or use --force": {
			old: one(nothing), new: one(func(r *Record) { r.Session.Hosts[0].CPUModel = "X" }), forced: true},
		"hypervisor (kvm, none)":       {old: one(nothing), new: one(func(r *Record) { r.Session.Hosts[0].Hypervisor = "" }), forced: true},
		"architecture (x86_64, arm64)": {old: one(nothing), new: one(func(r *Record) { r.Session.Hosts[0].Arch = "arm64" }), forced: true},
		"accelerator (none, tcg)":      {old: one(nothing), new: one(func(r *Record) { r.Session.Hosts[0].Accel = "tcg" }), forced: true},
		"they differ in nr_loops (1000000, 5): measure both alike, or use --force": {
			old: one(nothing), new: one(func(r *Record) { r.Results[0].Params[3].Value = 5 }), forced: true},
		"they differ in trigger (test_run, none)": {
			old: one(nothing), new: one(func(r *Record) { r.Results[0].Params = r.Results[0].Params[:6] }), forced: true},
		"they differ in producers (1, 2)":          {old: one(nothing), new: aRecord(aResult(4096, 19708000, 6, 0, 1)), forced: true},
		"old is in ns and new in insn":             {old: one(nothing), new: exact(one(nothing))},
		"no benchmark with the same parameters":    {old: one(nothing), new: one(func(r *Record) { r.Results[0].Benchmark = "x" })},
		"new: skipped: no BPF":                     {old: one(nothing), new: one(func(r *Record) { ended(r.Results[0], Skipped, "no BPF") })},
		"old: no operation was counted":            {old: one(func(r *Record) { r.Results[0].Runs = nil }), new: one(nothing)},
		"holds no results":                         {old: aRecord(), new: one(nothing)},
		"old has 1 kernel and new has 2 kernels":   {old: one(nothing), new: one(func(r *Record) { r.Session.Hosts = append(r.Session.Hosts, Host{}) })},
		"no twin ran":                              {old: texts["no-twin"](), new: texts["no-twin"](), opt: CompareOptions{Metric: NetMetric}},
		"threshold 2: must be a share above 0":     {old: one(nothing), new: one(nothing), opt: CompareOptions{Threshold: 2}},
		"unknown metric \"x\": must be rate, cost": {old: one(nothing), new: one(nothing), opt: CompareOptions{Metric: "x"}},
	} {
		_, err := Compare(pair.old, pair.new, pair.opt)
		if err == nil || !strings.Contains(err.Error(), want) || !strings.HasPrefix(err.Error(), "compare: ") {
			t.Errorf("%v, want %s", err, want)
		}
		pair.opt.Force = true
		c, err := Compare(pair.old, pair.new, pair.opt)
		if (err == nil) != pair.forced || err == nil && (len(c.Rows) != 1 || len(c.Notes) != 1) {
			t.Errorf("by force: %+v, %v, want %s", c, err, want)
		}
	}
	if _, err := CompareHosts(one(nothing), CompareOptions{}); err == nil || !strings.Contains(err.Error(), "the record has 1 kernel: measure several") {
		t.Error(err)
	}
}

// TestCompareKernels compares two records of two kernels each, of which one is the same.
func TestCompareKernels(t *testing.T) {
	record := func(kernels ...string) *Record {
		var results []*Result
		for i := range kernels {
			r := aResult(4096, 19708000, 6, 0)
			r.Host = i
			results = append(results, r)
		}
		rec := aRecord(results...)
		rec.Session.Hosts = nil
		for _, k := range kernels {
			rec.Session.Hosts = append(rec.Session.Hosts, Host{Kernel: k, Arch: "x86_64"})
		}
		return rec
	}
	c, err := Compare(record("6.1", "6.12"), record("7.3", "6.12"), CompareOptions{})
	must(t, err)
	if len(c.Rows) != 1 || c.New[c.Rows[0].Side].Name != "6.12" || len(c.Unpaired) != 2 || !c.Missing() {
		t.Errorf("%+v", c)
	}
	c, err = CompareHosts(record("6.12", "6.12", "7.3"), CompareOptions{})
	must(t, err)
	if c.Old.Name != "6.12 #1" || c.New[0].Name != "6.12 #2" || c.New[1].Name != "7.3" || len(c.Rows) != 2 || c.Rows[1].Side != 1 || c.Missing() {
		t.Errorf("%+v", c)
	}
}

// comparisons are golden files.
var comparisons = map[string]func() (*Comparison, error){
	"worse": func() (*Comparison, error) {
		return Compare(noisy(aSweep(1), 1, 0.003, 1), noisy(aSweep(1), 1.05, 0.003, 2), CompareOptions{Old: "a.json", New: "b.json"})
	},
	"unpaired": func() (*Comparison, error) {
		return Compare(noisy(aSweep(1), 1, 0.02, 1), noisy(texts["table-ends"](), 1, 0.02, 2), CompareOptions{})
	},
	"kernels": func() (*Comparison, error) { return CompareHosts(texts["table-kernels"](), CompareOptions{}) },
	"net": func() (*Comparison, error) {
		return Compare(texts["table-benchmarks"](), noisy(texts["table-benchmarks"](), 1.1, 0.001, 3), CompareOptions{Metric: NetMetric})
	},
	"forced": func() (*Comparison, error) {
		other := aSweep(1)
		other.Session.Hosts[0].CPUModel, other.Session.Hosts[0].JIT = "Another cpu", "off"
		for _, r := range other.Results {
			r.Params[3].Value = 2000000
		}
		return Compare(aSweep(1), other, CompareOptions{Force: true})
	},
	"gated": func() (*Comparison, error) {
		g, err := ReadGate(strings.NewReader(`{"rules": [
			{"benchmark": "bpf-*", "params": {"nr_entries": 4096}, "threshold": 0.1},
			{"benchmark": "bpf-*", "params": {"nr_entries": "16384"}, "information": true},
			{"benchmark": "bpf-hashmap-lookup", "params": {"nr_entries": 65536}, "direction": "any"},
			{"benchmark": "nothing"}]}`))
		if err != nil {
			return nil, err
		}
		old, new := noisy(aSweep(1), 1, 0.003, 1), noisy(aSweep(1), 1.05, 0.003, 2)
		noisy(&Record{Results: new.Results[3:]}, 0.9, 0.003, 3)
		return Compare(old, new, CompareOptions{Gate: g})
	},
	"wide": func() (*Comparison, error) {
		rec := func() *Record {
			rec := texts["table-wide"]()
			for i, r := range rec.Results {
				r.Benchmark = []string{"fetcharg-kprobe", "fetcharg-fprobe"}[i%2]
				r.Params[4].Value = "+0(+8(%di)):u64"[i:]
			}
			return rec
		}
		return Compare(rec(), noisy(rec(), 1, 0.01, 5), CompareOptions{})
	},
}

func TestComparisons(t *testing.T) {
	for name, make := range comparisons {
		c, err := make()
		must(t, err)
		var text, md, js bytes.Buffer
		must(t, c.WriteText(&text))
		must(t, c.WriteMarkdown(&md))
		must(t, c.WriteJSON(&js))
		golden(t, "compare-"+name+".txt", text.Bytes())
		if name == "worse" || name == "kernels" {
			golden(t, "compare-"+name+".md", md.Bytes())
			golden(t, "compare-"+name+".json", js.Bytes())
		}
		for line := range strings.Lines(text.String()) {
			line = strings.TrimSuffix(line, "\n")
			if utf8.RuneCountInString(line) > columns || strings.TrimRight(line, " ") != line {
				t.Errorf("%s: %q", name, line)
			}
		}
		var back Comparison
		must(t, json.Unmarshal(js.Bytes(), &back))
		var again bytes.Buffer
		if err := back.WriteText(&again); err != nil || again.String() != text.String() {
			t.Errorf("%s: read back:\n%s", name, &again)
		}
		for n := range 2 {
			for _, write := range []func(io.Writer) error{c.WriteText, c.WriteMarkdown, c.WriteJSON} {
				if err := write(&failing{n}); (err == nil) != (n > 0) {
					t.Errorf("%s: %v", name, err)
				}
			}
		}
	}
}

func TestGate(t *testing.T) {
	c, err := comparisons["gated"]()
	must(t, err)
	for i, want := range []struct {
		verdict Verdict
		fails   bool
	}{{Same, false}, {Worse, false}, {Worse, true}, {Better, true}} {
		if r := c.Rows[i]; r.Verdict != want.verdict || r.Fails != want.fails {
			t.Errorf("%s: %s, fails: %v", paramTexts(r.Params), r.Verdict, r.Fails)
		}
	}
	if want := "rule 4 of the gate matches no row: nothing"; len(c.Notes) != 1 || c.Notes[0] != want {
		t.Errorf("%q", c.Notes)
	}
}

func TestReadGateRefuses(t *testing.T) {
	for in, want := range map[string]string{
		``:                                 "read gate: EOF",
		`{}`:                               "it has no rules",
		`{"rules": [{"benchmark": ""}]}`:   `rule 1: benchmark "": must be a name or a pattern`,
		`{"rules": [{"benchmark": "[a"}]}`: `benchmark "[a"`,
		`{"rules": [{"benchmark": "*", "treshold": 0.1}]}`:                                                               `unknown field "treshold"`,
		`{"rules": [{"benchmark": "*", "threshold": 5}]}`:                                                                "threshold 5: must be a share below 1, such as 0.05 for 5 %",
		`{"rules": [{"benchmark": "*", "direction": "up"}]}`:                                                             `direction "up": must be "worse" or "any"`,
		`{"rules": [{"benchmark": "*", "params": {"a": []}}]}`:                                                           "parameter a: must be a number or a string",
		`{"rules": [{"benchmark": "*"}]} {}`:                                                                             "something follows its end",
		`{"rules": [{"benchmark": "*", "threshold": -1}, {"benchmark": "*"}, {"benchmark": "*", "direction": "worst"}]}`: "rule 3: direction",
	} {
		g, err := ReadGate(strings.NewReader(in))
		if err == nil || g != nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", in, err, want)
		}
	}
	if _, err := ReadGate(strings.NewReader(`{"rules": [{"benchmark": "*", "threshold": -1}, {"benchmark": "*", "direction": "x"}]}`)); strings.Count(err.Error(), "rule") != 2 {
		t.Errorf("not all that is wrong: %v", err)
	}
}

func FuzzReadGate(f *testing.F) {
	f.Add([]byte(`{"rules": [{"benchmark": "bpf-*", "params": {"nr_entries": 4096}, "threshold": 0.1, "direction": "any", "information": true}]}`))
	rec := aSweep(1)
	f.Fuzz(func(t *testing.T, in []byte) {
		g, err := ReadGate(bytes.NewReader(in))
		if err != nil {
			return
		}
		c, err := Compare(rec, rec, CompareOptions{Gate: g})
		must(t, err)
		must(t, c.WriteText(io.Discard))
	})
}

// TestCompareFacts holds that a comparison of what was triggered in another way says so, once, and gauges do not disturb it.
func TestCompareFacts(t *testing.T) {
	side := func(trigger string, size int) *Record {
		rec := aRecord(aForm(FormMemory, 6, Gauge{GaugeMemoryPeak, float64(size), "B"}), aForm(FormMemory, 6))
		for _, r := range rec.Results {
			r.SetFacts(Param{Name: "triggered_by", Value: trigger}, Param{Name: "size", Value: size})
		}
		return rec
	}
	c, err := Compare(side("tracepoint", 1), side("fentry", 2), CompareOptions{})
	must(t, err)
	want := "between old and new differ the facts of bpf-memory: triggered_by (tracepoint, fentry)"
	if len(c.Notes) != 1 || c.Notes[0] != want || len(c.Rows) != 2 || c.Rows[0].Verdict != Same {
		t.Errorf("%q, %+v", c.Notes, c.Rows)
	}
}
