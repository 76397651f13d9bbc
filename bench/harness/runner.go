package harness

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"runtime/debug"
	"slices"
	"sync/atomic"
	"time"

	"bpfbench/report"
)

// Job is one configuration to measure and the result that it fills.
type Job struct {
	Benchmark *Benchmark
	Config    Config
	Producers int
	Consumers int
	ProdCPUs  []int // of the producers that are bound, in order; nil for none
	ConsCPUs  []int
}

// Runner measures jobs. Its zero value is not ready: Plan.Runs must be at least 1.
type Runner struct {
	Plan    report.Plan
	Rounds  []int // the rounds to do; nil for all of Plan.Runs
	Writers []report.Writer
	// Starting, if set, is called before each run with the index of its job.
	Starting func(round, job int)
	// Refused, if set, is called with the error that ended a job's result.
	Refused func(job int, err error)
}

// twinShare is the part of a run's measuring that goes to the empty twin of its loop, whose spread is far smaller.
const twinShare = 8

// patience is how long a worker that was told to stop may take. A batch is cut at the end of a call into the kernel, so
// only a kernel that does not return reaches it.
const patience = 30 * time.Second

// Run measures jobs in rounds: each round does one run of every job, in an order of its own, so that drift hits all of
// them alike. rec's results belong to the jobs, by index. What goes wrong with one job is in its result; the error is of
// a writer, or of a worker that did not come back. When ctx is done, it ends with what was measured.
func (r *Runner) Run(ctx context.Context, rec *report.Record, jobs []*Job) error {
	r.require(rec, jobs)
	for _, w := range r.Writers {
		if err := w.Begin(rec); err != nil {
			return err
		}
	}
	rounds := r.Rounds
	if rounds == nil {
		for i := range r.Plan.Runs {
			rounds = append(rounds, i)
		}
	}
	var fatal error
rounds:
	for _, round := range rounds {
		order := rand.New(rand.NewPCG(r.Plan.Seed, uint64(round))).Perm(len(jobs))
		for _, i := range order {
			if ctx.Err() != nil {
				break rounds
			}
			if rec.Results[i].Status != "" {
				continue
			}
			if r.Starting != nil {
				r.Starting(round, i)
			}
			if fatal = r.runJob(ctx, rec, i, jobs[i], round); fatal != nil {
				break rounds
			}
		}
	}
	for _, res := range rec.Results {
		if res.Status == "" {
			res.Status = report.OK
			if len(res.Runs) < len(rounds) {
				res.Status = report.Interrupted
			}
		}
	}
	rec.Session.Interrupted = ctx.Err() != nil
	for _, w := range r.Writers {
		fatal = errors.Join(fatal, w.End(rec))
	}
	return fatal
}

// require settles the results of jobs that cannot run here.
func (r *Runner) require(rec *report.Record, jobs []*Job) {
	for i, job := range jobs {
		for _, req := range job.Benchmark.Requires {
			if err := req(); err != nil {
				r.settle(rec, i, err)
				break
			}
		}
	}
}

// settle ends result i with err.
func (r *Runner) settle(rec *report.Record, i int, err error) {
	res := rec.Results[i]
	res.Status, res.Reason = report.Failed, err.Error()
	if errors.Is(err, errors.ErrUnsupported) {
		res.Status = report.Skipped
	}
	if r.Refused != nil {
		r.Refused(i, err)
	}
}

// runJob does one run of a job and adds it to its result. The error is fatal for the session.
func (r *Runner) runJob(ctx context.Context, rec *report.Record, i int, job *Job, round int) error {
	res := rec.Results[i]
	warn := func(w report.Warning) {
		if !slices.Contains(res.Warnings, w) {
			res.Warnings = append(res.Warnings, w)
		}
	}
	fact := func(p report.Param) { res.SetFacts(p) }
	run, err := r.measure(ctx, job, round, Env{Producers: job.Producers, Consumers: job.Consumers, Warn: warn, Fact: fact})
	if errors.Is(err, errStuck) {
		r.settle(rec, i, err)
		return fmt.Errorf("%s: %w: its set-up is still in use, so nothing more can be measured", res.Benchmark, err)
	}
	if err != nil && ctx.Err() == nil {
		r.settle(rec, i, err)
		return nil
	}
	if err != nil || len(run.Samples) == 0 {
		return nil // interrupted before there was anything to keep
	}
	res.Runs = append(res.Runs, run)
	if ctx.Err() != nil {
		res.Status = report.Interrupted
	}
	for _, w := range r.Writers {
		if err := w.Run(rec, i); err != nil {
			return err
		}
	}
	return nil
}

