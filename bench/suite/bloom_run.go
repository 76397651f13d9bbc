package suite

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/bits"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"bpfbench/bench/harness"
	"bpfbench/internal/host"
	"bpfbench/internal/kernel"
	"bpfbench/producers"
	"bpfbench/progs"
	"bpfbench/report"
)

// bloomRun is a benchmark of bloom filters made ready for one run.
type bloomRun struct {
	*work
	cfg    *bloom
	before []uint32     // of the first i probed values, before[i] are in the hash map; nil where none is probed
	tally  []bloomTally // of each producer
}

// bloomTally is what a producer's calls have found, warm-up and all.
type bloomTally struct {
	probes, found, falseHits uint64
	_                        [104]byte
}

func (c *bloom) Setup(ctx context.Context, env harness.Env) (*harness.Instance, error) {
	r := &bloomRun{cfg: c, tally: make([]bloomTally, env.Producers)}
	if err := r.load(env.Producers); err != nil {
		return nil, err
	}
	if err := r.fill(ctx); err != nil {
		return nil, errors.Join(err, r.close())
	}
	return &harness.Instance{Producer: r.producer, Check: r.check, Close: r.close}, nil
}

// load makes the maps that the benchmark uses, a slot for each producer, and the program.
func (r *bloomRun) load(producers int) error {
	c := r.cfg
	if err := c.fits(); err != nil {
		return err
	}
	spec, err := progs.LoadBloom()
	if err != nil {
		return fmt.Errorf("read the program: %w", err)
	}
	size, n := uint32(c.valueSize), uint32(c.nrEntries)
	filter, hash, values := spec.Maps[progs.BloomMapBloom], spec.Maps[progs.BloomMapHash], spec.Maps[progs.BloomMapValues]
	filter.ValueSize, hash.KeySize, hash.ValueSize = size, size, size
	stride := uint32(c.values().stride())
	values.ValueSize, values.MaxEntries = progs.BloomChunk*stride, uint32(c.elements())
	if err := setConstants(spec, map[string]any{progs.BloomVarStride: stride}); err != nil {
		return err
	}
	if c.kind.filter {
		filter.MaxEntries, filter.MapExtra = n, c.hashFuncs
	}
	if c.kind.hash {
		hash.MaxEntries = n
	}

	// These maps are made first and apart, so that a refusal can be explained.
	own := make(map[string]*ebpf.Map)
	for _, spec := range []*ebpf.MapSpec{filter, hash, values} {
		m, err := ebpf.NewMap(spec)
		if err != nil {
			return kernel.ExplainMap(err, spec)
		}
		defer m.Close()
		own[spec.Name] = m
	}
	r.work, err = loadWork(spec, triggerTestRun, producers, own)
	return err
}

// base is the index of the first value behind those that are in the maps, where a chunk begins.
func (c *bloom) base() uint64 { return chunked(c.nrEntries) }

// elements is how many chunks of values there are.
func (c *bloom) elements() uint64 { return (c.base() + c.probes()) / progs.BloomChunk }

// chunked returns the beginning of a chunk that is not below n.
func chunked(n uint64) uint64 {
	return (n + progs.BloomChunk - 1) / progs.BloomChunk * progs.BloomChunk
}

// fits refuses maps that the memory has no room for.
func (c *bloom) fits() error {
	need := c.elements() * progs.BloomChunk * uint64(c.values().stride())
	if c.kind.filter { // kernel/bpf/bloom_filter.c: bloom_map_alloc
		need += 1 << bits.Len64(c.nrEntries*c.hashFuncs*7/5) / 8
	}
	if c.kind.hash {
		need += kernel.HashMapMemory(uint32(c.nrEntries), uint32(c.valueSize), uint32(c.valueSize), true, 0)
	}
	have, err := host.MemAvailable()
	if err != nil || need <= have {
		return nil // what is unknown does not forbid
	}
	return fmt.Errorf("make maps of %d entries: they need about %d MiB of memory, and %d MiB are available: lower --nr_entries or --value_size",
		c.nrEntries, need>>20, have>>20)
}

// fill writes the values, puts them into the maps that the benchmark uses, and then looks each of them up once.
func (r *bloomRun) fill(ctx context.Context) error {
	c := r.cfg
	memory, err := mapSlots(r.coll.Maps[progs.BloomMapValues])
	if err != nil {
		return err
	}
	v, stride := c.values(), uint64(c.values().stride())
	v.fill(ctx, memory, c.nrEntries)
	if c.kind.hash {
		var low uint64
		if c.kind.absent {
			low = c.nrEntries
		}
		r.before = v.draw(memory[c.base()*stride:][:c.probes()*stride], low, c.nrEntries)
	}
	if err := unix.Munmap(memory); err != nil {
		return fmt.Errorf("unmap the values: %w", err)
	}
	var steps []progs.BloomMode
	if c.kind.filter {
		steps = append(steps, progs.BloomModeMODE_PUSH, progs.BloomModeMODE_PEEK)
	}
	if c.kind.hash {
		steps = append(steps, progs.BloomModeMODE_INSERT, progs.BloomModeMODE_PROBE)
	}
	for _, step := range steps {
		if err := r.all(ctx, step); err != nil {
			return fmt.Errorf("fill the maps: %w", err)
		}
	}
	return ctx.Err()
}

