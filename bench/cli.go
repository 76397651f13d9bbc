package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"bpfbench/bench/harness"
	"bpfbench/report"
)

const intro = `bench measures what BPF maps, BPF programs and kernel probes cost, on the running kernel.`

const firstSteps = `To begin with, as root:

  bench -a bpf-hashmap-lookup --key_size=4 --nr_entries=4096
  bench -a bpf-hashmap-lookup --sweep nr_entries=4096:65536:4096
  bench list                    the benchmarks there are
  bench suite                   the suites of them, each measured as one table
  bench bpf-hashmap-lookup -h   what one measures, and its flags
`

// request is what a command line asks for.
type request struct {
	opts    *options
	flags   *pflag.FlagSet
	entries func() ([]entry, error) // what to measure; its errors are the user's mistakes
	text    func(io.Writer, report.TextOptions) report.Writer
}

// entry is a configuration of a benchmark.
type entry struct {
	benchmark *harness.Benchmark
	config    harness.Config
	varied    []string // parameters that a sweep varies
	// opts and flags say how many workers it has and where they are bound; nil where those of the request do.
	opts  *options
	flags *pflag.FlagSet
}

// runFunc measures what a command line asks for and reports it.
type runFunc func(ctx context.Context, req request) error

// newRoot builds the whole command line: the benchmarks are its commands, each of which is run by run.
func newRoot(run runFunc) *cobra.Command {
	root := &cobra.Command{
		Use:           "bench [flags] NAME [flags of NAME]",
		Short:         intro,
		Version:       toolVersion(),
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          func(_ *cobra.Command, args []string) error { return unknownName(args) },
	}
	root.SetVersionTemplate("bench {{.Version}}\n")
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usageError{err} })
	root.CompletionOptions.HiddenDefaultCmd = true
	root.SetUsageFunc(usage)
	root.SetHelpFunc(help)
	list := root.Flags().BoolP("list", "l", false, "list the benchmarks")
	new(options).bind(root.Flags()) // so that they are known before a name is
	root.RunE = func(cmd *cobra.Command, _ []string) error {
		if *list {
			return printList(cmd.OutOrStdout())
		}
		fmt.Fprintf(cmd.ErrOrStderr(), "%s\n\n%s", intro, firstSteps)
		return usageError{errors.New("name a benchmark")}
	}
	for _, b := range harness.All() {
		root.AddCommand(benchmarkCommand(b, run))
	}
	root.AddCommand(fetchargCommand(run), suiteCommand(run), listCommand(), vmCommand(), reportCommand(), compareCommand(), doctorCommand())
	return root
}

// benchmarkCommand is the command that runs b.
func benchmarkCommand(b *harness.Benchmark, run runFunc) *cobra.Command {
	opts := new(options)
	cfg := b.New()
	cmd := &cobra.Command{
		Use:     b.Name,
		Aliases: b.Aliases,
		Short:   b.Summary,
		Long:    b.Summary + "\n\n" + b.Timing,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return usageError{fmt.Errorf("%s: %q is left over: everything after the name is a flag of its own, such as --name=value", b.Name, args[0])}
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			entries := func() ([]entry, error) { return configurations(b, cmd.Flags(), opts.sweeps) }
			return run(cmd.Context(), request{opts: opts, flags: cmd.Flags(), entries: entries, text: report.NewText})
		},
	}
	fs := cmd.Flags()
	cfg.Flags(fs)
	own := names(fs)
	opts.bind(fs)
	for _, name := range own {
		// The help shows them apart.
		if err := fs.SetAnnotation(name, ownFlag, nil); err != nil {
			panic(err)
		}
	}
	fs.SetNormalizeFunc(eitherDash())
	completeFlags(cmd, b, own)
	return cmd
}

// ownFlag marks the flags of a benchmark that are its own.
const ownFlag = "bench_own"

func names(fs *pflag.FlagSet) []string {
	var all []string
	fs.VisitAll(func(f *pflag.Flag) { all = append(all, f.Name) })
	return all
}

