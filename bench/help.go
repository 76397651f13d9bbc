package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/jedib0t/go-pretty/v6/text"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"bpfbench/bench/harness"
)

// width is that of the terminals that help is laid out for.
const width = 80

// wrap breaks s into lines of at most n characters, between words.
func wrap(s string, n int) string {
	lines := strings.Split(text.WrapSoft(s, n), "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " ")
	}
	return strings.Join(lines, "\n")
}

// printList lists the benchmarks in the words of the kernel's own bench.
func printList(w io.Writer) error {
	var b strings.Builder
	b.WriteString("Available benchmarks:\n")
	for _, bm := range harness.All() {
		fmt.Fprintf(&b, "- %s\n", bm.Name)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// help writes what -h shows of a command: what it does, then its usage.
func help(cmd *cobra.Command, _ []string) {
	what := cmd.Long
	if what == "" {
		what = cmd.Short
	}
	fmt.Fprintf(cmd.OutOrStdout(), "%s\n\n", wrap(what, width))
	if !cmd.HasParent() {
		fmt.Fprintf(cmd.OutOrStdout(), "%s\n", firstSteps)
	}
	cmd.SetOut(cmd.OutOrStdout())
	if err := cmd.Usage(); err != nil {
		complain(err)
	}
}

// usage writes a command's flags: a benchmark's own before those that all have.
func usage(cmd *cobra.Command) error {
	own, all := pflag.NewFlagSet("", pflag.ContinueOnError), pflag.NewFlagSet("", pflag.ContinueOnError)
	own.SortFlags, all.SortFlags = false, false
	cmd.Flags().SortFlags = false
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if _, is := f.Annotations[ownFlag]; is {
			own.AddFlag(f)
		} else {
			all.AddFlag(f)
		}
	})
	var b strings.Builder
	if own.HasFlags() {
		fmt.Fprintf(&b, "Usage: bench [flags] %s [flags]\n\nFlags of %s:\n%s\n", strings.TrimSuffix(cmd.Use, " [flags]"), cmd.Name(), own.FlagUsagesWrapped(width))
	} else {
		fmt.Fprintf(&b, "Usage: %s\n\n", cmd.UseLine())
	}
	if all.HasFlags() {
		whose := "every benchmark"
		if cmd.HasParent() && !own.HasFlags() {
			whose = cmd.Name()
		}
		fmt.Fprintf(&b, "Flags of %s:\n%s", whose, all.FlagUsagesWrapped(width))
	}
	if verbs := verbs(cmd); len(verbs) > 0 {
		b.WriteString("\nOther commands:\n")
		for _, c := range verbs {
			fmt.Fprintf(&b, "  %-12s %s\n", c.Name(), c.Short)
		}
	}
	_, err := io.WriteString(cmd.OutOrStdout(), b.String())
	return err
}

// verbs are the commands below cmd that are not benchmarks.
func verbs(cmd *cobra.Command) []*cobra.Command {
	benchmarks := make(map[string]bool)
	for _, b := range harness.All() {
		benchmarks[b.Name] = true
	}
	var found []*cobra.Command
	for _, c := range cmd.Commands() {
		if !benchmarks[c.Name()] {
			found = append(found, c)
		}
	}
	return found
}
