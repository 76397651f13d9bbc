package suite

import (
	"context"
	"errors"
	"fmt"
	"unsafe"

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
	if err := spec.Variables[progs.HashmapLookupVarLean].Set(c.lean()); err != nil {
		return fmt.Errorf("set a constant of the program: %w", err)
	}
	hash := spec.Maps[progs.HashmapLookupMapHash]
	hash.KeySize, hash.ValueSize = uint32(c.keySize), uint32(c.valueSize)
	hash.MaxEntries, hash.Flags = uint32(c.maxEntries), uint32(c.mapFlags)
	spec.Maps[progs.HashmapLookupMapValue].ValueSize = uint32(c.valueSize)

	// The map that the user has shaped is made first and apart, so that a refusal can be explained.
	m, err := ebpf.NewMap(hash)
	if err != nil {
		return kernel.ExplainMap(err, hash)
	}
	defer m.Close()
	r.work, err = loadWork(spec, c.trigger, producers, map[string]*ebpf.Map{hash.Name: m})
	if err != nil {
		return err
	}
	for i := range producers {
		copy(r.slot(i)[unsafe.Offsetof(progs.HashmapLookupKeyedSlot{}.Key):], keyPattern())
	}
	return nil
}

// fits refuses a map that the memory has no room for, before the kernel tries and takes everything else down with it.
func (c *hashmapLookup) fits() error {
	need := kernel.HashMapMemory(uint32(c.maxEntries), uint32(c.keySize), uint32(c.valueSize), c.mapFlags&unix.BPF_F_NO_PREALLOC == 0, uint32(c.nrEntries))
	have, err := host.MemAvailable()
	if err != nil || need <= have || c.maxEntries > kernel.MaxHashEntries {
		return nil // what is unknown does not forbid, and what no memory would help is the kernel's to refuse
	}
	remedy := "lower --max_entries, --key_size or --value_size, or do not preallocate: --map_flags=no_prealloc"
	if c.mapFlags&unix.BPF_F_NO_PREALLOC != 0 {
		remedy = "lower --nr_entries, --key_size or --value_size"
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

// fill inserts the entries and then looks each of them up once. Every insert must make a new entry, and every lookup must
// find one: so there are as many as were asked for.
func (r *hashmapRun) fill(ctx context.Context) error {
	n := r.cfg.nrEntries
	aborted := func() bool { return ctx.Err() != nil }

	inserts := r.request(0, uint32(progs.HashmapLookupModeMODE_FILL), "insert entry", r.testRun(0))
	fill := producers.Split{Pass: n, Passes: 1, Aborted: aborted, Call: inserts.insert}
	filled, err := fill.All()
	if err != nil {
		return fmt.Errorf("fill the map: %w", err)
	}
	lookups := r.request(0, uint32(progs.HashmapLookupModeMODE_LOOKUP), lookUp, r.testRun(0))
	check := producers.Split{Pass: n, Passes: 1, Whole: r.cfg.lean(), Aborted: aborted, Call: lookups.do}
	found, err := check.All()
	if err != nil {
		return fmt.Errorf("check the map's entries: %w", err)
	}
	if ctx.Err() == nil && (filled != n || found != n) {
		return fmt.Errorf("fill the map: %d entries were inserted and %d found, of %d", filled, found, n)
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
