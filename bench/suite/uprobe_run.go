package suite

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"

	"bpfbench/bench/harness"
	"bpfbench/internal/kernel"
	"bpfbench/producers"
	"bpfbench/progs"
	"bpfbench/report"
)

// uprobeRun is a user probe that is attached.
type uprobeRun struct {
	env   harness.Env
	site  uprobeSite
	coll  *ebpf.Collection
	slots []byte // the producers' hits, mapped
	at    link.Link

	off       sync.Once // takes the probe away, for the twin
	offErr    error
	optimized string // the fact of that name, known from then on; none where no kernel does that
}

func (u *uprobe) Setup(_ context.Context, env harness.Env) (*harness.Instance, error) {
	r := &uprobeRun{env: env, site: u.site}
	by := u.by
	if by == byUSDT {
		by = byPerf
		if hasUprobeMulti() == nil {
			by = byMulti
		}
		env.Fact(report.Param{Name: "attached", Value: string(by)})
	}
	if err := r.ready(by, u.ret); err != nil {
		return nil, errors.Join(err, r.close())
	}
	if u.site.or != nil {
		env.Fact(report.Param{Name: "site", Value: r.site.name})
	}
	return &harness.Instance{Producer: r.producer, Check: r.check, Close: r.close}, nil
}

// ready puts the program on the site, or on the other one where the kernel refuses that.
func (r *uprobeRun) ready(by attachment, ret bool) error {
	if err := r.load(by); err != nil {
		return err
	}
	err := r.attach(by, ret)
	if r.site.or != nil && errors.Is(err, errors.ErrUnsupported) {
		r.site = *r.site.or
		err = r.attach(by, ret)
	}
	return err
}

func (r *uprobeRun) load(by attachment) error {
	spec, err := progs.LoadUprobe()
	if err != nil {
		return fmt.Errorf("read the program: %w", err)
	}
	for arch := range spec.Programs {
		if arch != runtime.GOARCH {
			delete(spec.Programs, arch)
		}
	}
	if by == byMulti {
		spec.Programs[runtime.GOARCH].AttachType = ebpf.AttachTraceUprobeMulti
	}
	if r.coll, err = loadObject(spec, nil); err != nil {
		return err
	}
	r.slots, err = mapSlots(r.coll.Maps[".bss"])
	return err
}

// attach puts the program on the site, in this process alone: were the probe in all that run this binary, as that of the
// kernel's own bench is, a hit by another one would count here, and another one would be measured with this probe. That the
// kernel looks at the process at each hit costs 30 instructions with a perf event and 3 with the link (6.12).
func (r *uprobeRun) attach(by attachment, ret bool) error {
	file, offset, err := r.site.Location()
	if err != nil {
		return err
	}
	offset += r.site.behind
	exe, err := link.OpenExecutable(file)
	if err != nil {
		return fmt.Errorf("open the probed binary: %w", err)
	}
	prog := r.coll.Programs[runtime.GOARCH]
	one, many := exe.Uprobe, exe.UprobeMulti
	if ret {
		one, many = exe.Uretprobe, exe.UretprobeMulti
	}
	if by == byMulti {
		r.at, err = many(nil, prog, &link.UprobeMultiOptions{Addresses: []uint64{offset}, PID: uint32(os.Getpid())})
	} else {
		r.at, err = one("", prog, &link.UprobeOptions{Address: offset, PID: os.Getpid()})
	}
	err = kernel.Explain(err, "a probe on "+r.site.words, kernel.CapPerfmon)
	var missing *kernel.Error
	if errors.As(err, &missing) && missing.Outcome == kernel.Missing {
		missing.Needs = r.site.needs
	}
	return err
}

// Calls in a batch: at first, and without the probe, when a call takes some ns.
const (
	firstHits    = 256
	callsPerTwin = 1 << 17
)

// resize is how many calls the next batch has, as the last one took so many ns: a few ms, in which Go's runtime cannot
// interrupt the thread. A hit takes 0.1 to 20 us, most of it where a virtual machine is left for a single step (11 us seen).
func resize(calls, took uint64) uint64 {
	switch {
	case took < uint64(time.Millisecond):
		return calls * 2
	case took > uint64(8*time.Millisecond):
		return max(calls/2, 1)
	}
	return calls
}

func (r *uprobeRun) producer(w *harness.Worker) (harness.Producer, error) {
	leaf := &producers.Leaf{Site: r.site.Site, A: uint64(w.ID)}
	hits := (*uint64)(unsafe.Pointer(&r.slots[w.ID*int(unsafe.Sizeof(progs.UprobeHits{}))]))
	call := func(calls, want uint64) (report.Sample, error) {
		before := atomic.LoadUint64(hits)
		took := leaf.Call(calls)
		if got := atomic.LoadUint64(hits) - before; got != want {
			return report.Sample{}, fmt.Errorf("the probe was hit %d times in %d calls, want %d", got, calls, want)
		}
		return report.Sample{CPU: currentCPU(), Ops: calls, Elapsed: uint64(took)}, nil
	}
	size := uint64(firstHits)
	return harness.Producer{
		Batch: func() (report.Sample, error) {
			s, err := call(size, size)
			size = resize(size, s.Elapsed)
			return s, err
		},
		Twin: func() (report.Sample, error) {
			if r.off.Do(func() { r.offErr = r.detach() }); r.offErr != nil {
				return report.Sample{}, r.offErr
			}
			return call(callsPerTwin, 0)
		},
	}, nil
}

// breakpoint is what the kernel puts in the place of a probed instruction's first byte on x86-64 (int3), unless it has
// rewritten the instruction, which it does at the first hit.
const breakpoint = 0xcc

func (r *uprobeRun) detach() error {
	if code := r.site.Code(); r.site.rewrite {
		r.optimized = "yes"
		if code[r.site.behind] == breakpoint {
			r.optimized = "no"
		}
	}
	at := r.at
	r.at = nil
	return at.Close()
}

func (r *uprobeRun) check(*report.Run) error {
	if r.optimized != "" {
		r.env.Fact(report.Param{Name: "optimized", Value: r.optimized})
	}
	return nil
}

func (r *uprobeRun) close() error {
	var errs []error
	if r.at != nil {
		errs = append(errs, r.at.Close())
	}
	if r.slots != nil {
		errs = append(errs, unix.Munmap(r.slots))
	}
	if r.coll != nil {
		r.coll.Close()
	}
	return errors.Join(errs...)
}
