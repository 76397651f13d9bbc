package suite

import (
	"fmt"
	"strings"
	"testing"

	"bpfbench/bench/harness"
	"bpfbench/internal/testutils"
	"bpfbench/report"
)

func TestFetchResolve(t *testing.T) {
	for _, tt := range []struct{ name, settings, want string }{
		{"kprobe", "--args=4", "--args=4: must be from 0 to 3"},
		{"kprobe", "--args=1|--fetchargs=a=$arg1", "one or the other"},
		{"kprobe", "--engine=x", "--engine=x: must be"},
		{"kprobe", "--nr_loops=0", "--nr_loops=0"},
		{"kprobe", "--fetchargs=a=%nonesuch", "column 3"},
		{"kprobe", "--fetchargs=a=$retval", "retval"},
		{"eprobe", "--fetchargs=a=%di", "di"},
		{"baseline", "--target=x", "--target=x: must be one of strncmp, trigger, leaf"},
	} {
		if _, _, err := config(t, "fetcharg-"+tt.name, strings.Split(tt.settings, "|")...); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s %s: error %v, want %q in it", tt.name, tt.settings, err, tt.want)
		}
	}
}

// Every kind of probe that the kernel has fires at every call and records what the driver passed in, with every number of
// arguments; the check of a run says so, and would say if it were not so.
func TestFetchargs(t *testing.T) {
	testutils.NeedsBPF(t)
	for _, kind := range fetchKinds {
		if kind.name == fetchBaseline {
			continue
		}
		for n := range 4 {
			t.Run(fmt.Sprint(kind.name, n), func(t *testing.T) {
				testutils.NoLeaks(t)
				res := measure(t, 1, "fetcharg-"+kind.name, fmt.Sprintf("--args=%d", n), "--nr_loops=500")
				switch {
				case res.Status == report.Skipped:
					t.Skip(res.Reason)
				case res.Status != report.OK:
					t.Fatalf("%s: %s", res.Status, res.Reason)
				}
				for _, run := range res.Runs {
					if len(run.Samples) == 0 || len(run.Twin) == 0 {
						t.Errorf("%d samples, %d with the event off", len(run.Samples), len(run.Twin))
					}
				}
			})
		}
	}
}

// fired sets up a fetcharg benchmark and has its probe hit n times.
func fired(t *testing.T, name string, n uint64, settings ...string) *fetchRun {
	t.Helper()
	b, cfg, err := config(t, "fetcharg-"+name, append(settings, fmt.Sprintf("--nr_loops=%d", n))...)
	if err != nil {
		t.Fatal(err)
	}
	for _, needs := range b.Requires {
		testutils.Needs(t, needs())
	}
	c := cfg.(*fetchConfig)
	target, err := c.kind.target("")
	testutils.Needs(t, err)
	r := &fetchRun{cfg: c, target: target}
	t.Cleanup(func() {
		if err := r.close(); err != nil {
			t.Error(err)
		}
	})
	if err := r.setup(harness.Env{Producers: 1, Warn: func(w report.Warning) { t.Log(w) }}); err != nil {
		t.Fatal(err)
	}
	p, err := r.producer(new(harness.Worker))
	if err != nil {
		t.Fatal(err)
	}
	for done := uint64(0); done < n; {
		s, err := p.Batch()
		if err != nil {
			t.Fatal(err)
		}
		done += s.Ops
	}
	return r
}

// An event that did not fire at every call, or that recorded something else, fails the run.
func TestFetchCheck(t *testing.T) {
	testutils.NeedsBPF(t)
	r := fired(t, "uprobe", 100, "--args=3")
	if err := r.check(nil); err != nil {
		t.Errorf("a run that is as it should be: %v", err)
	}
	r.enabled.Add(1)
	if err := r.check(nil); err == nil || !strings.Contains(err.Error(), "fired 100 times in 101 calls") {
		t.Errorf("a call without a hit: %v", err)
	}
	r.enabled.Add(^uint64(0))
	other := *r.target
	other.want = func() ([3][]uint64, error) { return [3][]uint64{{passedA}, {passedB + 1}, {passedC}}, nil }
	r.target = &other
	if err := r.check(nil); err == nil || !strings.Contains(err.Error(), "recorded b=77, want [0x4e]") {
		t.Errorf("a value that is another: %v", err)
	}
}

func TestFetchargsOfTheUser(t *testing.T) {
	testutils.NeedsBPF(t)
	text := strings.TrimSuffix(strings.Replace(leaf.args[2], "c=", "text=", 1), "u32") + "string"
	r := fired(t, "uprobe", 10, "--fetchargs="+text+" comm=$comm")
	if err := r.check(nil); err != nil {
		t.Fatal(err)
	}
	last, err := r.engine.Last()
	if err != nil || last["text"] != `"bench"` || last["comm"] == "" {
		t.Errorf("the event recorded %v, %v", last, err)
	}
}
