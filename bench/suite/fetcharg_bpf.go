package suite

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"github.com/cilium/ebpf/perf"

	"bpfbench/consumers"
	"bpfbench/fetcharg"
	"bpfbench/internal/jit"
	"bpfbench/internal/kernel"
	"bpfbench/internal/tracefs"
	"bpfbench/report"
)

// The maps and the program of a compiled event, as package fetcharg names them.
const (
	eventProgram = "event"
	recordsMap   = "records"
	lostMap      = "lost"
	lastMap      = "last"
	eventsMap    = "events"
)

const (
	// ringSize is the size of the ring buffer in bytes. It must have room for the records of one call of the driver, which are
	// then skipped; larger ones do not fit into the cache of the second level of many CPUs.
	ringSize = 2 << 20
	// perfSize is that of the perf buffer of each CPU, which is overwritten and needs no room.
	perfSize = 1 << 20
)

// compiled is an event whose arguments are compiled to one BPF program.
type compiled struct {
	event  *fetcharg.Compiled
	record fetcharg.Record
	coll   *ebpf.Collection
	link   link.Link
	ring   *consumers.Ring
	perf   *perf.Reader
}

// compile makes the program of an event, and says which arguments it leaves out.
func (c *fetchConfig) compile(ev fetcharg.Event) (*fetcharg.Compiled, error) {
	loads, err := c.loads()
	if err != nil {
		return nil, err
	}
	opt := fetcharg.CompileOptions{Record: c.recordMode(), SkipUnsupported: c.skip, Loads: loads}
	if ev.Kind == fetcharg.Eprobe {
		system, name, _ := strings.Cut(ev.Target, ".")
		text, err := tracefs.Format(system, name)
		if err != nil {
			return nil, err
		}
		if opt.Format, err = fetcharg.ParseFormat(strings.NewReader(text)); err != nil {
			return nil, err
		}
	}
	return fetcharg.Compile(ev, opt)
}

// loads returns how the program reads memory of the kernel by loads; nil if a helper must do it.
func (c *fetchConfig) loads() (*fetcharg.Loads, error) {
	if jit.State(c.jit) == jit.Off {
		return nil, nil
	}
	undo, err := jit.Switch(jit.State(c.jit))
	if err != nil {
		return nil, err
	}
	loads, _ := fetcharg.KernelLoads() // whatever is in the way is in the way of the program as well, or the helper goes without it
	return loads, undo()
}

func (c *fetchConfig) recordMode() fetcharg.Record {
	return map[string]fetcharg.Record{"none": fetcharg.RecordNone, "ringbuf": fetcharg.RecordRingbuf, "perf": fetcharg.RecordPerf}[c.record]
}

func newCompiled(c *fetchConfig, ev fetcharg.Event) (_ *compiled, err error) {
	e := &compiled{record: c.recordMode()}
	defer func() {
		if err != nil {
			err = errors.Join(err, e.Close())
		}
	}()
	if err := tracefs.Mount(); err != nil {
		return nil, err
	}
	if e.event, err = c.compile(ev); err != nil {
		return nil, fmt.Errorf("compile the fetchargs: %w", err)
	}
	if err := e.load(jit.State(c.jit)); err != nil {
		return nil, err
	}
	e.link, err = attachEvent(ev, e.coll.Programs[eventProgram])
	return e, kernel.Explain(err, "attach the compiled event", kernel.CapBPF, kernel.CapPerfmon)
}

// reads is the fact by what memory of the kernel is read.
func (e *compiled) reads() report.Param {
	by := "helper"
	if e.event.Loads {
		by = "loads"
	}
	return report.Param{Name: "memory_by", Value: by}
}

// load loads the program with the JIT in a state, which is switched for that moment alone: only this program is affected.
func (e *compiled) load(state jit.State) error {
	if m := e.event.Spec.Maps[recordsMap]; m != nil {
		m.MaxEntries = ringSize
	}
	undo, err := jit.Switch(state)
	if err != nil {
		return err
	}
	e.coll, err = ebpf.NewCollection(e.event.Spec)
	if err := errors.Join(kernel.Explain(err, "load the compiled event", kernel.CapBPF, kernel.CapPerfmon), undo()); err != nil {
		return err
	}
	switch e.record {
	case fetcharg.RecordRingbuf:
		e.ring, err = consumers.OpenRing(e.coll.Maps[recordsMap])
	case fetcharg.RecordPerf:
		e.perf, err = perf.NewReaderWithOptions(e.coll.Maps[eventsMap], perfSize, perf.ReaderOptions{Overwritable: true})
	}
	return err
}

