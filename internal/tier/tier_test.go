package main

import (
	"errors"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// suiteOf makes a suite of events: "run Test", "pass Test", "fail" and the like. What follows a colon is output.
func suiteOf(pkg string, events ...string) *suite {
	s := newSuite(pkg)
	for _, text := range events {
		what, output, isOutput := strings.Cut(text, ": ")
		action, name, _ := strings.Cut(what, " ")
		e := event{Action: action, Test: name}
		if isOutput {
			e = event{Action: "output", Test: what, Output: output + "\n"}
		}
		s.take(e)
	}
	return s
}

func TestCount(t *testing.T) {
	for name, c := range map[string]struct {
		suite *suite
		want  counts
	}{
		"all":       {suiteOf("p", "run A", "run A/b", "pass A/b", "pass A", "run B", "skip B", "run C", "fail C", "fail"), counts{2, 1, 1}},
		"not ended": {suiteOf("p", "run A", "pass A", "run B", "fail"), counts{1, 1, 0}},
		"package":   {suiteOf("p", "run A", "pass A", "fail"), counts{1, 1, 0}},
		"nothing":   {suiteOf("p", "pass"), counts{}},
		"problem":   {&suite{problems: []string{"the guest is gone"}}, counts{0, 1, 0}},
	} {
		if got := c.suite.count(); got != c.want || c.suite.ok() != (c.want.failed == 0) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

func TestReason(t *testing.T) {
	for output, want := range map[string]string{
		"=== RUN   A\n    a_test.go:12: why\n--- SKIP: A (0.00s)\n":                                      "why",
		"=== RUN   A\n    a_test.go:12: other\n    a_test.go:14: why\n        not\n--- SKIP: A (0.0s)\n": "why not",
		"=== RUN   A/b\n    x.go:1: a.go:2: why\n    --- SKIP: A/b (0.00s)\n":                            "a.go:2: why",
		"--- SKIP: A (0.00s)\n": "no reason is given",
		"":                      "no reason is given",
	} {
		got := new(test)
		got.output.WriteString(output)
		if got.reason() != want {
			t.Errorf("%q: %q, want %q", output, got.reason(), want)
		}
	}
}

func TestReport(t *testing.T) {
	var out strings.Builder
	r := &report{w: &out}
	host := r.place("host")
	r.ended(host, suiteOf("m/good", "run A", "A:     a_test.go:1: too old", "skip A", "run B", "B:     a_test.go:2: too old", "skip B", "pass"))
	bad := suiteOf("m/bad", "run A", "A: === RUN   A", "A:     a_test.go:9: wrong", "A: --- FAIL: A (0.00s)", "fail A", "run C", "C: stack", "fail")
	bad.elapsed, bad.problems = 1500*time.Millisecond, []string{"exit status 2"}
	r.ended(host, bad)
	guest := r.place("6.12.9-amd64")
	r.problem(guest, "the guest died\nits console")
	r.leaveOut("race", errors.New("no compiler"))
	r.phases = []string{"host 2 s"}
	if r.finish() {
		t.Error("all is well")
	}
	want := `ok  	m/good	host	0.000s
    a_test.go:9: wrong
--- FAIL: A (0.00s)
--- FAIL: C: it has not come to its end
stack
host: m/bad: exit status 2
FAIL	m/bad	host	1.500s
FAIL	6.12.9-amd64: the guest died
its console

time: host 2 s
    skipped: too old (A, B)
    failed: m/bad: A, C
    failed: m/bad: exit status 2
host: 0 passed, 2 failed, 2 skipped
    failed: the guest died
6.12.9-amd64: 0 passed, 1 failed, 0 skipped
race: left out: no compiler
0 passed, 3 failed, 2 skipped
`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Error(diff)
	}
}

func TestFinish(t *testing.T) {
	good := suiteOf("p", "run A", "pass A", "pass")
	for name, c := range map[string]struct {
		suites  []*suite
		leftOut bool
		strict  bool
		want    bool
	}{
		"good":            {[]*suite{good}, false, true, true},
		"left out":        {[]*suite{good}, true, false, true},
		"left out, in CI": {[]*suite{good}, true, true, false},
		"nothing":         {nil, false, false, false},
		"bad":             {[]*suite{good, suiteOf("q", "fail")}, false, false, false},
	} {
		r := &report{w: new(strings.Builder), strict: c.strict, places: []*place{{name: "host", suites: c.suites}}}
		if c.leftOut {
			r.leaveOut("guests", errors.New("no kernel"))
		}
		if got := r.finish(); got != c.want {
			t.Errorf("%s: all is well: %v", name, got)
		}
	}
}

// TestDemands: what must run and does not is named.
func TestDemands(t *testing.T) {
	p := &place{suites: []*suite{
		suiteOf(kernelPackage, "run TestHooks/a", "pass TestHooks/a", "run TestHooks/b", "TestHooks/b:     h_test.go:1: not here", "skip TestHooks/b", "pass"),
	}}
	got := unmet([]demand{
		{kernelPackage, "TestHooks/a", "6.1"},
		{kernelPackage, "TestHooks/b", "6.1"},
		{kernelPackage, "TestHooks/b", "6.12"},
		{kernelPackage, "TestHooks/impossible", "6.1"},
		{suitePackage, "TestElsewhere", "6.1"},
	}, "6.8.1-amd64", p)
	want := []string{
		kernelPackage + " TestHooks/b was skipped, but must pass on this kernel: not here",
		kernelPackage + " TestHooks/impossible did not run, but must pass on this kernel",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestOlder(t *testing.T) {
	for _, c := range []struct {
		release, version string
		want             bool
	}{
		{"6.1.0-50-cloud-amd64", "6.12", true},
		{"6.12.117+deb13-cloud-amd64", "6.12", false},
		{"6.12-rc1", "6.12", false},
		{"5.15", "6.1", true},
		{"7.3.4+deb13-cloud-amd64", "6.12", false},
		{"7.3.4", "", false},
		{"bzImage", "6.1", false},
	} {
		if got := older(c.release, c.version); got != c.want {
			t.Errorf("%s is older than %s: %v", c.release, c.version, got)
		}
	}
}

// TestDemandsDocumented: the page on testing lists what must run.
func TestDemandsDocumented(t *testing.T) {
	page, err := os.ReadFile("../../docs/testing.md")
	if err != nil {
		t.Skip("the page is not there: ", err)
	}
	for _, d := range demands {
		row := "(?m)^\\| `" + regexp.QuoteMeta(strings.TrimPrefix(d.test, "TestHooks/")) + "` \\|.*\\| " + regexp.QuoteMeta(d.since) + ` \|$`
		if top, _, isPart := strings.Cut(d.test, "/"); isPart && d.pkg != kernelPackage { // one row for all parts
			row = "(?m)^\\| `" + top + "` \\|"
		}
		if !regexp.MustCompile(row).Match(page) {
			t.Errorf("docs/testing.md has no row for %s from %s", d.test, d.since)
		}
	}
}

func TestMustRun(t *testing.T) {
	for _, c := range []struct {
		benchmark, release string
		want               bool
	}{
		{"bpf-loop", "6.1.0-50", true}, {"bpf-for", "6.1.0-50", false}, {"bpf-for", "6.12.1", true},
		{"trig-uprobe-multi-nop10", "6.12.1", false}, {"trig-uprobe-multi-nop10", "7.3.4", true}, {"trig-usdt-nop10", "6.1.0-50", true},
		{"local-storage-tasks-trace", "6.1.0-50", true}, {"local-storage-tasks-trace", "7.3.4", false},
	} {
		if got := mustRun(c.benchmark, c.release); got != c.want {
			t.Errorf("%s must run on %s: %v", c.benchmark, c.release, got)
		}
	}
}

// TestUnmetBenchmark: a benchmark that is skipped where it must run is named.
func TestUnmetBenchmark(t *testing.T) {
	s := newSuite(suitePackage)
	for _, name := range []string{"bpf-loop", "bpf-for"} {
		s.take(event{Action: "skip", Test: everyBenchmark + name})
	}
	missing := unmet(nil, "6.1.0-50-cloud-amd64", &place{suites: []*suite{s}})
	if len(missing) != 1 || !strings.Contains(missing[0], "bpf-loop") {
		t.Errorf("%q, want one of bpf-loop", missing)
	}
}

func TestIsTest(t *testing.T) {
	for name, want := range map[string]bool{"TestX": true, "Test": true, "Test1": true, "Testing": false, "TestMain": false, "Benchmark": false} {
		if got := isTest(name, "Test"); got != want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestParse(t *testing.T) {
	for args, want := range map[string]string{
		"-stages host,gests": `-stages=host,gests: there is no stage "gests": must be of host,nobody,race,guests,cpus`,
		"-timeout 5":         "invalid value",
	} {
		r := &tier{out: &report{}}
		if err := r.parse(strings.Fields(args)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", args, err)
		}
	}
}
