package main

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"bpfbench/report"
	"bpfbench/report/plot"
)

// compareOptions are the flags of `bench compare`.
type compareOptions struct {
	threshold float64 // in percent
	metric    string
	force     bool
	gate      string
	format    string
	plot      string
}

func (c *compareOptions) bind(fs *pflag.FlagSet) {
	fs.Float64Var(&c.threshold, "threshold", 100*report.DefaultThreshold, "`percent` below which a difference does not matter")
	fs.StringVar(&c.metric, "metric", "", "`what` is compared: rate, or cost (default: rate, and in exact mode cost)")
	fs.BoolVar(&c.force, "force", false, "compare different machines or parameters all the same")
	fs.StringVar(&c.gate, "gate", "", "`FILE` with thresholds of single benchmarks: docs/methodology.md")
	fs.StringVar(&c.format, "format", "text", "text, markdown or json")
	fs.StringVar(&c.plot, "plot", "", "draw it into `FILE`: .svg or .png")
}

// compareCommand gives a verdict on two records, or on the kernels of one.
func compareCommand() *cobra.Command {
	c := new(compareOptions)
	cmd := &cobra.Command{
		Use:   "compare OLD NEW | compare FILE",
		Short: "is NEW better, worse or the same? Exit status 3 if worse",
		Long: "Compares two stored records, or the kernels of one with its first: medians of the runs, their ratio with its interval, and a " +
			"verdict for each benchmark and set of parameters. docs/methodology.md says how it is reached. Exit status: 3 if anything is " +
			"worse, 1 if anything is missing or not comparable, else 0.",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 && len(args) != 2 {
				return usageError{errors.New("compare: name two files, OLD and NEW, or one with several kernels")}
			}
			return nil
		},
	}
	c.bind(cmd.Flags())
	cmd.RunE = func(cmd *cobra.Command, args []string) error { return c.run(cmd.OutOrStdout(), args) }
	return cmd
}

func (c *compareOptions) run(w io.Writer, files []string) error {
	write := map[string]func(*report.Comparison, io.Writer) error{
		"text": (*report.Comparison).WriteText, "markdown": (*report.Comparison).WriteMarkdown, "json": (*report.Comparison).WriteJSON}[c.format]
	opt, err := c.options(files)
	if write == nil {
		err = errors.Join(err, fmt.Errorf("--format=%s: must be text, markdown or json", c.format))
	}
	if c.plot != "" {
		err = errors.Join(err, plot.CheckPath(c.plot))
	}
	if err != nil {
		return usageError{err}
	}
	comparison, err := compareFiles(files, opt)
	if err != nil {
		return err
	}
	if err := write(comparison, w); err != nil {
		return err
	}
	if c.plot != "" {
		figure, err := plot.Comparison(comparison)
		if err == nil {
			err = figure.Save(c.plot)
		}
		if err != nil {
			return fmt.Errorf("--plot=%s: %w", c.plot, err)
		}
	}
	switch {
	case comparison.Worse():
		return exitError(exitWorse)
	case comparison.Missing():
		return exitError(exitFailed)
	}
	return nil
}

func (c *compareOptions) options(files []string) (report.CompareOptions, error) {
	opt := report.CompareOptions{Threshold: c.threshold / 100, Metric: report.Metric(c.metric), Force: c.force}
	var errs []error
	if !(c.threshold > 0 && c.threshold < 100) {
		errs = append(errs, fmt.Errorf("--threshold=%v: must be above 0 and below 100 percent", c.threshold))
	}
	if c.metric != "" && opt.Metric != report.RateMetric && opt.Metric != report.CostMetric {
		errs = append(errs, fmt.Errorf("--metric=%s: must be %s or %s", c.metric, report.RateMetric, report.CostMetric))
	}
	if len(files) == 2 {
		opt.Old, opt.New = files[0], files[1]
	}
	if c.gate != "" {
		f, err := os.Open(c.gate)
		if err == nil {
			opt.Gate, err = report.ReadGate(f)
			f.Close()
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("--gate=%s: %w", c.gate, err))
		}
	}
	return opt, errors.Join(errs...)
}

func compareFiles(files []string, opt report.CompareOptions) (*report.Comparison, error) {
	var recs []*report.Record
	for _, path := range files {
		rec, err := readRecord(path)
		if err != nil {
			return nil, err
		}
		recs = append(recs, rec)
	}
	if len(recs) == 1 {
		return report.CompareHosts(recs[0], opt)
	}
	return report.Compare(recs[0], recs[1], opt)
}
