package consumers

import (
	"errors"
	"io"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/perf"
	"github.com/cilium/ebpf/ringbuf"
)

// libraryRing reads a ring buffer by the library's reader, which copies each record into one that is used again.
type libraryRing struct {
	reader *ringbuf.Reader
	record ringbuf.Record
}

// NewLibraryRing returns a Reader of ring buffer m that is the library's.
func NewLibraryRing(m *ebpf.Map) (Reader, error) {
	r, err := ringbuf.NewReader(m)
	if err != nil {
		return nil, err
	}
	return &libraryRing{reader: r}, nil
}

func (r *libraryRing) Read() (t Taken, err error) {
	for {
		if err := r.reader.ReadInto(&r.record); err != nil {
			return t, eof(err, ringbuf.ErrFlushed)
		}
		t.Records++
		if r.record.Remaining == 0 {
			return t, nil
		}
	}
}

func (r *libraryRing) Wake() error  { return r.reader.Flush() }
func (r *libraryRing) Close() error { return r.reader.Close() }

// libraryPerf reads the perf buffers of all CPUs by the library's reader, likewise.
type libraryPerf struct {
	reader *perf.Reader
	record perf.Record
}

// NewLibraryPerf returns a Reader of the perf event array m that is the library's. The buffers are like those of
// [NewPerfReader].
func NewLibraryPerf(m *ebpf.Map, size int, every uint32) (Reader, error) {
	r, err := perf.NewReaderWithOptions(m, size, perf.ReaderOptions{WakeupEvents: int(every)})
	if err != nil {
		return nil, err
	}
	return &libraryPerf{reader: r}, nil
}

func (r *libraryPerf) Read() (t Taken, err error) {
	for {
		if err := r.reader.ReadInto(&r.record); err != nil {
			return t, eof(err, perf.ErrFlushed)
		}
		if lost := r.record.LostSamples; lost > 0 {
			t.Lost += lost
		} else {
			t.Records++
		}
		if r.record.Remaining == 0 {
			return t, nil
		}
	}
}

func (r *libraryPerf) Wake() error  { return r.reader.Flush() }
func (r *libraryPerf) Close() error { return r.reader.Close() }

// eof is io.EOF for the error by which the library's readers end when they were flushed.
func eof(err, flushed error) error {
	if errors.Is(err, flushed) {
		return io.EOF
	}
	return err
}
