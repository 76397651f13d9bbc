package suite

import (
	"context"
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

// lpmKind is one of the benchmarks of tries of prefixes.
type lpmKind struct {
	name, op string
	summary  string
	timing   string
	mode     progs.LpmTrieMode
	twin     progs.LpmTrieMode // MODE_NOOP or MODE_BASELINE; of noop there is none
	once     bool              // each key can be used once, until the trie is made ready again
	free     bool              // the end of the trie is what is measured, and mode is not used
}

const (
	lpmLoop = "Timed in the kernel: passes over the keys, as nested bpf_loop, each iteration "
	lpmTwin = " The same loops with nothing but the making of keys in them are timed, too."
	lpmNot  = " Not timed: filling the trie, checking it, and the call that starts the program."
)

var lpmKinds = []lpmKind{
	{name: "lpm-trie-noop", op: "noop", mode: progs.LpmTrieModeMODE_NOOP,
		summary: "Does nothing, in the loop of the other benchmarks of tries.",
		timing:  lpmLoop + "doing nothing."},
	{name: "lpm-trie-baseline", op: "key", mode: progs.LpmTrieModeMODE_BASELINE, twin: progs.LpmTrieModeMODE_NOOP,
		summary: "Makes the keys that the other benchmarks of tries use.",
		timing:  lpmLoop + "making a key. The same loops with nothing in them are timed, too."},
	{name: "lpm-trie-lookup", op: "lookup", mode: progs.LpmTrieModeMODE_LOOKUP, twin: progs.LpmTrieModeMODE_BASELINE,
		summary: "Looks up the keys of a trie of prefixes (LPM trie), and finds them.",
		timing:  lpmLoop + "making a key and calling bpf_map_lookup_elem." + lpmTwin + lpmNot},
	{name: "lpm-trie-update", op: "update", mode: progs.LpmTrieModeMODE_UPDATE, twin: progs.LpmTrieModeMODE_BASELINE,
		summary: "Replaces the values of keys in a trie of prefixes (LPM trie).",
		timing:  lpmLoop + "making a key and calling bpf_map_update_elem with BPF_EXIST." + lpmTwin + lpmNot},
	{name: "lpm-trie-insert", op: "insert", mode: progs.LpmTrieModeMODE_INSERT, twin: progs.LpmTrieModeMODE_BASELINE, once: true,
		summary: "Fills a trie of prefixes (LPM trie), which is empty in the beginning.",
		timing: "Timed in the kernel: a pass over the keys, as nested bpf_loop, each iteration making a key and calling bpf_map_update_elem with " +
			"BPF_NOEXIST." + lpmTwin + " Not timed: emptying the trie, and the call that starts the program."},
	{name: "lpm-trie-delete", op: "delete", mode: progs.LpmTrieModeMODE_DELETE, twin: progs.LpmTrieModeMODE_BASELINE, once: true,
		summary: "Empties a trie of prefixes (LPM trie) key by key.",
		timing: "Timed in the kernel: a pass over the keys, as nested bpf_loop, each iteration making a key and calling bpf_map_delete_elem." +
			lpmTwin + " Not timed: filling the trie, and the call that starts the program."},
	{name: "lpm-trie-free", op: "free", once: true, free: true,
		summary: "Frees a trie of prefixes (LPM trie) with all that is in it.",
		timing:  "Timed in the kernel: its function bpf_map_free_deferred, in the thread that runs it. Not timed: making the trie, filling it, and what time passes before it is freed."},
}

func init() {
	for _, k := range lpmKinds {
		b := &harness.Benchmark{
			Name:    k.name,
			Op:      k.op,
			Form:    report.FormThroughput,
			Summary: k.summary,
			Timing:  k.timing,
			Requires: []func() error{
				kernel.RawTracepoint,
				func() error { return kernel.Helper(ebpf.RawTracepoint, asm.FnLoop) },
			},
			Producers: harness.Workers{Min: 1, Default: 1, Max: harness.AnyNumber},
			New:       func() harness.Config { return &lpmTrie{kind: k} },
		}
		if k.once {
			b.Longer, b.Producers.Max = "--nr_entries", 1
		}
		if k.free {
			b.Requires = append(b.Requires, hook("fentry"))
		}
		harness.Register(b)
	}
}

// lpmTrie is the parameters of a benchmark of tries.
type lpmTrie struct {
	kind      lpmKind
	nrEntries uint64
	prefixLen uint64 // bits
	random    bool
}

func (c *lpmTrie) Flags(fs *pflag.FlagSet) {
	number.Var(fs, &c.nrEntries, "nr_entries", 10000, "entries of the trie; its keys are the numbers below that, so it has no gaps")
	number.Var(fs, &c.prefixLen, "prefix_len", 32, "bits of a prefix, 1 to 32")
	fs.BoolVar(&c.random, "random", false, "take keys at random, not in turn; not for insert, delete and free")
}

func (c *lpmTrie) Resolve() error {
	errs := []error{
		number.Within("nr_entries", c.nrEntries, 1, 1<<32-1), // of a __u32 in union bpf_attr
		number.Within("prefix_len", c.prefixLen, 1, 32),
	}
	if c.prefixLen >= 1 && c.prefixLen < 32 && c.nrEntries > 1<<c.prefixLen {
		errs = append(errs, fmt.Errorf("--nr_entries=%d: prefix_len %d allows %d distinct keys; raise --prefix_len or lower --nr_entries",
			c.nrEntries, c.prefixLen, 1<<c.prefixLen))
	}
	if c.random && c.kind.once {
		errs = append(errs, fmt.Errorf("--random: %s uses each key once, so it takes them in turn; leave it out", c.kind.name))
	}
	return errors.Join(errs...)
}

func (c *lpmTrie) Params() []report.Param {
	params := []report.Param{{Name: "nr_entries", Value: c.nrEntries}, {Name: "prefix_len", Value: c.prefixLen}}
	if c.kind.once {
		return params
	}
	keys := "in turn"
	if c.random {
		keys = "random"
	}
	return append(params, report.Param{Name: "keys", Value: keys})
}

func (c *lpmTrie) Facts() []report.Param { return nil }

// FlagValues are what a shell completes behind the flags.
func (c *lpmTrie) FlagValues() map[string][]string { return nil }

func (c *lpmTrie) Setup(ctx context.Context, env harness.Env) (*harness.Instance, error) {
	if err := c.fits(); err != nil {
		return nil, err
	}
	if c.kind.free {
		return c.setupFree(env)
	}
	r := &lpmRun{cfg: c}
	if err := r.load(env.Producers); err != nil {
		return nil, err
	}
	if err := r.ready(ctx); err != nil {
		return nil, errors.Join(err, r.close())
	}
	return &harness.Instance{Producer: r.producer, Close: r.close}, nil
}
