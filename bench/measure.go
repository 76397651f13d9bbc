package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/cilium/ebpf"

	"bpfbench/bench/harness"
	"bpfbench/internal/host"
	"bpfbench/internal/jit"
	"bpfbench/internal/lock"
	"bpfbench/internal/tracefs"
	"bpfbench/report"
)

// measure runs what is asked for on this machine and reports it.
func measure(ctx context.Context, req request) (err error) {
	o := req.opts
	rec, jobs, err := prepare(req)
	if err != nil {
		return usageError{err}
	}
	for _, job := range jobs {
		if d, ok := job.Config.(interface{ Dump(io.Writer) (bool, error) }); ok {
			if asked, err := d.Dump(os.Stdout); asked {
				return err
			}
		}
	}
	outs, err := o.openOutputs(os.Stdout, req.text)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, outs.close()) }()
	held, err := lock.Acquire(ctx, lock.Options{Wait: o.wait, What: rec.Results[0].Benchmark})
	if err != nil {
		if ctx.Err() != nil {
			return exitError(exitInterrupted)
		}
		return err
	}
	defer held.Release()
	if err := cleanUp(os.Stderr); err != nil {
		return err
	}
	rec.Session.Warnings = host.Disturbances()
	prog := newProgress(os.Stderr, o, rec)
	runner := &harness.Runner{Plan: rec.Session.Plan, Writers: slices.Concat([]report.Writer{adviser{}}, outs.writers, []report.Writer{prog}), Starting: prog.starting}
	if o.verbose {
		runner.Refused = func(_ int, err error) { printVerifierLog(os.Stderr, err) }
	}
	if err := runner.Run(ctx, rec, jobs); err != nil {
		return err
	}
	tell(os.Stderr, rec, outs.text && !o.quiet && len(rec.Results) > 1)
	if err := o.draw(rec); err != nil {
		return err
	}
	if slices.ContainsFunc(rec.Results, func(r *report.Result) bool { return r.Status == report.Skipped }) {
		fmt.Fprintf(os.Stderr, "bench: a guest with another kernel may run what is skipped: bench vm -- %s\n", strings.Join(os.Args[1:], " "))
	}
	return verdict(rec)
}

// cleanUp removes what a session left that was killed, and says so on w. The caller holds the lock, so no other is alive.
func cleanUp(w io.Writer) error {
	removed, errEvents := tracefs.CleanUp()
	if len(removed) > 0 {
		fmt.Fprintf(w, "bench: removed what a bench left that was killed: %s\n", strings.Join(removed, ", "))
	}
	restored, errJIT := jit.Restore()
	if restored != "" {
		fmt.Fprintf(w, "bench: restored net.core.bpf_jit_enable=%s, which a bench had switched that was killed\n", restored)
	}
	return errors.Join(errEvents, errJIT)
}

// prepare returns the record and the jobs that fill it. Its errors are the user's mistakes, all of them.
func prepare(req request) (*report.Record, []*harness.Job, error) {
	plan, errPlan := req.opts.plan()
	entries, errEntries := req.entries()
	if err := errors.Join(errPlan, errEntries); err != nil {
		return nil, nil, err
	}
	rec := &report.Record{Schema: report.Schema, Session: report.Session{
		Tool: toolVersion(), Args: os.Args[1:], Unit: report.Nanoseconds, Start: time.Now().Truncate(time.Second), Plan: plan, Hosts: []report.Host{host.Facts()},
	}}
	var jobs []*harness.Job
	for _, e := range entries {
		opts, flags := req.opts, req.flags
		if e.opts != nil {
			opts, flags = e.opts, e.flags
		}
		job, warnings, err := opts.workers(e.benchmark, e.config, flags)
		if err != nil {
			return nil, nil, about(e.benchmark, err)
		}
		jobs = append(jobs, job)
		rec.Results = append(rec.Results, &report.Result{
			Benchmark: e.benchmark.Name, Op: e.benchmark.Op, Form: e.benchmark.Form, Params: e.config.Params(), Facts: e.config.Facts(), Varied: e.varied,
			Producers: job.Producers, Consumers: job.Consumers, Pinned: job.ProdCPUs != nil, Warnings: warnings,
		})
	}
	return rec, jobs, nil
}

// tell says on w what is not in the numbers: warnings, and why a result has none, unless a table has said that.
func tell(w io.Writer, rec *report.Record, reasonsTold bool) {
	said := make(map[string]bool)
	say := func(format string, args ...any) {
		line := fmt.Sprintf(format, args...)
		if !said[line] {
			said[line] = true
			fmt.Fprintf(w, "bench: %s\n", line)
		}
	}
	for _, warning := range rec.Session.Warnings {
		say("warning: %s", warning)
	}
	title := titles(rec)
	for _, r := range rec.Results {
		if r.Reason != "" && !reasonsTold {
			say("%s: %s: %s", title(r), r.Status, r.Reason)
		}
		for _, warning := range r.Warnings {
			say("warning: %s: %s", title(r), warning)
		}
	}
	if rec.Session.Interrupted {
		say("interrupted: what was measured until then is reported")
	}
}

// verdict is the exit status that rec has earned.
func verdict(rec *report.Record) error {
	failed, measured := false, false
	for _, r := range rec.Results {
		failed = failed || r.Status == report.Failed
		measured = measured || len(r.Runs) > 0
	}
	switch {
	case rec.Session.Interrupted:
		return exitError(exitInterrupted)
	case failed || !measured:
		return exitError(exitFailed)
	}
	return nil
}

// printVerifierLog prints why the kernel's verifier refused a program, if that is what err is about.
func printVerifierLog(w io.Writer, err error) {
	var refused *ebpf.VerifierError
	if errors.As(err, &refused) {
		fmt.Fprintf(w, "%+v\n", refused)
	}
}
