package suite

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/cilium/ebpf"
	"github.com/spf13/pflag"
	"golang.org/x/sys/unix"

	"bpfbench/bench/harness"
	"bpfbench/internal/number"
	"bpfbench/progs"
	"bpfbench/report"
)

func init() {
	harness.Register(&harness.Benchmark{
		Name:    "map-op",
		Op:      "op",
		Summary: "Does one kind of operation on a map of any type, from BPF or by system calls, and checks the result of each.",
		Timing: "Timed: passes over the keys, each iteration storing a key and doing the operation: from BPF in the kernel, as nested " +
			"bpf_loop, by system calls around batches of them. The same loops without the operation are timed, too, so that its cost is also " +
			"given net of loop and key. Not timed: filling the map, drawing random keys, and the call that starts the program. Beside it " +
			"stands the map's memory as /proc/self/fdinfo has it (memlock, from Linux 6.4 on), without maps in it, and that for each entry: " +
			"of max_entries, or of nr_entries where elements are not preallocated.",
		Longer:    "--nr_loops",
		Requires:  loopRequires,
		Producers: harness.Workers{Min: 1, Default: 1, Max: harness.AnyNumber},
		New:       func() harness.Config { return new(mapOp) },
	})
	harness.RegisterSuite(&harness.Suite{
		Name:    "map-op",
		Summary: "Lookups from BPF in each type of map; with --all every operation, from everywhere, in every order of keys.",
		Lines:   mapOpLines,
	})
}

// mapOpLines leaves out what cannot be.
func mapOpLines(whole bool) (lines [][]string) {
	ops, froms, orders := mapOps, mapFroms, keyOrders
	if !whole {
		ops, froms, orders = ops[:1], froms[:1], orders[:1]
	}
	for _, kind := range mapKindNames() {
		for _, op := range ops {
			for _, from := range froms {
				for _, order := range orders {
					flags := []string{"--map_type=" + kind, "--op=" + op, "--from=" + from, "--key_order=" + order, "--nr_entries=4096", "--max_entries=65536"}
					fs, c := pflag.NewFlagSet("map-op", pflag.ContinueOnError), new(mapOp)
					c.Flags(fs)
					if errors.Join(fs.Parse(flags), c.Resolve()) == nil {
						lines = append(lines, append([]string{"map-op"}, flags...))
					}
				}
			}
		}
	}
	return lines
}

// mapKind is a type of map, and what about it bears on operations.
type mapKind struct {
	name string
	typ  ebpf.MapType
	// array: has all its entries from the start. perCPU: has a value for each CPU. lru: evicts entries. trie: its keys begin
	// with the length of a prefix. maps: its values are maps.
	array, perCPU, lru, trie, maps bool
}

var mapKinds = []mapKind{
	{name: "hash", typ: ebpf.Hash},
	{name: "percpu_hash", typ: ebpf.PerCPUHash, perCPU: true},
	{name: "lru_hash", typ: ebpf.LRUHash, lru: true},
	{name: "lru_percpu_hash", typ: ebpf.LRUCPUHash, lru: true, perCPU: true},
	{name: "array", typ: ebpf.Array, array: true},
	{name: "percpu_array", typ: ebpf.PerCPUArray, array: true, perCPU: true},
	{name: "lpm_trie", typ: ebpf.LPMTrie, trie: true},
	{name: "hash_of_maps", typ: ebpf.HashOfMaps, maps: true},
}

func mapKindNames() []string {
	var names []string
	for _, k := range mapKinds {
		names = append(names, k.name)
	}
	return names
}

// The choices of flags, the default first.
var (
	mapOps    = []string{"lookup", "miss", "update", "insert_delete"} // in the order of enum operation
	keyOrders = []string{orderSequential, orderRandom, orderZipf}
	mapFroms  = []string{fromBPF, fromSyscall, fromBatch}
)

const (
	orderSequential = "sequential"
	orderRandom     = "random"
	orderZipf       = "zipf"

	fromBPF     = "bpf"
	fromSyscall = "syscall"
	fromBatch   = "syscall-batch"
)

// mapOp is the parameters of map-op.
type mapOp struct {
	hashmapLookup
	mapType, op, order, from string
	exponent                 float64 // of the Zipf distribution
	batch                    uint64  // elements of a system call

	kind      *mapKind
	operation progs.MapOpOperation
}

