package suite

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"bpfbench/bench/harness"
	"bpfbench/fetcharg"
	"bpfbench/internal/host"
	"bpfbench/producers"
	"bpfbench/progs"
	"bpfbench/report"
)

// mapRun is a benchmark of operations on a map made ready for one run.
type mapRun struct {
	*work
	cfg *mapOp
	m   *ebpf.Map
}

func (c *mapOp) Setup(ctx context.Context, env harness.Env) (*harness.Instance, error) {
	if err := c.room(env.Producers); err != nil {
		return nil, err
	}
	r := &mapRun{cfg: c}
	if err := r.load(env.Producers); err != nil {
		return nil, err
	}
	if err := r.fill(ctx); err != nil {
		return nil, errors.Join(err, r.close())
	}
	producer := r.producer
	if c.from != fromBPF {
		producer = r.userProducer
	}
	return &harness.Instance{Producer: producer, Check: r.weigh, Close: r.close}, nil
}

// load makes the map and what goes with it, and loads the program for it.
func (r *mapRun) load(producers int) error {
	c := r.cfg
	if !c.kind.array {
		sized := c.hashmapLookup
		sized.valueSize = uint64(c.valueStride())
		if err := sized.fits(); err != nil {
			return err
		}
	}
	spec, err := c.spec(producers)
	if err != nil {
		return err
	}
	if r.work, err = loadWithMap(spec, spec.Maps[progs.MapOpMapMap], c.trigger, producers); err != nil {
		return err
	}
	r.m = r.coll.Maps[progs.MapOpMapMap]
	for i := range producers {
		copy(r.slot(i)[progs.SlotSize:], c.prefix())
		if c.ordered() {
			err = errors.Join(err, r.coll.Maps[progs.MapOpMapOrders].Put(uint32(i), c.draw(i)))
		}
	}
	if err != nil {
		return errors.Join(fmt.Errorf("write the order of the keys: %w", err), r.close())
	}
	return nil
}

// spec is the object for the map and the operation.
func (c *mapOp) spec(producers int) (*ebpf.CollectionSpec, error) {
	spec, err := progs.LoadMapOp()
	if err != nil {
		return nil, fmt.Errorf("read the program: %w", err)
	}
	fill := ebpf.UpdateNoExist
	if c.kind.array {
		fill = ebpf.UpdateAny
	}
	err = setConstants(spec, map[string]any{
		progs.MapOpVarOp: c.operation, progs.MapOpVarOrdered: c.ordered(), progs.MapOpVarPrefixed: c.kind.trie,
		progs.MapOpVarWritable: !c.kind.maps, progs.MapOpVarFillFlags: fill,
	})
	if err != nil {
		return nil, err
	}
	m := spec.Maps[progs.MapOpMapMap]
	c.shape(m)
	if c.kind.maps {
		m.InnerMap = innerMap
	}
	spec.Maps[progs.MapOpMapValue].ValueSize = m.ValueSize
	orders := spec.Maps[progs.MapOpMapOrders]
	orders.MaxEntries = uint32(producers)
	if !c.ordered() {
		orders.ValueSize = 4 // of no use, but there
	}
	return spec, nil
}

var innerMap = &ebpf.MapSpec{Type: ebpf.Array, KeySize: 4, ValueSize: 8, MaxEntries: 1}

// prefix is what a key begins with, before its index: in a trie, the number of bits that follow.
func (c *mapOp) prefix() []byte {
	if !c.kind.trie {
		return nil
	}
	return binary.NativeEndian.AppendUint32(nil, uint32(c.keySize-4)*8)
}

// valueStride is the bytes of a value as system calls have it: for maps with one for each CPU, all of them.
func (c *mapOp) valueStride() int {
	if !c.kind.perCPU {
		return int(c.valueSize)
	}
	return int(c.valueSize+7) &^ 7 * ebpf.MustPossibleCPU()
}

