package suite

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"bpfbench/bench/harness"
	"bpfbench/internal/testutils"
	"bpfbench/producers"
	"bpfbench/progs"
	"bpfbench/report"
)

func TestHashmapResolve(t *testing.T) {
	for _, tt := range []struct {
		settings           string
		entries, max, full uint64
		problems           []string
	}{
		{settings: "", entries: 500, max: 1000, full: 50},
		{settings: "--nr_entries=4096", entries: 4096, max: 65536, full: 6},
		{settings: "--nr_entries=1e6", entries: 1000000, max: 1000000, full: 100},
		{settings: "--nr_entries=1000", entries: 1000, max: 1000, full: 100},
		{settings: "--max_entries=100", entries: 100, max: 100, full: 100},
		{settings: "--max_entries=64K --nr_entries=0x1000 --map_flags=zero_seed,no_prealloc", entries: 4096, max: 65536, full: 6},
		{settings: "--key_size=1 --nr_entries=256", entries: 256, max: 1000, full: 25},
		{settings: "--key_size=0", problems: []string{"--key_size=0: must be from 1 to 1024"}},
		{settings: "--key_size=1025", problems: []string{"--key_size=1025: must be from 1 to 1024"}},
		{settings: "--nr_entries=2000 --max_entries=1000", problems: []string{"--nr_entries=2000: the map has room for --max_entries=1000"}},
		{settings: "--key_size=1 --nr_entries=300", problems: []string{"--nr_entries=300: key_size 1 allows 256 distinct keys"}},
		{settings: "--key_size=2 --nr_entries=65537", problems: []string{"key_size 2 allows 65536 distinct keys"}},
		{settings: "--key_size=0 --nr_loops=0 --trigger=x --max_entries=0 --value_size=0",
			problems: []string{"--key_size=0", "--nr_loops=0", "--trigger=x", "--max_entries=0", "--value_size=0"}},
		{settings: "--max_entries=4294967296", problems: []string{"--max_entries=4294967296"}},
		{settings: "--map_flags=rdonly_prog", problems: []string{"rdonly_prog"}},
		{settings: "--map_flags=0x100", problems: []string{"wronly_prog"}},
	} {
		_, cfg, err := config(t, "bpf-hashmap-lookup", strings.Fields(tt.settings)...)
		if tt.problems == nil {
			if c := cfg.(*hashmapLookup); err != nil || c.nrEntries != tt.entries || c.maxEntries != tt.max || cfg.Facts()[0].Value != tt.full {
				t.Errorf("%q: %d of %d entries, %v full, %v; want %d of %d, %d", tt.settings, c.nrEntries, c.maxEntries, cfg.Facts()[0].Value, err, tt.entries, tt.max, tt.full)
			}
			continue
		}
		for _, p := range tt.problems {
			if err == nil || !strings.Contains(err.Error(), p) {
				t.Errorf("%q: error %v, want %q in it", tt.settings, err, p)
			}
		}
	}
}

// Cases 1, 2, 4 and 5: whatever the loops, entries and key sizes, a sample is whole passes over all entries and at least one,
// each operation a hit.
func TestHashmapExact(t *testing.T) {
	testutils.NeedsBPF(t)
	testutils.NoLeaks(t)
	for _, tt := range []struct {
		settings string
		ops      uint64 // of a sample
	}{
		{"--nr_entries=4096", 244 * 4096},
		{"--nr_entries=700 --nr_loops=1000", 700},
		{"--nr_entries=700 --nr_loops=10", 700},
		{"--nr_entries=1 --max_entries=1", 1000000},
		{"--nr_entries=65536 --nr_loops=65536", 65536},
		{"--nr_entries=65537 --nr_loops=1", 65537},
		{"--nr_entries=200000 --nr_loops=1M", 1000000},
		{"--key_size=1 --nr_entries=256 --nr_loops=1000", 768},
		{"--key_size=2 --nr_entries=65536 --nr_loops=65536", 65536},
		{"--key_size=3 --nr_entries=70000 --nr_loops=1", 70000},
		{"--key_size=7 --nr_loops=1000", 1000},
		{"--key_size=13 --value_size=100 --nr_loops=1000", 1000},
		{"--key_size=256 --nr_loops=1000", 1000},
		{"--key_size=257 --nr_loops=1000", 1000},
		{"--key_size=1024 --nr_loops=1000", 1000},
		{"--nr_entries=1000 --nr_loops=1000 --map_flags=no_prealloc,zero_seed", 1000},
	} {
		res := measure(t, 1, "bpf-hashmap-lookup", strings.Fields(tt.settings)...)
		if res.Status != report.OK {
			t.Errorf("%s: %s: %s", tt.settings, res.Status, res.Reason)
		}
		for _, run := range res.Runs {
			for _, s := range slices.Concat(run.Samples, run.Twin) {
				if s.Ops != tt.ops {
					t.Errorf("%s: a sample has %d operations, want %d", tt.settings, s.Ops, tt.ops)
				}
			}
			if len(run.Samples) == 0 || len(run.Twin) == 0 {
				t.Errorf("%s: %d samples and %d of the twin", tt.settings, len(run.Samples), len(run.Twin))
			}
		}
	}
}