// measure sets a job up afresh and does one run of it.
func (r *Runner) measure(ctx context.Context, job *Job, round int, env Env) (run *report.Run, err error) {
	start := time.Now()
	var inst *Instance
	err = guard(func() (err error) {
		inst, err = job.Config.Setup(ctx, env)
		return err
	})
	if err != nil {
		return nil, err
	}
	defer func() {
		if !errors.Is(err, errStuck) { // closing what a thread still uses would hide where it hangs
			err = errors.Join(err, guard(inst.Close))
		}
	}()
	run = &report.Run{Round: round, Setup: uint64(time.Since(start))}

	var abort atomic.Bool
	defer context.AfterFunc(ctx, func() { abort.Store(true) })()
	defer quiet(job.Producers + job.Consumers)()
	c := &crew{inst: inst, job: job, abort: &abort, patience: patience}
	err = c.start()
	if err == nil {
		err = r.phases(ctx, c, run, env.Warn)
	}
	if errors.Is(err, errStuck) {
		c.dismiss()
		return nil, err
	}
	if err = errors.Join(err, c.stop()); err != nil {
		return nil, err
	}
	return run, r.check(ctx, inst, run)
}

// phases warms up and measures.
func (r *Runner) phases(ctx context.Context, c *crew, run *report.Run, warn func(report.Warning)) error {
	share := time.Duration(r.Plan.Duration) / time.Duration(r.Plan.Runs)
	warm := time.Duration(r.Plan.Warmup) / time.Duration(r.Plan.Runs)
	if c.producers[0].producer.Batch == nil {
		samples, err := c.ticks(ctx, warm, share)
		run.Samples = inWindow(samples)
		return err
	}
	_, _, err := c.batches(ctx, warm, false)
	if err != nil || ctx.Err() != nil {
		return err
	}
	twin := c.producers[0].producer.Twin != nil
	op := share
	if twin {
		op -= share / twinShare
	}
	samples, took, err := c.batches(ctx, op, false)
	run.Samples = inWindow(samples)
	if err != nil {
		return err
	}
	c.judgeLength(samples, took, op, r.Plan.Runs, warn)
	if !twin || ctx.Err() != nil {
		return nil
	}
	// The twin's first batch finds the length of its calls and is not kept.
	if _, _, err = c.batches(ctx, 0, true); err != nil || ctx.Err() != nil {
		return err
	}
	samples, _, err = c.batches(ctx, share-op, true)
	run.Twin = inWindow(samples)
	return err
}

// inWindow returns the samples with their starts counted from the first of them.
func inWindow(samples []timed) []report.Sample {
	if len(samples) == 0 {
		return nil
	}
	origin := slices.MinFunc(samples, func(a, b timed) int { return a.began.Compare(b.began) }).began
	kept := make([]report.Sample, len(samples))
	for i, s := range samples {
		kept[i] = s.Sample
		kept[i].Start = uint64(s.began.Sub(origin))
	}
	return kept
}

// shortest is the length of a batch of which reading the clock twice, at about 25 ns each, is 0.1 %.
const shortest = 50 * time.Microsecond

// judgeLength warns of batches that are too long for their share of the time, or too short for the clock.
func (c *crew) judgeLength(samples []timed, took, share time.Duration, runs int, warn func(report.Warning)) {
	if len(samples) == 0 {
		return
	}
	if took > share+share/2 && len(samples) <= 2*len(c.producers) {
		warn(report.Warning{
			What:   fmt.Sprintf("a batch takes longer than the share of the measuring that each of %d runs has", runs),
			Remedy: c.job.Benchmark.shorter(),
		})
	}
	var sum uint64
	for _, s := range samples {
		sum += s.Elapsed
	}
	if b := c.job.Benchmark; b.Longer != "" && time.Duration(sum/uint64(len(samples))) < shortest {
		warn(report.Warning{What: "batches are so short that reading the clock is more than 0.1 % of them", Remedy: "raise " + b.Longer})
	}
}

// check judges a run by what the harness knows of all benchmarks, then by the benchmark's own check.
func (r *Runner) check(ctx context.Context, inst *Instance, run *report.Run) error {
	var ops, misses uint64
	for _, s := range slices.Concat(run.Samples, run.Twin) {
		misses += s.Misses
	}
	for _, s := range run.Samples {
		ops += s.Ops
	}
	switch {
	case misses > 0:
		return fmt.Errorf("%d operations did not find what they should", misses)
	case ops == 0 && ctx.Err() == nil:
		return errors.New("no operation was counted")
	case inst.Check != nil:
		return inst.Check(run)
	}
	return nil
}

// quiet keeps Go's runtime out of the measurement: a collection first and none until the returned function is called,
// and threads enough that no worker waits for another. (With 2 of 2 busy, a timer fired 354 ms late; with 4, 0.3 ms.)
func quiet(workers int) (restore func()) {
	procs := runtime.GOMAXPROCS(0)
	if procs < workers+2 {
		runtime.GOMAXPROCS(workers + 2)
	}
	runtime.GC()
	percent := debug.SetGCPercent(-1)
	return func() {
		debug.SetGCPercent(percent)
		if procs < workers+2 {
			runtime.GOMAXPROCS(procs)
		}
	}
}
