package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"bpfbench/bench/harness"
	"bpfbench/bench/suite"
	"bpfbench/internal/number"
	"bpfbench/report"
)

// tableOptions are the flags of `bench fetcharg`.
type tableOptions struct {
	probes  []string
	maxArgs uint64
	engines []string
	jits    []string
	record  string
	nrLoops uint64
}

const fetchargPrefix = "fetcharg-"

// fetchargCommand measures a table: the baseline, and each kind of probe with 0, 1, … fetchargs.
func fetchargCommand(run runFunc) *cobra.Command {
	opts, t := new(options), new(tableOptions)
	cmd := &cobra.Command{
		Use:   "fetcharg [flags]",
		Short: "what probe events cost, and each of their fetchargs: a table",
		Long: "Measures each kind of probe event with 0, 1, … of the reference arguments: a register, a double dereference, a single " +
			"dereference. All cells take turns. `bench fetcharg-kprobe -h` says what is timed.",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return usageError{fmt.Errorf("fetcharg: %q is left over", args[0])}
			}
			return nil
		},
	}
	own := pflag.NewFlagSet("fetcharg", pflag.ContinueOnError)
	own.StringSliceVar(&t.probes, "probes", suite.FetchProbes(), "kinds of `probe`")
	number.Var(own, &t.maxArgs, "max-args", 3, "fetchargs, at most")
	own.StringSliceVar(&t.engines, "engines", []string{"legacy"}, "`what` evaluates them: legacy, bpf, native")
	own.StringSliceVar(&t.jits, "jit", []string{"keep"}, "`states` of the JIT for the bpf engine's programs: keep, on, off")
	own.StringVar(&t.record, "record", "ringbuf", "`where` the bpf engine's records go: ringbuf, none, perf")
	number.Var(own, &t.nrLoops, "nr_loops", 20000, "calls in a sample")
	fs := cmd.Flags()
	own.VisitAll(func(f *pflag.Flag) { f.Annotations = map[string][]string{ownFlag: nil} })
	fs.AddFlagSet(own)
	opts.bind(fs)
	fs.SetNormalizeFunc(eitherDash())
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		entries := func() ([]entry, error) {
			if opts.sweeps != nil {
				return nil, errors.New("fetcharg: --sweep: the table is a sweep of its own; sweep a benchmark such as fetcharg-kprobe")
			}
			return t.entries()
		}
		return run(cmd.Context(), request{opts: opts, flags: fs, entries: entries, text: report.NewOverheads})
	}
	return cmd
}

// entries are the cells of the table.
func (t *tableOptions) entries() ([]entry, error) {
	errs := []error{number.Within("max-args", t.maxArgs, 0, 3)}
	for _, p := range t.probes {
		if !slices.Contains(suite.FetchProbes(), p) {
			errs = append(errs, fmt.Errorf("--probes=%s: must be of %s", p, strings.Join(suite.FetchProbes(), ", ")))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	var baselines, cells []entry
	var targets []string
	for _, engine := range t.settings() {
		for _, p := range t.probes {
			for n := range t.maxArgs + 1 {
				e, err := t.entry(p, append([]setting{{report.ArgsParam, fmt.Sprint(n)}}, engine...)...)
				if err != nil {
					errs = append(errs, err)
					continue
				}
				cells = append(cells, e)
				if target := fmt.Sprint(e.config.Facts()[0].Value); !slices.Contains(targets, target) {
					targets = append(targets, target)
				}
			}
		}
	}
	for _, target := range targets {
		e, err := t.entry(report.NoEngine, setting{report.TargetFact, target})
		errs = append(errs, err)
		baselines = append(baselines, e)
	}
	return append(baselines, cells...), errors.Join(errs...)
}

// settings are those of the engines, and of the bpf engine in each state of the JIT.
func (t *tableOptions) settings() [][]setting {
	var all [][]setting
	for _, engine := range t.engines {
		if engine != "bpf" {
			all = append(all, []setting{{"engine", engine}})
			continue
		}
		for _, jit := range t.jits {
			all = append(all, []setting{{"engine", engine}, {"jit", jit}, {"record", t.record}})
		}
	}
	return all
}

// entry is a configuration of the benchmark fetcharg-name.
func (t *tableOptions) entry(name string, settings ...setting) (entry, error) {
	i := slices.IndexFunc(harness.All(), func(b *harness.Benchmark) bool { return b.Name == fetchargPrefix+name })
	b := harness.All()[i]
	settings = append(settings, setting{"nr_loops", fmt.Sprint(t.nrLoops)})
	cfg, err := configure(b, pflag.NewFlagSet("", pflag.ContinueOnError), settings)
	return entry{benchmark: b, config: cfg}, err
}
