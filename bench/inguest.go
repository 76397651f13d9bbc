package main

import (
	"context"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"bpfbench/bench/harness"
	"bpfbench/internal/vm"
	"bpfbench/report"
)

// measureInGuest is measure inside a guest: the host has the outputs, so all that is told is the record.
func measureInGuest(task vm.Task, records io.Writer) runFunc {
	return func(ctx context.Context, req request) error {
		rec, jobs, err := prepare(req)
		if err != nil {
			return usageError{err}
		}
		rec.Session.Hosts[0].Accel = task.Accel
		if task.Exact {
			rec.Session.Unit, rec.Session.Start = report.Instructions, time.Time{}
		}
		runner := &harness.Runner{Plan: rec.Session.Plan, Writers: []report.Writer{report.NewJSONL(records)}}
		if task.Exact {
			runner.Writers = slices.Insert(runner.Writers, 0, report.Writer(counted{}))
		}
		if task.Round >= 0 {
			runner.Rounds = []int{task.Round}
		}
		if req.opts.verbose {
			runner.Refused = func(_ int, err error) { printVerifierLog(os.Stderr, err) }
		}
		if err := runner.Run(ctx, rec, jobs); err != nil {
			return err
		}
		return verdict(rec)
	}
}

// counted gives the gauges of a guest whose clock counts instructions, which benchmarks take for time, the unit of that.
type counted struct{}

func (counted) Begin(*report.Record) error { return nil }
func (counted) End(*report.Record) error   { return nil }

func (counted) Run(rec *report.Record, result int) error {
	runs := rec.Results[result].Runs
	gauges := runs[len(runs)-1].Gauges
	for i, g := range gauges {
		if rest, ok := strings.CutPrefix(g.Unit, string(report.Nanoseconds)); ok && (rest == "" || rest[0] == '/') {
			gauges[i].Unit = string(report.Instructions) + rest
		}
	}
	return nil
}
