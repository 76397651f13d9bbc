package suite

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"bpfbench/bench/harness"
	"bpfbench/internal/testutils"
	"bpfbench/progs"
	"bpfbench/report"
)

func TestLPMTrieResolve(t *testing.T) {
	for _, tt := range []struct {
		name, settings string
		problems       []string
	}{
		{name: "lpm-trie-lookup", settings: "--random --nr_entries=65536 --prefix_len=16"},
		{name: "lpm-trie-noop", settings: "--random"},
		{name: "lpm-trie-free", settings: "--nr_entries=1 --prefix_len=1"},
		{name: "lpm-trie-update", settings: "--nr_entries=4294967295"},
		{name: "lpm-trie-lookup", settings: "--nr_entries=257 --prefix_len=8", problems: []string{"--nr_entries=257: prefix_len 8 allows 256 distinct keys"}},
		{name: "lpm-trie-lookup", settings: "--nr_entries=0 --prefix_len=33", problems: []string{"--nr_entries=0", "--prefix_len=33: must be from 1 to 32"}},
		{name: "lpm-trie-insert", settings: "--prefix_len=0 --random", problems: []string{"--prefix_len=0", "--random: lpm-trie-insert"}},
		{name: "lpm-trie-lookup", settings: "--prefix_len=64", problems: []string{"--prefix_len=64"}},
		{name: "lpm-trie-delete", settings: "--random", problems: []string{"--random: lpm-trie-delete"}},
		{name: "lpm-trie-free", settings: "--random", problems: []string{"--random: lpm-trie-free"}},
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

// A sample is whole passes, and of inserts and deletes exactly one, whatever the length of prefixes and the order of keys.
func TestLPMTrieExact(t *testing.T) {
	testutils.NeedsBPF(t)
	testutils.NoLeaks(t)
	for _, tt := range []struct {
		producers      int
		name, settings string
		ops            uint64
	}{
		{1, "lpm-trie-noop", "--nr_entries=1000", 131000},
		{1, "lpm-trie-baseline", "--nr_entries=1 --random", 131072},
		{1, "lpm-trie-lookup", "--nr_entries=1024 --prefix_len=10", 131072},
		{2, "lpm-trie-lookup", "--nr_entries=1000 --random", 131000},
		{1, "lpm-trie-lookup", "--nr_entries=150000", 150000},
		{1, "lpm-trie-update", "--nr_entries=2 --prefix_len=1", 131072},
		{2, "lpm-trie-update", "--nr_entries=3000 --random", 129000},
		{1, "lpm-trie-insert", "--nr_entries=256 --prefix_len=8", 256},
		{1, "lpm-trie-insert", "--nr_entries=1", 1},
		{1, "lpm-trie-delete", "--nr_entries=20001", 20001},
	} {
		res := measure(t, tt.producers, tt.name, strings.Fields(tt.settings)...)
		if res.Status != report.OK {
			t.Errorf("%s %s: %s: %s", tt.name, tt.settings, res.Status, res.Reason)
		}
		for _, run := range res.Runs {
			if len(run.Samples) == 0 || (len(run.Twin) == 0) != (tt.name == "lpm-trie-noop") {
				t.Errorf("%s %s: %d samples and %d of the twin", tt.name, tt.settings, len(run.Samples), len(run.Twin))
			}
			for _, s := range run.Samples {
				if s.Ops != tt.ops {
					t.Errorf("%s %s: a sample has %d operations, want %d", tt.name, tt.settings, s.Ops, tt.ops)
				}
			}
		}
	}
}

// lpmInstance is a benchmark of tries made ready, with its producer.
func lpmInstance(t *testing.T, name string, settings ...string) (*lpmRun, harness.Producer) {
	t.Helper()
	_, cfg, err := config(t, name, settings...)
	if err != nil {
		t.Fatal(err)
	}
	r := &lpmRun{cfg: cfg.(*lpmTrie)}
	if err := r.load(1); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.close(); err != nil {
			t.Error(err)
		}
	})
	if err := r.ready(t.Context()); err != nil {
		t.Fatal(err)
	}
	p, err := r.producer(new(harness.Worker))
	if err != nil {
		t.Fatal(err)
	}
	return r, p
}

// keysOf are the keys in a trie, as the kernel lists them.
func keysOf(t *testing.T, r *lpmRun) (keys []lpmKey) {
	t.Helper()
	var key lpmKey
	var value uint32
	all := r.coll.Maps[progs.LpmTrieMapTrie].Iterate()
	for all.Next(&key, &value) {
		keys = append(keys, key)
	}
	if err := all.Err(); err != nil {
		t.Fatal(err)
	}
	return keys
}

