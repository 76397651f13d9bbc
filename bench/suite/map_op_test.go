package suite

import (
	"errors"
	"maps"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"bpfbench/bench/harness"
	"bpfbench/internal/cpuset"
	"bpfbench/internal/testutils"
	"bpfbench/report"
)

// onMap is map-op made ready for one run with two producers.
func onMap(t *testing.T, settings ...string) *mapRun {
	t.Helper()
	_, cfg, err := config(t, "map-op", settings...)
	if err != nil {
		t.Fatal(err)
	}
	r := &mapRun{cfg: cfg.(*mapOp)}
	if err := r.load(2); err != nil {
		t.Fatal(err)
	}
	if err := r.fill(t.Context()); err != nil {
		t.Fatal(errors.Join(err, r.close()))
	}
	return r
}

// ready returns producer id of r.
func (r *mapRun) ready(t *testing.T, id int) harness.Producer {
	t.Helper()
	ready := r.producer
	if r.cfg.from != fromBPF {
		ready = r.userProducer
	}
	p, err := ready(&harness.Worker{ID: id, CPU: -1})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// length is how many entries a map has.
func length(t *testing.T, m *ebpf.Map) (n int) {
	t.Helper()
	key := make([]byte, m.KeySize())
	for next := any(nil); ; n++ {
		err := m.NextKey(next, &key)
		if errors.Is(err, ebpf.ErrKeyNotExist) {
			return n
		} else if err != nil {
			t.Fatal(err)
		}
		next = key
	}
}

// Every operation, from everywhere, on every type of map: a batch is whole passes, and afterwards the map has as many entries as
// before. What cannot be is refused. Other orders of keys, which take longer, are not tried everywhere.
func TestMapOpMatrix(t *testing.T) {
	testutils.NeedsBPF(t)
	testutils.NoLeaks(t)
	testutils.Exclusive(t)
	done := make(map[string]int)
	for settings := range matrix() {
		_, cfg, err := config(t, "map-op", settings...)
		c := cfg.(*mapOp)
		if err != nil {
			done["refused"]++
			continue
		}
		if c.ordered() && (testing.Short() || c.from != fromBPF && c.typ != ebpf.Hash) {
			continue
		}
		done[c.from]++
		r := onMap(t, settings...)
		entries := length(t, r.m)
		for id := range 2 {
			p := r.ready(t, id)
			for name, batch := range map[string]func() (report.Sample, error){"operation": p.Batch, "twin": p.Twin} {
				if batch == nil && c.iterates() {
					continue
				}
				if s, err := pinned(batch); err != nil || s.Ops != c.passes()*c.pass() {
					t.Errorf("%v: %s of producer %d: %d operations of %d, %v", settings, name, id, s.Ops, c.passes()*c.pass(), err)
				}
			}
		}
		if after := length(t, r.m); after != entries {
			t.Errorf("%v: %d entries, and %d before", settings, after, entries)
		}
		if err := r.close(); err != nil {
			t.Error(err)
		}
	}
	if testing.Short() {
		return
	}
	if want := map[string]int{"bpf": 3 * 26, "syscall": 26 + 2*4, "syscall-batch": 8 + 7 + 5 + 2, "refused": 3*3*32 - 3*26 - 3*26 - (8 + 3*7 + 5)}; !maps.Equal(done, want) {
		t.Errorf("%v were done, want %v", done, want)
	}
}

// pinned does a batch on a thread that stays on its CPU, so that it is whole.
func pinned(batch func() (report.Sample, error)) (s report.Sample, err error) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // and ends with it
		var usable []int
		if usable, err = cpuset.Usable(); err == nil {
			err = cpuset.Pin(usable[0])
		}
		if err == nil {
			s, err = batch()
		}
	}()
	<-done
	return s, err
}

// The suites' lines are command lines.
func TestMapSuites(t *testing.T) {
	want := map[string][2]int{"map-op": {8, 26*3*2 + 8 + 7*3 + 5}, "hashmap-full-update": {1, 0}}
	for _, s := range harness.Suites() {
		lines, ok := want[s.Name]
		if !ok {
			continue
		}
		for i, whole := range []bool{false, true} {
			got := s.Lines(whole)
			if lines[i] > 0 && len(got) != lines[i] {
				t.Errorf("%s: %d lines, want %d", s.Name, len(got), lines[i])
			}
			for _, line := range got {
				settings := slices.DeleteFunc(slices.Clone(line[1:]), func(f string) bool { return strings.HasPrefix(f, "--producers=") })
				if _, _, err := config(t, line[0], settings...); err != nil {
					t.Errorf("%v: %v", line, err)
				}
			}
		}
		delete(want, s.Name)
	}
	if len(want) > 0 {
		t.Errorf("%v: there is no such suite", want)
	}
}