// fill inserts the entries and then looks each of them up once.
func (r *mapRun) fill(ctx context.Context) error {
	n := r.cfg.nrEntries
	var err error
	if r.cfg.kind.maps {
		err = r.insertMaps(ctx, n)
	} else {
		err = r.insertAll(ctx, uint32(progs.MapOpModeMODE_FILL), n)
	}
	if err != nil {
		return err
	}
	return r.evicted(r.findAll(ctx, uint32(progs.MapOpModeMODE_CHECK), n, false))
}

// insertMaps fills a map of maps with one map, time and again.
func (r *mapRun) insertMaps(ctx context.Context, n uint64) error {
	inner, err := ebpf.NewMap(innerMap)
	if err != nil {
		return fmt.Errorf("make a map to fill the map with: %w", err)
	}
	defer inner.Close()
	u := r.user(0, uint32(min(n, insertMapsBatch)))
	u.base, u.order = 0, nil
	for i := range u.size {
		binary.NativeEndian.PutUint32(u.values[i*4:], uint32(inner.FD()))
	}
	fill := producers.Split{Pass: n, Passes: 1, Aborted: func() bool { return ctx.Err() != nil }, Call: u.timed(u.update)}
	filled, err := fill.All()
	return whole(ctx, "fill the map", filled, n, err)
}

// insertMapsBatch is how many maps a system call inserts, which then waits for a grace period of RCU: from Linux 6.8 on once,
// before for each.
const insertMapsBatch = 512

// evicted adds to the error of a key that is not found why that may be.
func (r *mapRun) evicted(err error) error {
	if r.cfg.kind.lru && errors.Is(err, unix.ENOENT) {
		return fmt.Errorf("%w: an LRU map evicts entries when the free ones run out, which each CPU has some of: raise --max_entries", err)
	}
	return err
}

// describe is the operation in errors.
func (c *mapOp) describe() string {
	return map[progs.MapOpOperation]string{
		progs.MapOpOperationOP_LOOKUP:        lookUp,
		progs.MapOpOperationOP_MISS:          "look up absent entry",
		progs.MapOpOperationOP_UPDATE:        "update entry",
		progs.MapOpOperationOP_INSERT_DELETE: "insert and delete entry",
		progs.MapOpOperationOP_REFUSED:       "insert into the full map, which must be refused for want of room, entry",
	}[c.operation]
}

// producer readies a producer whose operations are done by the program. Its calls use slot w.ID alone.
func (r *mapRun) producer(w *harness.Worker) (harness.Producer, error) {
	c := r.cfg
	var base uint32
	if !c.ordered() { // those that are drawn have it in them
		base = c.base(w.ID)
	}
	batch := func(mode progs.MapOpMode) func() (report.Sample, error) {
		s := r.split(w, uint32(mode), c.describe(), c.pass(), c.passes())
		call := s.Call
		s.Call = func(first, count, passes uint32) (producers.Done, error) {
			if c.operation == progs.MapOpOperationOP_REFUSED {
				first = 0 // the key is always the same
			}
			done, err := call(base+first, count, passes)
			return done, r.evicted(err)
		}
		return s.Batch
	}
	return harness.Producer{Batch: batch(progs.MapOpModeMODE_OP), Twin: batch(progs.MapOpModeMODE_TWIN)}, nil
}

// weigh adds what the kernel says of the map's memory: in /proc/self/fdinfo, which is what the map uses from Linux 6.4 on, and
// a computed size before. Where all entries have their memory from the start, it is divided by them all.
func (r *mapRun) weigh(run *report.Run) error {
	version, err := fetcharg.ParseVersion(host.Facts().Kernel)
	if err != nil || version.Before(fetcharg.Version{Major: 6, Minor: 4}) {
		return nil
	}
	info, err := r.m.Info()
	if err != nil {
		return fmt.Errorf("read the map's memory: %w", err)
	}
	used, ok := info.Memlock()
	if !ok {
		return nil
	}
	entries := r.cfg.maxEntries
	if r.cfg.mapFlags&unix.BPF_F_NO_PREALLOC != 0 {
		entries = r.cfg.nrEntries
	}
	run.Gauges = append(run.Gauges,
		report.Gauge{Name: "map_memory", Value: float64(used), Unit: "B"},
		report.Gauge{Name: "memory_per_entry", Value: float64(used) / float64(entries), Unit: "B"})
	return nil
}