func (c *mapOp) Flags(fs *pflag.FlagSet) {
	fs.StringVar(&c.mapType, "map_type", mapKinds[0].name, "`type` of the map: "+strings.Join(mapKindNames(), ", "))
	fs.StringVar(&c.op, "op", mapOps[0], "`operation`: lookup (of a key that is there), miss (lookup of one that is not), update (of an "+
		"entry that is there), insert_delete (of a key that is not there; both are one operation)")
	fs.StringVar(&c.from, "from", mapFroms[0], "`where` it is done: bpf (in a program), syscall (each by one), syscall-batch (--batch_size by one)")
	fs.StringVar(&c.order, "key_order", keyOrders[0], "`order` of the keys: sequential, random or zipf, which walk through 65536 draws that each producer has of its own")
	fs.Float64Var(&c.exponent, "zipf_exponent", 1.1, "`exponent` of the Zipf distribution, above 1; entry 0 is the most frequent")
	number.Var(fs, &c.batch, "batch_size", 256, "elements of a system call, with --from="+fromBatch)
	c.hashmapLookup.Flags(fs)
	fs.Lookup("key_size").Usage = "bytes of a key, 1 to 1024; 8 to 260 for an lpm_trie, 4 of which are the length of the prefix (its default is 8)"
	fs.Lookup("nr_entries").Usage = "entries to insert, and to do operations on"
	fs.Lookup("nr_loops").Usage = "operations in a sample: rounded down to whole passes over the keys, one at least; 100000 by default with system calls"
}

// FlagValues are what a shell completes behind the flags.
func (c *mapOp) FlagValues() map[string][]string {
	values := c.hashmapLookup.FlagValues()
	values["map_type"], values["op"], values["from"], values["key_order"] = mapKindNames(), mapOps, mapFroms, keyOrders
	return values
}

func (c *mapOp) Resolve() error {
	var errs []error
	choose := func(flag, value string, choices []string) int {
		i := slices.Index(choices, value)
		if i < 0 {
			errs = append(errs, fmt.Errorf("--%s=%s: must be one of %s", flag, value, strings.Join(choices, ", ")))
		}
		return max(i, 0)
	}
	c.kind = &mapKinds[choose("map_type", c.mapType, mapKindNames())]
	c.operation = progs.MapOpOperation(choose("op", c.op, mapOps))
	choose("from", c.from, mapFroms)
	choose("key_order", c.order, keyOrders)
	c.defaults()
	errs = append(errs, c.hashmapLookup.Resolve())
	if err := errors.Join(errs...); err != nil {
		return err // of what the rest is made from
	}
	const most = 1 << 30 // bytes of keys and values, of which each producer has its own
	element := c.keySize + uint64(c.valueStride())
	return errors.Join(c.unfit(), c.unused(), c.checkKind(), c.room(1), number.Within("batch_size", c.batch, 1, max(most/element, 1)))
}

// defaults sets what the user has not, where the kind of map asks for something else.
func (c *mapOp) defaults() {
	c.typ = c.kind.typ
	changed := c.fs.Changed
	if c.kind.trie {
		c.mapFlags |= unix.BPF_F_NO_PREALLOC // it cannot be otherwise
		if !changed("key_size") {
			c.keySize = 8
		}
	}
	if c.kind.maps && !changed("value_size") {
		c.valueSize = 4
	}
	if c.kind.lru && !changed("max_entries") && c.nrEntries > c.maxEntries/2 {
		c.maxEntries = max(defaultMaxEntries, 2*c.nrEntries)
	}
	if c.kind.lru && !changed("nr_entries") {
		c.nrEntries = min(c.nrEntries, max(c.maxEntries/2, 1))
	}
	if c.from != fromBPF && !changed("nr_loops") {
		c.nrLoops = 100000
	}
}

// unfit returns what is wrong with the operation, on this kind of map and from where it is to be done.
func (c *mapOp) unfit() error {
	var errs []error
	refuse := func(is bool, flag, value, why string) {
		if is {
			errs = append(errs, fmt.Errorf("--%s=%s: %s", flag, value, why))
		}
	}
	writes := c.op == "update" || c.op == "insert_delete"
	refuse(c.kind.array && (c.op == "miss" || c.op == "insert_delete"), "op", c.op, "an array has all its entries, and none comes or goes: choose lookup or update")
	refuse(c.kind.maps && writes, "op", c.op, "no program can write to a map of maps, and a system call that does waits for all programs to end (a grace period of RCU): choose lookup or miss")
	refuse(c.from == fromBatch && c.op == "miss", "op", c.op, "a lookup of many elements is not by key, but takes what comes next in the map: choose another, or --from="+fromSyscall)
	refuse(c.from == fromBatch && c.op != "update" && c.ordered(), "key_order", c.order,
		"of operations on many elements, lookups are in the map's own order, and a key cannot be inserted twice in one: choose "+orderSequential+", or --from="+fromSyscall)
	return errors.Join(errs...)
}