// matrix yields the settings of all combinations, of few entries and operations.
func matrix() func(yield func([]string) bool) {
	return func(yield func([]string) bool) {
		for _, kind := range mapKindNames() {
			for _, op := range mapOps {
				for _, from := range mapFroms {
					for _, order := range keyOrders {
						s := []string{"--map_type=" + kind, "--op=" + op, "--from=" + from, "--key_order=" + order, "--nr_entries=50", "--nr_loops=200"}
						if from == fromBatch {
							s = append(s, "--batch_size=32")
						}
						if !yield(s) {
							return
						}
					}
				}
			}
		}
	}
}

// An operation that does not come out as it should is an error that names the entry, wherever it is done.
func TestMapOpWrong(t *testing.T) {
	testutils.NeedsBPF(t)
	testutils.NoLeaks(t)
	testutils.Exclusive(t)
	const n = 50
	for _, tt := range []struct {
		op    string
		entry uint32 // to insert, or to delete
		errno unix.Errno
	}{
		{"lookup", 7, unix.ENOENT},
		{"miss", n + 7, unix.EEXIST},
		{"update", 7, unix.ENOENT},
		{"insert_delete", n + 7, unix.EEXIST},
	} {
		for _, from := range []string{fromBPF, fromSyscall} {
			r := onMap(t, "--op="+tt.op, "--from="+from, "--nr_entries=50", "--map_type=lru_hash")
			var err error
			if tt.entry < n {
				err = r.m.Delete(tt.entry)
			} else {
				err = r.m.Put(tt.entry, uint64(0))
			}
			if err != nil {
				t.Fatal(err)
			}
			_, err = r.ready(t, 0).Batch()
			var failed *opError
			if !errors.As(err, &failed) || failed.at != tt.entry || failed.errno != tt.errno {
				t.Errorf("%s from %s: %v, want %v at entry %d", tt.op, from, err, tt.errno, tt.entry)
			}
			if evicted := tt.errno == unix.ENOENT; err != nil && strings.Contains(err.Error(), "evicts") != evicted {
				t.Errorf("%s from %s: %v, want the reason of an LRU map: %t", tt.op, from, err, evicted)
			}
			if err := r.close(); err != nil {
				t.Error(err)
			}
		}
	}
}

// A lookup of many elements finds all that are in the map, and says so where one is missing.
func TestMapOpReadsAll(t *testing.T) {
	testutils.NeedsBPF(t)
	testutils.NoLeaks(t)
	testutils.Exclusive(t)
	r := onMap(t, "--from=syscall-batch", "--nr_entries=50")
	if err := r.m.Delete(uint32(7)); err != nil {
		t.Fatal(err)
	}
	if _, err := r.ready(t, 0).Batch(); err == nil || !strings.Contains(err.Error(), "49 of 50") {
		t.Errorf("error %v, want 49 of 50", err)
	}
	if err := r.close(); err != nil {
		t.Error(err)
	}
}

// Keys shorter and longer than an index, on all sides, and flags.
func TestMapOpKeys(t *testing.T) {
	testutils.NeedsBPF(t)
	testutils.NoLeaks(t)
	testutils.Exclusive(t)
	for _, shape := range []string{"--key_size=1 --nr_entries=60", "--key_size=3", "--key_size=300 --value_size=100 --map_flags=no_prealloc",
		"--map_type=lpm_trie --key_size=20", "--map_type=percpu_hash --value_size=12"} {
		for _, from := range mapFroms {
			for _, op := range []string{"lookup", "insert_delete"} {
				r := onMap(t, append(strings.Fields(shape), "--op="+op, "--from="+from, "--nr_loops=1000")...)
				for id := range 2 {
					if s, err := pinned(r.ready(t, id).Batch); err != nil || s.Ops != r.cfg.passes()*r.cfg.pass() {
						t.Errorf("%s: %s from %s: %d operations of %d, %v", shape, op, from, s.Ops, r.cfg.passes()*r.cfg.pass(), err)
					}
				}
				if err := r.close(); err != nil {
					t.Error(err)
				}
			}
		}
	}
}

