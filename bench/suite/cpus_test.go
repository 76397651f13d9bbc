package suite

import (
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cilium/ebpf"

	"bpfbench/bench/harness"
	"bpfbench/internal/cpuset"
	"bpfbench/internal/testutils"
	"bpfbench/report"
)

// The kernel has memory for each possible CPU. The original has arrays of 256 for them, on both sides.
func TestManyCPUs(t *testing.T) {
	possible, err := ebpf.PossibleCPU()
	if err != nil {
		t.Fatal(err)
	}
	if possible <= 256 {
		t.Skipf("there are %d possible CPUs, and it is about more than 256", possible)
	}
	testutils.NeedsBPF(t)
	testutils.NoLeaks(t)
	const entries, loops = 100, 1000
	for _, producers := range []int{1, 8} {
		res := measure(t, producers, "bpf-hashmap-lookup", "--nr_entries=100", "--nr_loops=1000")
		if res.Status != report.OK {
			t.Fatalf("%d producers: %s: %s", producers, res.Status, res.Reason)
		}
		for _, run := range res.Runs {
			workers := map[int]bool{}
			for _, s := range run.Samples {
				workers[s.Worker] = true
				if s.Ops == 0 || s.Ops%entries != 0 || s.CPU >= possible {
					t.Errorf("%d producers: sample %+v: want passes over %d entries", producers, s, entries)
				}
			}
			if len(workers) != producers {
				t.Errorf("%d of %d producers have a sample", len(workers), producers)
			}
		}
	}

	// So many threads would take long to get going. What a producer for the last CPU would do:
	r := &hashmapRun{cfg: &hashmapLookup{typ: ebpf.Hash, keySize: 4, valueSize: 8, maxEntries: entries, nrEntries: entries, nrLoops: loops, trigger: triggerTestRun}}
	if err := r.load(possible); err != nil {
		t.Fatal(err)
	}
	if err := r.fill(t.Context()); err != nil {
		t.Fatal(errors.Join(err, r.close()))
	}
	p, err := r.producer(&harness.Worker{ID: possible - 1})
	if err == nil {
		var s report.Sample
		if s, err = p.Batch(); s.Ops == 0 || s.Ops%entries != 0 {
			t.Errorf("producer %d: sample %+v: want passes over %d entries", possible-1, s, entries)
		}
	}
	if err := errors.Join(err, r.close()); err != nil {
		t.Error(err)
	}
}

// hotplugVar says that tests may take CPUs from the machine.
const hotplugVar = "BPFBENCH_TEST_HOTPLUG"

// offline takes a CPU from the machine until the test is over.
func offline(t *testing.T, cpu string) {
	t.Helper()
	if os.Getenv(hotplugVar) == "" {
		t.Skipf("it takes a CPU from the whole machine, which is not done unless %s is set", hotplugVar)
	}
	file := "/sys/devices/system/cpu/cpu" + cpu + "/online"
	if err := os.WriteFile(file, []byte("0"), 0); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.WriteFile(file, []byte("1"), 0); err != nil {
			t.Error(err)
		}
	})
}

// CPUs have numbers, not places in a list: with CPU 1 offline, CPU 2 is still CPU 2.
func TestOfflineCPU(t *testing.T) {
	offline(t, "1")
	testutils.NeedsBPF(t)
	usable, err := cpuset.Usable()
	if err != nil || slices.Contains(usable, 1) || !slices.Contains(usable, 2) {
		t.Fatalf("usable are %v, %v; want 2 and not 1", usable, err)
	}
	if err := cpuset.Check([]int{1}, usable); err == nil || !strings.Contains(err.Error(), "cpu 1 is offline") {
		t.Errorf("check of cpu 1: %v", err)
	}
	b, cfg, err := config(t, "bpf-hashmap-lookup", "--nr_loops=1000")
	if err != nil {
		t.Fatal(err)
	}
	job := func(cpus ...int) *report.Result {
		r := &harness.Runner{Plan: report.Plan{Duration: uint64(50 * time.Millisecond), Warmup: uint64(5 * time.Millisecond), Runs: 2}}
		rec := &report.Record{Results: []*report.Result{{Benchmark: b.Name, Producers: len(cpus)}}}
		job := &harness.Job{Benchmark: b, Config: cfg, Producers: len(cpus), ProdCPUs: cpus}
		if err := r.Run(t.Context(), rec, []*harness.Job{job}); err != nil {
			t.Fatal(err)
		}
		return rec.Results[0]
	}
	res := job(2, 0)
	if res.Status != report.OK {
		t.Fatalf("%s: %s", res.Status, res.Reason)
	}
	for _, run := range res.Runs {
		for _, s := range run.Samples {
			if want := []int{2, 0}[s.Worker]; s.CPU != want || s.Ops == 0 {
				t.Errorf("producer %d is on CPU %d, with %d operations; want CPU %d", s.Worker, s.CPU, s.Ops, want)
			}
		}
	}
	if res := job(1); res.Status != report.Failed || !strings.Contains(res.Reason, "cpu 1") {
		t.Errorf("a producer bound to CPU 1: %s: %s", res.Status, res.Reason)
	}
}
