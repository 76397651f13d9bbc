package main

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"bpfbench/bench/harness"
	"bpfbench/report"
)

// A suite has many configurations, and comparing them takes less time each than knowing one well.
const (
	suiteDuration = seconds(time.Second)
	suiteWarmup   = seconds(200 * time.Millisecond)
)

const suiteLong = `Measures a suite: benchmarks that belong together, or one with a number of settings, in turns and as one table. Without a name, ` +
	`it lists the suites. -d and -w are of each configuration and shorter than a benchmark's own, so that a suite takes minutes. What the kernel cannot ` +
	`run is a row that says why. Flags on workers (-p, -c, -a and the CPUs) hold where a line of the suite has none of its own.`

// suiteCommand measures a suite, or lists them.
func suiteCommand(run runFunc) *cobra.Command {
	opts, all := new(options), false
	cmd := &cobra.Command{
		Use:   "suite [NAME] [flags]",
		Short: "measure benchmarks that belong together as one table",
		Long:  suiteLong,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 1 {
				return usageError{fmt.Errorf("suite: %q is left over: name one suite", args[1])}
			}
			return nil
		},
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			if len(args) > 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return suiteNames(), cobra.ShellCompDirectiveNoFileComp
		},
	}
	fs := cmd.Flags()
	fs.BoolVar(&all, "all", false, "measure all there is of it, however long that takes")
	fs.Lookup("all").Annotations = map[string][]string{ownFlag: nil}
	opts.bind(fs)
	for name, value := range map[string]seconds{"duration": suiteDuration, "warmup": suiteWarmup} {
		f := fs.Lookup(name)
		*f.Value.(*seconds) = value
		f.DefValue = f.Value.String()
	}
	fs.SetNormalizeFunc(eitherDash())
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return listSuites(cmd.OutOrStdout(), harness.Suites(), time.Duration(opts.duration+opts.warmup))
		}
		i := slices.Index(suiteNames(), args[0])
		if i < 0 {
			return unknown("suite", args[0], suiteNames(), "bench suite")
		}
		s := harness.Suites()[i]
		return run(cmd.Context(), request{opts: opts, flags: fs, text: suiteText(s), entries: func() ([]entry, error) {
			if opts.sweeps != nil {
				return nil, errors.New("suite: --sweep: a suite has its own settings; sweep a benchmark")
			}
			return suiteEntries(s, all, opts, fs)
		}})
	}
	return cmd
}

func suiteNames() []string {
	var all []string
	for _, s := range harness.Suites() {
		all = append(all, s.Name)
	}
	return all
}

// suiteEntries are the configurations of a suite's lines.
func suiteEntries(s *harness.Suite, all bool, opts *options, flags *pflag.FlagSet) ([]entry, error) {
	var entries []entry
	var errs []error
	for _, line := range s.Lines(all) {
		e, err := lineEntry(line, opts, flags)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		entries = append(entries, e)
	}
	return entries, errors.Join(errs...)
}

// lineEntry is the configuration of a suite's line: a benchmark's name, its flags and those of its workers. Where the line
// says nothing of the workers, the command's flags do.
func lineEntry(line []string, opts *options, flags *pflag.FlagSet) (entry, error) {
	i := slices.IndexFunc(harness.All(), func(b *harness.Benchmark) bool { return b.Name == line[0] || slices.Contains(b.Aliases, line[0]) })
	if i < 0 {
		return entry{}, unknownName(line)
	}
	b := harness.All()[i]
	fs := pflag.NewFlagSet(b.Name, pflag.ContinueOnError)
	own := &options{usable: opts.usable}
	own.bindWorkers(fs)
	workers := names(fs)
	b.New().Flags(fs)
	fs.SetNormalizeFunc(eitherDash())
	err := fs.Parse(line[1:])
	if err == nil && fs.NArg() > 0 {
		err = fmt.Errorf("%q is left over", fs.Arg(0))
	}
	for _, name := range workers {
		if f := flags.Lookup(name); f.Changed && !fs.Changed(name) {
			err = errors.Join(err, fs.Set(name, f.Value.String()))
		}
	}
	if err != nil {
		return entry{}, about(b, err)
	}
	entries, err := configurations(b, fs, nil)
	if err != nil {
		return entry{}, err
	}
	entries[0].opts, entries[0].flags = own, fs
	return entries[0], nil
}

// listSuites lists suites, with the time that they take at so much for each configuration.
func listSuites(w io.Writer, suites []*harness.Suite, each time.Duration) error {
	takes := func(lines [][]string) string {
		total := time.Duration(len(lines)) * each
		return fmt.Sprintf("%d in %s", len(lines), total.Round(time.Second))
	}
	rows := []table.Row{{"suite", "takes", "--all takes", "measures"}}
	for _, s := range suites {
		rows = append(rows, table.Row{s.Name, takes(s.Lines(false)), takes(s.Lines(true)), s.Summary})
	}
	_, err := fmt.Fprintf(w, "%s\n\n%s\n", listing(rows), wrap("bench suite NAME measures one. Takes: its configurations, and about how long measuring them takes.", width))
	return err
}

// suiteText is how a suite is shown to people.
func suiteText(s *harness.Suite) func(io.Writer, report.TextOptions) report.Writer {
	if s.Ladder {
		return report.NewLadder
	}
	return report.NewText
}

// suiteOf is the suite that a command line, which may be a guest's, measured; nil for none.
func suiteOf(args []string) *harness.Suite {
	i := slices.IndexFunc(harness.Suites(), func(s *harness.Suite) bool { return slices.Contains(args, s.Name) })
	if i < 0 || !slices.Contains(args, "suite") {
		return nil
	}
	return harness.Suites()[i]
}
