package consumers

import (
	"errors"
	"fmt"
	"io"
	"os"
	"sync/atomic"
	"unsafe"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"
)

// perfBuffer is the perf buffer of one CPU, mapped: a page that begins with struct perf_event_mmap_page, then the data.
type perfBuffer struct {
	fd     int
	memory []byte
	page   *unix.PerfEventMmapPage
	data   []byte // a power of two
}

// perfHeader is struct perf_event_header. The kernel pads records to eight bytes, so it never wraps around.
type perfHeader struct {
	Type       uint32
	Misc, Size uint16
}

const (
	perfHeaderSize = 8
	lostOffset     = perfHeaderSize + 8 // of the number in a record of losses: behind the header and an id
)

// PerfRecordSize is what a record of n bytes takes up in a perf buffer: with its header and its size.
func PerfRecordSize(n int) uint64 { return perfHeaderSize + uint64(n+4+7)&^7 }

// PerfLostSize is what a record takes up that says how many were lost before it.
const PerfLostSize = lostOffset + 8

// openPerf opens and maps the perf buffer of a CPU, of size bytes, which notifies its reader of every so many records.
func openPerf(cpu, size int, every uint32) (_ *perfBuffer, err error) {
	attr := unix.PerfEventAttr{Type: unix.PERF_TYPE_SOFTWARE, Config: unix.PERF_COUNT_SW_BPF_OUTPUT,
		Sample_type: unix.PERF_SAMPLE_RAW, Sample: uint64(every), Wakeup: every}
	attr.Size = uint32(unsafe.Sizeof(attr))
	b := &perfBuffer{}
	if b.fd, err = unix.PerfEventOpen(&attr, -1, cpu, -1, unix.PERF_FLAG_FD_CLOEXEC); err != nil {
		return nil, err
	}
	page := os.Getpagesize()
	if b.memory, err = unix.Mmap(b.fd, 0, page+size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED); err != nil {
		return nil, errors.Join(fmt.Errorf("map %d bytes: %w", size, err), unix.Close(b.fd))
	}
	b.page = (*unix.PerfEventMmapPage)(unsafe.Pointer(&b.memory[0]))
	b.data = b.memory[page:]
	return b, nil
}

func (b *perfBuffer) close() error { return errors.Join(unix.Munmap(b.memory), unix.Close(b.fd)) }

// drain takes all records that are there. What it has taken is published on each way out.
func (b *perfBuffer) drain() (taken Taken, err error) {
	mask := uint64(len(b.data) - 1)
	tail, head := b.page.Data_tail, atomic.LoadUint64(&b.page.Data_head) // the tail is written here alone
	defer func() { atomic.StoreUint64(&b.page.Data_tail, tail) }()
	for tail != head {
		h := (*perfHeader)(unsafe.Pointer(&b.data[tail&mask]))
		switch {
		case h.Size < perfHeaderSize || uint64(h.Size) > head-tail:
			return taken, fmt.Errorf("read a perf buffer: a record of %d bytes, where there are %d", h.Size, head-tail)
		case h.Type == unix.PERF_RECORD_SAMPLE:
			taken.Records++
		case h.Type == unix.PERF_RECORD_LOST:
			taken.Lost += *(*uint64)(unsafe.Pointer(&b.data[(tail+lostOffset)&mask]))
		default:
			return taken, fmt.Errorf("read a perf buffer: a record of unknown type %d", h.Type)
		}
		tail += uint64(h.Size)
	}
	return taken, nil
}

// perfReader reads the perf buffers of all CPUs where they are mapped: no record is copied, and nothing is allocated for one.
type perfReader struct {
	buffers []*perfBuffer
	waiter  *waiter
}

// NewPerfReader returns a Reader of the perf event array m. Each CPU that is online gets a buffer of size bytes, a power of two
// of pages, that notifies of every so many records.
func NewPerfReader(m *ebpf.Map, size int, every uint32) (_ Reader, err error) {
	r := &perfReader{}
	defer func() {
		if err != nil {
			err = errors.Join(err, r.Close())
		}
	}()
	var fds []int
	for cpu := range int(m.MaxEntries()) {
		b, err := openPerf(cpu, size, every)
		if errors.Is(err, unix.ENODEV) {
			continue // it is offline
		}
		if err != nil {
			return nil, fmt.Errorf("open the perf buffer of CPU %d: %w", cpu, err)
		}
		r.buffers = append(r.buffers, b)
		fds = append(fds, b.fd)
		if err := m.Put(uint32(cpu), uint32(b.fd)); err != nil {
			return nil, fmt.Errorf("set the perf buffer of CPU %d: %w", cpu, err)
		}
	}
	if r.waiter, err = newWaiter(fds...); err != nil {
		return nil, err
	}
	return r, nil
}

func (r *perfReader) Read() (Taken, error) {
	ready, err := r.waiter.wait()
	if err != nil {
		return Taken{}, err
	}
	var sum Taken
	for _, e := range ready {
		if e.Fd == wokenBy {
			rest, err := r.drain(r.buffers...)
			sum.add(rest)
			if err == nil {
				err = io.EOF
			}
			return sum, err
		}
		taken, err := r.drain(r.buffers[e.Fd])
		sum.add(taken)
		if err != nil {
			return sum, err
		}
	}
	return sum, nil
}

func (r *perfReader) drain(buffers ...*perfBuffer) (sum Taken, err error) {
	for _, b := range buffers {
		taken, err := b.drain()
		sum.add(taken)
		if err != nil {
			return sum, err
		}
	}
	return sum, nil
}

func (t *Taken) add(more Taken) {
	t.Records += more.Records
	t.Lost += more.Lost
}

func (r *perfReader) Wake() error { return r.waiter.wake() }

func (r *perfReader) Close() error {
	var errs []error
	if r.waiter != nil {
		errs = append(errs, r.waiter.close())
	}
	for _, b := range r.buffers {
		errs = append(errs, b.close())
	}
	return errors.Join(errs...)
}
