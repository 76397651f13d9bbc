package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"bpfbench/report"
)

// stored writes a record whose runs have these costs, in ns an operation, and returns its file.
func stored(t *testing.T, machine string, costs ...uint64) string {
	t.Helper()
	rec := &report.Record{Schema: report.Schema, Session: report.Session{Unit: report.Nanoseconds, Plan: report.Plan{Runs: len(costs)},
		Hosts: []report.Host{{Kernel: "6.12", Arch: "x86_64", CPUModel: machine, CPUs: 2}}}}
	r := &report.Result{Benchmark: "noop", Op: "noop", Producers: 1, Status: report.OK}
	for i, c := range costs {
		r.Runs = append(r.Runs, &report.Run{Round: i, Samples: []report.Sample{{Ops: 1e6, Elapsed: c * 1e3}}})
	}
	rec.Results = []*report.Result{r}
	path := filepath.Join(t.TempDir(), "record.json")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	w := report.NewJSON(f)
	if err := w.End(rec); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestCompare(t *testing.T) {
	old := stored(t, "a", 20000, 20010, 20020, 20030, 20040, 20050)
	same := stored(t, "a", 20005, 20015, 20025, 20035, 20045, 20055)
	worse := stored(t, "a", 22000, 22010, 22020, 22030, 22040, 22050)
	other := stored(t, "b", 20000, 20010, 20020, 20030, 20040, 20050)
	plotted := filepath.Join(t.TempDir(), "plot.svg")
	for _, tt := range []struct {
		args   []string
		status int
		want   string
	}{
		{[]string{old, same}, exitDone, "same"},
		{[]string{old, worse}, exitWorse, "worse"},
		{[]string{worse, old}, exitDone, "better"},
		{[]string{old, worse, "--threshold=20"}, exitDone, "same"},
		{[]string{old, worse, "--format=json", "--plot", plotted}, exitWorse, `"verdict": "worse"`},
		{[]string{old, other}, exitFailed, "--force"},
		{[]string{old, other, "--force"}, exitDone, "same"},
		{[]string{old, "/nonesuch"}, exitFailed, "no such file"},
		{[]string{old}, exitFailed, "kernel"},
		{nil, exitUsage, "name two files"},
		{[]string{old, same, "--threshold=0"}, exitUsage, "--threshold=0: must be above 0"},
		{[]string{old, same, "--metric=x"}, exitUsage, "--metric=x"},
		{[]string{old, same, "--format=x"}, exitUsage, "--format=x"},
		{[]string{old, same, "--gate=/nonesuch"}, exitUsage, "--gate=/nonesuch"},
		{[]string{old, same, "--plot=x.gif"}, exitUsage, "x.gif"},
	} {
		stdout, stderr, status := bench(t, append([]string{"compare"}, tt.args...)...)
		if status != tt.status || !strings.Contains(stdout+stderr, tt.want) {
			t.Errorf("compare %q: exit status %d, %q, %q; want %d and %q", tt.args, status, stdout, stderr, tt.status, tt.want)
		}
	}
	if data, err := os.ReadFile(plotted); err != nil || !strings.Contains(string(data), "<svg") {
		t.Errorf("the plot: %.50q, %v", data, err)
	}
}

func TestReport(t *testing.T) {
	file := filepath.Join(t.TempDir(), "out.jsonl")
	if _, stderr, status := bench(t, quick("-o", file, "--sweep=nr_loops=1e6,2e6")...); status != exitDone {
		t.Fatalf("exit status %d, %q", status, stderr)
	}
	for format, want := range map[string]string{"text": "2000000", "json": `"summary"`, "jsonl": `"type":"end"`, "csv": "noop,", "go": "BenchmarkNoop/", "markdown": "| 2000000 |"} {
		stdout, stderr, status := bench(t, "report", file, "--format", format)
		if status != exitDone || !strings.Contains(stdout, want) {
			t.Errorf("as %s: exit status %d, %q, %q; want %q", format, status, stdout, stderr, want)
		}
	}
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	was, err := report.Read(strings.NewReader(string(data)))
	if err != nil {
		t.Fatal(err)
	}
	lines, _, _ := bench(t, "report", file, "--format", "jsonl")
	if is, err := report.Read(strings.NewReader(lines)); err != nil || !reflect.DeepEqual(was, is) {
		t.Errorf("a record of JSON lines becomes another, %v", err)
	}
	cut := filepath.Join(t.TempDir(), "cut.jsonl")
	if err := os.WriteFile(cut, data[:len(data)*2/3], 0o666); err != nil {
		t.Fatal(err)
	}
	if stdout, stderr, status := bench(t, "report", cut); status != exitFailed || !strings.Contains(stdout, "interrupted") || !strings.Contains(stderr, "breaks off") {
		t.Errorf("a file that breaks off: exit status %d, %q, %q", status, stdout, stderr)
	}
	if _, stderr, status := bench(t, "report"); status != exitUsage || !strings.Contains(stderr, "name a file") {
		t.Errorf("no file: exit status %d, %q", status, stderr)
	}
	plotted := filepath.Join(t.TempDir(), "plot.png")
	if _, stderr, status := bench(t, "report", file, "--plot", plotted); status != exitDone {
		t.Errorf("a plot: exit status %d, %q", status, stderr)
	}
	if info, err := os.Stat(plotted); err != nil || info.Size() < 1000 {
		t.Errorf("the plot: %v, %v", info, err)
	}
}

func TestDoctor(t *testing.T) {
	stdout, stderr, status := bench(t, "doctor", "--format=json")
	var d diagnosis
	if err := json.Unmarshal([]byte(stdout), &d); err != nil || status != exitDone || len(d.Benchmarks) < 2 || len(d.Hooks) < 10 || d.Host.Kernel == "" {
		t.Errorf("exit status %d, %q, %q, %v", status, stdout, stderr, err)
	}
	for _, f := range d.Hooks {
		if (f.Outcome == "there") != (f.Reason == "") {
			t.Errorf("a finding is not complete: %+v", f)
		}
	}
	stdout, _, status = bench(t, "doctor")
	if status != exitDone || !strings.Contains(stdout, "noop                 there") || !strings.Contains(stdout, "What would disturb measuring:") {
		t.Errorf("exit status %d, %q", status, stdout)
	}
	for line := range strings.Lines(stdout) {
		if len([]rune(strings.TrimRight(line, "\n"))) > width {
			t.Errorf("a line is wider than %d columns: %q", width, line)
		}
	}
	if _, _, status := bench(t, "doctor", "--format=x"); status != exitUsage {
		t.Errorf("a format that there is not: exit status %d", status)
	}
}