func TestMapOpResolve(t *testing.T) {
	for _, tt := range []struct {
		settings string
		problems []string // nil: none
	}{
		{settings: ""},
		{settings: "--map_type=lpm_trie --nr_entries=4096"},
		{settings: "--map_type=lru_hash --nr_entries=40000"},
		{settings: "--map_type=lru_hash --max_entries=100"},
		{settings: "--map_type=hash_of_maps --op=miss --from=syscall"},
		{settings: "--map_type=x --op=y --from=z --key_order=w", problems: []string{"--map_type=x", "--op=y", "--from=z", "--key_order=w"}},
		{settings: "--map_type=array --op=miss", problems: []string{"--op=miss: an array has all"}},
		{settings: "--map_type=percpu_array --op=insert_delete --key_size=8", problems: []string{"--op=insert_delete: an array has all", "--key_size=8"}},
		{settings: "--map_type=hash_of_maps --op=update", problems: []string{"--op=update: no program"}},
		{settings: "--map_type=hash_of_maps --value_size=8", problems: []string{"--value_size=8"}},
		{settings: "--map_type=lpm_trie --key_size=7", problems: []string{"--key_size=7"}},
		{settings: "--map_type=lru_hash --nr_entries=60 --max_entries=100", problems: []string{"--nr_entries=60: an LRU map evicts"}},
		{settings: "--op=miss --from=syscall-batch", problems: []string{"--op=miss"}},
		{settings: "--key_order=random --from=syscall-batch", problems: []string{"--key_order=random"}},
		{settings: "--op=insert_delete --nr_entries=100 --max_entries=100", problems: []string{"--nr_entries=100", "--max_entries=100"}},
		{settings: "--op=insert_delete --from=syscall-batch --batch_size=501", problems: []string{"up to 1001"}},
		{settings: "--op=miss --key_size=1 --nr_entries=129", problems: []string{"258 keys"}},
		{settings: "--key_order=zipf --zipf_exponent=1", problems: []string{"--zipf_exponent=1"}},
		{settings: "--zipf_exponent=2 --batch_size=5", problems: []string{"--zipf_exponent=2", "--batch_size=5"}},
		{settings: "--from=syscall --trigger=tp", problems: []string{"--trigger=tp"}},
		{settings: "--from=syscall-batch --batch_size=0", problems: []string{"--batch_size=0"}},
		{settings: "--nr_entries=0", problems: []string{"--nr_entries=0"}},
	} {
		_, cfg, err := config(t, "map-op", strings.Fields(tt.settings)...)
		if tt.problems == nil && (err != nil || cfg.(*mapOp).maxEntries < cfg.(*mapOp).nrEntries) {
			t.Errorf("%q: %v", tt.settings, err)
		}
		for _, p := range tt.problems {
			if err == nil || !strings.Contains(err.Error(), p) {
				t.Errorf("%q: error %v, want %q in it", tt.settings, err, p)
			}
		}
	}
}

// What all producers insert has to fit, too.
func TestMapOpRoom(t *testing.T) {
	if _, err := setup(t, t.Context(), 2, "map-op", "--op=insert_delete", "--nr_entries=99", "--max_entries=100"); err == nil || !strings.Contains(err.Error(), "2 producers") {
		t.Errorf("error %v, want one that names the 2 producers", err)
	}
}

// Drawn keys are the same in each run, others for each producer, and of the range; Zipf's are mostly the first.
func TestKeyOrder(t *testing.T) {
	for _, order := range []string{orderRandom, orderZipf} {
		_, cfg, err := config(t, "map-op", "--key_order="+order, "--nr_entries=1000", "--op=miss")
		if err != nil {
			t.Fatal(err)
		}
		c := cfg.(*mapOp)
		drawn, counts := c.draw(0), make(map[uint32]int)
		for _, i := range drawn {
			counts[i]++
		}
		if low, high := slices.Min(drawn), slices.Max(drawn); low < 1000 || high >= 2000 {
			t.Errorf("%s: indices from %d to %d, want them from 1000 to 1999", order, low, high)
		}
		if !slices.Equal(drawn, c.draw(0)) || slices.Equal(drawn, c.draw(1)) {
			t.Errorf("%s: want the same indices for a producer, and others for another", order)
		}
		if first := counts[1000]; (first > orderLen/10) != (order == orderZipf) {
			t.Errorf("%s: the first key is %d of %d", order, first, orderLen)
		}
	}
}

// The kernel's own figure is plausible: an entry of a hash map takes at least its bucket, its header, key and value.
func TestMapOpMemory(t *testing.T) {
	testutils.NeedsBPF(t)
	testutils.NoLeaks(t)
	res := measure(t, 1, "map-op", "--nr_entries=4096", "--max_entries=4096", "--nr_loops=10000")
	if res.Status != report.OK {
		t.Fatal(res.Status, res.Reason)
	}
	for _, run := range res.Runs {
		if len(run.Gauges) == 0 {
			t.Skip("before Linux 6.4, the kernel does not say")
		}
		g := run.Gauges[1]
		if g.Name != "memory_per_entry" || g.Value < 48+8+8+16 || g.Value > 200 || run.Gauges[0].Value != g.Value*4096 {
			t.Errorf("gauges %+v", run.Gauges)
		}
	}
}
