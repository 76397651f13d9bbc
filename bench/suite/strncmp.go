package suite

import (
	"context"
	"fmt"
	"strconv"

	"github.com/spf13/pflag"

	"bpfbench/bench/harness"
	"bpfbench/internal/kernel"
	"bpfbench/internal/number"
	"bpfbench/progs"
	"bpfbench/report"
)

func init() {
	const timing = "Timed in the kernel: compares in a bpf_loop, each of which has to find that the string is lower; the loop is timed empty, too, " +
		"so that the cost is also given net of it. Not timed: the call that starts the program."
	harness.Register(&harness.Benchmark{
		Name:      "strncmp-no-helper",
		Op:        "compare",
		Summary:   "Compares two strings that differ in their last character, by a loop in BPF.",
		Timing:    timing,
		Form:      report.FormHits,
		Requires:  []func() error{kernel.RawTracepoint, bpfLoop},
		Producers: harness.Workers{Min: 1, Default: 1, Max: harness.AnyNumber},
		New:       func() harness.Config { return new(compare) },
	})
	harness.Register(&harness.Benchmark{
		Name:      "strncmp-helper",
		Op:        "compare",
		Summary:   "Compares two strings that differ in their last character, by the helper bpf_strncmp.",
		Timing:    timing,
		Form:      report.FormHits,
		Requires:  []func() error{hasLoop},
		Producers: harness.Workers{Min: 1, Default: 1, Max: harness.AnyNumber},
		New:       func() harness.Config { return &compare{helper: true} },
	})
	harness.RegisterSuite(&harness.Suite{
		Name:    "strncmp",
		Summary: "Compares of strings of several lengths, by a loop in BPF and by the helper.",
		Lines: func(bool) (lines [][]string) {
			for _, length := range []int{1, 8, 64, 512, 2048, 4095} {
				for _, name := range []string{"strncmp-no-helper", "strncmp-helper"} {
					lines = append(lines, []string{name, "--cmp-str-len", strconv.Itoa(length)})
				}
			}
			return lines
		},
	})
}

// maxCompare is MAX_LEN of the program.
const maxCompare = 4095

// compare is the parameters of strncmp-no-helper and strncmp-helper.
type compare struct {
	helper bool
	length uint64 // characters
}

func (c *compare) Flags(fs *pflag.FlagSet) {
	number.Var(fs, &c.length, "cmp-str-len", 32, "characters of the strings, 1 to 4095: all are compared, and the last is the one that differs")
}

func (c *compare) Resolve() error { return number.Within("cmp-str-len", c.length, 1, maxCompare) }

func (c *compare) Params() []report.Param {
	return []report.Param{{Name: "cmp-str-len", Value: c.length, Unit: "B"}}
}

func (c *compare) Facts() []report.Param { return nil }

// FlagValues are what a shell completes behind the flags.
func (c *compare) FlagValues() map[string][]string { return nil }

// batch is how many compares a sample has: a millisecond or a few of them.
func (c *compare) batch() uint64 {
	const characters, around = 1 << 21, 31 // what surrounds a compare takes as long as so many characters
	return characters / (c.length + around)
}

func (c *compare) Setup(_ context.Context, env harness.Env) (*harness.Instance, error) {
	spec, err := progs.LoadStrncmp()
	if err != nil {
		return nil, fmt.Errorf("read the program: %w", err)
	}
	text, target := c.strings()
	err = setConstants(spec, map[string]any{
		progs.StrncmpVarLen: uint32(c.length), progs.StrncmpVarHelper: c.helper, progs.StrncmpVarText: text, progs.StrncmpVarTarget: target,
	})
	if err != nil {
		return nil, err
	}
	k, err := loadWork(spec, triggerTestRun, env.Producers, nil)
	if err != nil {
		return nil, err
	}
	return &harness.Instance{Close: k.close, Producer: func(w *harness.Worker) (harness.Producer, error) {
		batch := func(mode progs.StrncmpMode) func() (report.Sample, error) {
			return k.split(w, uint32(mode), "compare", c.batch(), 1).Batch
		}
		return harness.Producer{Batch: batch(progs.StrncmpModeMODE_COMPARE), Twin: batch(progs.StrncmpModeMODE_TWIN)}, nil
	}}, nil
}

// strings are digits, and the same with the last of them one lower and nothing behind it.
func (c *compare) strings() (text, target [maxCompare + 1]byte) {
	for i := range maxCompare {
		target[i] = '1' + byte(i*7%9)
	}
	copy(text[:c.length], target[:])
	text[c.length-1]--
	return text, target
}
