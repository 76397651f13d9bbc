package suite

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"bpfbench/bench/harness"
	"bpfbench/consumers"
	"bpfbench/internal/cpuset"
	"bpfbench/internal/kernel"
	"bpfbench/progs"
	"bpfbench/report"
)

// bufferRun is a benchmark of a ring or perf buffer made ready for one run.
type bufferRun struct {
	*work
	cfg       *bufferConfig
	producers int              // and as many slots, and one for the consumer, which triggers with --rb-b2b
	ring      *consumers.Ring  // nil for perf buffers
	reader    consumers.Reader // nil without a consumer

	// of the consumer, once it has ended
	taken  consumers.Taken
	allocs uint64
}

func (c *bufferConfig) Setup(ctx context.Context, env harness.Env) (*harness.Instance, error) {
	r := &bufferRun{cfg: c, producers: env.Producers}
	var err error
	if c.ring {
		err = r.loadRing()
	} else {
		err = r.loadPerf()
	}
	if err == nil && !c.benchProducer {
		err = r.open()
	}
	if err == nil {
		err = ctx.Err()
	}
	if err != nil {
		return nil, errors.Join(err, r.close())
	}
	env.Fact(report.Param{Name: "triggered_by", Value: string(r.trigger)})
	inst := &harness.Instance{Producer: r.producer, Consumer: r.consume, Count: r.count, Check: r.check, Close: r.close}
	if r.reader != nil {
		inst.Wake = func() { _ = r.reader.Wake() } // an event's counter takes any number of these
	}
	return inst, nil
}

// overwritten is BPF_F_RB_OVERWRITE of <linux/bpf.h>.
const overwritten = 1 << 19

// overwritable probes ring buffers that overwrite their oldest records.
var overwritable = sync.OnceValue(func() error {
	m, err := ebpf.NewMap(&ebpf.MapSpec{Type: ebpf.RingBuf, MaxEntries: uint32(os.Getpagesize()), Flags: overwritten})
	if err == nil {
		return m.Close()
	}
	const what = "ring buffers that overwrite"
	if errors.Is(err, unix.EINVAL) {
		return &kernel.Error{Feature: what, Outcome: kernel.Missing, Needs: "Linux 6.19", Err: err}
	}
	return kernel.Explain(err, what, kernel.CapBPF)
})

func (r *bufferRun) loadRing() error {
	c := r.cfg
	if c.overwrite {
		if err := overwritable(); err != nil {
			return err
		}
	}
	spec, err := progs.LoadRingbuf()
	if err != nil {
		return fmt.Errorf("read the program: %w", err)
	}
	var notify uint64
	if c.sampled {
		notify = c.sampleRate * consumers.RecordSize(int(c.recordSize))
	}
	err = setConstants(spec, map[string]any{
		progs.RingbufVarBatchCnt:   uint32(c.batchCnt),
		progs.RingbufVarRecordSize: uint32(c.recordSize),
		progs.RingbufVarUseOutput:  c.useOutput,
		progs.RingbufVarNoWakeup:   c.benchProducer,
		progs.RingbufVarWakeupSize: notify,
	})
	if err != nil {
		return err
	}
	spec.Maps[progs.RingbufMapRecord].ValueSize = uint32(c.recordSize)
	ring := spec.Maps[progs.RingbufMapRing]
	ring.MaxEntries = uint32(c.size)
	if c.overwrite {
		ring.Flags |= overwritten
	}
	// It is made apart, so that a refusal can be explained.
	m, err := ebpf.NewMap(ring)
	if err != nil {
		return kernel.ExplainMap(err, ring)
	}
	defer m.Close()
	k, err := loadWork(spec, c.trigger, r.producers+1, map[string]*ebpf.Map{ring.Name: m})
	if err != nil {
		return err
	}
	r.work = k
	r.ring, err = consumers.OpenRing(m)
	return err
}

func (r *bufferRun) loadPerf() error {
	c := r.cfg
	spec, err := progs.LoadPerfbuf()
	if err != nil {
		return fmt.Errorf("read the program: %w", err)
	}
	err = setConstants(spec, map[string]any{
		progs.PerfbufVarBatchCnt:   uint32(c.batchCnt),
		progs.PerfbufVarRecordSize: uint32(c.recordSize),
	})
	if err != nil {
		return err
	}
	spec.Maps[progs.PerfbufMapRecord].ValueSize = uint32(c.recordSize)
	k, err := loadWork(spec, c.trigger, r.producers+1, nil)
	if err == nil {
		r.work = k
	}
	return err
}

