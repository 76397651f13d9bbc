package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/cilium/ebpf"
	"github.com/spf13/pflag"

	"bpfbench/bench/harness"
	"bpfbench/internal/host"
	"bpfbench/internal/lock"
	"bpfbench/report"
)

// measure runs benchmark b as the flags say and reports it.
func measure(ctx context.Context, b *harness.Benchmark, o *options, flags *pflag.FlagSet) error {
	rec, jobs, err := prepare(b, o, flags)
	if err != nil {
		return usageError{err}
	}
	held, err := lock.Acquire(ctx, lock.Options{Wait: o.wait, What: b.Name})
	if err != nil {
		if ctx.Err() != nil {
			return exitError(exitInterrupted)
		}
		return err
	}
	defer held.Release()
	outs, err := o.openOutputs(os.Stdout)
	if err != nil {
		return err
	}
	prog := newProgress(os.Stderr, o, rec)
	runner := &harness.Runner{Plan: rec.Session.Plan, Writers: append(outs.writers, prog), Starting: prog.starting}
	if o.verbose {
		runner.Refused = func(_ int, err error) { printVerifierLog(os.Stderr, err) }
	}
	err = runner.Run(ctx, rec, jobs)
	if err = errors.Join(err, outs.close()); err != nil {
		return err
	}
	tell(os.Stderr, rec, outs.text && !o.quiet && len(rec.Results) > 1)
	return verdict(rec)
}

// prepare returns the record and the jobs that fill it. Its errors are the user's mistakes, all of them.
func prepare(b *harness.Benchmark, o *options, flags *pflag.FlagSet) (*report.Record, []*harness.Job, error) {
	plan, errPlan := o.plan()
	job, warnings, errWorkers := o.workers(b, flags)
	cfgs, varied, errConfigs := configurations(b, flags, o.sweeps)
	if err := errors.Join(errPlan, errWorkers, errConfigs); err != nil {
		return nil, nil, err
	}
	rec := &report.Record{Schema: report.Schema, Session: report.Session{
		Tool: toolVersion(), Args: os.Args[1:], Unit: report.Nanoseconds, Start: time.Now().Truncate(time.Second), Plan: plan, Hosts: []report.Host{host.Facts()},
	}}
	var jobs []*harness.Job
	for _, cfg := range cfgs {
		one := *job
		one.Config = cfg
		jobs = append(jobs, &one)
		rec.Results = append(rec.Results, &report.Result{
			Benchmark: b.Name, Op: b.Op, Params: cfg.Params(), Facts: cfg.Facts(), Varied: varied,
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
	for _, r := range rec.Results {
		if r.Reason != "" && !reasonsTold {
			say("%s: %s: %s", r.Benchmark, r.Status, r.Reason)
		}
		for _, warning := range r.Warnings {
			say("warning: %s: %s", r.Benchmark, warning)
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