// unused returns which flags were given that have no meaning beside the others.
func (c *mapOp) unused() error {
	var errs []error
	for _, f := range []struct {
		name, only string
		used       bool
	}{
		{"zipf_exponent", "--key_order=" + orderZipf, c.order == orderZipf},
		{"batch_size", "--from=" + fromBatch, c.from == fromBatch},
		{"trigger", "--from=" + fromBPF, c.from == fromBPF},
	} {
		if c.fs.Changed(f.name) && !f.used {
			errs = append(errs, fmt.Errorf("--%s=%s: has a meaning with %s only: leave it out", f.name, c.fs.Lookup(f.name).Value, f.only))
		}
	}
	return errors.Join(errs...)
}

// checkKind returns what is wrong with the sizes of this kind of map, and with the distribution of the keys.
func (c *mapOp) checkKind() error {
	var errs []error
	switch {
	case c.kind.array && c.keySize != 4:
		errs = append(errs, fmt.Errorf("--key_size=%d: the key of an array has 4 bytes", c.keySize))
	case c.kind.trie:
		errs = append(errs, number.Within("key_size", c.keySize, 8, 260))
	case c.kind.maps && c.valueSize != 4:
		errs = append(errs, fmt.Errorf("--value_size=%d: the value of a map of maps has 4 bytes", c.valueSize))
	case c.kind.lru && c.nrEntries > c.maxEntries/2:
		errs = append(errs, fmt.Errorf("--nr_entries=%d: an LRU map evicts entries before it is full, as CPUs keep free ones for themselves: "+
			"take at most half of --max_entries=%d", c.nrEntries, c.maxEntries))
	}
	if !(c.exponent > 1 && c.exponent <= 100) {
		errs = append(errs, fmt.Errorf("--zipf_exponent=%v: must be above 1, and at most 100", c.exponent))
	}
	return errors.Join(errs...)
}

// room returns an error where keys that are not in the map do not fit into it, or where there are not so many.
func (c *mapOp) room(producers int) error {
	var errs []error
	own, keys := uint64(0), c.nrEntries // entries that a producer adds for a moment; keys that all use
	switch {
	case c.op == "insert_delete" && c.from == fromBatch:
		own, keys = c.batch, c.nrEntries*uint64(1+producers)
	case c.op == "insert_delete":
		own, keys = 1, c.nrEntries*uint64(1+producers)
	case c.op == "miss":
		keys = 2 * c.nrEntries
	}
	if need := c.nrEntries + own*uint64(producers); need > c.maxEntries {
		errs = append(errs, fmt.Errorf("--nr_entries=%d: with what %d producers insert there are up to %d, and the map has room for --max_entries=%d",
			c.nrEntries, producers, need, c.maxEntries))
	}
	if most := uint64(1) << (8 * min(c.keySize, 4)); keys > most {
		errs = append(errs, fmt.Errorf("--nr_entries=%d: with those that are not in the map there are %d keys, and key_size %d allows %d; lower --nr_entries%s",
			c.nrEntries, keys, c.keySize, most, map[bool]string{true: " or raise --key_size"}[c.keySize < 4]))
	}
	return errors.Join(errs...)
}

func (c *mapOp) Params() []report.Param {
	params := []report.Param{
		{Name: "map_type", Value: c.mapType},
		{Name: "op", Value: c.op},
		{Name: "from", Value: c.from},
		{Name: "key_order", Value: c.order},
	}
	if c.order == orderZipf {
		params = append(params, report.Param{Name: "zipf_exponent", Value: c.exponent})
	}
	if c.from == fromBatch {
		params = append(params, report.Param{Name: "batch_size", Value: c.batch})
	}
	shape := c.hashmapLookup.Params()
	if c.from != fromBPF {
		shape = slices.DeleteFunc(shape, func(p report.Param) bool { return p.Name == "trigger" })
	}
	return append(params, shape...)
}

func (c *mapOp) Facts() []report.Param {
	facts := c.hashmapLookup.Facts()
	if c.ordered() {
		facts = append(facts, report.Param{Name: "key_seed", Value: orderSeed})
	}
	return facts
}