// open makes the reader.
func (r *bufferRun) open() error {
	c := r.cfg
	every := uint32(1)
	if c.sampled {
		every = uint32(c.sampleRate)
	}
	var reader consumers.Reader
	var err error
	switch {
	case c.ring && c.custom:
		reader, err = consumers.NewRingReader(r.coll.Maps[progs.RingbufMapRing])
	case c.ring:
		reader, err = consumers.NewLibraryRing(r.coll.Maps[progs.RingbufMapRing])
	case c.custom:
		reader, err = consumers.NewPerfReader(r.coll.Maps[progs.PerfbufMapEvents], int(c.size), every)
	default:
		if err := onlineInOrder(); err != nil {
			return err
		}
		reader, err = consumers.NewLibraryPerf(r.coll.Maps[progs.PerfbufMapEvents], int(c.size), every)
	}
	if err != nil {
		return kernel.Explain(err, "open the buffer", kernel.CapPerfmon)
	}
	r.reader = reader
	return nil
}

// onlineInOrder refuses CPUs that are online behind one that is not. The library's reader gives the buffers of those online the
// numbers from 0 on (perf.Reader.Resume of cilium/ebpf 0.22), so a program on such a CPU would have none to write into.
func onlineInOrder() error {
	online, err := cpuset.Online()
	if err != nil {
		return err
	}
	if last := online[len(online)-1]; last >= len(online) {
		return fmt.Errorf("CPU %d is online behind one that is offline, and the library's reader gives it no buffer: bring all online, or take pb-custom: %w",
			last, errors.ErrUnsupported)
	}
	return nil
}

func (r *bufferRun) close() error {
	var errs []error
	if r.reader != nil {
		errs = append(errs, r.reader.Close())
	}
	if r.ring != nil {
		errs = append(errs, r.ring.Close())
	}
	if r.work != nil {
		errs = append(errs, r.work.close())
	}
	return errors.Join(errs...)
}

// pause is how often a producer that has nothing to do looks whether it is to end.
const pause = 10 * time.Millisecond

func (r *bufferRun) producer(w *harness.Worker) (harness.Producer, error) {
	run := r.caller(w.ID)
	if r.cfg.b2b {
		return harness.Producer{Spin: func() error {
			err := r.pull(w.ID, run)
			for err == nil && !w.Stopped() {
				time.Sleep(pause)
			}
			return err
		}}, nil
	}
	return harness.Producer{Spin: func() error {
		for !w.Stopped() {
			if err := run.Run(); err != nil {
				return err
			}
		}
		return nil
	}}, nil
}

// pull makes the program run once. A trigger can be in vain (see skips).
func (r *bufferRun) pull(i int, run caller) error {
	calls := &r.header(i).Calls
	before := atomic.LoadUint64(calls)
	for range skips {
		if err := run.Run(); err != nil {
			return err
		}
		if atomic.LoadUint64(calls) != before {
			return nil
		}
		time.Sleep(moment)
	}
	return errors.New("the program does not run when it is triggered")
}

// consume reads until it is woken, which is after the producers have ended, and then what is left. Its loop is around what is
// there at a time, not around a record.
func (r *bufferRun) consume(w *harness.Worker) error {
	before := mallocs()
	defer func() { r.allocs = mallocs() - before }()
	run := r.caller(r.producers)
	for {
		taken, err := r.reader.Read()
		r.taken.Records += taken.Records
		r.taken.Lost += taken.Lost
		switch {
		case err == io.EOF:
			return nil
		case err != nil:
			return err
		case r.cfg.b2b && !w.Stopped():
			if err := r.pull(r.producers, run); err != nil {
				return err
			}
		}
	}
}

// mallocs is how many allocations this process has made.
func mallocs() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.Mallocs
}

// count reads what each producer has written and dropped. What the consumer triggers is its only producer's.
func (r *bufferRun) count(into []harness.Count) {
	clear(into)
	for i := range r.producers + 1 {
		s, c := r.header(i), &into[i%r.producers]
		c.Ops += atomic.LoadUint64(&s.Ops)
		c.Drops += atomic.LoadUint64(&s.Counts[0])
	}
}

// check compares what the program did, what is in the buffer, and what the consumer got: each record that was tried is either
// written or dropped; all that were written have taken up room, and were read. With --rb-overwrite, nothing is read: the first
// two hold.
func (r *bufferRun) check(run *report.Run) error {
	var written, dropped uint64
	for i := range r.producers + 1 {
		s := r.header(i)
		if tried := s.Calls * r.cfg.batchCnt; s.Ops+s.Counts[0] != tried {
			return fmt.Errorf("of %d records, %d were written and %d dropped", tried, s.Ops, s.Counts[0])
		}
		written += s.Ops
		dropped += s.Counts[0]
	}
	if r.ring != nil {
		if want := written * consumers.RecordSize(int(r.cfg.recordSize)); r.ring.Produced() != want {
			return fmt.Errorf("%d records were written, which take up %d bytes, and the buffer has got %d", written, want, r.ring.Produced())
		}
	}
	if r.reader == nil {
		return nil
	}
	if r.taken.Records != written {
		return fmt.Errorf("%d records were written and %d read", written, r.taken.Records)
	}
	if r.taken.Lost > dropped {
		return fmt.Errorf("%d records were dropped, and the buffer says %d", dropped, r.taken.Lost)
	}
	run.Gauges = append(run.Gauges, report.Gauge{Name: "allocs_per_record", Value: float64(r.allocs) / float64(written)})
	return nil
}
