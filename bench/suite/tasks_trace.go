package suite

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/link"
	"github.com/prometheus/procfs"
	"github.com/spf13/pflag"

	"bpfbench/bench/harness"
	"bpfbench/internal/kernel"
	"bpfbench/internal/number"
	"bpfbench/producers"
	"bpfbench/progs"
	"bpfbench/report"
)

func init() {
	harness.Register(&harness.Benchmark{
		Name:    "local-storage-tasks-trace",
		Op:      "grace period",
		Summary: "Makes and deletes task storages, which are freed behind a grace period of RCU Tasks Trace, and times those.",
		Timing: "Timed in the kernel: each grace period, from the function rcu_tasks_trace_pregp_step to rcu_tasks_trace_postgp, while many " +
			"processes are there, which now and then do a system call.",
		Form: report.FormGrace,
		Requires: []func() error{
			kernel.RawTracepoint,
			func() error { return kernel.Helper(ebpf.RawTracepoint, asm.FnTaskStorageGet) },
			hasTasksTrace,
			hook("fentry"),
		},
		Producers: harness.Workers{Min: 1, Default: 1, Max: 1},
		New:       func() harness.Config { return new(tasksTrace) },
	})
}

// hasTasksTrace is nil where RCU Tasks Trace has grace periods of its own.
var hasTasksTrace = hasFunction("rcu_tasks_trace_postgp", "the function rcu_tasks_trace_postgp",
	"a kernel before RCU Tasks Trace became SRCU (6.12 has it, 7.3 has not)")

// tasksTrace is the parameters of local-storage-tasks-trace.
type tasksTrace struct {
	nrProcs uint64
	kthread uint64
}

const (
	mostProcs   = 150000
	longestNap  = 4 * time.Second
	frees       = 1000              // storages that a call makes and deletes
	kthreadName = "rcu_tasks_trace" // and more, where the kernel tells all of it
	graceLimit  = 30 * time.Second
)

func (c *tasksTrace) Flags(fs *pflag.FlagSet) {
	number.Var(fs, &c.nrProcs, "nr_procs", 1000, "processes that sleep, each a time of its own up to 4 s, and call getpgid, 1 to 150000")
	number.Var(fs, &c.kthread, "kthread_pid", 0, "`pid` of the thread of the kernel that runs the grace periods; 0 finds it by its name")
}

func (c *tasksTrace) Resolve() error {
	return errors.Join(number.Within("nr_procs", c.nrProcs, 1, mostProcs), number.Within("kthread_pid", c.kthread, 0, 1<<22))
}

func (c *tasksTrace) Params() []report.Param {
	return []report.Param{{Name: "nr_procs", Value: c.nrProcs}}
}
func (c *tasksTrace) Facts() []report.Param { return nil }

// FlagValues are what a shell completes behind the flags.
func (c *tasksTrace) FlagValues() map[string][]string { return nil }

// tasksTraceRun is local-storage-tasks-trace made ready for one run.
type tasksTraceRun struct {
	*work
	links    []link.Link
	sleepers *producers.Sleepers
	kthread  procfs.Proc
	ticks    uint // of the kernel's thread, when the run began
}

func (c *tasksTrace) Setup(_ context.Context, env harness.Env) (*harness.Instance, error) {
	spec, err := progs.LoadTasksTrace()
	if err != nil {
		return nil, fmt.Errorf("read the program: %w", err)
	}
	r := new(tasksTraceRun)
	if r.work, err = loadWork(spec, triggerTestRun, env.Producers, nil); err != nil {
		return nil, err
	}
	if err := r.prepare(c); err != nil {
		return nil, errors.Join(err, r.close())
	}
	return &harness.Instance{Producer: r.producer, Check: r.check, Close: r.close}, nil
}

func (r *tasksTraceRun) prepare(c *tasksTrace) (err error) {
	for _, name := range []string{progs.TasksTraceProgBefore, progs.TasksTraceProgBehind} {
		l, err := link.AttachTracing(link.TracingOptions{Program: r.coll.Programs[name]})
		if err != nil {
			return kernel.Explain(err, "attach to grace periods of RCU Tasks Trace", kernel.CapPerfmon)
		}
		r.links = append(r.links, l)
	}
	if r.kthread, err = c.findKthread(); err != nil {
		return err
	}
	if r.ticks, err = r.stime(); err != nil {
		return err
	}
	if r.sleepers, err = producers.StartSleepers(int(c.nrProcs), longestNap); err != nil {
		return fmt.Errorf("start --nr_procs=%d: %w: lower it, or raise the limit of tasks (ulimit -u, pids.max)", c.nrProcs, err)
	}
	return nil
}

