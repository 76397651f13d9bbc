package suite

import (
	"encoding/binary"
	"fmt"
	"time"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"bpfbench/bench/harness"
	"bpfbench/producers"
	"bpfbench/report"
)

// userOps does operations on a map by system calls, for one producer.
type userOps struct {
	cfg    *mapOp
	cpu    int // of the producer
	base   uint32
	order  []uint32 // nil for one key after the other
	size   uint32   // elements that a system call may have
	keys   []byte   // of the next system call
	values []byte
	index  int // where in a key its index is
	elem   *producers.MapElem
	batch  *producers.MapBatch
}

// user returns what does producer id's operations, size of them by a system call at most.
func (r *mapRun) user(id int, size uint32) *userOps {
	c := r.cfg
	u := &userOps{cfg: c, cpu: -1, base: c.base(id), size: size, index: len(c.prefix())}
	if c.ordered() {
		u.order = c.draw(id)
	}
	key := keyPattern()
	copy(key, c.prefix())
	for range size {
		u.keys = append(u.keys, key[:c.keySize]...)
	}
	u.keys = append(u.keys, 0, 0, 0) // as an index is of four bytes where a key is of fewer
	u.values = make([]byte, int(size)*c.valueStride())
	u.elem = producers.NewMapElem(r.m.FD(), u.keys, u.values)
	u.batch = producers.NewMapBatch(r.m.FD(), int(c.keySize), u.keys, u.values)
	return u
}

// userProducer readies a producer whose operations are system calls of its own.
func (r *mapRun) userProducer(w *harness.Worker) (harness.Producer, error) {
	c := r.cfg
	size := uint32(1)
	if c.from == fromBatch {
		size = uint32(c.batch)
	}
	u := r.user(w.ID, size)
	u.cpu = w.CPU
	batch := func(do func(first, count uint32) error) func() (report.Sample, error) {
		s := &producers.Split{Pass: c.pass(), Passes: c.passes(), Whole: c.iterates(), Aborted: w.Aborted}
		call := u.timed(do)
		s.Call = func(first, count, passes uint32) (producers.Done, error) {
			done, err := call(first, count, passes)
			return done, r.evicted(err)
		}
		return s.Batch
	}
	switch {
	case c.iterates():
		return harness.Producer{Batch: batch(u.read)}, nil // there is no key to store
	case c.from == fromBatch && c.op == "update":
		return harness.Producer{Batch: batch(u.update), Twin: batch(u.store)}, nil
	case c.from == fromBatch:
		return harness.Producer{Batch: batch(u.insertDelete), Twin: batch(u.store)}, nil
	}
	op, want := u.single()
	return harness.Producer{Batch: batch(u.each(op, want)), Twin: batch(u.each(func() unix.Errno { return want }, want))}, nil
}

// timed makes of what does count operations from number first of a pass on a call that does so a number of times.
func (u *userOps) timed(do func(first, count uint32) error) func(first, count, passes uint32) (producers.Done, error) {
	return func(first, count, passes uint32) (producers.Done, error) {
		start := time.Now()
		for range passes {
			if err := do(first, count); err != nil {
				return producers.Done{}, err
			}
		}
		return producers.Done{CPU: u.cpu, Ops: uint64(count) * uint64(passes), Elapsed: uint64(time.Since(start))}, nil
	}
}

// at is the index of the key at pos of a pass.
func (u *userOps) at(pos uint32) uint32 {
	if u.order != nil {
		return u.order[pos%orderLen]
	}
	return u.base + pos
}

// put makes key i of the next system call that of pos. Keys are put in ascending order, as one of fewer than four bytes reaches
// into the next.
func (u *userOps) put(i, pos uint32) {
	binary.LittleEndian.PutUint32(u.keys[int(i)*int(u.cfg.keySize)+u.index:], u.at(pos))
}

// single is the operation on the one key of the next system call, and what it is to return.
func (u *userOps) single() (op func() unix.Errno, want unix.Errno) {
	switch u.cfg.op {
	case "lookup":
		return u.elem.Lookup, 0
	case "miss":
		return u.elem.Lookup, unix.ENOENT
	case "update":
		return func() unix.Errno { return u.elem.Update(uint64(ebpf.UpdateExist)) }, 0
	}
	return func() unix.Errno {
		if errno := u.elem.Update(uint64(ebpf.UpdateNoExist)); errno != 0 {
			return errno
		}
		return u.elem.Delete()
	}, 0
}

// each does op on one key after the other.
func (u *userOps) each(op func() unix.Errno, want unix.Errno) func(first, count uint32) error {
	return func(first, count uint32) error {
		for i := range count {
			u.put(0, first+i)
			if errno := op(); errno != want {
				return u.failed(first+i, i, errno)
			}
		}
		return nil
	}
}

// failed is the error of the operation at pos of a pass, after others that succeeded.
func (u *userOps) failed(pos, after uint32, errno unix.Errno) error {
	if errno == 0 { // of one that should have failed
		errno = unix.EEXIST
	}
	return &opError{op: u.cfg.describe(), at: u.at(pos), after: uint64(after), errno: errno}
}

// many does count operations, some by a call of each of ops.
func (u *userOps) many(first, count uint32, ops ...func(n uint32) (uint32, unix.Errno)) error {
	for done := uint32(0); done < count; {
		n := min(count-done, u.size)
		for i := range n {
			u.put(i, first+done+i)
		}
		for _, op := range ops {
			if did, errno := op(n); errno != 0 {
				return u.failed(first+done+min(did, n-1), done+did, errno)
			} else if did != n {
				return fmt.Errorf("%s: a system call did %d operations of %d", u.cfg.describe(), did, n)
			}
		}
		done += n
	}
	return nil
}

func (u *userOps) update(first, count uint32) error { return u.many(first, count, u.batch.Update) }

func (u *userOps) insertDelete(first, count uint32) error {
	return u.many(first, count, u.batch.Update, u.batch.Delete)
}

// store only stores the keys.
func (u *userOps) store(first, count uint32) error { return u.many(first, count) }

// read reads the whole map, which has count elements.
func (u *userOps) read(_, count uint32) error {
	u.batch.Rewind()
	for found := uint32(0); ; {
		n, errno := u.batch.Lookup(u.size)
		found += n
		switch {
		case errno == unix.ENOSPC:
			return fmt.Errorf("look up %d elements: more are in one bucket: raise --batch_size", u.size)
		case errno != 0 && errno != unix.ENOENT:
			return fmt.Errorf("look up %d elements: %w", u.size, errno)
		case errno == unix.ENOENT && found != count:
			return fmt.Errorf("look up all elements: there were %d of %d", found, count)
		case errno == unix.ENOENT:
			return nil
		}
	}
}
