package suite

import (
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"bpfbench/bench/harness"
	"bpfbench/internal/kernel"
	"bpfbench/internal/testutils"
	"bpfbench/progs"
	"bpfbench/report"
)

func TestHtabMemResolve(t *testing.T) {
	wantRefused(t, "htab-mem", "--value-size=0 --use-case=x", "--value-size=0: must be from 1 to 4096", "--use-case=x: must be one of overwrite, batch_add_batch_del, add_del_on_diff_cpu")
	wantRefused(t, "htab-mem", "--value-size=4097", "--value-size=4097")
	wantRefused(t, "rhtab-mem", "--preallocated", "--preallocated: a resizable hash map")
	_, err := setup(t, t.Context(), 1, "htab-mem", "--use-case=add_del_on_diff_cpu")
	if err == nil || !strings.Contains(err.Error(), "use -p 2") {
		t.Errorf("a producer without another: error %v", err)
	}
	wantSuite(t, "htab-mem", 6)
}

// Every run has batches, as many of either producer where these take turns, and the memory of the map.
func TestHtabMem(t *testing.T) {
	testutils.NeedsBPF(t)
	for _, settings := range []string{"htab-mem --preallocated", "htab-mem", "rhtab-mem --value-size=4096"} {
		for _, use := range useCases {
			t.Run(settings+"/"+use, func(t *testing.T) {
				testutils.NoLeaks(t)
				args := strings.Fields(settings + " --use-case=" + use)
				res := measure(t, 2, args[0], args[1:]...)
				if res.Status == report.Skipped {
					t.Skip(res.Reason)
				}
				if res.Status != report.OK {
					t.Fatalf("%s: %s", res.Status, res.Reason)
				}
				t.Log(res.Facts, res.Warnings)
				for _, run := range res.Runs {
					checkMemRun(t, run, slices.Contains(args, "--preallocated"), use)
				}
			})
		}
	}
}

func checkMemRun(t *testing.T, run *report.Run, preallocated bool, use string) {
	t.Helper()
	var batches [2]int
	for _, s := range run.Samples {
		batches[s.Worker] += int(s.Ops)
	}
	if batches[0]+batches[1] == 0 { // an emulated CPU may be without time for as long as the run
		t.Error("no batches")
	}
	if apart := batches[0] - batches[1]; use == useDiffCPU && (apart < -2 || apart > 2) {
		t.Errorf("%d batches of producers that take turns", batches)
	}
	t.Log(run.Gauges)
	gauges := map[string]float64{}
	for _, g := range run.Gauges {
		gauges[g.Name] = g.Value
	}
	if gauges["memory_mean"] <= 0 || gauges["memory_peak"] < gauges["memory_mean"] {
		t.Errorf("gauges %+v", run.Gauges)
	}
	// A cgroup accounts to each CPU in advance, in pieces of 64 pages.
	if want := float64(kernel.HashMapMemory(8192, 4, 8, true, 0)); preallocated && (gauges["memory_mean"] < 0.9*want || gauges["memory_mean"] > 2*want+1<<20) {
		t.Errorf("%.0f bytes for a preallocated map, want about %.0f", gauges["memory_mean"], want)
	}
}

// htabMemWork loads the program for 4 producers.
func htabMemWork(t *testing.T, use string) *htabMemRun {
	t.Helper()
	r := &htabMemRun{cfg: &htabMem{typ: 1, valueSize: 8, useCase: use}}
	if err := r.load(4); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.close(); err != nil {
			t.Error(err)
		}
	})
	return r
}

// entries counts the map's.
func (r *htabMemRun) entries() (n int) {
	var key uint32
	value := make([]byte, 8)
	for it := r.memory.m.Iterate(); it.Next(&key, value); {
		n++
	}
	return n
}

// The two of a pair have the same keys, no two pairs have any in common, and each update and delete is checked.
func TestHtabMemPairs(t *testing.T) {
	testutils.NeedsBPF(t)
	testutils.NoLeaks(t)
	testutils.Exclusive(t)
	r := htabMemWork(t, useDiffCPU)
	try := func(producer int, mode progs.HtabMemMode, entries int, want error) {
		t.Helper()
		_, err := r.request(producer, uint32(mode), "element", r.testRun(producer)).insert(0, memBatch, 1)
		if got := r.entries(); !errors.Is(err, want) || got != entries {
			t.Errorf("producer %d: %v and %d entries, want %v and %d", producer, err, got, want, entries)
		}
	}
	try(0, progs.HtabMemModeMODE_ADD, 64, nil)
	try(2, progs.HtabMemModeMODE_ADD, 128, nil)
	try(0, progs.HtabMemModeMODE_ADD, 128, unix.EEXIST)
	try(1, progs.HtabMemModeMODE_DELETE, 64, nil)
	try(1, progs.HtabMemModeMODE_DELETE, 64, unix.ENOENT)
	try(3, progs.HtabMemModeMODE_DELETE, 0, nil)
}

// Each producer has keys of its own.
func TestHtabMemOwn(t *testing.T) {
	testutils.NeedsBPF(t)
	testutils.NoLeaks(t)
	testutils.Exclusive(t)
	r := htabMemWork(t, useOverwrite)
	for i := range 4 {
		if _, err := r.request(i, uint32(progs.HtabMemModeMODE_OVERWRITE), "element", r.testRun(i)).insert(0, memCall, 1); err != nil || r.entries() != 64*(i+1) {
			t.Errorf("producer %d: %d entries, %v", i, r.entries(), err)
		}
	}
	for i := range 4 {
		if _, err := r.request(i, uint32(progs.HtabMemModeMODE_DELETE), "element", r.testRun(i)).insert(0, memBatch, 1); err != nil {
			t.Error(err)
		}
		if _, err := r.request(i, uint32(progs.HtabMemModeMODE_ADD_DELETE), "element", r.testRun(i)).insert(0, memCall, 1); err != nil || r.entries() != 64*(3-i) {
			t.Errorf("producer %d: %d entries, %v", i, r.entries(), err)
		}
	}
}

// A group that a process which was killed has left is replaced, and none is left.
func TestHtabMemGroup(t *testing.T) {
	testutils.NeedsBPF(t)
	testutils.NoLeaks(t)
	testutils.Exclusive(t)
	memoryCgroup(t)
	if _, err := kernel.NewMemoryCgroup(memoryGroup); err != nil {
		t.Fatal(err)
	}
	inst, err := setup(t, t.Context(), 1, "htab-mem")
	if err != nil {
		t.Fatal(err)
	}
	groups := func() []string {
		found, err := filepath.Glob("/sys/fs/cgroup/" + memoryGroup)
		if err != nil {
			t.Error(err)
		}
		return found
	}
	if found := groups(); len(found) != 1 {
		t.Errorf("groups %v, want one", found)
	}
	if err := inst.Close(); err != nil {
		t.Error(err)
	}
	if found := groups(); len(found) != 0 {
		t.Errorf("left behind: %v", found)
	}
}

// A producer whose turn does not come ends as soon as it is told to.
func TestHtabMemTurns(t *testing.T) {
	var b baton
	w := new(harness.Worker)
	if mine := (&turns{baton: &b}); !mine.await(w) {
		t.Error("the first of a pair does not begin")
	} else if mine.pass(); b.holder.Load() != 1 {
		t.Error("it does not pass the baton on")
	}
	if (*turns)(nil).await(w) != true {
		t.Error("a producer without another waits")
	}
}
