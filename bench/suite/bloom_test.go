package suite

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"bpfbench/bench/harness"
	"bpfbench/internal/testutils"
	"bpfbench/progs"
	"bpfbench/report"
)

func TestBloomResolve(t *testing.T) {
	for _, tt := range []struct {
		name, settings string
		problems       []string
	}{
		{name: "bloom-lookup", settings: "--value_size=256 --nr_hash_funcs=15"},
		{name: "bloom-update", settings: "--value_size=2 --nr_entries=65536"},
		{name: "bloom-lookup", settings: "--nr_entries=4294967295"},
		{name: "hashmap-with-bloom", settings: "--value_size=2 --nr_entries=64K"},
		{name: "bloom-false-positive", settings: "--value_size=2 --nr_entries=65535"},
		{name: "bloom-false-positive", settings: "--value_size=2 --nr_entries=65536", problems: []string{"--nr_entries=65536: these are all values of value_size 2"}},
		{name: "bloom-update", settings: "--value_size=2 --nr_entries=65537", problems: []string{"--nr_entries=65537: value_size 2 allows 65536 distinct values"}},
		{name: "bloom-lookup", settings: "--value_size=3 --nr_entries=16777217", problems: []string{"value_size 3 allows 16777216"}},
		{name: "hashmap-without-bloom", settings: "--nr_entries=134217729", problems: []string{"--nr_entries=134217729: must be from 1 to 134217728"}},
		{name: "bloom-lookup", settings: "--value_size=1 --nr_hash_funcs=0 --nr_entries=0",
			problems: []string{"--value_size=1", "--nr_hash_funcs=0", "--nr_entries=0"}},
		{name: "bloom-lookup", settings: "--value_size=257 --nr_hash_funcs=16", problems: []string{"--value_size=257", "--nr_hash_funcs=16"}},
	} {
		_, _, err := config(t, tt.name, strings.Fields(tt.settings)...)
		if tt.problems == nil && err != nil {
			t.Errorf("%s %s: %v", tt.name, tt.settings, err)
		}
		for _, p := range tt.problems {
			if err == nil || !strings.Contains(err.Error(), p) {
				t.Errorf("%s %s: error %v, want %q in it", tt.name, tt.settings, err, p)
			}
		}
	}
}

// Values of different numbers differ, and what is drawn is as often below a number as before says.
func TestBloomValues(t *testing.T) {
	for _, size := range []int{2, 5, 8, 40} {
		v := bloomValues{size}
		n := 1 << min(v.bits(), 16)
		memory := make([]byte, n*v.stride())
		v.fill(t.Context(), memory, uint64(n))
		numbers := make(map[string]int)
		for i := range n {
			numbers[string(memory[i*v.stride():][:size])] = i
		}
		if len(numbers) != n {
			t.Errorf("size %d: %d distinct values of %d", size, len(numbers), n)
		}
		for _, low := range []uint64{0, 1000} {
			probes := make([]byte, 4096*v.stride())
			before := v.draw(probes, low, 1000)
			if len(before) != 4097 {
				t.Fatalf("size %d: counts of %d values, want 4096", size, len(before)-1)
			}
			for i := range 4096 {
				number, known := numbers[string(probes[i*v.stride():][:size])]
				there := known && number < 1000
				if got := before[i+1] - before[i]; (got == 1) != there || there && low > 0 {
					t.Fatalf("size %d from %d: value %d is number %d, and %d are counted", size, low, i, number, got)
				}
			}
		}
	}
}

// A sample is whole passes, whatever the size of values and their number; 256 bytes are 256, and what is found is what is there.
func TestBloomExact(t *testing.T) {
	testutils.NeedsBPF(t)
	testutils.NoLeaks(t)
	for _, tt := range []struct {
		name, settings string
		pass           uint64
	}{
		{"bloom-lookup", "--nr_entries=1000 --value_size=256 --nr_hash_funcs=15", 1000},
		{"bloom-update", "--nr_entries=17 --value_size=3", 17},
		{"bloom-lookup", "--nr_entries=140001 --value_size=5", 140001},
		{"bloom-update", "--nr_entries=65536 --value_size=2", 65536},
		{"bloom-false-positive", "--nr_entries=65535 --value_size=2 --nr_hash_funcs=1", 1 << 18},
		{"bloom-false-positive", "--nr_entries=1001 --value_size=40", 52424},
		{"hashmap-with-bloom", "--nr_entries=60001 --value_size=2 --nr_hash_funcs=2", 1 << 18},
		{"hashmap-without-bloom", "--nr_entries=65536 --value_size=2", 1 << 18},
		{"hashmap-without-bloom", "--nr_entries=1 --value_size=256", 8192},
	} {
		if testing.Short() && tt.pass > 1000 { // the verifier of Linux 7.3 takes seconds for a set-up in an emulated guest
			continue
		}
		res := measure(t, 1, tt.name, strings.Fields(tt.settings)...)
		if res.Status != report.OK {
			t.Errorf("%s %s: %s: %s", tt.name, tt.settings, res.Status, res.Reason)
		}
		for _, run := range res.Runs {
			if len(run.Samples) == 0 || len(run.Twin) == 0 {
				t.Errorf("%s %s: %d samples and %d of the twin", tt.name, tt.settings, len(run.Samples), len(run.Twin))
			}
			for _, s := range slices.Concat(run.Samples, run.Twin) {
				if s.Ops == 0 || s.Ops%tt.pass != 0 {
					t.Errorf("%s %s: a sample has %d operations, want a multiple of %d", tt.name, tt.settings, s.Ops, tt.pass)
				}
			}
		}
	}
}

