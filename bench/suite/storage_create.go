package suite

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/pflag"
	"golang.org/x/sys/unix"

	"bpfbench/bench/harness"
	"bpfbench/internal/kernel"
	"bpfbench/internal/number"
	"bpfbench/producers"
	"bpfbench/progs"
	"bpfbench/report"
)

func init() {
	harness.Register(&harness.Benchmark{
		Name:    "local-storage-create",
		Op:      "create",
		Summary: "Makes a local storage of 64 bytes for each new socket or thread.",
		Timing: "Timed in user space: making a batch of sockets and closing them, or of threads that end at once and are waited for, with a " +
			"program on the way of each that makes its storage. A storage that the kernel had no memory at hand for counts as a drop. The " +
			"same without the program is timed, too.",
		Longer:    "--batch-size",
		Form:      report.FormCreates,
		Requires:  []func() error{kernel.RawTracepoint},
		Producers: harness.Workers{Min: 1, Default: 1, Max: harness.AnyNumber},
		New:       func() harness.Config { return new(createConfig) },
	})
}

const (
	storageOfSocket = "socket"
	storageOfTask   = "task"
)

// createConfig is the parameters of local-storage-create.
type createConfig struct {
	batch uint64
	kind  string
}

func (c *createConfig) Flags(fs *pflag.FlagSet) {
	number.Var(fs, &c.batch, "batch-size", 32, "sockets or threads that are there at once")
	fs.StringVar(&c.kind, "storage-type", storageOfSocket, "`what` the storages belong to: socket or task")
}

func (c *createConfig) Resolve() error {
	errs := []error{number.Within("batch-size", c.batch, 1, 1<<20)}
	if c.kind != storageOfSocket && c.kind != storageOfTask {
		errs = append(errs, fmt.Errorf("--storage-type=%s: must be %s or %s", c.kind, storageOfSocket, storageOfTask))
	}
	return errors.Join(errs...)
}

func (c *createConfig) Params() []report.Param {
	return []report.Param{{Name: "batch-size", Value: c.batch}, {Name: "storage-type", Value: c.kind}}
}

func (c *createConfig) Facts() []report.Param { return nil }

// FlagValues are what a shell completes behind the flags.
func (c *createConfig) FlagValues() map[string][]string {
	return map[string][]string{"storage-type": {storageOfSocket, storageOfTask}}
}

// createRun is local-storage-create made ready for one run.
type createRun struct {
	*work
	cfg   *createConfig
	probe *probe
}

func (c *createConfig) Setup(_ context.Context, env harness.Env) (*harness.Instance, error) {
	if err := c.fits(env.Producers); err != nil {
		return nil, err
	}
	spec, err := progs.LoadStorageCreate()
	if err != nil {
		return nil, fmt.Errorf("read the program: %w", err)
	}
	used, unused := progs.StorageCreateProgSocket, progs.StorageCreateProgTask
	if c.kind == storageOfTask {
		used, unused = unused, used
	}
	delete(spec.Programs, unused)
	spec.Maps[progs.StorageCreateMapThreads].MaxEntries = uint32(env.Producers)
	r := &createRun{cfg: c}
	if r.work, err = loadWork(spec, triggerTestRun, env.Producers, nil); err != nil {
		return nil, err
	}
	at, where := atModule, "the making of sockets"
	if c.kind == storageOfTask {
		at, where = atFunction, "the making of threads"
	}
	if r.probe, err = newProbe(r.coll.Programs[used], where, at); err != nil {
		return nil, errors.Join(err, r.close())
	}
	return &harness.Instance{Producer: r.producer, Close: r.close}, nil
}

// fits refuses more sockets than the process may have open.
func (c *createConfig) fits(producers int) error {
	const others = 100 // files that this process has open beside, at most
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil || c.kind == storageOfTask {
		return nil // what is unknown does not forbid
	}
	if need := c.batch*uint64(producers) + others; need > limit.Cur {
		return fmt.Errorf("--batch-size=%d: %s of that many sockets need %d open files, and %d are allowed: lower it, or raise the limit (ulimit -n)",
			c.batch, count(producers, "producer"), need, limit.Cur)
	}
	return nil
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

func (r *createRun) close() error {
	var err error
	if r.probe != nil {
		err = r.probe.detach()
	}
	return errors.Join(err, r.work.close())
}

// emptyRounds is how often in a row no storage may be made: until the kernel's memory comes back from a grace period.
const emptyRounds = 1000

// producer makes its thread known to the program, and sees that the program knows it.
func (r *createRun) producer(w *harness.Worker) (harness.Producer, error) {
	if err := r.testRun(w.ID).Run(); err != nil {
		return harness.Producer{}, err
	}
	makeAll := makeSockets(make([]int, r.cfg.batch))
	if r.cfg.kind == storageOfTask {
		makeAll = producers.NewThreads(int(r.cfg.batch)).Make
	}
	batch := func() (report.Sample, error) {
		start := time.Now()
		n, err := makeAll()
		took := time.Since(start)
		return report.Sample{CPU: w.CPU, Ops: uint64(n), Elapsed: uint64(took)}, err
	}
	round := func() (report.Sample, error) {
		createdBefore, failedBefore := r.counts(w.ID)
		s, err := batch()
		created, failed := r.counts(w.ID)
		made := s.Ops
		s.Ops, s.Drops = created-createdBefore, failed-failedBefore
		if err == nil && s.Ops+s.Drops != made {
			err = fmt.Errorf("%d %ss were made: %d had a storage made, %d failed", made, r.cfg.kind, s.Ops, s.Drops)
		}
		return s, err
	}
	on := func() (sum report.Sample, err error) {
		for tries := 0; err == nil && sum.Ops == 0 && tries < emptyRounds; tries++ {
			var s report.Sample
			s, err = round()
			sum = report.Sample{CPU: s.CPU, Ops: s.Ops, Drops: sum.Drops + s.Drops, Elapsed: sum.Elapsed + s.Elapsed}
		}
		return sum, err
	}
	_, err := on()
	if created, failed := r.counts(w.ID); created+failed == 0 && r.cfg.kind == storageOfSocket {
		return harness.Producer{}, &kernel.Error{Feature: "the security module BPF", Outcome: kernel.Missing,
			Needs: "bpf among the modules in /sys/kernel/security/lsm (boot with lsm=…,bpf), or --storage-type=task"}
	}
	if err != nil {
		return harness.Producer{}, err
	}
	return harness.Producer{Batch: on, Twin: func() (report.Sample, error) {
		if err := r.probe.detach(); err != nil {
			return report.Sample{}, err
		}
		return batch()
	}}, nil
}

// makeSockets returns what makes as many sockets as into has room for, and closes them.
func makeSockets(into []int) func() (made int, err error) {
	return func() (made int, err error) {
		for made < len(into) {
			if into[made], err = unix.Socket(unix.AF_INET6, unix.SOCK_DGRAM, 0); err != nil {
				err = fmt.Errorf("make a socket: %w", err)
				break
			}
			made++
		}
		for _, fd := range into[:made] {
			err = errors.Join(err, unix.Close(fd))
		}
		return made, err
	}
}

// counts are the storages that were made for producer i, and that were not.
func (r *createRun) counts(i int) (made, failed uint64) {
	return r.header(i).Counts[0], r.header(i).Counts[1]
}
