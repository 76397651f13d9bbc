package suite

import (
	"context"
	"fmt"

	"github.com/cilium/ebpf"

	"bpfbench/bench/harness"
	"bpfbench/internal/host"
	"bpfbench/internal/kernel"
	"bpfbench/producers"
	"bpfbench/progs"
	"bpfbench/report"
)

// lpmRun is a benchmark of tries made ready for one run.
type lpmRun struct {
	*work
	cfg *lpmTrie
}

// lpmSteps is what the program does in its modes, for errors.
var lpmSteps = map[progs.LpmTrieMode]string{
	progs.LpmTrieModeMODE_NOOP:     "do nothing",
	progs.LpmTrieModeMODE_BASELINE: "make key",
	progs.LpmTrieModeMODE_LOOKUP:   "look up key",
	progs.LpmTrieModeMODE_UPDATE:   "update key",
	progs.LpmTrieModeMODE_INSERT:   "insert key",
	progs.LpmTrieModeMODE_CHECK:    "look up key",
	progs.LpmTrieModeMODE_DELETE:   "delete key",
}

// lpmNodes is about what an entry takes in bytes: its node, and one where it branches off, each of 64 bytes as kmalloc has
// it (kernel/bpf/lpm_trie.c: struct lpm_trie_node, with a key of 4 bytes and a value).
const lpmNodes = 128

// fits refuses a trie that the memory has no room for.
func (c *lpmTrie) fits() error {
	have, err := host.MemAvailable()
	if need := c.nrEntries * lpmNodes; err == nil && need > have {
		return fmt.Errorf("fill a trie of %d entries: it needs about %d MiB of memory, and %d MiB are available: lower --nr_entries",
			c.nrEntries, need>>20, have>>20)
	}
	return nil // what is unknown does not forbid
}

// spec is the object, for this configuration. An update needs room for another entry up to Linux 6.12.
func (c *lpmTrie) spec() (*ebpf.CollectionSpec, error) {
	spec, err := progs.LoadLpmTrie()
	if err != nil {
		return nil, fmt.Errorf("read the program: %w", err)
	}
	spec.Maps[progs.LpmTrieMapTrie].MaxEntries = uint32(min(c.nrEntries+1, 1<<32-1))
	err = setConstants(spec, map[string]any{
		progs.LpmTrieVarNrEntries: uint32(c.nrEntries),
		progs.LpmTrieVarPrefixLen: uint32(c.prefixLen),
		progs.LpmTrieVarRandom:    c.random,
	})
	return spec, err
}

// load makes the trie, a slot for each producer, and the program.
func (r *lpmRun) load(producers int) error {
	spec, err := r.cfg.spec()
	if err != nil {
		return err
	}
	for _, name := range freePrograms {
		delete(spec.Programs, name)
	}
	m, err := ebpf.NewMap(spec.Maps[progs.LpmTrieMapTrie]) // first and apart, so that a refusal can be explained
	if err != nil {
		return kernel.ExplainMap(err, spec.Maps[progs.LpmTrieMapTrie])
	}
	defer m.Close()
	r.work, err = loadWork(spec, triggerTestRun, producers, map[string]*ebpf.Map{progs.LpmTrieMapTrie: m})
	return err
}

// ready fills the trie where the benchmark is one of what is in it, and then looks each key up once.
func (r *lpmRun) ready(ctx context.Context) error {
	switch r.cfg.kind.mode {
	case progs.LpmTrieModeMODE_LOOKUP, progs.LpmTrieModeMODE_UPDATE, progs.LpmTrieModeMODE_DELETE:
	default:
		return nil
	}
	aborted := func() bool { return ctx.Err() != nil }
	for _, mode := range []progs.LpmTrieMode{progs.LpmTrieModeMODE_INSERT, progs.LpmTrieModeMODE_CHECK} {
		if err := r.all(mode, aborted); err != nil {
			return fmt.Errorf("fill the trie: %w", err)
		}
	}
	return ctx.Err()
}

// all does one operation with each key. It ends early, without an error, when aborted.
func (r *lpmRun) all(mode progs.LpmTrieMode, aborted func() bool) error {
	n := r.cfg.nrEntries
	each := producers.Split{Pass: n, Passes: 1, Aborted: aborted, Call: r.once(0, mode)}
	done, err := each.All()
	if err == nil && done != n && !aborted() {
		err = fmt.Errorf("%s: %d of %d are done", lpmSteps[mode], done, n)
	}
	return err
}

// once is a call of producer i that goes over its part of the keys once.
func (r *lpmRun) once(i int, mode progs.LpmTrieMode) func(first, count, _ uint32) (producers.Done, error) {
	req := r.request(i, uint32(mode), lpmSteps[mode], r.testRun(i))
	if mode == progs.LpmTrieModeMODE_INSERT {
		return req.insert
	}
	return req.do
}

// lpmBatch is about how many operations a batch has, where it may have any number of passes.
const lpmBatch = 1 << 17

func (r *lpmRun) producer(w *harness.Worker) (harness.Producer, error) {
	k, n := r.cfg.kind, r.cfg.nrEntries
	batch := func(mode progs.LpmTrieMode) func() (report.Sample, error) {
		return r.split(w, uint32(mode), lpmSteps[mode], n, max(lpmBatch/n, 1)).Batch
	}
	p := harness.Producer{Batch: batch(k.mode)}
	if k.once {
		p.Batch = r.passes(w)
	}
	if k.mode != progs.LpmTrieModeMODE_NOOP {
		p.Twin = batch(k.twin)
	}
	return p, nil
}

// passes is batches of a pass of inserts or deletes each. Before a pass but the first, what the last one did is undone.
func (r *lpmRun) passes(w *harness.Worker) func() (report.Sample, error) {
	do, undo := r.once(w.ID, r.cfg.kind.mode), progs.LpmTrieModeMODE_INSERT
	if r.cfg.kind.mode == progs.LpmTrieModeMODE_INSERT {
		undo = progs.LpmTrieModeMODE_DELETE
	}
	again := false
	call := func(first, count, passes uint32) (producers.Done, error) {
		if first == 0 && again {
			if err := r.all(undo, w.Aborted); err != nil || w.Aborted() {
				return producers.Done{}, err
			}
		}
		again = true
		return do(first, count, passes)
	}
	s := &producers.Split{Pass: r.cfg.nrEntries, Passes: 1, Aborted: w.Aborted, Call: call}
	return s.Batch
}
