package suite

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"bpfbench/bench/harness"
	"bpfbench/internal/testutils"
	"bpfbench/producers"
	"bpfbench/report"
)

// Only TestTrigAll attaches to more functions than that.
func init() { mostTraced = fewTraced }

const fewTraced = 100

func TestTrigResolve(t *testing.T) {
	for _, tt := range []struct{ name, settings, want string }{
		{"kprobe", "--trig-batch-iters=0", "--trig-batch-iters=0: must be from 1 to 1000"},
		{"kernel-count", "--trig-batch-iters=1001", "--trig-batch-iters=1001: must be from 1 to 1000"},
		{"kprobe", "--trig-batch-iters=1K", "--trig-batch-iters=1024: must be"},
		{"kprobe", "-s", ""},
		{"kernel-count", "--trig-batch-iters=1000", ""},
	} {
		_, _, err := config(t, "trig-"+tt.name, tt.settings)
		if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
			t.Errorf("%s %s: error %v, want %q in it", tt.name, tt.settings, err, tt.want)
		}
	}
}

// Every program counts each call of its driver, whatever the calls of a test_run, with and without a stack; samples are whole
// test_runs.
func TestTrig(t *testing.T) {
	testutils.NeedsBPF(t)
	for _, k := range trigKinds {
		for _, settings := range []string{"--trig-batch-iters=1", "--trig-batch-iters=1000", "-s"} {
			if settings == "-s" && k.program == "" || settings != "-s" && testing.Short() {
				continue
			}
			t.Run(k.name+"/"+settings, func(t *testing.T) {
				testutils.NoLeaks(t)
				r, p := triggered(t, k.name, settings)
				s, twin := batch(t, p.Batch), batch(t, p.Twin)
				if s.Ops == 0 || s.Ops%r.cfg.iters != 0 || twin.Ops == 0 || twin.Ops%r.cfg.iters != 0 {
					t.Errorf("%d calls and %d of the twin, in test_runs of %d", s.Ops, twin.Ops, r.cfg.iters)
				}
				if err := r.check(nil); err != nil {
					t.Error(err)
				}
				calls := r.calls[0].ops.Add(1)
				if err := r.check(nil); err == nil || !strings.Contains(err.Error(), fmt.Sprint(calls-1)) || !strings.Contains(err.Error(), fmt.Sprint(calls)) {
					t.Errorf("a call without a hit: %v", err)
				}
			})
		}
	}
}

func batch(t *testing.T, do func() (report.Sample, error)) report.Sample {
	t.Helper()
	s, err := do()
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// triggered sets up a benchmark of triggers with one producer.
func triggered(t *testing.T, name string, settings ...string) (*trigRun, harness.Producer) {
	t.Helper()
	testutils.Exclusive(t)
	b, cfg, err := config(t, "trig-"+name, settings...)
	if err != nil {
		t.Fatal(err)
	}
	for _, needs := range b.Requires {
		testutils.Needs(t, needs())
	}
	r := &trigRun{cfg: cfg.(*trigConfig), calls: make(tally, 1)}
	t.Cleanup(func() {
		if err := r.close(); err != nil {
			t.Error(err)
		}
	})
	if err := r.setup(t.Context(), harness.Env{Producers: 1, Warn: func(w report.Warning) { t.Log(w) }, Fact: func(p report.Param) { t.Log(p.Name, p.Text()) }}); err != nil {
		t.Fatal(err)
	}
	p, err := r.producer(new(harness.Worker))
	if err != nil {
		t.Fatal(err)
	}
	return r, p
}

// A program can be on all functions that are not left out (in short tests on the first of them), and does not keep the one that
// counts from its hits.
func TestTrigAll(t *testing.T) {
	testutils.NeedsBPF(t)
	testutils.NoLeaks(t)
	defer func() { mostTraced = fewTraced }()
	mostTraced = math.MaxInt
	functions, err := traceable()
	testutils.Needs(t, err)
	if len(functions) < 10000 || slices.Contains(functions, numaNode) || !slices.Contains(functions, "vfs_read") {
		t.Errorf("%d functions", len(functions))
	}
	if testing.Short() {
		mostTraced = 2000
	}
	r, p := triggered(t, "kprobe-multi-all")
	batch(t, p.Batch)
	if err := r.check(nil); err != nil {
		t.Error(err)
	}
}

// Several producers hit the same program, and no hit is lost.
func TestTrigProducers(t *testing.T) {
	testutils.NeedsBPF(t)
	testutils.NoLeaks(t)
	for _, name := range []string{"trig-kernel-count", "trig-usermode-count", "trig-syscall-count"} {
		if res := measure(t, 2, name); res.Status != report.OK {
			t.Errorf("%s: %s: %s", name, res.Status, res.Reason)
		}
	}
}

// A sample ends before the thread moves to another CPU, and what ran after that is in the next.
func TestTrigMove(t *testing.T) {
	calls := 0
	b := &trigBatch{aborted: func() bool { return false }, run: func() (producers.Done, error) {
		calls++
		return producers.Done{CPU: calls / 4, Ops: 10, Elapsed: uint64(trigTime) / 2}, nil
	}}
	var ops []uint64
	var cpus []int
	for range 3 {
		s := batch(t, b.do)
		ops, cpus = append(ops, s.Ops), append(cpus, s.CPU)
	}
	if !slices.Equal(ops, []uint64{20, 10, 20}) || !slices.Equal(cpus, []int{0, 0, 1}) {
		t.Errorf("samples of %v operations on CPUs %v, want 20, 10, 20 on 0, 0, 1", ops, cpus)
	}
}
