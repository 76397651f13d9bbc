package suite

import (
	"errors"
	"fmt"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/spf13/pflag"

	"bpfbench/bench/harness"
	"bpfbench/internal/kernel"
	"bpfbench/internal/number"
	"bpfbench/progs"
	"bpfbench/report"
)

// bloomKind is one of the benchmarks of bloom filters.
type bloomKind struct {
	name, op  string
	summary   string
	operation string // what is timed
	form      report.Form
	mode      progs.BloomMode
	// filter and hash are the maps that it uses. Where there is a hash map, it is probed with values that may be in it, or,
	// where absent, with values that are not; where there is none, the values in the filter are gone through.
	filter, hash, absent bool
}

var bloomKinds = []bloomKind{
	{name: "bloom-lookup", op: "lookup", form: report.FormHits, mode: progs.BloomModeMODE_PEEK, filter: true,
		summary:   "Looks up every value that is in a bloom filter, and finds it.",
		operation: "bpf_map_peek_elem"},
	{name: "bloom-update", op: "update", form: report.FormHits, mode: progs.BloomModeMODE_PUSH, filter: true,
		summary:   "Adds every value to a bloom filter that has them all already.",
		operation: "bpf_map_push_elem"},
	{name: "bloom-false-positive", op: "probe", form: report.FormFalseHits, mode: progs.BloomModeMODE_PROBE_BOTH, filter: true, hash: true, absent: true,
		summary:   "Looks for values that are not there in a bloom filter, and in a hash map where the filter says that they may be: how many are false positives.",
		operation: "bpf_map_peek_elem and, of what it finds, bpf_map_lookup_elem"},
	{name: "hashmap-with-bloom", op: "lookup", form: report.FormHits, mode: progs.BloomModeMODE_PROBE_BOTH, filter: true, hash: true,
		summary:   "Looks for random values in a hash map, after asking a bloom filter whether they may be in it.",
		operation: "bpf_map_peek_elem and, of what it finds, bpf_map_lookup_elem"},
	{name: "hashmap-without-bloom", op: "lookup", form: report.FormHits, mode: progs.BloomModeMODE_PROBE, hash: true,
		summary:   "Looks for random values in a hash map: what a bloom filter before it is compared with.",
		operation: "bpf_map_lookup_elem"},
}

func init() {
	for _, k := range bloomKinds {
		harness.Register(&harness.Benchmark{
			Name:    k.name,
			Op:      k.op,
			Form:    k.form,
			Summary: k.summary,
			Timing: "Timed in the kernel: passes over an array of values, as nested loops, each iteration calling " + k.operation +
				". The same loops without these calls are timed, too. Not timed: filling the maps, checking them, and the call that starts the program.",
			Requires: []func() error{
				kernel.RawTracepoint,
				func() error { return kernel.Helper(ebpf.RawTracepoint, asm.FnLoop) }, // which came after bloom filters
			},
			Producers: harness.Workers{Min: 1, Default: 1, Max: harness.AnyNumber},
			New:       func() harness.Config { return &bloom{kind: k} },
		})
	}
}

// bloom is the parameters of a benchmark of bloom filters.
type bloom struct {
	kind      bloomKind
	nrEntries uint64
	hashFuncs uint64
	valueSize uint64 // bytes
}

func (c *bloom) Flags(fs *pflag.FlagSet) {
	number.Var(fs, &c.nrEntries, "nr_entries", 1000, "values in the filter and in the hash map, each another")
	number.Var(fs, &c.hashFuncs, "nr_hash_funcs", 3, "hash functions of the filter, 1 to 15")
	number.Var(fs, &c.valueSize, "value_size", 8, "bytes of a value, 2 to 256")
}

func (c *bloom) Resolve() error {
	most := uint64(1<<32 - 1) // of a __u32 in union bpf_attr
	if c.kind.hash {
		most = kernel.MaxHashEntries
	}
	errs := []error{
		number.Within("nr_entries", c.nrEntries, 1, most),
		number.Within("nr_hash_funcs", c.hashFuncs, 1, 15),
		number.Within("value_size", c.valueSize, 2, 256),
	}
	if distinct := uint64(1) << (8 * c.valueSize); c.valueSize >= 2 && c.valueSize < 8 {
		switch {
		case c.nrEntries > distinct:
			errs = append(errs, fmt.Errorf("--nr_entries=%d: value_size %d allows %d distinct values; raise --value_size or lower --nr_entries",
				c.nrEntries, c.valueSize, distinct))
		case c.kind.absent && c.nrEntries == distinct:
			errs = append(errs, fmt.Errorf("--nr_entries=%d: these are all values of value_size %d, and none is left to look for; raise --value_size or lower --nr_entries",
				c.nrEntries, c.valueSize))
		}
	}
	return errors.Join(errs...)
}

func (c *bloom) Params() []report.Param {
	return []report.Param{
		{Name: "nr_entries", Value: c.nrEntries},
		{Name: "nr_hash_funcs", Value: c.hashFuncs},
		{Name: "value_size", Value: c.valueSize},
	}
}

func (c *bloom) Facts() []report.Param {
	facts := []report.Param{{Name: "seed", Value: uint64(bloomSeed)}}
	if c.kind.hash {
		facts = append(facts, report.Param{Name: "probes", Value: c.probes()})
	}
	return facts
}

// FlagValues are what a shell completes behind the flags.
func (c *bloom) FlagValues() map[string][]string { return nil }

// values is how the values of the configuration are made.
func (c *bloom) values() bloomValues { return bloomValues{size: int(c.valueSize)} }

// probes is how many values a pass looks for, where it looks for others than those that are there: whole chunks of together
// 2 MiB, so that what they cost in the caches does not depend on their size.
func (c *bloom) probes() uint64 {
	if !c.kind.hash {
		return 0
	}
	chunk := progs.BloomChunk * uint64(c.values().stride())
	return 2 << 20 / chunk * progs.BloomChunk
}
