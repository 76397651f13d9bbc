package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"bpfbench/report"
	"bpfbench/report/plot"
)

// readRecord reads a stored record. One that breaks off comes with an error that wraps io.ErrUnexpectedEOF.
func readRecord(path string) (*report.Record, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	rec, err := report.Read(f)
	if err != nil {
		err = fmt.Errorf("%s: %w", path, err)
	}
	return rec, err
}

// reportCommand shows stored records.
func reportCommand() *cobra.Command {
	o := new(options)
	cmd := &cobra.Command{
		Use:   "report FILE...",
		Short: "show stored records in any format",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usageError{errors.New("report: name a file that -o or --format json=FILE wrote")}
			}
			return nil
		},
	}
	o.bindOutput(cmd.Flags())
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if o.plot != "" && len(args) > 1 {
			return usageError{errors.New("report: --plot draws one record: name one file")}
		}
		outs, err := o.openOutputs(os.Stdout, layoutOf)
		if err != nil {
			return err
		}
		var errs []error
		for _, path := range args {
			rec, err := readRecord(path)
			errs = append(errs, err)
			if rec == nil {
				continue
			}
			for _, w := range outs.writers {
				errs = append(errs, replay(rec, w))
			}
			tell(os.Stderr, rec, true)
			errs = append(errs, o.draw(rec))
		}
		return errors.Join(append(errs, outs.close())...)
	}
	return cmd
}

// layoutOf is the text of stored records.
func layoutOf(w io.Writer, opt report.TextOptions) report.Writer {
	opt.Live = false
	return &storedText{w, opt, nil}
}

// storedText is the text that the command had shown that a record is of.
type storedText struct {
	w   io.Writer
	opt report.TextOptions
	report.Writer
}

func (s *storedText) Begin(rec *report.Record) error {
	text := report.NewText
	if suite := suiteOf(rec.Session.Args); suite != nil {
		text = suiteText(suite)
	} else if len(rec.Results) > 1 && slices.ContainsFunc(rec.Results, func(r *report.Result) bool {
		return strings.HasPrefix(r.Benchmark, fetchargPrefix) && r.Varied == nil
	}) {
		text = report.NewOverheads
	}
	s.Writer = text(s.w, s.opt)
	return s.Writer.Begin(rec)
}

// replay tells w a record as if it came about just now.
func replay(rec *report.Record, w report.Writer) error {
	again := *rec
	again.Results = make([]*report.Result, len(rec.Results))
	for i, r := range rec.Results {
		one := *r
		one.Runs = nil
		again.Results[i] = &one
	}
	if err := w.Begin(&again); err != nil {
		return err
	}
	for i, r := range rec.Results {
		for _, run := range r.Runs {
			again.Results[i].Runs = append(again.Results[i].Runs, run)
			if err := w.Run(&again, i); err != nil {
				return err
			}
		}
	}
	return w.End(&again)
}

// draw writes the plot that was asked for.
func (o *options) draw(rec *report.Record) error {
	if o.plot == "" {
		return nil
	}
	figure, err := plot.Of(rec)
	if err == nil {
		err = figure.Save(o.plot)
	}
	if err != nil {
		return fmt.Errorf("--plot=%s: %w", o.plot, err)
	}
	return nil
}