// findKthread returns the kernel's thread that runs the grace periods.
func (c *tasksTrace) findKthread() (procfs.Proc, error) {
	if c.kthread != 0 {
		p, err := procfs.NewProc(int(c.kthread))
		if err != nil {
			err = fmt.Errorf("--kthread_pid=%d: there is no such task: %w", c.kthread, err)
		}
		return p, err
	}
	all, err := procfs.AllProcs()
	if err != nil {
		return procfs.Proc{}, fmt.Errorf("find the thread %s…: %w", kthreadName, err)
	}
	for _, p := range all {
		if comm, err := p.Comm(); err == nil && strings.HasPrefix(comm, kthreadName) {
			return p, nil
		}
	}
	return procfs.Proc{}, fmt.Errorf("find the thread %s…: no task has that name: name its pid by --kthread_pid", kthreadName)
}

// stime is the time that the kernel's thread has run, in ticks of 10 ms.
func (r *tasksTraceRun) stime() (uint, error) {
	stat, err := r.kthread.Stat()
	if err != nil {
		return 0, fmt.Errorf("read the time of the thread %s…: %w", kthreadName, err)
	}
	return stat.STime, nil
}

func (r *tasksTraceRun) close() error {
	var errs []error
	for _, l := range r.links {
		errs = append(errs, l.Close())
	}
	if r.sleepers != nil {
		errs = append(errs, r.sleepers.Stop())
	}
	return errors.Join(append(errs, r.work.close())...)
}

// read reads what the program has counted.
func (r *tasksTraceRun) read() (counted progs.TasksTraceCounted, err error) {
	for { // until no grace period ends meanwhile
		var again progs.TasksTraceCounted
		bss := r.coll.Maps[".bss"]
		if err := errors.Join(bss.Lookup(uint32(0), &counted), bss.Lookup(uint32(0), &again)); err != nil {
			return counted, fmt.Errorf("read the grace periods: %w", err)
		}
		if counted.Periods == again.Periods {
			return counted, nil
		}
	}
}

// producer makes grace periods necessary until one is over. That is a batch.
func (r *tasksTraceRun) producer(w *harness.Worker) (harness.Producer, error) {
	req := r.request(w.ID, uint32(progs.TasksTraceModeMODE_FREE), "make and delete storage", r.caller(w.ID))
	last, err := r.read()
	if err != nil {
		return harness.Producer{}, err
	}
	return harness.Producer{Batch: func() (report.Sample, error) {
		for end := time.Now().Add(graceLimit); !w.Aborted(); {
			if _, err := req.do(0, frees, 1); err != nil {
				return report.Sample{}, err
			}
			now, err := r.read()
			if err != nil {
				return report.Sample{}, err
			}
			if now.Periods > last.Periods {
				s := report.Sample{CPU: -1, Ops: now.Periods - last.Periods, Elapsed: now.Elapsed - last.Elapsed}
				last = now
				return s, nil
			}
			if time.Now().After(end) {
				return report.Sample{}, fmt.Errorf("no grace period ended within %v", graceLimit)
			}
		}
		return report.Sample{}, nil
	}}, nil
}

// check adds the time that the kernel's thread has run for each grace period.
func (r *tasksTraceRun) check(run *report.Run) error {
	counted, err := r.read()
	if err != nil {
		return err
	}
	if counted.Strays > 1 { // the first may have begun before the program was there
		return fmt.Errorf("%d grace periods ended that had not begun", counted.Strays)
	}
	ticks, err := r.stime()
	if err != nil {
		return err
	}
	if n := counted.Periods; n > 0 {
		run.Gauges = append(run.Gauges, report.Gauge{Name: report.GaugeTicks, Value: float64(ticks-r.ticks) / float64(n)})
	}
	return nil
}
