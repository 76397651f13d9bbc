package harness

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"bpfbench/internal/cpuset"
	"bpfbench/report"
)

// errStuck means that a worker did not come back. Its thread still uses the set-up, so nothing can follow.
var errStuck = errors.New("a worker does not return")

// crew is the workers of one run.
type crew struct {
	inst      *Instance
	job       *Job
	abort     *atomic.Bool
	producers []*thread
	consumers []*thread
	patience  time.Duration // for workers that were told to stop
}

// thread is a worker with the goroutine that runs it.
type thread struct {
	Worker
	producer Producer
	phases   chan *phase
	reports  chan outcome // one when ready, then one a phase
}

// outcome is what a worker has to say at the end of a phase.
type outcome struct {
	samples []timed
	alive   time.Time // until when it ran
	err     error
}

// timed is a sample and when its batch began and ended, by this process's clock.
type timed struct {
	report.Sample
	began, ended time.Time
}

// phase is one order to the producers: what to do and until when.
type phase struct {
	twin  bool
	gate  chan struct{} // closed when all may start
	stop  atomic.Bool
	fresh atomic.Int64  // workers that have not done a batch yet
	all   chan struct{} // closed when every worker has done one
	fail  chan struct{} // closed when a worker gave up
	once  sync.Once     // closes fail
}

func newPhase(workers int) *phase {
	p := &phase{gate: make(chan struct{}), all: make(chan struct{}), fail: make(chan struct{})}
	p.fresh.Store(int64(workers))
	return p
}

// start readies every worker on its thread: consumers first, then producers.
func (c *crew) start() error {
	for i := range c.job.Consumers {
		t := c.thread(i, c.job.ConsCPUs)
		consume := func(*phase) outcome { return outcome{err: c.inst.Consumer(&t.Worker)} }
		if err := t.start(func() error { return nil }, consume); err != nil {
			return fmt.Errorf("start consumer %d: %w", i, err)
		}
		c.consumers = append(c.consumers, t)
		p := newPhase(1)
		t.phases <- p
		close(p.gate)
	}
	for i := range c.job.Producers {
		t := c.thread(i, c.job.ProdCPUs)
		ready := func() (err error) { t.producer, err = c.inst.Producer(&t.Worker); return err }
		if err := t.start(ready, t.produce); err != nil {
			return fmt.Errorf("start producer %d: %w", i, err)
		}
		c.producers = append(c.producers, t)
	}
	return nil
}

func (c *crew) thread(i int, cpus []int) *thread {
	t := &thread{phases: make(chan *phase, 1), reports: make(chan outcome, 1)}
	t.Worker = Worker{ID: i, CPU: -1, abort: c.abort}
	if i < len(cpus) {
		t.CPU = cpus[i]
	}
	return t
}

// start runs the worker and waits until it is ready. A worker that cannot be made ready has ended.
func (t *thread) start(ready func() error, work func(*phase) outcome) error {
	go t.run(ready, work)
	err := (<-t.reports).err
	if err != nil {
		close(t.phases)
	}
	return err
}

// run is the worker's goroutine. Its thread ends with it, as it never unlocks: no other goroutine inherits the binding.
func (t *thread) run(ready func() error, work func(*phase) outcome) {
	runtime.LockOSThread()
	err := guard(func() error {
		if t.CPU >= 0 {
			if err := cpuset.Pin(t.CPU); err != nil {
				return err
			}
		}
		return ready()
	})
	t.reports <- outcome{err: err}
	for p := range t.phases {
		<-p.gate
		var out outcome
		if err := guard(func() error { out = work(p); return out.err }); err != nil {
			out.err = err
		}
		t.reports <- out
	}
}

// guard turns a panic into an error, so that what was set up is undone on that way out, too.
func guard(f func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		}
	}()
	return f()
}

// produce runs one phase. It reads the clock twice a batch.
func (t *thread) produce(p *phase) (out outcome) {
	defer func() {
		if out.err != nil {
			p.once.Do(func() { close(p.fail) })
		}
	}()
	if t.producer.Batch == nil {
		err := t.producer.Spin()
		if err == nil && !t.Stopped() {
			err = errors.New("the producer ended before it was told to")
		}
		return outcome{err: err}
	}
	batch := t.producer.Batch
	if p.twin {
		batch = t.producer.Twin
	}
	out.samples = make([]timed, 0, 256)
	for first := true; ; {
		now := time.Now()
		if p.stop.Load() || t.Aborted() {
			out.alive = now
			return out
		}
		s, err := batch()
		if err != nil {
			out.err = err
			return out
		}
		if s.Ops == 0 && !t.Aborted() {
			out.err = errors.New("a batch did no operation")
			return out
		}
		s.Worker = t.ID
		if s.Ops > 0 {
			out.samples = append(out.samples, timed{s, now, time.Now()})
		}
		if first {
			first = false
			if p.fresh.Add(-1) == 0 {
				close(p.all)
			}
		}
	}
}

// begin lets the producers start phase p together.
func (c *crew) begin(p *phase) {
	for _, t := range c.producers {
		t.stop.Store(false)
		t.phases <- p
	}
	close(p.gate)
}

