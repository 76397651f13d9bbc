package suite

import (
	"context"
	"errors"
	"fmt"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/btf"
	"github.com/spf13/pflag"
	"golang.org/x/sys/unix"

	"bpfbench/bench/harness"
	"bpfbench/internal/host"
	"bpfbench/internal/kernel"
	"bpfbench/internal/number"
	"bpfbench/producers"
	"bpfbench/progs"
	"bpfbench/report"
)

// storageKind is one of the benchmarks of the cache of local storages.
type storageKind struct {
	name, summary string
	hashmap       bool // the maps are hash maps
	interleaved   bool // map 0 is got behind every third map, once more
	nrMaps        uint64
}

var storageKinds = []storageKind{
	{name: "seq-get", summary: "Gets a task's storage from each of many maps in turn.", nrMaps: 1000},
	{name: "int-get", summary: "Gets a task's storage from each of many maps in turn, and behind every third from the first map, again.",
		interleaved: true, nrMaps: 1000},
	{name: "hashmap-control", summary: "Looks up random keys of a large hash map, in the same loop as the gets of local storages.", hashmap: true, nrMaps: 1},
}

func init() {
	for _, k := range storageKinds {
		b := &harness.Benchmark{
			Name:    "local-storage-cache-" + k.name,
			Op:      "access",
			Summary: k.summary,
			Timing: "Timed in the kernel: passes over the maps, as nested bpf_loop, each iteration taking a map out of an array of maps and " +
				"calling bpf_task_storage_get or bpf_map_lookup_elem. The same loops without that call are timed, too. A task's storage is " +
				"made by the first get, in the warm-up. Not timed: making the maps and filling them.",
			Longer: "--nr_loops",
			Form:   report.FormStorage,
			Requires: []func() error{
				kernel.RawTracepoint,
				func() error { return kernel.Helper(ebpf.RawTracepoint, asm.FnLoop) },
			},
			Producers: harness.Workers{Min: 1, Default: 1, Max: 1},
			New:       func() harness.Config { return &storageConfig{kind: k} },
		}
		if !k.hashmap {
			b.Requires = append(b.Requires, func() error { return kernel.Helper(ebpf.RawTracepoint, asm.FnTaskStorageGet) })
		}
		harness.Register(b)
	}
	harness.RegisterSuite(&harness.Suite{Name: "local-storage", Summary: "Gets from more and more task storage maps, and lookups in a hash map beside them.", Lines: storageLines})
}

// storageLines is what the original's script has.
func storageLines(whole bool) [][]string {
	keys, maps := []uint64{10, 1000, 100000, 4194304}, []uint64{1, 16, 17, 32, 100, 1000}
	if whole {
		keys, maps = []uint64{10, 1000, 10000, 100000, 4194304}, []uint64{1, 10, 16, 17, 24, 32, 100, 1000}
	}
	var lines [][]string
	for _, n := range keys {
		lines = append(lines, []string{"local-storage-cache-hashmap-control", fmt.Sprintf("--hashmap_nr_keys_used=%d", n)})
	}
	for _, n := range maps {
		for _, name := range []string{"local-storage-cache-seq-get", "local-storage-cache-int-get"} {
			lines = append(lines, []string{name, fmt.Sprintf("--nr_maps=%d", n)})
		}
	}
	return lines
}

const (
	storageMostMaps = 1000
	storagePass     = 10000 // accesses in a loop, at least
)

// storageConfig is the parameters of the benchmarks of the cache.
type storageConfig struct {
	kind    storageKind
	nrMaps  uint64
	nrKeys  uint64 // of a hash map, that are looked up
	entries uint64 // of a hash map, all of which are inserted
	nrLoops uint64 // accesses in a sample
	trigger trigger
}

var storageTriggers = []trigger{triggerTestRun, triggerTP, triggerFentry}

func (c *storageConfig) Flags(fs *pflag.FlagSet) {
	number.Var(fs, &c.nrMaps, "nr_maps", c.kind.nrMaps, "maps, 1 to 1000")
	if c.kind.hashmap {
		number.Var(fs, &c.nrKeys, "hashmap_nr_keys_used", 1000, "keys that are looked up, of those that each hash map has")
		number.Var(fs, &c.entries, "max_entries", 4194304, "entries of each hash map, which is filled")
	}
	number.Var(fs, &c.nrLoops, "nr_loops", 10000, "accesses in a sample: rounded down to passes of 10000 or, with whole rounds of the maps, a little more; one at least")
	c.trigger.bind(fs, storageTriggers...)
}

func (c *storageConfig) Resolve() error {
	errs := []error{number.Within("nr_maps", c.nrMaps, 1, storageMostMaps), number.Within("nr_loops", c.nrLoops, 1, 1<<62), c.trigger.check(storageTriggers...)}
	if c.kind.hashmap {
		errs = append(errs, number.Within("max_entries", c.entries, 1, kernel.MaxHashEntries), number.Within("hashmap_nr_keys_used", c.nrKeys, 1, 1<<32-1))
		if c.nrKeys > c.entries {
			errs = append(errs, fmt.Errorf("--hashmap_nr_keys_used=%d: a map has --max_entries=%d; lower it or raise that", c.nrKeys, c.entries))
		}
	}
	return errors.Join(errs...)
}

func (c *storageConfig) Params() []report.Param {
	params := []report.Param{{Name: "nr_maps", Value: c.nrMaps}}
	if c.kind.hashmap {
		params = append(params, report.Param{Name: "hashmap_nr_keys_used", Value: c.nrKeys}, report.Param{Name: "max_entries", Value: c.entries})
	}
	return append(params, report.Param{Name: "nr_loops", Value: c.nrLoops}, report.Param{Name: "trigger", Value: string(c.trigger)})
}

