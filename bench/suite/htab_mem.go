package suite

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/cilium/ebpf"
	"github.com/spf13/pflag"
	"golang.org/x/sys/unix"

	"bpfbench/bench/harness"
	"bpfbench/internal/kernel"
	"bpfbench/internal/number"
	"bpfbench/report"
)

func init() {
	for _, c := range []struct {
		name, what string
		typ        ebpf.MapType
		requires   []func() error
	}{
		{"htab-mem", "a hash map", ebpf.Hash, []func() error{kernel.RawTracepoint, bpfLoop}},
		{"rhtab-mem", "a resizable hash map (RHASH)", rhash, []func() error{kernel.RawTracepoint, bpfLoop, hasRHash}},
	} {
		harness.Register(&harness.Benchmark{
			Name:    c.name,
			Op:      "batch",
			Summary: "Updates and deletes elements of " + c.what + " in batches of 64, and measures the memory that the map takes meanwhile.",
			Timing: "Counted, and read at ticks: batches of 64 updates or 64 deletes in BPF, each of which has to succeed, with the calls that start " +
				"the program (one for 16 batches) or, where two producers take turns, with a call and the wait of each batch. " +
				"The memory is read at the same ticks: that of a cgroup that makes the map and nothing else or, without cgroup2, what the map accounts for.",
			Form:      report.FormMemory,
			Requires:  c.requires,
			Producers: harness.Workers{Min: 1, Default: 1, Max: harness.AnyNumber},
			New:       func() harness.Config { return &htabMem{typ: c.typ} },
		})
	}
	harness.RegisterSuite(&harness.Suite{
		Name:    "htab-mem",
		Summary: "The memory of hash maps, preallocated and not, as elements are overwritten, added and deleted.",
		Lines: func(bool) (lines [][]string) {
			producers := strconv.Itoa(max(min(usableCPUs()&^1, 8), 2))
			for _, preallocated := range []string{"true", "false"} {
				for _, use := range useCases {
					lines = append(lines, []string{"htab-mem", "-a", "-p", producers, "--use-case", use, "--preallocated=" + preallocated})
				}
			}
			return lines
		},
	})
}

// Use cases: what the producers do to the map.
const (
	useOverwrite = "overwrite"
	useAddDel    = "batch_add_batch_del"
	useDiffCPU   = "add_del_on_diff_cpu"
)

var useCases = []string{useOverwrite, useAddDel, useDiffCPU}

// htabMem is the parameters of htab-mem and rhtab-mem.
type htabMem struct {
	typ          ebpf.MapType
	valueSize    uint64 // bytes
	useCase      string
	preallocated bool
}

func (c *htabMem) Flags(fs *pflag.FlagSet) {
	number.Var(fs, &c.valueSize, "value-size", 8, "bytes of a value, 1 to 4096")
	fs.StringVar(&c.useCase, "use-case", useOverwrite, "`what` is done: overwrite (each producer its 64 elements), batch_add_batch_del (each adds 64, then deletes them), "+
		"add_del_on_diff_cpu (one adds 64, another deletes them; the producers are in pairs)")
	fs.BoolVar(&c.preallocated, "preallocated", false, "allocate all elements when the map is made")
}

// maxMemValue is MAX_VALUE of the program.
const maxMemValue = 4096

func (c *htabMem) Resolve() error {
	errs := []error{number.Within("value-size", c.valueSize, 1, maxMemValue)}
	if !slices.Contains(useCases, c.useCase) {
		errs = append(errs, fmt.Errorf("--use-case=%s: must be one of %s", c.useCase, strings.Join(useCases, ", ")))
	}
	if c.preallocated && c.typ == rhash {
		errs = append(errs, errors.New("--preallocated: a resizable hash map allocates its elements as they come; leave it out, or use htab-mem"))
	}
	return errors.Join(errs...)
}

func (c *htabMem) Params() []report.Param {
	return []report.Param{
		{Name: "value-size", Value: c.valueSize, Unit: "B"},
		{Name: "use-case", Value: c.useCase},
		{Name: "preallocated", Value: strconv.FormatBool(c.preallocated)},
	}
}

func (c *htabMem) Facts() []report.Param { return nil }

// Workers are pairs where one producer adds what another deletes.
func (c *htabMem) Workers() (producers, consumers harness.Workers) {
	producers = harness.Workers{Min: 1, Default: 1, Max: harness.AnyNumber}
	if c.useCase == useDiffCPU {
		producers.Min, producers.Default, producers.Why = 2, 2, "as they work in pairs"
	}
	return producers, harness.Workers{}
}

// FlagValues are what a shell completes behind the flags.
func (c *htabMem) FlagValues() map[string][]string {
	return map[string][]string{"use-case": useCases}
}

// shape gives the program's map its type and size: room for 64 elements of each producer, and more.
func (c *htabMem) shape(m *ebpf.MapSpec, producers int) {
	m.Type, m.ValueSize, m.MaxEntries = c.typ, uint32(c.valueSize), uint32(max(8192, memBatch*producers))
	if !c.preallocated {
		m.Flags = unix.BPF_F_NO_PREALLOC
	}
}
