package suite

import (
	"fmt"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"bpfbench/producers"
	"bpfbench/progs"
)

// slotCall asks the program for work through a slot of its own.
type slotCall struct {
	exchange
	mode progs.HashmapLookupMode
	slot progs.HashmapLookupSlot
}

func newSlotCall(slots []byte, index int, mode progs.HashmapLookupMode, run caller) *slotCall {
	c := &slotCall{mode: mode}
	// The key is the program's alone.
	header := unsafe.Slice((*byte)(unsafe.Pointer(&c.slot)), unsafe.Offsetof(c.slot.Key))
	c.exchange = exchange{memory: slots[slotOffset(index):], run: run, slot: header, request: int(unsafe.Offsetof(c.slot.Ops))}
	return c
}

// opError is a map operation that failed, and with it the call.
type opError struct {
	op    string
	key   uint32 // index of its key
	after uint64 // operations of the call that succeeded before it
	errno unix.Errno
}

func (e *opError) Error() string {
	return fmt.Sprintf("%s entry %d: %v", e.op, e.key, e.errno)
}

func (e *opError) Unwrap() error { return e.errno }

var opNames = map[progs.HashmapLookupMode]string{
	progs.HashmapLookupModeMODE_LOOKUP: "look up",
	progs.HashmapLookupModeMODE_TWIN:   "pass over",
	progs.HashmapLookupModeMODE_FILL:   "insert",
}

// skips is how often a call may be in vain. On a tracepoint, the kernel skips a program while another thread's program, which
// was preempted, is not done on that CPU (bpf_prog_active in kernel/trace/bpf_trace.c). Nothing was done then, and nothing timed.
const skips = 100

// do does one call: passes times, the keys from number first up to number first+count. It checks that the program ran,
// once, and did all of that.
func (c *slotCall) do(first, count, passes uint32) (producers.Done, error) {
	s := &c.slot
	s.Mode, s.First, s.Count, s.Passes, s.Calls = c.mode, first, count, passes, 0
	for tries := 0; ; tries++ {
		if err := c.exchange.do(); err != nil {
			return producers.Done{}, err
		}
		if s.Calls > 0 || tries == skips {
			break
		}
		time.Sleep(moment)
	}
	done := producers.Done{CPU: int(s.Cpu), Ops: s.Ops, Elapsed: s.Ns}
	switch want := uint64(count) * uint64(passes); {
	case s.Calls != 1:
		return done, fmt.Errorf("the program ran %d times in one call", s.Calls)
	case s.Err != 0:
		return done, &opError{op: opNames[c.mode], key: s.At, after: s.Ops, errno: unix.Errno(-s.Err)}
	case s.Ops != want:
		return done, fmt.Errorf("the program did %d operations of %d", s.Ops, want)
	}
	return done, nil
}

// A map that is not preallocated takes elements from a small stock, which the kernel refills from an interrupt. Where the
// program was faster than that, a moment helps; where there is no memory, nothing does.
const (
	refills = 20
	moment  = time.Millisecond
)

// insert is do for [progs.HashmapLookupModeMODE_FILL]: it goes on where the kernel had no element at hand.
func (c *slotCall) insert(first, count, _ uint32) (producers.Done, error) {
	var sum producers.Done
	for tries := 0; ; tries++ {
		done, err := c.do(first, count, 1)
		sum = producers.Done{CPU: done.CPU, Ops: sum.Ops + done.Ops, Elapsed: sum.Elapsed + done.Elapsed}
		failed, ok := err.(*opError)
		if !ok || failed.errno != unix.ENOMEM || tries == refills {
			return sum, err
		}
		if failed.after > 0 {
			tries = 0
		}
		first += uint32(failed.after)
		count -= uint32(failed.after)
		time.Sleep(moment)
	}
}