func (c *storageConfig) Facts() []report.Param { return nil }

// FlagValues are what a shell completes behind the flags.
func (c *storageConfig) FlagValues() map[string][]string {
	return map[string][]string{"trigger": names(storageTriggers)}
}

// round is how many accesses it takes until every map has had its turn, and firsts how many of them are to the first map.
func (c *storageConfig) round() (accesses, firsts uint64) {
	if c.kind.interleaved {
		extra := (c.nrMaps + 2) / 3
		return c.nrMaps + extra, 1 + extra
	}
	return c.nrMaps, 1
}

func (c *storageConfig) Setup(ctx context.Context, env harness.Env) (*harness.Instance, error) {
	if err := c.fits(); err != nil {
		return nil, err
	}
	k, err := c.load(env.Producers)
	if err != nil {
		return nil, err
	}
	if c.kind.hashmap {
		if err := c.fill(ctx, k); err != nil {
			return nil, errors.Join(err, k.close())
		}
	}
	round, _ := c.round()
	pass := (storagePass + round - 1) / round * round
	return &harness.Instance{
		Producer: func(w *harness.Worker) (harness.Producer, error) {
			batch := func(mode progs.LocalStorageMode) func() (report.Sample, error) {
				return k.split(w, uint32(mode), "access map", pass, max(c.nrLoops/pass, 1)).Batch
			}
			return harness.Producer{Batch: batch(progs.LocalStorageModeMODE_GET), Twin: batch(progs.LocalStorageModeMODE_TWIN)}, nil
		},
		Check: func(run *report.Run) error { return c.check(k, run) },
		Close: k.close,
	}, nil
}

// fits refuses hash maps that the memory has no room for.
func (c *storageConfig) fits() error {
	if !c.kind.hashmap {
		return nil
	}
	need := c.nrMaps * kernel.HashMapMemory(uint32(c.entries), 4, 4, true, uint32(c.entries))
	have, err := host.MemAvailable()
	if err != nil || need <= have {
		return nil // what is unknown does not forbid
	}
	return fmt.Errorf("make %d hash maps of %d entries: they need about %d MiB of memory, and %d MiB are available: lower --nr_maps or --max_entries",
		c.nrMaps, c.entries, need>>20, have>>20)
}

// load makes the maps, the array of them, and the program.
func (c *storageConfig) load(producers int) (*work, error) {
	spec, err := progs.LoadLocalStorage()
	if err != nil {
		return nil, fmt.Errorf("read the program: %w", err)
	}
	round, _ := c.round()
	err = setConstants(spec, map[string]any{
		progs.LocalStorageVarHashmap:     c.kind.hashmap,
		progs.LocalStorageVarInterleaved: c.kind.interleaved,
		progs.LocalStorageVarNrKeys:      uint32(max(c.nrKeys, 1)),
		progs.LocalStorageVarPeriod:      uint32(round),
	})
	if err != nil {
		return nil, err
	}
	number := &btf.Int{Name: "int", Size: 4, Encoding: btf.Signed}
	inner := &ebpf.MapSpec{Name: "inner", Type: ebpf.TaskStorage, KeySize: 4, ValueSize: 4, Flags: unix.BPF_F_NO_PREALLOC, Key: number, Value: number}
	if c.kind.hashmap {
		inner = &ebpf.MapSpec{Name: "inner", Type: ebpf.Hash, KeySize: 4, ValueSize: 4, MaxEntries: uint32(c.entries)}
	}
	outer := spec.Maps[progs.LocalStorageMapMaps]
	outer.MaxEntries = uint32(c.nrMaps)
	outer.InnerMap = inner
	outer.Contents = nil
	inners := make([]*ebpf.Map, 0, c.nrMaps)
	defer func() { // the outer map keeps them
		for _, m := range inners {
			m.Close()
		}
	}()
	for i := range uint32(c.nrMaps) {
		m, err := ebpf.NewMap(inner)
		if err != nil {
			return nil, kernel.ExplainMap(err, inner)
		}
		inners = append(inners, m)
		outer.Contents = append(outer.Contents, ebpf.MapKV{Key: i, Value: m})
	}
	return loadWork(spec, c.trigger, producers, nil)
}

// fill inserts every key into every hash map; each insert must make a new entry.
func (c *storageConfig) fill(ctx context.Context, k *work) error {
	for i := range c.nrMaps {
		k.header(0).Counts[0] = i
		inserts := k.request(0, uint32(progs.LocalStorageModeMODE_FILL), "insert into map", k.testRun(0))
		fill := producers.Split{Pass: c.entries, Passes: 1, Aborted: func() bool { return ctx.Err() != nil }, Call: inserts.do}
		if _, err := fill.All(); err != nil {
			return fmt.Errorf("fill the hash map: %w", err)
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
	return nil
}

// check adds how many of the accesses were to the first map, as the program counted them: in warm-up and measuring together,
// which only differ where a batch was cut short.
func (c *storageConfig) check(k *work, run *report.Run) error {
	var ops uint64
	for _, s := range run.Samples {
		ops += s.Ops
	}
	all, first := k.header(0).Counts[1], k.header(0).Counts[2]
	if all < ops {
		return fmt.Errorf("the program counted %d accesses, and has answered for %d", all, ops)
	}
	if round, firsts := c.round(); first < all/round*firsts {
		return fmt.Errorf("the first map had %d of %d accesses, and %d of %d are its due", first, all, firsts, round)
	}
	run.Gauges = append(run.Gauges, report.Gauge{Name: report.GaugeImportantHits, Value: float64(ops) * float64(first) / float64(all)})
	return nil
}