// eitherDash lets - and _ mean the same in the names of flags. A flag keeps the spelling that it was defined with.
func eitherDash() func(*pflag.FlagSet, string) pflag.NormalizedName {
	spelling := make(map[string]string)
	return func(_ *pflag.FlagSet, name string) pflag.NormalizedName {
		key := strings.ReplaceAll(name, "_", "-")
		if spelling[key] == "" {
			spelling[key] = name
		}
		return pflag.NormalizedName(spelling[key])
	}
}

// unknownName is the error of a command line that names something that there is not.
func unknownName(args []string) error {
	if len(args) == 0 {
		return nil
	}
	var known []string
	for _, b := range harness.All() {
		known = append(known, b.Name)
	}
	return unknown("benchmark", args[0], known, "bench -l")
}

// unknown is the error of a name that is none of the known ones, which a command lists.
func unknown(what, name string, known []string, list string) error {
	all := &cobra.Command{SuggestionsMinimumDistance: 3}
	for _, k := range known {
		all.AddCommand(&cobra.Command{Use: k, Run: func(*cobra.Command, []string) {}})
	}
	msg := fmt.Sprintf("unknown %s %q", what, name)
	if near := all.SuggestionsFor(name); len(near) > 0 {
		msg += "; did you mean " + strings.Join(near, ", ") + "?"
	}
	return usageError{fmt.Errorf("%s (%s lists all)", msg, list)}
}

// nameFirst moves the name of the command to the front of the arguments, where cobra wants it. Which argument is the name,
// and which the value of a flag before it, the flags of all commands together tell. Completion's own command stays in front.
func nameFirst(args []string) []string {
	if len(args) > 0 && (args[0] == cobra.ShellCompRequestCmd || args[0] == cobra.ShellCompNoDescRequestCmd) {
		return slices.Concat(args[:1], nameFirst(args[1:]))
	}
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	flags.SetNormalizeFunc(eitherDash())
	known := map[string]bool{"help": true, "completion": true, "fetcharg": true, "suite": true, "list": true, "vm": true, "report": true, "compare": true, "doctor": true}
	new(options).bind(flags)
	for _, b := range harness.All() {
		for _, name := range append([]string{b.Name}, b.Aliases...) {
			known[name] = true
		}
		own := pflag.NewFlagSet("", pflag.ContinueOnError)
		b.New().Flags(own)
		flags.AddFlagSet(own)
	}
	name := -1
	for _, i := range positions(args, flags) {
		if known[args[i]] {
			name = i
			break
		}
	}
	if name < 0 {
		return args
	}
	return slices.Concat(args[name:name+1], args[:name], args[name+1:])
}

// positions are the indices of the arguments that are neither flags nor values of flags.
func positions(args []string, flags *pflag.FlagSet) []int {
	var at []int
	for i := 0; i < len(args); i++ {
		arg := args[i]
		switch {
		case arg == "--":
			return at
		case strings.HasPrefix(arg, "--"):
			if f := flags.Lookup(arg[2:]); f != nil && f.NoOptDefVal == "" {
				i++
			}
		case len(arg) > 1 && arg[0] == '-':
			for j := 1; j < len(arg); j++ {
				if f := flags.ShorthandLookup(arg[j : j+1]); f != nil && f.NoOptDefVal == "" {
					if j == len(arg)-1 {
						i++ // the value is the next argument
					}
					break
				}
			}
		default:
			at = append(at, i)
		}
	}
	return at
}

// completeFlags lets a shell complete the values of flags.
func completeFlags(cmd *cobra.Command, b *harness.Benchmark, own []string) {
	values := map[string][]string{"format": formatNames(), "sweep": nil}
	for _, name := range own {
		values["sweep"] = append(values["sweep"], name+"=")
	}
	if c, ok := b.New().(interface{ FlagValues() map[string][]string }); ok {
		maps.Copy(values, c.FlagValues())
	}
	for flag, choices := range values {
		if err := cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(choices, cobra.ShellCompDirectiveNoFileComp|cobra.ShellCompDirectiveNoSpace)); err != nil {
			panic(err)
		}
	}
}
