package main

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"bpfbench/bench/harness"
	"bpfbench/internal/host"
	"bpfbench/report"
)

//go:generate sh -c "go run . list --format markdown >../docs/benchmarks.md"

// listFormats are the writers of `bench list`, by the name that --format knows them by.
var listFormats = []struct {
	name  string
	write func(io.Writer, []*harness.Benchmark) error
}{
	{"text", listText},
	{"json", listJSON},
	{"markdown", listMarkdown},
}

// listCommand says which benchmarks there are, what each measures, and whether this kernel runs it.
func listCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "list",
		Short: "what each benchmark measures, and whether it runs here",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return usageError{fmt.Errorf("list: %q is left over: the list is of all; bench NAME -h tells of one", args[0])}
			}
			return nil
		},
	}
	var names []string
	for _, f := range listFormats {
		names = append(names, f.name)
	}
	format := cmd.Flags().String("format", names[0], "`F` is "+strings.Join(names, ", ")+" (a page of reference, the same on every machine)")
	if err := cmd.RegisterFlagCompletionFunc("format", cobra.FixedCompletions(names, cobra.ShellCompDirectiveNoFileComp)); err != nil {
		panic(err)
	}
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		i := slices.Index(names, *format)
		if i < 0 {
			return usageError{fmt.Errorf("list: --format=%s: must be one of %s", *format, strings.Join(names, ", "))}
		}
		return listFormats[i].write(cmd.OutOrStdout(), harness.All())
	}
	return cmd
}

// listText writes a table, and below it why this kernel does not run what it does not run.
func listText(w io.Writer, all []*harness.Benchmark) error {
	var notes []string
	note := func(s string) string {
		i := slices.Index(notes, s)
		if i < 0 {
			i = len(notes)
			notes = append(notes, s)
		}
		return fmt.Sprintf("[%d]", i+1)
	}
	rows := []table.Row{{"benchmark", "here", "measures"}}
	for _, b := range all {
		runs := "yes"
		switch f := find(b.Name, required(b)); f.Outcome {
		case "there":
		case "no privilege":
			runs = "? " + note("only root can ask the kernel: sudo bench list")
		default:
			runs = "no " + note(strings.Join(strings.Fields(f.Reason), " "))
		}
		measures := b.Summary
		if len(b.Aliases) > 0 {
			measures += " Also known as " + strings.Join(b.Aliases, ", ") + "."
		}
		rows = append(rows, table.Row{b.Name, runs, measures})
	}
	var out strings.Builder
	fmt.Fprintf(&out, "%s\n\n", listing(rows))
	for i, n := range notes {
		fmt.Fprintf(&out, "[%d] %s\n", i+1, strings.ReplaceAll(wrap(n, width-4), "\n", "\n    "))
	}
	fmt.Fprintf(&out, "%s\n", wrap("Here is Linux "+host.Facts().Kernel+". bench NAME -h tells what is timed, and the flags.", width))
	_, err := io.WriteString(w, out.String())
	return err
}

// listing lays rows out, the first of which is the heading. The last column is wrapped to the room that the others leave.
func listing(rows []table.Row) string {
	const gap = 2
	t := table.NewWriter()
	style := table.Style{Name: "plain", Options: table.OptionsNoBordersAndSeparators}
	style.Box.PaddingRight = strings.Repeat(" ", gap)
	t.SetStyle(style)
	t.SuppressTrailingSpaces()
	t.AppendHeader(rows[0])
	t.AppendRows(rows[1:])
	last, room := len(rows[0])-1, width
	for column := range last {
		widest := 0
		for _, row := range rows {
			widest = max(widest, text.StringWidth(row[column].(string)))
		}
		room -= widest + gap
	}
	t.SetColumnConfigs([]table.ColumnConfig{{Number: last + 1, WidthMax: room, WidthMaxEnforcer: wrap}})
	return t.Render()
}

// described is what the JSON of a list has of a benchmark.
type described struct {
	Name      string      `json:"name"`
	Aliases   []string    `json:"aliases,omitempty"`
	Op        string      `json:"op"`
	Summary   string      `json:"summary"`
	Timing    string      `json:"timing"`
	Form      report.Form `json:"form,omitempty"`
	Outcome   string      `json:"outcome"` // of what it requires of this kernel, as in a finding
	Reason    string      `json:"reason,omitempty"`
	Producers bounds      `json:"producers"`
	Consumers bounds      `json:"consumers"`
	Flags     []flag      `json:"flags"`
}

type bounds struct {
	Min     int `json:"min"`
	Default int `json:"default"`
	Max     int `json:"max"`
}

func boundsOf(w harness.Workers) bounds { return bounds{Min: w.Min, Default: w.Default, Max: w.Max} }

// flag is one of a benchmark's own flags.
type flag struct {
	Name    string `json:"name"`
	Type    string `json:"type"`
	Default string `json:"default"`
	Usage   string `json:"usage"`
}

// listJSON writes all there is to know of the benchmarks.
func listJSON(w io.Writer, all []*harness.Benchmark) error {
	var out struct {
		Benchmarks []described `json:"benchmarks"`
	}
	for _, b := range all {
		f := find(b.Name, required(b))
		out.Benchmarks = append(out.Benchmarks, described{
			Name: b.Name, Aliases: b.Aliases, Op: b.Op, Summary: b.Summary, Timing: b.Timing, Form: b.Form, Outcome: f.Outcome, Reason: f.Reason,
			Producers: boundsOf(b.Producers), Consumers: boundsOf(b.Consumers), Flags: flagsOf(b),
		})
	}
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(out)
}

// flagsOf are the flags of b's own, in its order.
func flagsOf(b *harness.Benchmark) []flag {
	fs := pflag.NewFlagSet(b.Name, pflag.ContinueOnError)
	fs.SortFlags = false
	b.New().Flags(fs)
	flags := []flag{}
	fs.VisitAll(func(f *pflag.Flag) {
		_, usage := pflag.UnquoteUsage(f)
		flags = append(flags, flag{f.Name, f.Value.Type(), f.DefValue, usage})
	})
	return flags
}
