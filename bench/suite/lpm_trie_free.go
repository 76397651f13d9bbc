package suite

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"

	"bpfbench/bench/harness"
	"bpfbench/internal/kernel"
	"bpfbench/progs"
	"bpfbench/report"
)

// freePrograms are on the kernel's function that frees maps: at its entry, and at its exit.
var freePrograms = []string{progs.LpmTrieProgFreeEntry, progs.LpmTrieProgFreeExit}

// lpmFree is lpm-trie-free made ready for one run.
type lpmFree struct {
	*work
	cfg    *lpmTrie
	trie   *ebpf.MapSpec // of a name that no other map has
	links  []link.Link
	keys   []lpmKey // memory for a part of the keys
	values []uint32
	limit  time.Duration // for a trie to be freed
}

// lpmKey is struct trie_key of the program.
type lpmKey struct {
	PrefixLen uint32
	Data      [4]byte
}

// lpmPart is how many keys one system call inserts: some milliseconds.
const lpmPart = 1 << 14

func (c *lpmTrie) setupFree(env harness.Env) (*harness.Instance, error) {
	f, err := c.loadFree(env.Producers)
	if err != nil {
		return nil, err
	}
	return &harness.Instance{Producer: f.producer, Close: f.close}, nil
}

// loadFree loads the programs that time the freeing of a trie, and attaches them.
func (c *lpmTrie) loadFree(producers int) (*lpmFree, error) {
	spec, err := c.spec()
	if err != nil {
		return nil, err
	}
	f := &lpmFree{
		cfg: c, trie: spec.Maps[progs.LpmTrieMapTrie].Copy(), keys: make([]lpmKey, lpmPart), values: make([]uint32, lpmPart),
		limit: 5*time.Second + time.Duration(c.nrEntries)*time.Microsecond, // it takes a tenth of that, or never comes
	}
	f.trie.Name = fmt.Sprintf("lpm_%08x", rand.Uint32())
	var name [16]byte
	copy(name[:], f.trie.Name)
	words := [2]uint64{binary.LittleEndian.Uint64(name[:8]), binary.LittleEndian.Uint64(name[8:])}
	if err := setConstants(spec, map[string]any{progs.LpmTrieVarName: words}); err != nil {
		return nil, err
	}
	if f.work, err = loadWork(spec, triggerTestRun, producers, nil); err != nil {
		return nil, err
	}
	for _, name := range freePrograms {
		l, err := link.AttachTracing(link.TracingOptions{Program: f.coll.Programs[name]})
		if err != nil {
			err = kernel.Explain(err, "attach to bpf_map_free_deferred", kernel.CapPerfmon)
			return nil, errors.Join(err, f.close())
		}
		f.links = append(f.links, l)
	}
	return f, nil
}

func (f *lpmFree) close() error {
	var errs []error
	for _, l := range f.links {
		errs = append(errs, l.Close())
	}
	return errors.Join(append(errs, f.work.close())...)
}

func (f *lpmFree) producer(w *harness.Worker) (harness.Producer, error) {
	return harness.Producer{Batch: func() (report.Sample, error) { return f.batch(w) }}, nil
}

// batch makes a trie, fills it, and lets the kernel free it.
func (f *lpmFree) batch(w *harness.Worker) (report.Sample, error) {
	trie, err := ebpf.NewMap(f.trie)
	if err != nil {
		return report.Sample{}, kernel.ExplainMap(err, f.trie)
	}
	err = f.fill(w, trie)
	slot := f.header(0)
	atomic.StoreUint64(&slot.Calls, 0)
	if err = errors.Join(err, trie.Close()); err != nil || w.Aborted() {
		return report.Sample{}, err
	}
	return f.await(w, slot)
}

// fill inserts all keys.
func (f *lpmFree) fill(w *harness.Worker, trie *ebpf.Map) error {
	n := f.cfg.nrEntries
	for first := uint64(0); first < n && !w.Aborted(); first += lpmPart {
		part := f.keys[:min(n-first, lpmPart)]
		for i := range part {
			part[i].PrefixLen = uint32(f.cfg.prefixLen)
			binary.BigEndian.PutUint32(part[i].Data[:], uint32(first+uint64(i))<<(32-f.cfg.prefixLen))
		}
		done, err := trie.BatchUpdate(part, f.values[:len(part)], nil)
		if err != nil || done != len(part) {
			return errors.Join(err, fmt.Errorf("fill the trie: %d of %d keys are inserted", first+uint64(done), n))
		}
	}
	return nil
}

// await waits until the kernel has freed the trie, and returns how long that took.
func (f *lpmFree) await(w *harness.Worker, slot *progs.Slot) (report.Sample, error) {
	for start := time.Now(); atomic.LoadUint64(&slot.Calls) == 0; time.Sleep(moment / 10) {
		if w.Aborted() {
			return report.Sample{}, nil
		}
		if time.Since(start) > f.limit {
			return report.Sample{}, fmt.Errorf("free the trie: the kernel was not seen to end it within %v, so there is no sample: lower --nr_entries", f.limit)
		}
	}
	if calls := atomic.LoadUint64(&slot.Calls); calls != 1 {
		return report.Sample{}, fmt.Errorf("free the trie: it was freed %d times", calls)
	}
	return report.Sample{CPU: int(slot.Cpu), Ops: slot.Ops, Elapsed: slot.Ns}, nil
}