// Case 2: a single pass longer than the limit of bpf_loop is split, and nothing is lost.
func TestHashmapLongPass(t *testing.T) {
	testutils.NeedsBPF(t)
	if testing.Short() {
		t.Skip("it needs a map of 700 MB")
	}
	const n = producers.MaxLoop + 1
	r, s := instance(t, fmt.Sprintf("--nr_entries=%d", n), "--nr_loops=1")
	if s.Ops != n {
		t.Errorf("%d operations, want %d", s.Ops, n)
	}
	if err := r.close(); err != nil {
		t.Error(err)
	}
}

// instance sets up one producer and returns its first sample.
func instance(t *testing.T, settings ...string) (*hashmapRun, report.Sample) {
	t.Helper()
	_, cfg, err := config(t, "bpf-hashmap-lookup", settings...)
	if err != nil {
		t.Fatal(err)
	}
	r := &hashmapRun{cfg: cfg.(*hashmapLookup)}
	if err := errors.Join(r.load(1), r.fill(t.Context())); err != nil {
		t.Fatal(errors.Join(err, r.close()))
	}
	p, err := r.producer(new(harness.Worker))
	if err != nil {
		t.Fatal(errors.Join(err, r.close()))
	}
	var sum report.Sample
	for sum.Ops < r.cfg.nrEntries {
		s, err := p.Batch()
		if err != nil {
			t.Fatal(errors.Join(err, r.close()))
		}
		sum.Ops += s.Ops
		sum.Elapsed += s.Elapsed
	}
	return r, sum
}

// Case 3: producers share nothing. With 1 KiB keys and one buffer for both, nearly every lookup would miss.
func TestHashmapProducers(t *testing.T) {
	testutils.NeedsBPF(t)
	testutils.NoLeaks(t)
	for _, keySize := range []string{"4", "64", "1024"} {
		res := measure(t, 8, "bpf-hashmap-lookup", "--nr_loops=1000", "--key_size="+keySize)
		if res.Status != report.OK {
			t.Fatalf("key size %s: %s: %s", keySize, res.Status, res.Reason)
		}
		for _, run := range res.Runs {
			workers := make(map[int]bool)
			for _, s := range run.Samples {
				workers[s.Worker] = true
			}
			if len(workers) != 8 {
				t.Errorf("key size %s: %d of 8 producers have a sample", keySize, len(workers))
			}
		}
	}
}

// Case 3: a miss fails the run, wherever in the pass it is.
func TestHashmapMiss(t *testing.T) {
	testutils.NeedsBPF(t)
	for _, settings := range []string{"--nr_entries=100", "--nr_entries=100 --key_size=300"} {
		for _, gone := range []uint32{0, 50, 99} {
			r, _ := instance(t, append(strings.Fields(settings), "--nr_loops=1000")...)
			key := keyPattern()[:r.cfg.keySize]
			key[0], key[1], key[2], key[3] = byte(gone), 0, 0, 0
			if err := r.coll.Maps[progs.HashmapLookupMapHash].Delete(key); err != nil {
				t.Fatalf("delete entry %d: %v", gone, err)
			}
			call := r.request(0, uint32(progs.HashmapLookupModeMODE_LOOKUP), lookUp, r.testRun(0))
			_, err := call.do(0, 100, 10)
			var failed *opError
			if !errors.As(err, &failed) || failed.at != gone || failed.after != uint64(gone) || !errors.Is(err, unix.ENOENT) {
				t.Errorf("%s without entry %d: error %v", settings, gone, err)
			}
			if err := r.close(); err != nil {
				t.Error(err)
			}
		}
	}
}

// Case 7: an insert that fails is an error that names the entry.
func TestHashmapFillFails(t *testing.T) {
	testutils.NeedsBPF(t)
	_, cfg, err := config(t, "bpf-hashmap-lookup", "--nr_entries=100", "--max_entries=100")
	if err != nil {
		t.Fatal(err)
	}
	r := &hashmapRun{cfg: cfg.(*hashmapLookup)}
	if err := r.load(1); err != nil {
		t.Fatal(err)
	}
	r.cfg.nrEntries = 105 // more than the map has room for, some spare elements of the CPUs' aside
	err = r.fill(t.Context())
	if !errors.Is(err, unix.E2BIG) || !strings.Contains(err.Error(), "fill the map: insert entry 10") {
		t.Errorf("error %v, want E2BIG at an entry above 100", err)
	}
	r.cfg.nrEntries = 10 // entries that are there already
	if err = r.fill(t.Context()); !errors.Is(err, unix.EEXIST) || !strings.Contains(err.Error(), "insert entry 0") {
		t.Errorf("error %v, want EEXIST at entry 0", err)
	}
	if err := r.close(); err != nil {
		t.Error(err)
	}
}

