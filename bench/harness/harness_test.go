package harness

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spf13/pflag"

	"bpfbench/report"
)

// fake is a configuration whose producers take time as told and count what is done to them.
type fake struct {
	batch    func(w *Worker, n int) (report.Sample, error) // the nth batch of a worker, from 0
	twin     bool
	spin     func(w *Worker, ops *atomic.Uint64) error
	consume  func(w *Worker) error
	setupErr error
	check    func(*report.Run) error

	setups, closes, open, mostOpen int
}

func (f *fake) Flags(*pflag.FlagSet)   {}
func (f *fake) Resolve() error         { return nil }
func (f *fake) Params() []report.Param { return nil }
func (f *fake) Facts() []report.Param  { return nil }

func (f *fake) Setup(_ context.Context, env Env) (*Instance, error) {
	if f.setupErr != nil {
		return nil, f.setupErr
	}
	f.setups++
	f.open++
	f.mostOpen = max(f.mostOpen, f.open)
	counters := make([]atomic.Uint64, env.Producers)
	inst := &Instance{Check: f.check, Consumer: f.consume, Close: func() error { f.open--; f.closes++; return nil }}
	inst.Count = func(into []Count) {
		for i := range into {
			into[i].Ops = counters[i].Load()
		}
	}
	inst.Producer = func(w *Worker) (Producer, error) {
		if f.spin != nil {
			return Producer{Spin: func() error { return f.spin(w, &counters[w.ID]) }}, nil
		}
		n, m := -1, -1
		p := Producer{Batch: func() (report.Sample, error) { n++; return f.batch(w, n) }}
		if f.twin {
			p.Twin = func() (report.Sample, error) {
				m++
				time.Sleep(time.Millisecond)
				return report.Sample{Ops: 100, Elapsed: 1000}, nil
			}
		}
		return p, nil
	}
	return inst, nil
}

// sleeps is a batch of n operations that takes d.
func sleeps(d time.Duration, n uint64) func(*Worker, int) (report.Sample, error) {
	return func(w *Worker, _ int) (report.Sample, error) {
		time.Sleep(d)
		return report.Sample{CPU: w.ID, Ops: n, Elapsed: uint64(d)}, nil
	}
}

// session runs jobs for one second in two runs, after a tenth of one of warm-up.
func session(ctx context.Context, producers, consumers int, fakes ...*fake) (*report.Record, error) {
	r := &Runner{Plan: report.Plan{Duration: uint64(time.Second), Warmup: uint64(100 * time.Millisecond), Runs: 2, Seed: 1}}
	rec := &report.Record{Session: report.Session{Plan: r.Plan, Unit: report.Nanoseconds}}
	var jobs []*Job
	for i, f := range fakes {
		b := &Benchmark{Name: fmt.Sprint("fake", i), Op: "op", Longer: "--nr_loops"}
		jobs = append(jobs, &Job{Benchmark: b, Config: f, Producers: producers, Consumers: consumers})
		rec.Results = append(rec.Results, &report.Result{Benchmark: b.Name})
	}
	err := r.Run(ctx, rec, jobs)
	return rec, err
}

func mustBe(t *testing.T, r *report.Result, want report.Status, reason string) {
	t.Helper()
	if r.Status != want || !strings.Contains(r.Reason, reason) {
		t.Errorf("status %q (%s), want %q with %q", r.Status, r.Reason, want, reason)
	}
}

