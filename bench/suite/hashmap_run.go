package suite

import (
	"context"
	"errors"
	"fmt"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"bpfbench/bench/harness"
	"bpfbench/internal/host"
	"bpfbench/internal/kernel"
	"bpfbench/producers"
	"bpfbench/progs"
	"bpfbench/report"
)

// hashmapRun is bpf-hashmap-lookup made ready for one run.
type hashmapRun struct {
	*work
	cfg *hashmapLookup
}

func (c *hashmapLookup) Setup(ctx context.Context, env harness.Env) (*harness.Instance, error) {
	r := &hashmapRun{cfg: c}
	if err := r.load(env.Producers); err != nil {
		return nil, err
	}
	if err := r.fill(ctx); err != nil {
		return nil, errors.Join(err, r.close())
	}
	return &harness.Instance{Producer: r.producer, Close: r.close}, nil
}

// lean is the constant of that name in the program: whether it can use its shorter callbacks.
func (c *hashmapLookup) lean() bool { return c.keySize <= stackKey && c.nrEntries <= wholePass }

// load makes the maps, a slot for each producer, and the program.
func (r *hashmapRun) load(producers int) error {
	c := r.cfg
	if err := c.fits(); err != nil {
		return err
	}
	spec, err := progs.LoadHashmapLookup()
	if err != nil {
		return fmt.Errorf("read the program: %w", err)
	}
	if err := setConstants(spec, map[string]any{progs.HashmapLookupVarLean: c.lean()}); err != nil {
		return err
	}
	hash := spec.Maps[progs.HashmapLookupMapHash]
	c.shape(hash)
	spec.Maps[progs.HashmapLookupMapValue].ValueSize = uint32(c.valueSize)
	r.work, err = loadWithMap(spec, hash, c.trigger, producers)
	return err
}

// shape gives a map the type and the size that the user asked for.
func (c *hashmapLookup) shape(m *ebpf.MapSpec) {
	m.Type, m.KeySize, m.ValueSize = c.typ, uint32(c.keySize), uint32(c.valueSize)
	m.MaxEntries, m.Flags = uint32(c.maxEntries), uint32(c.mapFlags)
}

// loadWithMap loads an object whose slots hold keys, with the map that the user has shaped: that is made first and apart, so
// that a refusal can be explained.
func loadWithMap(spec *ebpf.CollectionSpec, shaped *ebpf.MapSpec, t trigger, producers int) (*work, error) {
	m, err := ebpf.NewMap(shaped)
	if err != nil {
		return nil, kernel.ExplainMap(err, shaped)
	}
	defer m.Close()
	k, err := loadWork(spec, t, producers, map[string]*ebpf.Map{shaped.Name: m})
	if err != nil {
		return nil, err
	}
	for i := range producers {
		copy(k.slot(i)[progs.SlotSize:], keyPattern())
	}
	return k, nil
}

// fits refuses a map that the memory has no room for, before the kernel tries and takes everything else down with it.
func (c *hashmapLookup) fits() error {
	need := kernel.HashMapMemory(uint32(c.maxEntries), uint32(c.keySize), uint32(c.valueSize), c.mapFlags&unix.BPF_F_NO_PREALLOC == 0, uint32(c.nrEntries))
	have, err := host.MemAvailable()
	if err != nil || need <= have || c.maxEntries > kernel.MaxHashEntries {
		return nil // what is unknown does not forbid, and what no memory would help is the kernel's to refuse
	}
	remedy := "lower --max_entries, --key_size or --value_size"
	switch {
	case c.mapFlags&unix.BPF_F_NO_PREALLOC != 0:
		remedy = "lower --nr_entries, --key_size or --value_size"
	case c.typ == ebpf.Hash || c.typ == ebpf.PerCPUHash: // an LRU map always is preallocated
		remedy += ", or do not preallocate: --map_flags=no_prealloc"
	}
	return fmt.Errorf("make a map of %d entries: it needs about %d MiB of memory, and %d MiB are available: %s", c.maxEntries, need>>20, have>>20, remedy)
}

// keyPattern is the bytes of a key, no two neighbours alike and none zero. The program replaces the first four.
func keyPattern() []byte {
	key := make([]byte, maxKeySize)
	for i := range key {
		key[i] = byte(i*0x35)%255 + 1
	}
	return key
}

// fill inserts the entries and then looks each of them up once.
func (r *hashmapRun) fill(ctx context.Context) error {
	n := r.cfg.nrEntries
	if err := r.insertAll(ctx, uint32(progs.HashmapLookupModeMODE_FILL), n); err != nil {
		return err
	}
	return r.findAll(ctx, uint32(progs.HashmapLookupModeMODE_LOOKUP), n, r.cfg.lean())
}

// insertAll fills the map with n entries by the object's mode for that. Every insert must make a new entry.
func (k *work) insertAll(ctx context.Context, mode uint32, n uint64) error {
	inserts := k.request(0, mode, "insert entry", k.testRun(0))
	fill := producers.Split{Pass: n, Passes: 1, Aborted: func() bool { return ctx.Err() != nil }, Call: inserts.insert}
	filled, err := fill.All()
	return whole(ctx, "fill the map", filled, n, err)
}

// findAll looks up each of n entries by the object's mode for that, and must find it: so there are as many as were asked for.
func (k *work) findAll(ctx context.Context, mode uint32, n uint64, uncut bool) error {
	lookups := k.request(0, mode, lookUp, k.testRun(0))
	check := producers.Split{Pass: n, Passes: 1, Whole: uncut, Aborted: func() bool { return ctx.Err() != nil }, Call: lookups.do}
	found, err := check.All()
	return whole(ctx, "check the map's entries", found, n, err)
}

// whole is the error of what was to do n operations and did some.
func whole(ctx context.Context, what string, done, n uint64, err error) error {
	switch {
	case err != nil:
		return fmt.Errorf("%s: %w", what, err)
	case ctx.Err() == nil && done != n:
		return fmt.Errorf("%s: %d of %d were done", what, done, n)
	}
	return ctx.Err()
}

// producer readies a producer. Its calls use slot w.ID alone.
func (r *hashmapRun) producer(w *harness.Worker) (harness.Producer, error) {
	batch := func(mode progs.HashmapLookupMode) func() (report.Sample, error) {
		s := r.split(w, uint32(mode), lookUp, r.cfg.nrEntries, r.cfg.passes())
		s.Whole = r.cfg.lean()
		return s.Batch
	}
	return harness.Producer{Batch: batch(progs.HashmapLookupModeMODE_LOOKUP), Twin: batch(progs.HashmapLookupModeMODE_TWIN)}, nil
}

const lookUp = "look up entry"
