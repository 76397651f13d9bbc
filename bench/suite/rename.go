package suite

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"
	"unsafe"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"bpfbench/bench/harness"
	"bpfbench/internal/kernel"
	"bpfbench/producers"
	"bpfbench/progs"
	"bpfbench/report"
)

// renameKind is a program on the way of a rename.
type renameKind struct {
	name    string // after "rename-"
	what    string
	hook    string // of package kernel
	program string // empty for none
	at      attach
}

// setComm is the function that renames a task.
const setComm = "__set_task_comm"

var renameKinds = []renameKind{
	{name: "base"},
	{name: "kprobe", what: "a kprobe", hook: "kprobe", program: progs.RenameProgOnKprobe, at: atKprobe(setComm)},
	{name: "kretprobe", what: "a kretprobe", hook: "kretprobe", program: progs.RenameProgOnKprobe, at: atKretprobe(setComm)},
	{name: "rawtp", what: "a raw tracepoint", hook: "raw_tp", program: progs.RenameProgOnRawtp, at: atRawTracepoint("task_rename")},
	{name: "fentry", what: "an fentry program", hook: "fentry", program: progs.RenameProgOnFentry, at: atFunction},
	{name: "fexit", what: "an fexit program", hook: "fentry", program: progs.RenameProgOnFexit, at: atFunction},
}

func init() {
	suite := &harness.Suite{Name: "rename", Summary: "Compares what a program on the way of a task's rename adds to it, by its type."}
	var lines [][]string
	for i := range renameKinds {
		k := &renameKinds[i]
		harness.Register(k.describe())
		lines = append(lines, []string{"rename-" + k.name})
	}
	suite.Lines = func(bool) [][]string { return lines }
	suite.Ladder = true
	harness.RegisterSuite(suite)
}

func (k *renameKind) describe() *harness.Benchmark {
	b := &harness.Benchmark{
		Name: "rename-" + k.name, Op: "rename", Form: report.FormHits,
		Summary:   "Renames the producer's thread, with " + k.what + " on the way, whose program counts.",
		Timing:    "Timed: a loop of writes to the thread's comm in /proc, as one batch. ",
		Producers: harness.Workers{Min: 1, Default: 1, Max: 1},
		New:       func() harness.Config { return &renameConfig{kind: k} },
	}
	if k.program == "" {
		b.Summary = "Renames the producer's thread, with no program on the way."
	} else {
		b.Timing += "The same renames without the program are timed, too, so that its cost is also given net of them. "
		b.Requires = []func() error{kernel.RawTracepoint, hook(k.hook)}
	}
	b.Timing += "Not timed: opening the file, handing over a batch."
	return b
}

type renameConfig struct {
	flagless
	kind *renameKind
}

// renameRun is a rename benchmark made ready for one run.
type renameRun struct {
	kind  *renameKind
	coll  *ebpf.Collection // nil for no program
	probe *probe           // nil for no program
	calls tally            // renames, with the program
	file  int              // the thread's comm, from when it is ready; -1 before
	was   []byte           // its name; nil before it is known
}

func (c *renameConfig) Setup(_ context.Context, env harness.Env) (*harness.Instance, error) {
	r := &renameRun{kind: c.kind, calls: make(tally, env.Producers), file: -1}
	if c.kind.program != "" {
		if err := r.load(); err != nil {
			return nil, errors.Join(err, r.close())
		}
	}
	return &harness.Instance{Producer: r.producer, Check: r.check, Close: r.close}, nil
}

// load loads the program, tells it whose renames to count, and attaches it.
func (r *renameRun) load() error {
	spec, err := progs.LoadRename()
	if err != nil {
		return fmt.Errorf("read the programs: %w", err)
	}
	keep(spec, progs.RenameProgIdentify, r.kind.program)
	if r.coll, err = loadObject(spec, nil); err != nil {
		return err
	}
	if err := producers.NewTestRun(r.coll.Programs[progs.RenameProgIdentify].FD(), 0).Run(); err != nil {
		return err
	}
	r.probe, err = newProbe(r.coll.Programs[r.kind.program], r.kind.name, r.kind.at)
	return err
}

func (r *renameRun) detach() error {
	if r.probe == nil {
		return nil
	}
	return r.probe.detach()
}

// close also gives the thread its name back, if it still is.
func (r *renameRun) close() error {
	err := r.detach()
	if r.coll != nil {
		r.coll.Close()
	}
	if r.file < 0 {
		return err
	}
	if r.was != nil {
		if _, e := unix.Write(r.file, r.was); e != nil && !errors.Is(e, unix.ESRCH) {
			err = errors.Join(err, fmt.Errorf("give the thread its name back: %w", e))
		}
	}
	return errors.Join(err, unix.Close(r.file))
}

const (
	// renameBatch is the renames of a batch: some ms.
	renameBatch = 5000
	// newName is as long as the kernel's own bench's.
	newName = "bench-renamed\x00"
)

// producer renames its own thread, not the process: the name that lists of processes show stays, and no CPU writes into
// what another has in its cache.
func (r *renameRun) producer(w *harness.Worker) (_ harness.Producer, err error) {
	if r.file, err = unix.Open("/proc/thread-self/comm", unix.O_RDWR|unix.O_CLOEXEC, 0); err != nil {
		return harness.Producer{}, fmt.Errorf("open the thread's name: %w", err)
	}
	was := make([]byte, 16)
	n, err := unix.Pread(r.file, was, 0)
	if err != nil {
		return harness.Producer{}, fmt.Errorf("read the thread's name: %w", err)
	}
	r.was = append(bytes.TrimSuffix(was[:n], []byte("\n")), 0)
	name := []byte(newName)
	write := producers.Syscall{Name: "write to the thread's comm", Nr: unix.SYS_WRITE, Returned: uintptr(len(name)),
		Args: [3]uintptr{uintptr(r.file), uintptr(unsafe.Pointer(&name[0])), uintptr(len(name))}}
	rename := func(n uint64) (time.Duration, error) {
		took, err := write.Call(n)
		runtime.KeepAlive(name)
		return took, err
	}
	calls := &r.calls[w.ID].ops
	p := harness.Producer{Batch: inUser(w, renameBatch, func(n uint64) (time.Duration, error) {
		calls.Add(n)
		return rename(n)
	}).Batch}
	if r.probe != nil {
		p.Twin = inUser(w, renameBatch, func(n uint64) (time.Duration, error) {
			if err := r.detach(); err != nil {
				return 0, err
			}
			return rename(n)
		}).Batch
	}
	return p, nil
}

// check compares what the program counted with the renames.
func (r *renameRun) check(*report.Run) error {
	if r.probe == nil {
		return nil
	}
	if err := r.detach(); err != nil {
		return err
	}
	var counted progs.RenameCounted
	if err := r.coll.Maps[".bss"].Lookup(uint32(0), &counted); err != nil {
		return fmt.Errorf("read the hits: %w", err)
	}
	return r.probe.judge(counted.Hits, r.calls.sum())
}