// A batch of inserts leaves a full trie and one of deletes an empty one, time and again.
func TestLPMTriePasses(t *testing.T) {
	testutils.NeedsBPF(t)
	for name, left := range map[string]int{"lpm-trie-insert": 5000, "lpm-trie-delete": 0} {
		r, p := lpmInstance(t, name, "--nr_entries=5000", "--prefix_len=13")
		for range 3 {
			s, err := p.Batch()
			if err != nil || s.Ops == 0 {
				t.Fatalf("%s: %+v, %v", name, s, err)
			}
			for done := s.Ops; done < 5000; done += s.Ops { // the thread is not bound
				if s, err = p.Batch(); err != nil {
					t.Fatal(err)
				}
			}
			keys := keysOf(t, r)
			if len(keys) != left {
				t.Fatalf("%s: %d keys are left, want %d", name, len(keys), left)
			}
			for _, k := range keys {
				if k.PrefixLen != 13 || k.Data[2] != 0 || k.Data[1]&7 != 0 {
					t.Fatalf("%s: key %v", name, k)
				}
			}
		}
	}
}

// A key that is missing, or is there already, ends the batch with an error that says which.
func TestLPMTrieMisses(t *testing.T) {
	testutils.NeedsBPF(t)
	gone := lpmKey{PrefixLen: 32, Data: [4]byte{0, 0, 1, 4}} // 260
	for name, want := range map[string]string{"lpm-trie-lookup": "look up key 260", "lpm-trie-update": "update key 260", "lpm-trie-delete": "delete key 260"} {
		r, p := lpmInstance(t, name, "--nr_entries=1000")
		if err := r.coll.Maps[progs.LpmTrieMapTrie].Delete(gone); err != nil {
			t.Fatal(err)
		}
		if _, err := p.Batch(); !errors.Is(err, unix.ENOENT) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %q", name, err, want)
		}
	}
	r, p := lpmInstance(t, "lpm-trie-insert", "--nr_entries=1000")
	if err := r.coll.Maps[progs.LpmTrieMapTrie].Put(gone, uint32(0)); err != nil {
		t.Fatal(err)
	}
	if _, err := p.Batch(); !errors.Is(err, unix.EEXIST) || !strings.Contains(err.Error(), "insert key 260") {
		t.Errorf("lpm-trie-insert: error %v", err)
	}
}

// Each trie gives one sample, whatever other maps go at the same time, and none where the kernel's function is not seen.
func TestLPMTrieFree(t *testing.T) {
	testutils.NeedsBPF(t)
	testutils.Needs(t, hook("fentry")())
	testutils.NoLeaks(t)
	_, cfg, err := config(t, "lpm-trie-free", "--nr_entries=20000", "--prefix_len=24")
	if err != nil {
		t.Fatal(err)
	}
	f, err := cfg.(*lpmTrie).loadFree(1)
	if err != nil {
		t.Fatal(err)
	}
	stop, others := make(chan struct{}), make(chan error)
	go func() { others <- freeTries(stop) }()
	w := new(harness.Worker)
	for range 10 {
		if s, err := f.batch(w); err != nil || s.Ops != 1 || s.Elapsed == 0 {
			t.Errorf("sample %+v, %v", s, err)
		}
	}
	close(stop)
	if err := <-others; err != nil {
		t.Error(err)
	}
	for _, l := range f.links {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	}
	f.links, f.limit = nil, 10*time.Millisecond
	if s, err := f.batch(w); err == nil || !strings.Contains(err.Error(), "there is no sample") {
		t.Errorf("nothing is attached: %+v, %v", s, err)
	}
	if err := f.close(); err != nil {
		t.Error(err)
	}
}

// freeTries makes tries and closes them, until it is to stop.
func freeTries(stop <-chan struct{}) error {
	for {
		select {
		case <-stop:
			return nil
		default:
		}
		m, err := ebpf.NewMap(&ebpf.MapSpec{Type: ebpf.LPMTrie, KeySize: 8, ValueSize: 4, MaxEntries: 1000, Flags: unix.BPF_F_NO_PREALLOC, Name: "other"})
		if err != nil {
			return err
		}
		keys := make([]lpmKey, 1000)
		for i := range keys {
			keys[i] = lpmKey{32, [4]byte{byte(i), byte(i >> 8)}}
		}
		_, err = m.BatchUpdate(keys, make([]uint32, len(keys)), nil)
		if err = errors.Join(err, m.Close()); err != nil {
			return err
		}
	}
}