// Case 8: maps that cannot be are refused with what was asked for and what to change.
func TestHashmapImpossible(t *testing.T) {
	testutils.NeedsBPF(t)
	testutils.NoLeaks(t)
	for _, tt := range []struct{ settings, want string }{
		{"--max_entries=4000000000", "4000000000"},
		{"--max_entries=4000000000 --map_flags=no_prealloc", "4000000000"},
		{"--value_size=1G --max_entries=1", "value_size"},
		{"--map_flags=0x80000000", "0x80000000"},
		{"--map_flags=no_common_lru", "no_common_lru"},
	} {
		res := measure(t, 1, "bpf-hashmap-lookup", strings.Fields(tt.settings)...)
		if res.Status != report.Failed || !strings.Contains(res.Reason, tt.want) {
			t.Errorf("%s: %s: %s; want %q in it", tt.settings, res.Status, res.Reason, tt.want)
		}
		t.Log(res.Reason)
	}
}

func TestHashmapTracepoint(t *testing.T) {
	testutils.NeedsBPF(t)
	testutils.NoLeaks(t)
	res := measure(t, 2, "bpf-hashmap-lookup", "--trigger=tp", "--nr_loops=10000")
	switch {
	case res.Status == report.Skipped:
		t.Skip(res.Reason)
	case res.Status != report.OK:
		t.Errorf("%s: %s", res.Status, res.Reason)
	}
}

// What a batch allocates does not depend on the number of lookups.
func TestHashmapAllocations(t *testing.T) {
	testutils.NeedsBPF(t)
	for _, loops := range []string{"1000", "100000"} {
		_, cfg, err := config(t, "bpf-hashmap-lookup", "--nr_loops="+loops)
		if err != nil {
			t.Fatal(err)
		}
		inst, err := cfg.Setup(t.Context(), harness.Env{Producers: 1})
		if err != nil {
			t.Fatal(err)
		}
		p, err := inst.Producer(new(harness.Worker))
		if err != nil {
			t.Fatal(err)
		}
		if n := testing.AllocsPerRun(20, func() { _, err = p.Batch() }); err != nil || n > 2 {
			t.Errorf("%s lookups: %v allocations a batch, want at most 2 (%v)", loops, n, err)
		}
		if err := inst.Close(); err != nil {
			t.Error(err)
		}
	}
}

// BenchmarkHashmapBatch shows what a batch costs this side of the kernel; -benchmem shows its allocations.
func BenchmarkHashmapBatch(b *testing.B) {
	for _, loops := range []uint64{1000, 100000} {
		b.Run(fmt.Sprint(loops), func(b *testing.B) {
			cfg := &hashmapLookup{typ: ebpf.Hash, keySize: 4, valueSize: 8, maxEntries: 1000, nrEntries: 500, nrLoops: loops, trigger: triggerTestRun}
			inst, err := cfg.Setup(b.Context(), harness.Env{Producers: 1})
			if err != nil {
				b.Skip(err)
			}
			defer inst.Close()
			p, err := inst.Producer(new(harness.Worker))
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for b.Loop() {
				if _, err := p.Batch(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkFill compares the ways to fill a map of 1 Mi entries: this project's, and one system call an entry.
func BenchmarkFill(b *testing.B) {
	const n = 1 << 20
	b.Run("program", func(b *testing.B) {
		for b.Loop() {
			r := &hashmapRun{cfg: &hashmapLookup{typ: ebpf.Hash, keySize: 4, valueSize: 8, maxEntries: n, nrEntries: n, nrLoops: 1, trigger: triggerTestRun}}
			b.StopTimer()
			if err := r.load(1); err != nil {
				b.Skip(err)
			}
			b.StartTimer()
			if err := r.fill(b.Context()); err != nil {
				b.Fatal(err)
			}
			b.StopTimer()
			if err := r.close(); err != nil {
				b.Fatal(err)
			}
			b.StartTimer()
		}
	})
	b.Run("syscalls", func(b *testing.B) {
		for b.Loop() {
			b.StopTimer()
			m, err := ebpf.NewMap(&ebpf.MapSpec{Type: ebpf.Hash, KeySize: 4, ValueSize: 8, MaxEntries: n})
			if err != nil {
				b.Skip(err)
			}
			b.StartTimer()
			for i := range uint32(n) {
				if err := m.Update(i, uint64(0), ebpf.UpdateNoExist); err != nil {
					b.Fatal(err)
				}
			}
			b.StopTimer()
			m.Close()
			b.StartTimer()
		}
	})
}
