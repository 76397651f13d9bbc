package suite

import (
	"slices"
	"strings"
	"testing"

	"bpfbench/bench/harness"
	"bpfbench/internal/testutils"
	"bpfbench/producers"
	"bpfbench/report"
)

// uprobes are the names of this family's benchmarks.
func uprobes() []string {
	var names []string
	for _, b := range harness.All() {
		if _, ok := b.New().(*uprobe); ok {
			names = append(names, b.Name)
		}
	}
	return names
}

// fact is the value of a result's fact, nil if it has none of that name.
func fact(res *report.Result, name string) any {
	if i := slices.IndexFunc(res.Facts, func(p report.Param) bool { return p.Name == name }); i >= 0 {
		return res.Facts[i].Value
	}
	return nil
}

// Every hit is counted by the producer that made it, and none is counted when the probe has been taken away: of each
// instruction, kind of probe and attachment.
func TestTrigUprobe(t *testing.T) {
	testutils.NeedsBPF(t)
	testutils.NoLeaks(t)
	for _, name := range []string{"trig-uprobe-nop", "trig-uretprobe-push", "trig-uprobe-multi-ret", "trig-uretprobe-multi-nop5",
		"trig-uprobe-nop10", "trig-usdt-nop10"} {
		t.Run(name, func(t *testing.T) {
			res := measure(t, 2, name)
			if res.Status == report.Skipped {
				t.Skip(res.Reason)
			}
			if res.Status != report.OK {
				t.Fatalf("%s: %s", res.Status, res.Reason)
			}
			for _, run := range res.Runs {
				workers := map[int]bool{}
				for _, s := range run.Samples {
					workers[s.Worker] = true
					if s.Ops == 0 || s.Elapsed == 0 {
						t.Errorf("sample %+v", s)
					}
				}
				if len(workers) != 2 || len(run.Twin) == 0 {
					t.Errorf("%d producers with samples, and %d samples of the twin", len(workers), len(run.Twin))
				}
			}
			optimized := fact(res, "optimized")
			if can := strings.Contains(name, "nop5") || strings.Contains(name, "nop10"); can != (optimized != nil) {
				t.Errorf("optimized: %v", optimized)
			}
		})
	}
}

// A probe that the kernel no longer has is hit by no call, which fails the batch; the function is then as it was.
func TestTrigUprobeGone(t *testing.T) {
	testutils.NeedsBPF(t)
	testutils.NoLeaks(t)
	testutils.Needs(t, hasUprobe())
	before := producers.Push.Code()

	r := &uprobeRun{env: harness.Env{Producers: 1}, site: sitePush}
	t.Cleanup(func() {
		if err := r.close(); err != nil {
			t.Error(err)
		}
	})
	if err := r.ready(byPerf, false); err != nil {
		t.Fatal(err)
	}
	if during := producers.Push.Code(); during == before {
		t.Errorf("with a probe, the function is %x, as without", during)
	}
	p, err := r.producer(&harness.Worker{})
	if err != nil {
		t.Fatal(err)
	}
	if s, err := p.Batch(); err != nil || s.Ops != firstHits {
		t.Errorf("sample %+v, %v", s, err)
	}
	if err := r.detach(); err != nil {
		t.Fatal(err)
	}
	if after := producers.Push.Code(); after != before {
		t.Errorf("when the probe is gone, the function is %x, and was %x", after, before)
	}
	if s, err := p.Batch(); err == nil {
		t.Errorf("without a probe: sample %+v, want an error", s)
	}
}

// Batches become neither so short that the clock is in them, nor so long that the thread is away.
func TestTrigUprobeResize(t *testing.T) {
	for _, ns := range []float64{60, 700, 2500, 50000} {
		calls := uint64(firstHits)
		for range 20 {
			calls = resize(calls, uint64(float64(calls)*ns))
		}
		if took := float64(calls) * ns; took < 0.9e6 || took > 8.1e6 {
			t.Errorf("at %v ns a hit, a batch of %d takes %v ns", ns, calls, took)
		}
	}
	if calls := resize(1, 1e9); calls != 1 {
		t.Errorf("a batch of 1 that took a second: then %d", calls)
	}
}

// A USDT probe goes where the kernel takes it.
func TestTrigUSDT(t *testing.T) {
	testutils.NeedsBPF(t)
	wide, usdt := measure(t, 1, "trig-uprobe-nop10"), measure(t, 1, "trig-usdt-nop10")
	if usdt.Status == report.Skipped {
		t.Skip(usdt.Reason)
	}
	want := "nop10"
	if wide.Status == report.Skipped {
		want = "nop"
	}
	if got := fact(usdt, "site"); got != want {
		t.Errorf("the probe is on %v, want %s, as a probe on a nop10: %s %s", got, want, wide.Status, wide.Reason)
	}
}

// The suite names this family's benchmarks as they are registered, and two of another family.
func TestTrigUprobeSuite(t *testing.T) {
	i := slices.IndexFunc(harness.Suites(), func(s *harness.Suite) bool { return s.Name == "uprobes" })
	if i < 0 {
		t.Fatal("it is not registered")
	}
	var others []string
	for _, line := range harness.Suites()[i].Lines(true) {
		if !slices.Contains(uprobes(), line[0]) {
			others = append(others, line[0])
		}
	}
	if got := strings.Join(others, " "); got != "trig-usermode-count trig-syscall-count" {
		t.Errorf("of other families: %s", got)
	}
}