// attachEvent attaches a program where an event of the kind sits.
func attachEvent(ev fetcharg.Event, prog *ebpf.Program) (link.Link, error) {
	switch ev.Kind {
	case fetcharg.Kprobe:
		return link.Kprobe(ev.Target, prog, nil)
	case fetcharg.Kretprobe:
		return link.Kretprobe(ev.Target, prog, nil)
	case fetcharg.Fprobe:
		return link.KprobeMulti(prog, link.KprobeMultiOptions{Symbols: []string{ev.Target}})
	case fetcharg.Tprobe:
		return link.AttachRawTracepoint(link.RawTracepointOptions{Name: ev.Target, Program: prog})
	case fetcharg.Eprobe:
		system, name, _ := strings.Cut(ev.Target, ".")
		return link.Tracepoint(system, name, prog, nil)
	}
	file, err := link.OpenExecutable(ev.Target)
	if err != nil {
		return nil, err
	}
	return file.Uprobe("", prog, &link.UprobeOptions{Address: ev.Offset, PID: os.Getpid()})
}

// Room is how many records a call may make; 0 is any number.
func (e *compiled) Room() uint64 {
	if e.ring == nil {
		return 0
	}
	return ringSize / consumers.RecordSize(e.event.Layout.Size)
}

// Reset makes room for the next call's records.
func (e *compiled) Reset() {
	if e.ring != nil {
		e.ring.Skip()
	}
}

func (e *compiled) Hits() (uint64, error) {
	if m := e.coll.Maps[lostMap]; m != nil {
		var lost uint64
		if err := m.Lookup(uint32(0), &lost); err != nil {
			return 0, fmt.Errorf("read the number of lost records: %w", err)
		}
		if lost > 0 {
			return 0, fmt.Errorf("%d records were lost, as there was no room", lost)
		}
	}
	if e.ring != nil {
		return e.ring.Produced() / consumers.RecordSize(e.event.Layout.Size), nil
	}
	values, err := e.lasts()
	var hits uint64
	for _, v := range values {
		hits += binary.NativeEndian.Uint64(v)
	}
	return hits, err
}

// lasts are the values of the map "last": for each CPU the number of hits and the last record.
func (e *compiled) lasts() ([][]byte, error) {
	var values [][]byte
	if err := e.coll.Maps[lastMap].Lookup(uint32(0), &values); err != nil {
		return nil, fmt.Errorf("read the last records: %w", err)
	}
	return values, nil
}

func (e *compiled) Last() (map[string]string, error) {
	record, err := e.lastRecord()
	if err != nil {
		return nil, err
	}
	values, err := e.event.Decode(record)
	if err != nil {
		return nil, err
	}
	texts := make(map[string]string)
	for _, v := range values {
		texts[v.Field.Name] = v.String()
	}
	return texts, nil
}

func (e *compiled) lastRecord() ([]byte, error) {
	switch e.record {
	case fetcharg.RecordRingbuf:
		if r := e.ring.Last(e.event.Layout.Size); r != nil {
			return r, nil
		}
	case fetcharg.RecordPerf:
		if err := e.perf.Pause(); err != nil {
			return nil, fmt.Errorf("pause the perf buffer: %w", err)
		}
		r, err := e.perf.Read() // of an overwritable buffer, the newest comes first
		if err != nil {
			return nil, fmt.Errorf("read the perf buffer: %w", err)
		}
		return r.RawSample, nil
	case fetcharg.RecordNone:
		values, err := e.lasts()
		if err != nil {
			return nil, err
		}
		for _, v := range values {
			if binary.NativeEndian.Uint64(v) > 0 {
				return v[fetcharg.LastOffset:], nil
			}
		}
	}
	return nil, errors.New("the event has recorded nothing")
}

func (e *compiled) Off() error {
	if e.link == nil {
		return nil
	}
	err := e.link.Close()
	e.link = nil
	return err
}

func (e *compiled) Close() error {
	errs := []error{e.Off()}
	if e.perf != nil {
		errs = append(errs, e.perf.Close())
	}
	if e.ring != nil {
		errs = append(errs, e.ring.Close())
	}
	if e.coll != nil {
		e.coll.Close()
	}
	return errors.Join(errs...)
}