func TestBatches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{batch: sleeps(10*time.Millisecond, 1000), twin: true}
		rec, err := session(t.Context(), 1, 0, f)
		if err != nil {
			t.Fatal(err)
		}
		res := rec.Results[0]
		mustBe(t, res, report.OK, "")
		if len(res.Runs) != 2 || f.setups != 2 || f.closes != 2 {
			t.Fatalf("%d runs of %d set-ups, %d closed, want 2 of each", len(res.Runs), f.setups, f.closes)
		}
		for _, run := range res.Runs {
			// Of half a second an eighth is the twin's: 437.5 ms hold 43 whole batches of 10 ms and the one that goes on past the end.
			if len(run.Samples) != 44 || len(run.Twin) != 63 {
				t.Errorf("%d samples and %d of the twin, want 44 and 63", len(run.Samples), len(run.Twin))
			}
			if s := run.Samples[1]; s.Ops != 1000 || s.Elapsed != 10e6 || s.Start != 10e6 {
				t.Errorf("the second sample is %+v", s)
			}
		}
	})
}

// A sample counts only while all producers run.
func TestWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{batch: func(w *Worker, n int) (report.Sample, error) {
			d := 9 * time.Millisecond
			if w.ID == 1 {
				d = 70 * time.Millisecond
			}
			return sleeps(d, 10)(w, n)
		}}
		rec, err := session(t.Context(), 2, 0, f)
		if err != nil {
			t.Fatal(err)
		}
		for _, run := range rec.Results[0].Runs {
			count := make(map[int]int)
			for _, s := range run.Samples {
				count[s.Worker]++
				if s.Start+s.Elapsed > 504e6 {
					t.Errorf("worker %d has a sample until %d ms, but worker 0 ended at 504", s.Worker, (s.Start+s.Elapsed)/1e6)
				}
			}
			if count[0] != 56 || count[1] != 7 {
				t.Errorf("%v samples by worker, want 56 and 7", count)
			}
		}
	})
}

// Case 9: one batch is always completed, by every producer, and a warning says that it took longer than its share.
func TestLongBatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{batch: func(w *Worker, n int) (report.Sample, error) {
			return sleeps(time.Duration(2+w.ID)*time.Second, 10)(w, n)
		}}
		rec, err := session(t.Context(), 2, 0, f)
		if err != nil {
			t.Fatal(err)
		}
		res := rec.Results[0]
		mustBe(t, res, report.OK, "")
		for _, run := range res.Runs {
			if !slices.ContainsFunc(run.Samples, func(s report.Sample) bool { return s.Worker == 0 }) ||
				!slices.ContainsFunc(run.Samples, func(s report.Sample) bool { return s.Worker == 1 }) {
				t.Errorf("a worker has no sample: %+v", run.Samples)
			}
		}
		if len(res.Warnings) != 1 || !strings.Contains(res.Warnings[0].Remedy, "lower --nr_loops") {
			t.Errorf("warnings %v, want one that says to lower --nr_loops", res.Warnings)
		}
	})
}

// Case 9: a batch that does not come ends the session with an error, not with nothing.
func TestNoBatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		f := &fake{batch: func(w *Worker, _ int) (report.Sample, error) {
			for !w.Aborted() {
				time.Sleep(10 * time.Millisecond)
			}
			return report.Sample{}, nil
		}}
		rec, err := session(t.Context(), 1, 0, f)
		if err != nil {
			t.Fatal(err)
		}
		mustBe(t, rec.Results[0], report.Failed, "no batch ended within 10s: lower --nr_loops")
		if d := time.Since(start); d > 11*time.Second {
			t.Errorf("it took %v to say so", d)
		}
		if f.open != 0 {
			t.Error("the set-up was not undone")
		}
	})
}

// A worker that does not return ends the session: its set-up is in use, so it stays.
func TestStuck(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		f := &fake{batch: func(*Worker, int) (report.Sample, error) { <-release; return report.Sample{Ops: 1}, nil }}
		rec, err := session(t.Context(), 1, 0, f, &fake{batch: sleeps(time.Millisecond, 1)})
		if !errors.Is(err, errStuck) {
			t.Errorf("error %v, want %v", err, errStuck)
		}
		mustBe(t, rec.Results[0], report.Failed, "does not return")
		if f.closes != 0 {
			t.Error("the set-up was undone under the worker")
		}
		close(release)
	})
}

