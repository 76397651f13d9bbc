package suite

import (
	"context"
	"errors"
	"fmt"

	"github.com/cilium/ebpf"
	"github.com/spf13/pflag"
	"golang.org/x/sys/unix"

	"bpfbench/bench/harness"
	"bpfbench/internal/cpuset"
	"bpfbench/internal/number"
	"bpfbench/progs"
	"bpfbench/report"
)

func init() {
	for _, b := range []struct {
		name, kind string
		typ        ebpf.MapType
		requires   []func() error
	}{
		{"bpf-hashmap-full-update", "a hash map", ebpf.Hash, loopRequires},
		{"bpf-rhashmap-full-update", "a resizable hash map (RHASH)", rhash, append(loopRequires, hasRHash)},
	} {
		harness.Register(&harness.Benchmark{
			Name:    b.name,
			Op:      "update",
			Summary: "Updates, from BPF, a key that is not in " + b.kind + " which is full: what is counted are updates that were refused with E2BIG.",
			Timing: "Timed in the kernel: a bpf_loop, each iteration calling bpf_map_update_elem, which must be refused for want of room. The " +
				"same loop without the call is timed, too, so that the cost of a refusal is also given net of it. Not timed: filling the map, " +
				"checking it, and the call that starts the program.",
			Longer:    "--nr_loops",
			Requires:  b.requires,
			Producers: harness.Workers{Min: 1, Default: 1, Max: harness.AnyNumber},
			New:       func() harness.Config { return &fullUpdate{typ: b.typ} },
		})
	}
	harness.RegisterSuite(&harness.Suite{
		Name:    "hashmap-full-update",
		Summary: "Updates of a full hash map from all CPUs but one; with --all from one CPU to all of them, and of resizable hash maps, too.",
		Lines:   fullUpdateLines,
	})
}

func fullUpdateLines(whole bool) (lines [][]string) {
	usable, err := cpuset.Usable()
	if err != nil || len(usable) == 0 {
		usable = []int{0}
	}
	line := func(name string, producers int) {
		lines = append(lines, []string{name, fmt.Sprintf("--producers=%d", producers)})
	}
	if !whole {
		line("bpf-hashmap-full-update", max(len(usable)-1, 1))
		return lines
	}
	for _, name := range []string{"bpf-hashmap-full-update", "bpf-rhashmap-full-update"} {
		for i := range usable {
			line(name, i+1)
		}
	}
	return lines
}

// fullUpdate is the parameters of the updates of a full map.
type fullUpdate struct {
	typ                 ebpf.MapType
	maxEntries, nrLoops uint64
	trigger             trigger
}

func (c *fullUpdate) Flags(fs *pflag.FlagSet) {
	number.Var(fs, &c.maxEntries, "max_entries", 1000, "entries that the map has room for, and has")
	number.Var(fs, &c.nrLoops, "nr_loops", 10000, "updates in a sample")
	c.trigger.bind(fs, hashmapTriggers...)
}

func (c *fullUpdate) Resolve() error {
	return errors.Join(
		number.Within("max_entries", c.maxEntries, 1, 1<<31), // so that there are keys left
		number.Within("nr_loops", c.nrLoops, 1, 1<<62),
		c.trigger.check(hashmapTriggers...))
}

func (c *fullUpdate) Params() []report.Param {
	return []report.Param{
		{Name: "max_entries", Value: c.maxEntries},
		{Name: "nr_loops", Value: c.nrLoops},
		{Name: "trigger", Value: string(c.trigger)},
	}
}

func (c *fullUpdate) Facts() []report.Param { return nil }

// FlagValues are what a shell completes behind the flags.
func (c *fullUpdate) FlagValues() map[string][]string {
	return map[string][]string{"trigger": names(hashmapTriggers)}
}

func (c *fullUpdate) Setup(ctx context.Context, env harness.Env) (*harness.Instance, error) {
	r, err := c.full(ctx, env.Producers)
	if err != nil {
		return nil, err
	}
	return &harness.Instance{Producer: r.producer, Close: r.close}, nil
}

// full makes the map, fills it, and checks that it is full.
func (c *fullUpdate) full(ctx context.Context, producers int) (*mapRun, error) {
	r := &mapRun{cfg: &mapOp{
		kind:      &mapKind{typ: c.typ},
		operation: progs.MapOpOperationOP_REFUSED,
		from:      fromBPF,
		hashmapLookup: hashmapLookup{typ: c.typ, keySize: 4, valueSize: 8, maxEntries: c.maxEntries, nrEntries: c.maxEntries,
			nrLoops: c.nrLoops, trigger: c.trigger},
	}}
	if c.typ == rhash {
		r.cfg.mapFlags = unix.BPF_F_NO_PREALLOC
	}
	if err := r.load(producers); err != nil {
		return nil, err
	}
	if err := errors.Join(r.fill(ctx), r.refuses()); err != nil {
		return nil, errors.Join(err, r.close())
	}
	return r, nil
}

// refuses checks that the map has no room.
func (r *mapRun) refuses() error {
	call := r.request(0, uint32(progs.MapOpModeMODE_OP), r.cfg.describe(), r.testRun(0))
	if _, err := call.do(r.cfg.base(0), 1, 1); err != nil {
		return fmt.Errorf("check that the map is full: %w", err)
	}
	return nil
}