// end stops the producers and returns what each has to say; the error is of the first that failed.
func (c *crew) end(p *phase) ([]outcome, error) {
	p.stop.Store(true)
	for _, t := range c.producers {
		t.stop.Store(true)
	}
	outs := make([]outcome, len(c.producers))
	var failed error
	for i, t := range c.producers {
		out, err := c.await(t)
		if err != nil {
			return nil, fmt.Errorf("stop producer %d: %w", i, err)
		}
		outs[i] = out
		if out.err != nil && failed == nil {
			failed = fmt.Errorf("producer %d: %w", i, out.err)
		}
	}
	return outs, failed
}

// await takes the outcome of a worker that was told to stop.
func (c *crew) await(t *thread) (outcome, error) {
	overdue := time.NewTimer(c.patience)
	defer overdue.Stop()
	select {
	case out := <-t.reports:
		return out, nil
	case <-overdue.C:
		return outcome{}, errStuck
	}
}

// batches runs one phase of timed batches for d and at least one batch of every producer, and returns the samples that
// lie in the window in which all producers ran, by producer and in order, with the time that the phase took.
func (c *crew) batches(ctx context.Context, d time.Duration, twin bool) ([]timed, time.Duration, error) {
	p := newPhase(len(c.producers))
	p.twin = twin
	start := time.Now()
	c.begin(p)
	late := c.wait(ctx, p, d)
	outs, err := c.end(p)
	took := time.Since(start)
	if err == nil {
		err = late
	}
	if err != nil {
		return nil, took, err
	}
	until := outs[0].alive
	for _, out := range outs[1:] {
		if out.alive.Before(until) {
			until = out.alive
		}
	}
	var in []timed
	for _, out := range outs {
		for _, s := range out.samples {
			if !s.ended.After(until) {
				in = append(in, s)
			}
		}
	}
	return in, took, nil
}

// wait returns when d is over and every producer has done a batch, or earlier when one failed or ctx is done. It returns
// an error when a batch does not come.
func (c *crew) wait(ctx context.Context, p *phase, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-p.fail:
		return nil
	case <-ctx.Done():
		return nil
	}
	limit := max(10*d, 10*time.Second)
	overdue := time.NewTimer(limit - d)
	defer overdue.Stop()
	select {
	case <-p.all:
	case <-p.fail:
	case <-ctx.Done():
	case <-overdue.C:
		c.abort.Store(true)
		return fmt.Errorf("no batch ended within %v: %s", limit.Round(time.Second), c.job.Benchmark.shorter())
	}
	return nil
}

// shorter says how to get shorter batches.
func (b *Benchmark) shorter() string {
	if b.Longer == "" {
		return "raise -d or lower --runs"
	}
	return fmt.Sprintf("lower %s, raise -d or lower --runs", b.Longer)
}

// ticks lets the producers spin for warm and then d, and returns a sample of each producer at every tick: counts between
// two readings, divided by the time between them.
func (c *crew) ticks(ctx context.Context, warm, d time.Duration) ([]timed, error) {
	p := newPhase(len(c.producers))
	c.begin(p)
	samples := c.count(ctx, p, warm, d)
	_, err := c.end(p)
	return samples, err
}

// ticksPerRun is how many samples a run of a counter has. Ten of them show its spread; more would shorten the ticks. There are more
// where none of the producers has come to do anything, for lack of a CPU.
const ticksPerRun = 10

func (c *crew) count(ctx context.Context, p *phase, warm, d time.Duration) []timed {
	pause := func(d time.Duration) bool {
		timer := time.NewTimer(d)
		defer timer.Stop()
		select {
		case <-timer.C:
			return true
		case <-p.fail:
		case <-ctx.Done():
		}
		return false
	}
	if !pause(warm) {
		return nil
	}
	last, now := make([]Count, len(c.producers)), make([]Count, len(c.producers))
	c.inst.Count(last)
	then := time.Now()
	samples := make([]timed, 0, ticksPerRun*len(c.producers))
	var ops uint64
	end := then.Add(max(10*d, 10*time.Second))
	for tick := 0; tick < ticksPerRun || ops == 0 && then.Before(end); tick++ {
		going := pause(d / ticksPerRun)
		c.inst.Count(now)
		at := time.Now()
		for i, t := range c.producers {
			s := report.Sample{Worker: i, CPU: t.CPU, Elapsed: uint64(at.Sub(then)), Ops: now[i].Ops - last[i].Ops,
				Drops: now[i].Drops - last[i].Drops, Misses: now[i].Misses - last[i].Misses}
			samples = append(samples, timed{s, then, at})
			ops += s.Ops
		}
		last, now, then = now, last, at
		if !going {
			break
		}
	}
	return samples
}

// stop ends all workers and waits for them.
func (c *crew) stop() error {
	for _, t := range c.consumers {
		t.stop.Store(true)
	}
	if c.inst.Wake != nil {
		c.inst.Wake()
	}
	var errs []error
	for i, t := range c.consumers {
		out, err := c.await(t)
		if err == nil {
			err = out.err
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("consumer %d: %w", i, err))
		}
	}
	c.dismiss()
	return errors.Join(errs...)
}

// dismiss lets every worker end that comes back.
func (c *crew) dismiss() {
	for _, t := range slices.Concat(c.producers, c.consumers) {
		close(t.phases)
	}
}