func TestFailures(t *testing.T) {
	boom := errors.New("boom")
	for name, tt := range map[string]struct {
		fake   *fake
		status report.Status
		reason string
	}{
		"set-up":      {&fake{setupErr: boom}, report.Failed, "boom"},
		"unsupported": {&fake{setupErr: fmt.Errorf("no such map: %w", errors.ErrUnsupported)}, report.Skipped, "no such map"},
		"batch":       {&fake{batch: func(*Worker, int) (report.Sample, error) { return report.Sample{}, boom }}, report.Failed, "producer 0: boom"},
		"panic":       {&fake{batch: func(*Worker, int) (report.Sample, error) { panic("aargh") }}, report.Failed, "aargh"},
		"nothing":     {&fake{batch: sleeps(time.Millisecond, 0)}, report.Failed, "no operation"},
		"miss": {&fake{batch: func(*Worker, int) (report.Sample, error) {
			time.Sleep(time.Millisecond)
			return report.Sample{Ops: 9, Misses: 1, Elapsed: 1e6}, nil
		}}, report.Failed, "did not find"},
		"check":     {&fake{batch: sleeps(time.Millisecond, 1), check: func(*report.Run) error { return boom }}, report.Failed, "boom"},
		"spin":      {&fake{spin: func(*Worker, *atomic.Uint64) error { return boom }}, report.Failed, "boom"},
		"spin ends": {&fake{spin: func(*Worker, *atomic.Uint64) error { return nil }}, report.Failed, "ended before"},
		"spin idle": {&fake{spin: func(w *Worker, _ *atomic.Uint64) error {
			for !w.Stopped() {
				time.Sleep(time.Millisecond)
			}
			return nil
		}}, report.Failed, "no operation"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				good := &fake{batch: sleeps(time.Millisecond, 1)}
				rec, err := session(t.Context(), 1, 0, tt.fake, good)
				if err != nil {
					t.Fatal(err)
				}
				mustBe(t, rec.Results[0], tt.status, tt.reason)
				mustBe(t, rec.Results[1], report.OK, "") // one that fails does not take the others with it
				if tt.fake.open != 0 {
					t.Error("the set-up was not undone")
				}
			})
		})
	}
}

// Case 10: counts are divided by the time between two readings, however late those come.
func TestTicks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{spin: func(w *Worker, ops *atomic.Uint64) error {
			for !w.Stopped() {
				time.Sleep(time.Millisecond)
				ops.Add(1000)
			}
			return nil
		}}
		rec, err := session(t.Context(), 2, 0, f)
		if err != nil {
			t.Fatal(err)
		}
		for _, run := range rec.Results[0].Runs {
			if len(run.Samples) != 2*ticksPerRun {
				t.Fatalf("%d samples, want %d", len(run.Samples), 2*ticksPerRun)
			}
			for _, s := range run.Samples {
				// The two ends of a tick may fall on either side of a count.
				if s.Elapsed != 50e6 || s.Ops < 49000 || s.Ops > 51000 || s.CPU != -1 {
					t.Errorf("sample %+v, want about 50000 operations in 50 ms", s)
				}
			}
		}
	})
}

// Case 9: a run of producers that come to nothing in its time goes on until they have done something.
func TestTicksLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{spin: func(w *Worker, ops *atomic.Uint64) error {
			time.Sleep(2 * time.Second)
			ops.Add(1000)
			for !w.Stopped() {
				time.Sleep(time.Millisecond)
			}
			return nil
		}}
		rec, err := session(t.Context(), 1, 0, f)
		if err != nil {
			t.Fatal(err)
		}
		mustBe(t, rec.Results[0], report.OK, "")
		for _, run := range rec.Results[0].Runs {
			last := len(run.Samples) - 1
			for i, s := range run.Samples {
				if (s.Ops == 1000) != (i == last) {
					t.Errorf("sample %d of %d: %+v, want operations in the last", i, last, s)
				}
			}
			if at := run.Samples[last].Start + 50e6; at < 1950e6 || at > 2000e6 {
				t.Errorf("it goes on for %d ns", at)
			}
		}
	})
}