// bloomSteps is what the program does in its modes, for errors.
var bloomSteps = map[progs.BloomMode]string{
	progs.BloomModeMODE_PUSH:       "add value to the filter",
	progs.BloomModeMODE_PEEK:       "find value in the filter",
	progs.BloomModeMODE_INSERT:     "insert value",
	progs.BloomModeMODE_PROBE:      "look up value",
	progs.BloomModeMODE_PROBE_BOTH: "look up value",
	progs.BloomModeMODE_TWIN:       "read value",
}

// all does one operation with each of the values that are to be in the maps.
func (r *bloomRun) all(ctx context.Context, mode progs.BloomMode) error {
	req := r.request(0, uint32(mode), bloomSteps[mode], r.testRun(0))
	var found uint64
	n := r.cfg.nrEntries
	each := r.batches(req, 0, n, 1, func(uint32, uint32, uint32) error { found += r.header(0).Counts[progs.BloomFound]; return nil })
	each.Aborted = func() bool { return ctx.Err() != nil }
	switch ops, err := each.All(); {
	case err != nil || ctx.Err() != nil:
		return err
	case ops != n:
		return fmt.Errorf("%s: done with %d of %d", bloomSteps[mode], ops, n)
	case mode == progs.BloomModeMODE_PROBE && found != n:
		return fmt.Errorf("the hash map has %d of %d values", found, n)
	}
	return nil
}

// bloomBatch is about how many operations a batch has: some milliseconds.
const bloomBatch = 1 << 17

// batches are of passes passes over pass values from base on. Calls do whole chunks, each value once a pass. count is
// told of each call.
func (r *bloomRun) batches(req *request, base, pass, passes uint64, count func(first, n, passes uint32) error) *producers.Split {
	call := func(first, n, passes uint32) (producers.Done, error) {
		end := min(chunked(uint64(first)+uint64(n)), pass)
		first = uint32(chunked(uint64(first)))
		n = uint32(end) - first
		done, err := req.do(uint32(base)+first, n, passes)
		if err != nil {
			return done, err
		}
		return done, count(first, n, passes)
	}
	return &producers.Split{Pass: pass, Passes: passes, Call: call}
}

// producer readies a producer. It goes through the values that are in the filter, or through those behind them, which
// are to be looked for.
func (r *bloomRun) producer(w *harness.Worker) (harness.Producer, error) {
	base, pass := uint64(0), r.cfg.nrEntries
	if r.cfg.kind.hash {
		base, pass = r.cfg.base(), r.cfg.probes()
	}
	batch := func(mode progs.BloomMode, count func(first, n, passes uint32) error) func() (report.Sample, error) {
		s := r.batches(r.request(w.ID, uint32(mode), bloomSteps[mode], r.caller(w.ID)), base, pass, max(bloomBatch/pass, 1), count)
		s.Aborted = w.Aborted
		return s.Batch
	}
	return harness.Producer{
		Batch: batch(r.cfg.kind.mode, func(first, n, passes uint32) error { return r.count(w.ID, first, n, passes) }),
		Twin:  batch(progs.BloomModeMODE_TWIN, func(uint32, uint32, uint32) error { return nil }),
	}, nil
}

// count adds up what a call of producer i found. It must be what is there.
func (r *bloomRun) count(i int, first, n, passes uint32) error {
	if r.before == nil {
		return nil
	}
	counts := r.header(i).Counts
	want := uint64(r.before[first+n]-r.before[first]) * uint64(passes)
	if got := counts[progs.BloomFound]; got != want {
		return fmt.Errorf("%d values were found, and %d are there", got, want)
	}
	t := &r.tally[i]
	t.probes += uint64(n) * uint64(passes)
	t.found += want
	t.falseHits += counts[progs.BloomFalseHits]
	return nil
}

// check adds the numbers of what was found. They are counted over all calls, of which the run keeps some; as each pass
// finds the same, they are exact where whole passes are kept, which they are where no producer moved to another CPU.
func (r *bloomRun) check(run *report.Run) error {
	if r.before == nil {
		return nil
	}
	var all bloomTally
	for _, t := range r.tally {
		all.probes += t.probes
		all.found += t.found
		all.falseHits += t.falseHits
	}
	var ops uint64
	for _, s := range run.Samples {
		ops += s.Ops
	}
	gauge := func(name string, counted uint64) {
		value := math.Round(float64(counted) / float64(all.probes) * float64(ops))
		run.Gauges = append(run.Gauges, report.Gauge{Name: name, Value: value})
	}
	if !r.cfg.kind.absent {
		gauge("found", all.found)
	}
	if r.cfg.kind.filter {
		gauge("false_hits", all.falseHits)
	}
	return nil
}
