package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"bpfbench/bench/harness"
	"bpfbench/internal/host"
	"bpfbench/internal/kernel"
	"bpfbench/report"
)

// diagnosis is what `bench doctor` finds.
type diagnosis struct {
	Host         report.Host      `json:"host"`
	Benchmarks   []finding        `json:"benchmarks"`
	Hooks        []finding        `json:"hooks"`
	Disturbances []report.Warning `json:"disturbances"`
}

// finding is whether the kernel has what something needs.
type finding struct {
	Name    string `json:"name"`
	Outcome string `json:"outcome"` // "there", "missing", "refused", "no privilege" or "unknown"
	Reason  string `json:"reason,omitempty"`
}

// find sorts the error of a probe.
func find(name string, err error) finding {
	f := finding{Name: name, Outcome: "there"}
	var known *kernel.Error
	var privilege *kernel.PrivilegeError
	switch {
	case err == nil:
		return f
	case errors.As(err, &privilege):
		f.Outcome = "no privilege"
	case errors.As(err, &known) && known.Outcome == kernel.Refused:
		f.Outcome = "refused"
	case errors.Is(err, errors.ErrUnsupported):
		f.Outcome = "missing"
	default:
		f.Outcome = "unknown"
	}
	f.Reason = strings.TrimPrefix(err.Error(), name+": ")
	return f
}

// required asks the kernel for what b needs of it.
func required(b *harness.Benchmark) error {
	for _, probe := range b.Requires {
		if err := probe(); err != nil {
			return err
		}
	}
	return nil
}

func diagnose() diagnosis {
	d := diagnosis{Host: host.Facts(), Disturbances: host.Disturbances()}
	for _, b := range harness.All() {
		d.Benchmarks = append(d.Benchmarks, find(b.Name, required(b)))
	}
	for _, h := range kernel.Hooks() {
		d.Hooks = append(d.Hooks, find(h.Name, h.Probe()))
	}
	return d
}

// doctorCommand says what this kernel offers, and what of the machine would disturb a measurement.
func doctorCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "what this kernel offers, and what would disturb measuring",
		Args:  cobra.NoArgs,
	}
	format := cmd.Flags().String("format", "text", "text or json")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		switch *format {
		case "text":
			return diagnose().write(cmd.OutOrStdout())
		case "json":
			e := json.NewEncoder(cmd.OutOrStdout())
			e.SetIndent("", "  ")
			return e.Encode(diagnose())
		}
		return usageError{fmt.Errorf("doctor: --format=%s: must be text or json", *format)}
	}
	return cmd
}

func (d diagnosis) write(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n", wrap(d.Host.Text(), width))
	for _, part := range []struct {
		title string
		found []finding
	}{{"Benchmarks", d.Benchmarks}, {"Hooks of the kernel", d.Hooks}} {
		fmt.Fprintf(&b, "\n%s:\n", part.title)
		for _, f := range part.found {
			fmt.Fprintf(&b, "  %-20s %s\n", f.Name, f.Outcome)
			if f.Reason != "" {
				fmt.Fprintf(&b, "      %s\n", strings.ReplaceAll(wrap(f.Reason, width-6), "\n", "\n      "))
			}
		}
	}
	fmt.Fprint(&b, "\nWhat would disturb measuring:\n")
	if len(d.Disturbances) == 0 {
		fmt.Fprint(&b, "  nothing that could be found\n")
	}
	for _, dist := range d.Disturbances {
		fmt.Fprintf(&b, "  - %s\n", strings.ReplaceAll(wrap(dist.String(), width-4), "\n", "\n    "))
	}
	_, err := io.WriteString(w, b.String())
	return err
}
