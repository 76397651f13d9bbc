package suite

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/cilium/ebpf"

	"bpfbench/bench/harness"
	"bpfbench/progs"
	"bpfbench/report"
)

const (
	memBatch = 64 // BATCH of the program
	// memCall is the operations that a call asks for: an even number of batches, so that each call ends as it began.
	memCall = 16 * memBatch
)

// htabMemRun is htab-mem made ready for one run.
type htabMemRun struct {
	*work
	cfg      *htabMem
	memory   *mapMemory
	counters []padded
	batons   []baton // of the pairs of producers
}

func (c *htabMem) Setup(_ context.Context, env harness.Env) (*harness.Instance, error) {
	if c.useCase == useDiffCPU && env.Producers%2 != 0 {
		return nil, fmt.Errorf("--use-case=%s: one producer adds and another deletes, so their number must be even, and is %d: use -p %d",
			c.useCase, env.Producers, env.Producers+1)
	}
	r := &htabMemRun{cfg: c, counters: make([]padded, env.Producers), batons: make([]baton, env.Producers/2)}
	if err := r.load(env.Producers); err != nil {
		return nil, err
	}
	env.Fact(r.memory.from())
	producer := func(w *harness.Worker) (harness.Producer, error) {
		if c.useCase == useDiffCPU && w.CPU < 0 {
			env.Warn(report.Warning{What: "the two producers of a pair may run on the same CPU", Remedy: "bind them: -a"})
		}
		return harness.Producer{Spin: r.spin(w)}, nil
	}
	return &harness.Instance{Producer: producer, Count: r.count, Check: r.memory.check, Close: r.close}, nil
}

// load makes the map, with what measures its memory, and loads the program.
func (r *htabMemRun) load(producers int) (err error) {
	spec, err := progs.LoadHtabMem()
	if err != nil {
		return fmt.Errorf("read the program: %w", err)
	}
	together := 1 // producers that share their keys
	if r.cfg.useCase == useDiffCPU {
		together = 2
	}
	err = setConstants(spec, map[string]any{
		progs.HtabMemVarOwners: uint32(producers / together), progs.HtabMemVarProducersOfOwner: uint32(together),
	})
	if err != nil {
		return err
	}
	hash := spec.Maps[progs.HtabMemMapHash]
	r.cfg.shape(hash, producers)
	if r.memory, err = newMapMemory(hash); err != nil {
		return err
	}
	r.work, err = loadWork(spec, triggerTestRun, producers, map[string]*ebpf.Map{hash.Name: r.memory.m})
	if err != nil {
		return errors.Join(err, r.memory.close())
	}
	return nil
}

func (r *htabMemRun) close() error { return errors.Join(r.work.close(), r.memory.close()) }

// count is called at every tick.
func (r *htabMemRun) count(into []harness.Count) {
	for i := range into {
		into[i].Ops = r.counters[i].ops.Load()
	}
	r.memory.sample()
}

// spin returns what producer w does: it asks for operations until it is told to stop, and counts them in batches.
func (r *htabMemRun) spin(w *harness.Worker) func() error {
	mode, what, count := progs.HtabMemModeMODE_OVERWRITE, "update element", uint32(memCall)
	var own *turns
	switch r.cfg.useCase {
	case useAddDel:
		mode, what = progs.HtabMemModeMODE_ADD_DELETE, "update or delete element"
	case useDiffCPU:
		mode, count = progs.HtabMemModeMODE_ADD, memBatch
		if w.ID%2 == 1 {
			mode, what = progs.HtabMemModeMODE_DELETE, "delete element"
		}
		own = &turns{baton: &r.batons[w.ID/2], mine: uint32(w.ID % 2)}
	}
	call, batches := r.request(w.ID, uint32(mode), what, r.testRun(w.ID)), &r.counters[w.ID].ops
	return func() error {
		for own.await(w) {
			if _, err := call.insert(0, count, 1); err != nil {
				return err
			}
			batches.Add(uint64(count / memBatch))
			own.pass()
		}
		return nil
	}
}

// baton is what the two producers of a pair hand to each other, on cache lines of its own. It is who has it: 0 or 1.
type baton struct {
	holder atomic.Uint32
	_      [124]byte
}

// turns is one producer's side of a baton. Of nil, it is always that producer's turn.
type turns struct {
	baton *baton
	mine  uint32
}

const (
	// spins is how often a producer looks for its turn, which is some microseconds away, before it takes the other producer
	// to be waiting for a CPU, perhaps its own, and sleeps for a nap.
	spins = 1 << 13
	nap   = 20 * time.Microsecond
)

// await returns true when it is the producer's turn, and false when it is to stop.
func (t *turns) await(w *harness.Worker) bool {
	for tries := 0; !w.Stopped(); tries++ {
		if t == nil || t.baton.holder.Load() == t.mine {
			return true
		}
		if tries >= spins {
			time.Sleep(nap)
		}
	}
	return false
}

func (t *turns) pass() {
	if t != nil {
		t.baton.holder.Store(1 - t.mine)
	}
}
