// Package suite holds the benchmarks: a file for each family, which registers them.
package suite

import (
	"errors"
	"fmt"
	"math"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/spf13/pflag"
	"golang.org/x/sys/unix"

	"bpfbench/bench/harness"
	"bpfbench/internal/kernel"
	"bpfbench/internal/number"
	"bpfbench/report"
)

func init() {
	for _, b := range []struct {
		name, kind string
		typ        ebpf.MapType
		requires   []func() error
	}{
		{"bpf-hashmap-lookup", "a hash map", ebpf.Hash, loopRequires},
		{"bpf-rhashmap-lookup", "a resizable hash map (RHASH)", rhash, append(loopRequires, hasRHash)},
	} {
		harness.Register(&harness.Benchmark{
			Name:    b.name,
			Op:      "lookup",
			Summary: "Looks up every key of " + b.kind + " in turn, from BPF, and finds it.",
			Timing: "Timed in the kernel: passes over all entries, as nested bpf_loop, each iteration storing a key and calling " +
				"bpf_map_lookup_elem. The same loops without the call are timed, too, so that the cost of a lookup is also given net of them. " +
				"Not timed: filling the map, checking it, and the call that starts the program.",
			Longer:    "--nr_loops",
			Requires:  b.requires,
			Producers: harness.Workers{Min: 1, Default: 1, Max: harness.AnyNumber},
			New:       func() harness.Config { return &hashmapLookup{typ: b.typ} },
		})
	}
}

// loopRequires are the probes of what loops in the kernel need.
var loopRequires = []func() error{
	kernel.RawTracepoint,
	func() error { return kernel.Helper(ebpf.RawTracepoint, asm.FnLoop) },
}

const (
	maxKeySize = 1024 // MAX_KEY of the program
	// stackKey is STACK_KEY of the program, and wholePass the longest pass that is never split: with keys that short it
	// takes some 5 ms, and some 65 ms where each lookup waits for memory several times.
	stackKey  = 256
	wholePass = 1 << 16
)

// hashmapLookup is the parameters of bpf-hashmap-lookup and bpf-rhashmap-lookup.
type hashmapLookup struct {
	typ                   ebpf.MapType
	keySize, valueSize    uint64 // bytes
	maxEntries, nrEntries uint64
	nrLoops               uint64 // lookups in a sample
	mapFlags              mapFlags
	trigger               trigger

	fs *pflag.FlagSet
}

func (c *hashmapLookup) Flags(fs *pflag.FlagSet) {
	c.fs = fs
	number.Var(fs, &c.keySize, "key_size", 4, "bytes of a key, 1 to 1024")
	number.Var(fs, &c.maxEntries, "max_entries", 1000, "entries that the map has room for; 65536, or nr_entries if that is more, when only --nr_entries is given and is above 1000")
	number.Var(fs, &c.nrEntries, "nr_entries", 500, "entries to insert and to look up")
	number.Var(fs, &c.nrLoops, "nr_loops", 1000000, "lookups in a sample: rounded down to whole passes over the entries, one at least")
	fs.Var(&c.mapFlags, "map_flags", "flags of the map: a number (0x40) or names (no_prealloc,zero_seed)")
	number.Var(fs, &c.valueSize, "value_size", 8, "bytes of a value")
	c.trigger.bind(fs, hashmapTriggers...)
}

var hashmapTriggers = []trigger{triggerTestRun, triggerTP, triggerFentry}

// defaultMaxEntries is max_entries when only nr_entries is given, and exceeds the default of 1000.
const defaultMaxEntries = 65536

func (c *hashmapLookup) Resolve() error {
	if !c.fs.Changed("max_entries") && c.nrEntries > c.maxEntries {
		c.maxEntries = max(defaultMaxEntries, c.nrEntries)
	}
	if !c.fs.Changed("nr_entries") {
		c.nrEntries = min(c.nrEntries, c.maxEntries)
	}
	if c.typ == rhash {
		c.mapFlags |= unix.BPF_F_NO_PREALLOC
	}
	const most = 1<<32 - 1 // of a __u32 in union bpf_attr
	errs := []error{
		number.Within("key_size", c.keySize, 1, maxKeySize),
		number.Within("value_size", c.valueSize, 1, 1<<30), // the kernel's own limit is lower and is explained when it refuses
		number.Within("max_entries", c.maxEntries, 1, most),
		number.Within("nr_entries", c.nrEntries, 1, most),
		number.Within("nr_loops", c.nrLoops, 1, 1<<62),
	}
	if c.maxEntries >= 1 && c.nrEntries > c.maxEntries {
		errs = append(errs, fmt.Errorf("--nr_entries=%d: the map has room for --max_entries=%d", c.nrEntries, c.maxEntries))
	}
	if c.keySize >= 1 && c.keySize < 4 && c.nrEntries > 1<<(8*c.keySize) {
		errs = append(errs, fmt.Errorf("--nr_entries=%d: key_size %d allows %d distinct keys; raise --key_size or lower --nr_entries",
			c.nrEntries, c.keySize, 1<<(8*c.keySize)))
	}
	if c.mapFlags&unix.BPF_F_RDONLY_PROG != 0 {
		errs = append(errs, errors.New("--map_flags: rdonly_prog forbids the program that fills the map; leave it out"))
	}
	if c.mapFlags&unix.BPF_F_WRONLY_PROG != 0 {
		errs = append(errs, errors.New("--map_flags: wronly_prog forbids lookups; leave it out"))
	}
	return errors.Join(append(errs, c.trigger.check(hashmapTriggers...))...)
}

func (c *hashmapLookup) Params() []report.Param {
	flags := report.Param{Name: "map_flags", Value: c.mapFlags.String()}
	if c.mapFlags != 0 {
		flags.Note = kernel.MapFlagNames(uint32(c.mapFlags))
	}
	return []report.Param{
		{Name: "key_size", Value: c.keySize},
		{Name: "value_size", Value: c.valueSize},
		{Name: "max_entries", Value: c.maxEntries},
		{Name: "nr_entries", Value: c.nrEntries},
		{Name: "nr_loops", Value: c.nrLoops},
		flags,
		{Name: "trigger", Value: string(c.trigger)},
	}
}

func (c *hashmapLookup) Facts() []report.Param {
	full := report.Param{Name: "full", Value: c.nrEntries * 100 / c.maxEntries, Unit: "%"}
	if c.nrEntries*100 < c.maxEntries {
		full.Value = math.Round(float64(c.nrEntries)*1e4/float64(c.maxEntries)) / 100
	}
	return []report.Param{full}
}

// FlagValues are what a shell completes behind the flags.
func (c *hashmapLookup) FlagValues() map[string][]string {
	return map[string][]string{"trigger": names(hashmapTriggers), "map_flags": {"no_prealloc", "zero_seed"}}
}

// passes is how many whole passes a sample has.
func (c *hashmapLookup) passes() uint64 { return max(c.nrLoops/c.nrEntries, 1) }

// mapFlags is the pflag.Value of the flags of a map.
type mapFlags uint32

func (f *mapFlags) Set(s string) error {
	flags, err := kernel.ParseMapFlags(s)
	if err == nil {
		*f = mapFlags(flags)
	}
	return err
}

func (f *mapFlags) String() string { return fmt.Sprintf("%#x", uint32(*f)) }
func (f *mapFlags) Type() string   { return "flags" }