// gauges are the numbers of things in a run, in operations of it.
func gauges(run *report.Run) map[string]float64 {
	var ops uint64
	for _, s := range run.Samples {
		ops += s.Ops
	}
	shares := make(map[string]float64)
	for _, g := range run.Gauges {
		shares[g.Name] = g.Value / float64(ops)
	}
	return shares
}

// What is found are the values that are in the maps, and what a filter finds beside them is as much as its size says. Two
// producers find the same as one.
func TestBloomGauges(t *testing.T) {
	testutils.NeedsBPF(t)
	for _, tt := range []struct {
		name      string
		functions uint64
		found     float64
	}{
		{"bloom-false-positive", 1, 0}, {"bloom-false-positive", 10, 0},
		{"hashmap-with-bloom", 3, 40000. / 65536}, {"hashmap-without-bloom", 3, 40000. / 65536},
	} {
		if testing.Short() && tt.functions != 3 {
			continue
		}
		const n = 40000
		c := &bloom{hashFuncs: tt.functions, nrEntries: n}
		res := measure(t, 2, tt.name, "--nr_entries=40000", "--value_size=2", fmt.Sprintf("--nr_hash_funcs=%d", tt.functions))
		if res.Status != report.OK {
			t.Fatalf("%s: %s: %s", tt.name, res.Status, res.Reason)
		}
		bits := float64(uint64(1) << uint(math.Ceil(math.Log2(float64(n*c.hashFuncs*7/5)))))
		falseHits := math.Pow(1-math.Exp(-float64(c.hashFuncs)*n/bits), float64(c.hashFuncs)) * (1 - tt.found)
		for _, run := range res.Runs {
			got := gauges(run)
			if math.Abs(got["found"]-tt.found) > 0.005 {
				t.Errorf("%s: %.4f of the values were found, want %.4f", tt.name, got["found"], tt.found)
			}
			if tt.name != "hashmap-without-bloom" && math.Abs(got["false_hits"]-falseHits) > 0.02 {
				t.Errorf("%s with %d functions: %.4f false hits, want about %.4f", tt.name, tt.functions, got["false_hits"], falseHits)
			}
		}
	}
}

// A value that a map has lost, or has already, ends a call or fails its count: it makes nothing faster.
func TestBloomMisses(t *testing.T) {
	testutils.NeedsBPF(t)
	testutils.NoLeaks(t)
	_, cfg, err := config(t, "hashmap-with-bloom", "--nr_entries=40000", "--value_size=2")
	if err != nil {
		t.Fatal(err)
	}
	r := &bloomRun{cfg: cfg.(*bloom), tally: make([]bloomTally, 1)}
	if err := r.load(1); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := r.close(); err != nil {
			t.Error(err)
		}
	}()
	if err := r.all(t.Context(), progs.BloomModeMODE_PEEK); !errors.Is(err, unix.ENOENT) || !strings.Contains(err.Error(), "find value in the filter 0") {
		t.Errorf("an empty filter: error %v", err)
	}
	if err := r.all(t.Context(), progs.BloomModeMODE_PROBE); err == nil || !strings.Contains(err.Error(), "the hash map has 0 of 40000") {
		t.Errorf("an empty hash map: error %v", err)
	}
	if err := r.fill(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := r.all(t.Context(), progs.BloomModeMODE_INSERT); !errors.Is(err, unix.EEXIST) {
		t.Errorf("a second insert: error %v", err)
	}
	p, err := r.producer(new(harness.Worker))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Batch(); err != nil {
		t.Fatal(err)
	}
	gone := make([]byte, 8)
	r.cfg.values().put(gone, 4711)
	if err := r.coll.Maps[progs.BloomMapHash].Delete(gone[:2]); err != nil {
		t.Fatalf("value %#x: %v", binary.LittleEndian.Uint16(gone), err)
	}
	if _, err := p.Batch(); err == nil || !strings.Contains(err.Error(), "values were found") {
		t.Errorf("a value is lost: error %v", err)
	}
}

func TestBloomInterrupted(t *testing.T) {
	testutils.NeedsBPF(t)
	testutils.NoLeaks(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := setup(t, ctx, 1, "bloom-false-positive", "--nr_entries=1M"); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want %v", err, context.Canceled)
	}
}

// All that the suite has is accepted.
func TestBloomSuite(t *testing.T) {
	for whole, want := range map[bool]int{false: 40, true: 5*3*(4*100+20) + 2*(4*100+20)} {
		lines := bloomLines(whole)
		if len(lines) != want {
			t.Errorf("%d lines, want %d", len(lines), want)
		}
		for _, line := range lines {
			if _, _, err := config(t, line[0], line[3:]...); err != nil || line[1] != "-p" {
				t.Errorf("%v: %v", line, err)
			}
		}
	}
}
