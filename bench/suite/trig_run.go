package suite

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
	"unsafe"

	"bpfbench/bench/harness"
	"bpfbench/internal/kernel"
	"bpfbench/internal/tracefs"
	"bpfbench/producers"
	"bpfbench/progs"
	"bpfbench/report"
)

// trigRun is a benchmark of the kernel's triggers made ready for one run.
type trigRun struct {
	*work
	cfg   *trigConfig
	probe *probe // that counts; nil where the driver does
	all   *probe // on all other functions; nil for none
	calls tally  // of each producer, that must be hits
}

func (r *trigRun) setup(ctx context.Context, env harness.Env) error {
	k := r.cfg.kind
	spec, err := progs.LoadTrigger()
	if err != nil {
		return fmt.Errorf("read the programs: %w", err)
	}
	wanted := []string{k.driver, k.program}
	if k.all != nil {
		wanted = append(wanted, progs.TriggerProgOnAll)
	}
	keep(spec, wanted...)
	if err := setConstants(spec, map[string]any{progs.TriggerVarIters: uint32(r.cfg.iters), progs.TriggerVarStacktrace: r.cfg.stack}); err != nil {
		return err
	}
	if r.work, err = loadWork(spec, triggerTestRun, env.Producers, nil); err != nil || k.program == "" {
		return err
	}
	if r.probe, err = newProbe(r.coll.Programs[k.program], k.name, k.at); err != nil || k.all == nil {
		return err
	}
	functions, err := traceable()
	if err != nil || ctx.Err() != nil {
		return errors.Join(err, ctx.Err())
	}
	env.Fact(report.Param{Name: "functions", Value: uint64(len(functions))})
	r.all, err = newProbe(r.coll.Programs[progs.TriggerProgOnAll], "nearly all functions", k.all(functions...))
	return err
}

// mostTraced bounds the functions that a program is on at once. Tests lower it, as all of them take half a minute in an emulated guest.
var mostTraced = math.MaxInt

// traceable are the functions of the kernel itself that a program can be on while the one that counts is hit.
func traceable() ([]string, error) {
	functions, err := tracefs.Functions()
	if err != nil {
		return nil, kernel.Explain(err, "list the functions that can be traced")
	}
	functions = slices.DeleteFunc(functions, untraceable)
	return functions[:min(len(functions), mostTraced)], nil
}

// untraceable are functions that must not have a program while one on all others runs: those that the tracing itself calls,
// those where RCU does not watch, and the one that is measured.
func untraceable(function string) bool {
	return strings.HasPrefix(function, "rcu_") || slices.Contains([]string{
		"arch_cpu_idle", "default_idle", "bpf_dispatcher_xdp_func", "migrate_disable", "migrate_enable", "___migrate_enable",
		"preempt_count_add", "preempt_count_sub", "__rcu_read_lock", "__rcu_read_unlock", numaNode,
	}, function)
}

// detach takes away the program that counts, for the twin and at the end. That on all other functions stays for the twin: it
// would take too long to detach, and is not hit in the loop.
func (r *trigRun) detach() error {
	if r.probe == nil {
		return nil
	}
	return r.probe.detach()
}

func (r *trigRun) close() error {
	err := r.detach()
	if r.all != nil {
		err = errors.Join(err, r.all.detach())
	}
	if r.work != nil {
		err = errors.Join(err, r.work.close())
	}
	return err
}

func (r *trigRun) producer(w *harness.Worker) (harness.Producer, error) {
	driver := producers.BriefTestRun{TestRun: producers.NewTestRun(r.coll.Programs[r.cfg.kind.driver].FD(), uint64(w.ID))}
	run := func(mode progs.TriggerMode) func() (producers.Done, error) {
		request := r.request(w.ID, uint32(mode), "call", driver)
		return func() (producers.Done, error) { return request.do(0, uint32(r.cfg.iters), 1) }
	}
	call, twin := run(progs.TriggerModeMODE_CALL), run(progs.TriggerModeMODE_TWIN)
	calls := &r.calls[w.ID].ops
	counted := &trigBatch{aborted: w.Aborted, run: func() (producers.Done, error) {
		done, err := call()
		calls.Add(done.Ops)
		return done, err
	}}
	empty := &trigBatch{aborted: w.Aborted, run: func() (producers.Done, error) {
		if err := r.detach(); err != nil {
			return producers.Done{}, err
		}
		return twin()
	}}
	return harness.Producer{Batch: counted.do, Twin: empty.do}, nil
}

// trigBatch is batches of test_runs of a driver.
type trigBatch struct {
	run     func() (producers.Done, error)
	aborted func() bool
	carry   producers.Done // of a test_run on another CPU than those before it
}

// trigTime is how long the calls of a batch take, test_runs not included.
const trigTime = 5 * time.Millisecond

// do does one batch. Like those of producers.Split, a sample ends before the thread moves to another CPU.
func (b *trigBatch) do() (report.Sample, error) {
	sum := b.carry
	b.carry = producers.Done{}
	for sum.Elapsed < uint64(trigTime) && !b.aborted() {
		done, err := b.run()
		if err != nil {
			return report.Sample{}, err
		}
		if sum.Ops > 0 && done.CPU != sum.CPU {
			b.carry = done
			break
		}
		sum = producers.Done{CPU: done.CPU, Ops: sum.Ops + done.Ops, Elapsed: sum.Elapsed + done.Elapsed}
	}
	return report.Sample{CPU: sum.CPU, Ops: sum.Ops, Elapsed: sum.Elapsed}, nil
}

// check compares the hits with the calls.
func (r *trigRun) check(*report.Run) error {
	if err := r.detach(); err != nil {
		return err
	}
	hits, err := r.hits()
	if err != nil {
		return err
	}
	if r.probe != nil {
		return r.probe.judge(hits, r.calls.sum())
	}
	if calls := r.calls.sum(); hits != calls {
		return fmt.Errorf("the driver counted %d of %d calls", hits, calls)
	}
	return nil
}

// hits are those that were counted on all CPUs.
func (r *trigRun) hits() (uint64, error) {
	bss := r.coll.Maps[".bss"]
	cpus := make([]progs.TriggerCpuHits, bss.ValueSize()/uint32(unsafe.Sizeof(progs.TriggerCpuHits{})))
	if err := bss.Lookup(uint32(0), cpus); err != nil {
		return 0, fmt.Errorf("read the hits: %w", err)
	}
	var sum uint64
	for i := range cpus {
		sum += cpus[i].Hits
	}
	return sum, nil
}
