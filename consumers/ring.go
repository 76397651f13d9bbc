// Package consumers drains the events that benchmarks produce.
package consumers

import (
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"unsafe"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"
)

// Ring is the memory of a BPF ring buffer, mapped. It says how much was written, drains what was, or just moves the consumer's
// position up, so that there is room again, without looking at a single record: that is for timing what writes.
//
// The layout is that of kernel/bpf/ringbuf.c: the consumer's position in a page of its own, which may be written, the
// producers' in the next, then the data, twice, so that a record that wraps around is in one piece.
type Ring struct {
	consumer []byte
	rest     []byte // the producers' page and the data
	page     int
	size     uint64 // of the data
}

const (
	// recordHeader is what the kernel puts in front of a record: its length, with two bits of state, and a page number.
	recordHeader = 8
	busyBit      = 1 << 31 // BPF_RINGBUF_BUSY_BIT: reserved, not submitted yet
	discardBit   = 1 << 30 // BPF_RINGBUF_DISCARD_BIT
)

// OpenRing maps ring buffer m.
func OpenRing(m *ebpf.Map) (*Ring, error) {
	if m.Type() != ebpf.RingBuf {
		return nil, fmt.Errorf("map a ring buffer: it is a map of type %v", m.Type())
	}
	r := &Ring{page: os.Getpagesize(), size: uint64(m.MaxEntries())}
	var err error
	if r.consumer, err = unix.Mmap(m.FD(), 0, r.page, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED); err != nil {
		return nil, fmt.Errorf("map the consumer's page: %w", err)
	}
	r.rest, err = unix.Mmap(m.FD(), int64(r.page), r.page+2*int(r.size), unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("map the producers' page and the data: %w", err), r.Close())
	}
	return r, nil
}

// Close unmaps the memory.
func (r *Ring) Close() error {
	err := unix.Munmap(r.consumer)
	if r.rest != nil {
		err = errors.Join(err, unix.Munmap(r.rest))
	}
	return err
}

// position is a count of bytes, from the beginning of the ring's life.
func position(page []byte) *atomic.Uint64 { return (*atomic.Uint64)(unsafe.Pointer(&page[0])) }

// Produced is how many bytes have ever been reserved, headers included.
func (r *Ring) Produced() uint64 { return position(r.rest).Load() }

// Consumed is how many bytes of Produced have been read.
func (r *Ring) Consumed() uint64 { return position(r.consumer).Load() }

// Drain takes all records that are there and returns how many there were, discarded ones left out. It ends at a record that is
// reserved and not submitted yet. What it has taken is published on each way out, so nothing is taken twice.
//
// Having published its position, it looks for new records once more: the kernel notifies of a record only if the consumer has
// published that it has come to it.
func (r *Ring) Drain() (records uint64) {
	consumer, producer := position(r.consumer), position(r.rest)
	data, mask := r.rest[r.page:], r.size-1
	at := consumer.Load()
	for {
		from, end, busy := at, producer.Load(), false
		for at < end {
			header := (*atomic.Uint32)(unsafe.Pointer(&data[at&mask])).Load()
			if busy = header&busyBit != 0; busy {
				break
			}
			if header&discardBit == 0 {
				records++
			}
			at += RecordSize(int(header &^ discardBit))
		}
		if at > from {
			consumer.Store(at)
		}
		if busy || at == from {
			return records
		}
	}
}

// Skip takes everything that has been written for read.
func (r *Ring) Skip() { position(r.consumer).Store(r.Produced()) }

// Size is how many bytes fit in.
func (r *Ring) Size() uint64 { return r.size }

// RecordSize is what a record of n bytes takes up.
func RecordSize(n int) uint64 { return uint64(n+recordHeader+7) &^ 7 }

// Last is the last record, if records are of n bytes each. It is nil if there is none. It is valid until the ring goes on.
func (r *Ring) Last(n int) []byte {
	produced := r.Produced()
	if produced < RecordSize(n) {
		return nil
	}
	at := (produced - RecordSize(n)) & (r.size - 1)
	data := r.rest[r.page:]
	return data[at+recordHeader : at+recordHeader+uint64(n)]
}
