package main

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"

	"bpfbench/report"
)

// progress shows how far a session is: a bar on a terminal, or with -v a line
// for each run. It is a report.Writer, so that it learns of each run's end.
type progress struct {
	w     io.Writer
	rec   *report.Record
	title func(*report.Result) string
	lines bool
	bar   *progressbar.ProgressBar
}

func newProgress(w *os.File, o *options, rec *report.Record) *progress {
	p := &progress{w: w, rec: rec, title: titles(rec), lines: o.verbose && !o.quiet}
	if !o.quiet && !o.verbose && term.IsTerminal(int(w.Fd())) {
		p.bar = progressbar.NewOptions(len(rec.Results)*rec.Session.Plan.Runs, progressbar.OptionSetWriter(w), progressbar.OptionClearOnFinish(),
			progressbar.OptionShowCount(), progressbar.OptionSetPredictTime(true), progressbar.OptionSetWidth(20))
	}
	return p
}

// starting says which run comes next.
func (p *progress) starting(round, job int) {
	what := p.title(p.rec.Results[job])
	if p.lines {
		fmt.Fprintf(p.w, "bench: %s: run %d of %d\n", what, round+1, p.rec.Session.Plan.Runs)
	}
	if p.bar != nil {
		p.bar.Describe(what)
	}
}

// titles gives the name of a result's benchmark and the parameters that tell it from the others of rec.
func titles(rec *report.Record) func(*report.Result) string {
	varying := rec.Varying()
	return func(r *report.Result) string {
		words := []string{r.Benchmark}
		for _, name := range varying {
			if p, ok := r.Param(name); ok {
				words = append(words, fmt.Sprintf("%s=%v", name, p.Value))
			}
		}
		if slices.ContainsFunc(rec.Results, func(other *report.Result) bool { return other.Producers != r.Producers }) {
			words = append(words, fmt.Sprintf("producers=%d", r.Producers))
		}
		if len(rec.Session.Hosts) > 1 {
			words = append(words, "on", rec.Kernel(r))
		}
		return strings.Join(words, " ")
	}
}

func (p *progress) Begin(*report.Record) error { return nil }

// A bar that cannot be drawn is no reason to stop, so its errors are left.

func (p *progress) Run(*report.Record, int) error {
	if p.bar != nil {
		_ = p.bar.Add(1)
	}
	return nil
}

func (p *progress) End(*report.Record) error {
	if p.bar != nil {
		_ = p.bar.Finish()
	}
	return nil
}
