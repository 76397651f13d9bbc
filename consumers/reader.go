package consumers

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"
)

// Taken is what a read has taken out of a buffer.
type Taken struct {
	Records uint64
	Lost    uint64 // records that there was no room for, as far as the buffer says so: perf buffers do, ring buffers do not
}

// Reader takes records out of a buffer. Read and Close are for one goroutine at a time.
type Reader interface {
	// Read blocks until there are records, and takes all that are there. After Wake it takes what is left and returns
	// [io.EOF] with that.
	Read() (Taken, error)
	// Wake ends a Read that blocks, or the next one.
	Wake() error
	Close() error
}

// waiter blocks until one of several descriptors is ready, or until it is woken.
type waiter struct {
	epoll, event int
	ready        []unix.EpollEvent
}

// wokenBy is the index of the waiter's own event.
const wokenBy = -1

// newWaiter waits for descriptors, which it names by their index.
func newWaiter(fds ...int) (*waiter, error) {
	w := &waiter{epoll: -1, event: -1, ready: make([]unix.EpollEvent, len(fds)+1)}
	if err := w.open(fds); err != nil {
		return nil, errors.Join(fmt.Errorf("wait for descriptors: %w", err), w.close())
	}
	return w, nil
}

func (w *waiter) open(fds []int) (err error) {
	if w.epoll, err = unix.EpollCreate1(unix.EPOLL_CLOEXEC); err != nil {
		return err
	}
	if w.event, err = unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK); err != nil {
		return err
	}
	add := func(fd, index int) error {
		return unix.EpollCtl(w.epoll, unix.EPOLL_CTL_ADD, fd, &unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(index)})
	}
	err = add(w.event, wokenBy)
	for i, fd := range fds {
		err = errors.Join(err, add(fd, i))
	}
	return err
}

// wait returns what is ready, each by its index in Fd.
func (w *waiter) wait() ([]unix.EpollEvent, error) {
	for {
		n, err := unix.EpollWait(w.epoll, w.ready, -1)
		switch err {
		case nil:
			return w.ready[:n], nil
		case unix.EINTR: // by a signal of Go's scheduler
		default:
			return nil, fmt.Errorf("wait for records: %w", err)
		}
	}
}

func (w *waiter) wake() error {
	if _, err := unix.Write(w.event, binary.NativeEndian.AppendUint64(nil, 1)); err != nil {
		return fmt.Errorf("wake the consumer: %w", err)
	}
	return nil
}

func (w *waiter) close() error {
	var errs []error
	for _, fd := range []int{w.epoll, w.event} {
		if fd >= 0 {
			errs = append(errs, unix.Close(fd))
		}
	}
	return errors.Join(errs...)
}

// ringReader reads a ring buffer where it is mapped: no record is copied, and nothing is allocated for one.
type ringReader struct {
	ring   *Ring
	waiter *waiter
}

// NewRingReader returns a Reader of ring buffer m that drains its mapped memory.
func NewRingReader(m *ebpf.Map) (Reader, error) {
	ring, err := OpenRing(m)
	if err != nil {
		return nil, err
	}
	w, err := newWaiter(m.FD())
	if err != nil {
		return nil, errors.Join(err, ring.Close())
	}
	return &ringReader{ring, w}, nil
}

func (r *ringReader) Read() (Taken, error) {
	ready, err := r.waiter.wait()
	if err != nil {
		return Taken{}, err
	}
	taken := Taken{Records: r.ring.Drain()}
	for _, e := range ready {
		if e.Fd == wokenBy {
			return taken, io.EOF
		}
	}
	return taken, nil
}

func (r *ringReader) Wake() error  { return r.waiter.wake() }
func (r *ringReader) Close() error { return errors.Join(r.waiter.close(), r.ring.Close()) }
