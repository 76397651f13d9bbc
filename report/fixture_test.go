package report

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// golden compares got with a file of testdata.
func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), string(got)); d != "" {
		t.Errorf("%s (-update rewrites it):\n%s", path, d)
	}
}

// write plays the session of rec to a writer: the results without runs, the runs round by round, the end.
func write(t testing.TB, rec *Record, to func(*bytes.Buffer) Writer) []byte {
	t.Helper()
	var b bytes.Buffer
	w := to(&b)
	live := *rec
	live.Results = make([]*Result, len(rec.Results))
	rounds := 0
	for i, r := range rec.Results {
		c := *r
		c.Runs, c.Status, c.Reason, c.Warnings = nil, "", "", nil
		live.Results[i] = &c
		rounds = max(rounds, len(r.Runs))
	}
	must(t, w.Begin(&live))
	for round := range rounds {
		for i, r := range rec.Results {
			if round < len(r.Runs) {
				live.Results[i].Runs = append(live.Results[i].Runs, r.Runs[round])
				must(t, w.Run(&live, i))
			}
		}
	}
	for i, r := range rec.Results {
		c := *live.Results[i]
		c.Status, c.Reason, c.Warnings = r.Status, r.Reason, r.Warnings
		live.Results[i] = &c
	}
	must(t, w.End(&live))
	return b.Bytes()
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func toText(b *bytes.Buffer) Writer  { return NewText(b, TextOptions{}) }
func toQuiet(b *bytes.Buffer) Writer { return NewText(b, TextOptions{Quiet: true}) }
func toJSON(b *bytes.Buffer) Writer  { return NewJSON(b) }
func toJSONL(b *bytes.Buffer) Writer { return NewJSONL(b) }

// aRecord is of a session with the results given. The model's name has letters that may not come through.
func aRecord(results ...*Result) *Record {
	return &Record{
		Schema: Schema,
		Session: Session{
			Tool:  "v0.1.0",
			Args:  []string{"-d2", "-a", "bpf-hashmap-lookup", "--key_size=4"},
			Unit:  Nanoseconds,
			Start: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC),
			Plan:  Plan{Duration: 2e9, Warmup: 1e9, Runs: 6, Seed: 1},
			Hosts: []Host{{
				Kernel: "6.12.117", Arch: "x86_64", CPUModel: "Example cpu 3950X 16-Core Processor", CPUs: 2,
				Hypervisor: "kvm", JIT: "always on",
			}},
		},
		Results: results,
	}
}

// aResult is a lookup benchmark with runs whose samples take elapsed or somewhat more, on each of the CPUs given.
func aResult(entries int, elapsed uint64, runs int, cpus ...int) *Result {
	r := &Result{
		Benchmark: "bpf-hashmap-lookup",
		Op:        "lookup",
		Params: []Param{
			{Name: "key_size", Value: 4},
			{Name: "max_entries", Value: 65536},
			{Name: "nr_entries", Value: entries},
			{Name: "nr_loops", Value: 1000000},
			{Name: "map_flags", Value: "0x40", Note: "zero_seed"},
			{Name: "value_size", Value: 8},
			{Name: "trigger", Value: "test_run"},
		},
		Facts:     []Param{{Name: "full", Value: entries * 100 / 65536, Unit: "%"}},
		Producers: len(cpus),
		Pinned:    true,
		Status:    OK,
	}
	ops := uint64(1000000 / entries * entries)
	for round := range runs {
		run := &Run{Round: round, Setup: 12e6}
		for i := range 3 {
			for w, cpu := range cpus {
				jitter := uint64(1000 * (4*round + 2*i*i + 7*w))
				run.Samples = append(run.Samples, Sample{Worker: w, CPU: cpu, Start: uint64(i) * 2e7, Elapsed: elapsed + jitter, Ops: ops})
				run.Twin = append(run.Twin, Sample{Worker: w, CPU: cpu, Start: uint64(i) * 2e7, Elapsed: elapsed/4 + jitter/8, Ops: ops})
			}
		}
		r.Runs = append(r.Runs, run)
	}
	return r
}

// ended is r with a status and a reason.
func ended(r *Result, s Status, reason string) *Result {
	r.Status, r.Reason = s, reason
	return r
}

// exact turns rec into one of the exact mode, of one CPU.
func exact(rec *Record) *Record {
	rec.Session.Unit = Instructions
	rec.Session.Start = time.Time{}
	if h := rec.Session.Hosts; len(h) == 1 {
		h[0] = Host{Kernel: "6.12.117", Arch: "x86_64", CPUModel: "QEMU TCG CPU version 2.5+", CPUs: 1, Accel: "tcg"}
	}
	for _, r := range rec.Results {
		for _, run := range r.Runs {
			for i := range run.Samples {
				run.Samples[i].Elapsed = run.Samples[i].Ops * 1673 / 10
			}
			for i := range run.Twin {
				run.Twin[i].Elapsed = run.Twin[i].Ops * 22
			}
		}
	}
	return rec
}

// aSweep is of four fill ratios on the CPUs given.
func aSweep(cpus ...int) *Record {
	var results []*Result
	for _, n := range []int{4096, 16384, 49152, 65536} {
		r := aResult(n, 19708000+uint64(n)*200, 6, cpus...)
		r.Varied = []string{"nr_entries"}
		results = append(results, r)
	}
	return aRecord(results...)
}
