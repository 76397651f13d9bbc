package consumers

import (
	"encoding/binary"
	"math"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// fabricated is a ring buffer of size bytes in memory of this process, which a test writes as the kernel does.
func fabricated(size int) *Ring {
	page := os.Getpagesize()
	return &Ring{consumer: aligned(page), rest: aligned(page + 2*size), page: page, size: uint64(size)}
}

// aligned is memory that is aligned to eight bytes, as mapped memory is.
func aligned(n int) []byte {
	words := make([]uint64, n/8)
	return unsafe.Slice((*byte)(unsafe.Pointer(&words[0])), n)
}

// reserve writes the header of a record of n bytes, busy, and returns it; nil if there is no room.
func (r *Ring) reserve(n int) *atomic.Uint32 {
	at := r.Produced()
	if at+RecordSize(n)-r.Consumed() > r.size-1 {
		return nil
	}
	header := (*atomic.Uint32)(unsafe.Pointer(&r.rest[r.page+int(at&(r.size-1))]))
	header.Store(uint32(n) | busyBit)
	position(r.rest).Store(at + RecordSize(n))
	return header
}

// write writes a record of n bytes with the given state.
func (r *Ring) write(n int, state uint32) bool {
	header := r.reserve(n)
	if header != nil {
		header.Store(uint32(n) | state)
	}
	return header != nil
}

// drained drains a ring and checks what came, and that all up to left bytes before the end is published as read.
func drained(t *testing.T, r *Ring, want, left uint64) {
	t.Helper()
	if got := r.Drain(); got != want {
		t.Errorf("%d records were drained, want %d", got, want)
	}
	if got := r.Produced() - r.Consumed(); got != left {
		t.Errorf("%d bytes are left, want %d", got, left)
	}
}

func TestDrain(t *testing.T) {
	r := fabricated(4096)
	drained(t, r, 0, 0)
	for _, n := range []int{8, 1, 100} {
		r.write(n, 0)
	}
	drained(t, r, 3, 0)
	drained(t, r, 0, 0)
}

// A record that is not submitted yet ends a drain, but what was before it is taken, once.
func TestDrainBusy(t *testing.T) {
	r := fabricated(4096)
	r.write(8, 0)
	r.write(8, 0)
	busy := r.reserve(8)
	r.write(8, 0)
	drained(t, r, 2, 2*RecordSize(8))
	drained(t, r, 0, 2*RecordSize(8))
	busy.Store(8)
	drained(t, r, 2, 0)
	busy = r.reserve(8) // the first
	drained(t, r, 0, RecordSize(8))
	busy.Store(8 | discardBit)
	drained(t, r, 0, 0)
}

func TestDrainDiscarded(t *testing.T) {
	r := fabricated(4096)
	r.write(8, discardBit)
	r.write(20, 0)
	r.write(1000, discardBit)
	r.write(8, 0)
	r.write(8, discardBit)
	drained(t, r, 2, 0)
}

// Records of several sizes come around the ring many times. A full one is drained, too.
func TestDrainWraps(t *testing.T) {
	r := fabricated(4096)
	var written, read uint64
	for i := range 10000 {
		if !r.write(i%300, 0) {
			drained(t, r, written-read, 0)
			read = written
			r.write(i%300, 0)
		}
		written++
	}
	if r.Produced() < 100*r.Size() {
		t.Errorf("%d bytes do not wrap", r.Produced())
	}
}

// While one side writes, reserving ahead of what it submits, the other reads: all arrives, once.
func TestDrainConcurrent(t *testing.T) {
	const n = 20000
	r := fabricated(4096)
	var wg sync.WaitGroup
	wg.Go(func() {
		for range n / 2 {
			var first, second *atomic.Uint32
			for first == nil {
				first = r.reserve(8)
			}
			for second == nil {
				second = r.reserve(16)
			}
			second.Store(16)
			first.Store(8)
		}
	})
	var read uint64
	for read < n {
		read += r.Drain()
	}
	wg.Wait()
	if drained(t, r, 0, 0); read != n {
		t.Errorf("%d records were read, want %d", read, n)
	}
}

// fabricatedPerf is a perf buffer of size bytes in memory of this process.
func fabricatedPerf(size int) *perfBuffer {
	return &perfBuffer{page: new(unix.PerfEventMmapPage), data: aligned(size)}
}

// put writes a record of a type with a body, which may wrap around, and reports whether there was room.
func (b *perfBuffer) put(typ uint32, body []byte) bool {
	size := uint64(len(body)+perfHeaderSize+7) &^ 7
	if b.page.Data_head+size-atomic.LoadUint64(&b.page.Data_tail) > uint64(len(b.data)-1) {
		return false
	}
	record := binary.NativeEndian.AppendUint32(nil, typ)
	record = binary.NativeEndian.AppendUint16(record, 0)
	record = append(binary.NativeEndian.AppendUint16(record, uint16(size)), body...)
	for i, c := range record {
		b.data[(b.page.Data_head+uint64(i))%uint64(len(b.data))] = c
	}
	atomic.StoreUint64(&b.page.Data_head, b.page.Data_head+size)
	return true
}

// sample writes a record of n bytes as bpf_perf_event_output does.
func (b *perfBuffer) sample(n int) bool {
	return b.put(unix.PERF_RECORD_SAMPLE, append(binary.NativeEndian.AppendUint32(nil, uint32(n+4)), make([]byte, n)...))
}

func (b *perfBuffer) lost(n uint64) bool {
	return b.put(unix.PERF_RECORD_LOST, binary.NativeEndian.AppendUint64(make([]byte, 8), n))
}

func perfDrained(t *testing.T, b *perfBuffer, want Taken) {
	t.Helper()
	if got, err := b.drain(); got != want || err != nil || b.page.Data_tail != b.page.Data_head {
		t.Errorf("%+v were drained (%v) up to %d of %d, want %+v", got, err, b.page.Data_tail, b.page.Data_head, want)
	}
}

func TestPerfDrain(t *testing.T) {
	b := fabricatedPerf(4096)
	perfDrained(t, b, Taken{})
	b.sample(8)
	if b.page.Data_head != PerfRecordSize(8) || PerfRecordSize(8) != 24 || PerfRecordSize(4) != 16 || PerfRecordSize(13) != 32 {
		t.Errorf("a record of 8 bytes takes up %d", b.page.Data_head)
	}
	b.lost(7)
	b.sample(100)
	b.lost(1)
	perfDrained(t, b, Taken{Records: 2, Lost: 8})
	perfDrained(t, b, Taken{})
}

// Records of all sizes, and losses, begin and wrap around at all places.
func TestPerfDrainWraps(t *testing.T) {
	b := fabricatedPerf(4096)
	var want Taken
	for i := range 10000 {
		put := func() bool { want.Records++; return b.sample(i % 300) }
		if i%3 == 0 {
			put = func() bool { want.Lost += uint64(i); return b.lost(uint64(i)) }
		}
		before := want
		if put() {
			continue
		}
		perfDrained(t, b, before)
		want = Taken{}
		put()
	}
	perfDrained(t, b, want)
	if b.page.Data_head < 100*4096 {
		t.Errorf("%d bytes do not wrap", b.page.Data_head)
	}
}

// The kernel's positions go over the end of their range in theory only, but nothing depends on it.
func TestPerfDrainHigh(t *testing.T) {
	b := fabricatedPerf(4096)
	b.page.Data_head, b.page.Data_tail = math.MaxUint64-23, math.MaxUint64-23
	for range 10 {
		b.sample(8)
	}
	perfDrained(t, b, Taken{Records: 10})
}

// What is no record ends a drain with an error; what was before it is taken.
func TestPerfDrainBroken(t *testing.T) {
	for _, tt := range []struct {
		spoil func(*perfBuffer)
		want  string
	}{
		{func(b *perfBuffer) { b.put(99, nil) }, "unknown type 99"},
		{func(b *perfBuffer) { b.sample(8); b.data[24+6] = 0 }, "a record of 0 bytes"},
		{func(b *perfBuffer) { b.sample(8); b.data[24+7] = 1 }, "where there are 24"},
	} {
		b := fabricatedPerf(4096)
		b.sample(8)
		tt.spoil(b)
		taken, err := b.drain()
		if err == nil || !strings.Contains(err.Error(), tt.want) || taken.Records != 1 || b.page.Data_tail != 24 {
			t.Errorf("%+v up to %d, error %v; want 1 record and %q", taken, b.page.Data_tail, err, tt.want)
		}
	}
}

func TestPerfDrainConcurrent(t *testing.T) {
	const n = 20000
	b := fabricatedPerf(4096)
	var wg sync.WaitGroup
	wg.Go(func() {
		for i := range n {
			for !b.sample(8 + i%8) {
			}
		}
	})
	var read uint64
	for read < n {
		taken, err := b.drain()
		if err != nil {
			t.Fatal(err)
		}
		read += taken.Records
	}
	wg.Wait()
	if perfDrained(t, b, Taken{}); read != n {
		t.Errorf("%d records were read, want %d", read, n)
	}
}

func TestDrainAllocations(t *testing.T) {
	r, b := fabricated(4096), fabricatedPerf(4096)
	n := testing.AllocsPerRun(100, func() {
		r.write(8, 0)
		if r.Drain() != 1 {
			t.Error("no record")
		}
		b.page.Data_head = b.page.Data_tail
		if _, err := b.drain(); err != nil {
			t.Error(err)
		}
	})
	if n != 0 {
		t.Errorf("%v allocations", n)
	}
}
