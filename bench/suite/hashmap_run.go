package suite

import (
	"context"
	"errors"
	"fmt"
	"unsafe"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"

	"bpfbench/bench/harness"
	"bpfbench/internal/host"
	"bpfbench/internal/kernel"
	"bpfbench/internal/tracefs"
	"bpfbench/producers"
	"bpfbench/progs"
	"bpfbench/report"
)

// hashmapRun is bpf-hashmap-lookup made ready for one run.
type hashmapRun struct {
	cfg   *hashmapLookup
	coll  *ebpf.Collection
	call  *ebpf.Program // for test_run
	slots []byte        // of the producers, mapped
	tp    link.Link     // of the trigger tp, else nil
}

func (c *hashmapLookup) Setup(ctx context.Context, env harness.Env) (*harness.Instance, error) {
	r := &hashmapRun{cfg: c}
	err := r.load(env.Producers)
	if err == nil {
		err = r.fill(ctx)
	}
	if err == nil && c.trigger == triggerTP {
		err = r.attach()
	}
	if err != nil {
		return nil, errors.Join(err, r.close())
	}
	return &harness.Instance{Producer: r.producer, Close: r.close}, nil
}

func (r *hashmapRun) close() error {
	var errs []error
	if r.tp != nil {
		errs = append(errs, r.tp.Close())
	}
	if r.slots != nil {
		errs = append(errs, unix.Munmap(r.slots))
	}
	if r.coll != nil {
		r.coll.Close()
	}
	return errors.Join(errs...)
}

// attach puts the program on the tracepoint of getpgid, where it runs when this process asks for it and at no other call.
func (r *hashmapRun) attach() (err error) {
	if err := tracefs.Mount(); err != nil {
		return err
	}
	r.tp, err = link.Tracepoint("syscalls", "sys_enter_getpgid", r.coll.Programs[progs.HashmapLookupProgGetpgid], nil)
	return kernel.Explain(err, "attach to the tracepoint of getpgid", unix.CAP_PERFMON)
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
	spec.Maps[progs.HashmapLookupMapSlots].MaxEntries = uint32(producers)
	if c.trigger != triggerTP {
		delete(spec.Programs, progs.HashmapLookupProgGetpgid)
	}

	// The map that the user has shaped is made first and apart, so that a refusal can be explained.
	m, err := ebpf.NewMap(hash)
	if err != nil {
		return kernel.ExplainMap(err, hash)
	}
	defer m.Close()
	r.coll, err = ebpf.NewCollectionWithOptions(spec, ebpf.CollectionOptions{MapReplacements: map[string]*ebpf.Map{hash.Name: m}})
	if err != nil {
		return kernel.Explain(err, "load the program", unix.CAP_BPF, unix.CAP_PERFMON)
	}
	r.call = r.coll.Programs[progs.HashmapLookupProgCall]
	if r.slots, err = mapSlots(r.coll.Maps[progs.HashmapLookupMapSlots]); err != nil {
		return err
	}
	for i := range producers {
		copy(r.slots[slotOffset(i)+int(unsafe.Offsetof(progs.HashmapLookupSlot{}.Key)):], keyPattern())
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

func slotOffset(i int) int { return i * int(unsafe.Sizeof(progs.HashmapLookupSlot{})) }

// fill inserts the entries and then looks each of them up once. Every insert must make a new entry, and every lookup must
// find one: so there are as many as were asked for.
func (r *hashmapRun) fill(ctx context.Context) error {
	n := r.cfg.nrEntries
	run := producers.NewTestRun(r.call.FD(), 0)
	aborted := func() bool { return ctx.Err() != nil }

	inserts := newSlotCall(r.slots, 0, progs.HashmapLookupModeMODE_FILL, run)
	fill := producers.Split{Pass: n, Passes: 1, Aborted: aborted, Call: inserts.insert}
	filled, err := fill.All()
	if err != nil {
		return fmt.Errorf("fill the map: %w", err)
	}
	lookups := newSlotCall(r.slots, 0, progs.HashmapLookupModeMODE_LOOKUP, run)
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
	var run caller = producers.NewTestRun(r.call.FD(), uint64(w.ID))
	if r.tp != nil {
		run = producers.NewGetpgid(uint32(w.ID))
	}
	batch := func(mode progs.HashmapLookupMode) func() (report.Sample, error) {
		s := &producers.Split{Pass: r.cfg.nrEntries, Passes: r.cfg.passes(), Whole: r.cfg.lean(), Aborted: w.Aborted,
			Call: newSlotCall(r.slots, w.ID, mode, run).do}
		return s.Batch
	}
	return harness.Producer{Batch: batch(progs.HashmapLookupModeMODE_LOOKUP), Twin: batch(progs.HashmapLookupModeMODE_TWIN)}, nil
}