func TestConsumer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var running, before atomic.Int64
		f := &fake{
			batch: func(w *Worker, n int) (report.Sample, error) {
				if running.Load() == 0 {
					before.Add(1)
				}
				return sleeps(10*time.Millisecond, 1)(w, n)
			},
			consume: func(w *Worker) error {
				running.Add(1)
				defer running.Add(-1)
				for !w.Stopped() {
					time.Sleep(time.Millisecond)
				}
				return nil
			},
		}
		rec, err := session(t.Context(), 1, 2, f)
		if err != nil {
			t.Fatal(err)
		}
		mustBe(t, rec.Results[0], report.OK, "")
		if running.Load() != 0 {
			t.Errorf("%d consumers still run", running.Load())
		}
	})
}

func TestInterrupt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 750*time.Millisecond)
		defer cancel()
		start := time.Now()
		rec, err := session(ctx, 1, 0, &fake{batch: sleeps(10*time.Millisecond, 1)}, &fake{batch: sleeps(10*time.Millisecond, 1)})
		if err != nil {
			t.Fatal(err)
		}
		if d := time.Since(start); d > 800*time.Millisecond {
			t.Errorf("it ended after %v", d)
		}
		if !rec.Session.Interrupted {
			t.Error("the session does not say that it was interrupted")
		}
		runs := 0
		for _, r := range rec.Results {
			mustBe(t, r, report.Interrupted, "")
			runs += len(r.Runs)
		}
		if runs != 2 {
			t.Errorf("%d runs are kept, want the whole one and the one that was cut", runs)
		}
	})
}

// In every round each job has one run, in an order of the round's own.
func TestRounds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var order [][]int
		r := &Runner{Plan: report.Plan{Duration: 1e9, Runs: 20, Seed: 7}}
		r.Starting = func(round, job int) {
			if round == len(order) {
				order = append(order, nil)
			}
			order[round] = append(order[round], job)
		}
		rec := &report.Record{}
		var jobs []*Job
		all := &fake{batch: sleeps(10*time.Millisecond, 1)}
		for range 5 {
			jobs = append(jobs, &Job{Benchmark: &Benchmark{}, Config: all, Producers: 1})
			rec.Results = append(rec.Results, &report.Result{})
		}
		if err := r.Run(t.Context(), rec, jobs); err != nil {
			t.Fatal(err)
		}
		orders := make(map[string]bool)
		for _, o := range order {
			orders[fmt.Sprint(o)] = true
			if o = slices.Sorted(slices.Values(o)); !slices.Equal(o, []int{0, 1, 2, 3, 4}) {
				t.Errorf("a round has the jobs %v", o)
			}
		}
		if len(order) != 20 || len(orders) < 10 {
			t.Errorf("%d rounds in %d orders", len(order), len(orders))
		}
		if all.mostOpen != 1 {
			t.Errorf("%d set-ups at once", all.mostOpen)
		}
	})
}

func TestRequirement(t *testing.T) {
	f := &fake{batch: sleeps(time.Millisecond, 1)}
	b := &Benchmark{Name: "x", Requires: []func() error{func() error { return fmt.Errorf("moon phase: needs Linux 9.9: %w", errors.ErrUnsupported) }}}
	rec := &report.Record{Results: []*report.Result{{Benchmark: "x"}}}
	r := &Runner{Plan: report.Plan{Duration: 1, Runs: 1}}
	if err := r.Run(t.Context(), rec, []*Job{{Benchmark: b, Config: f, Producers: 1}}); err != nil {
		t.Fatal(err)
	}
	mustBe(t, rec.Results[0], report.Skipped, "moon phase: needs Linux 9.9")
	if f.setups != 0 {
		t.Error("it was set up all the same")
	}
}
