package suite

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"time"
	"unsafe"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"

	"bpfbench/bench/harness"
	"bpfbench/internal/kernel"
	"bpfbench/internal/tracefs"
	"bpfbench/producers"
	"bpfbench/progs"
)

// work is an object, loaded, whose programs do what producers ask for through slots (progs/slot.bpf.h).
type work struct {
	coll    *ebpf.Collection
	slots   []byte // a slot for each producer, mapped
	stride  int    // from one to the next
	trigger trigger
	at      link.Link // where the program of the triggers tp and fentry is
}

// loadWork loads an object with a slot for each producer, and puts the program on what the trigger needs. The programs of
// other triggers are left out, but for that of test_run. own are maps that take the place of the object's.
func loadWork(spec *ebpf.CollectionSpec, t trigger, producers int, own map[string]*ebpf.Map) (_ *work, err error) {
	k := &work{trigger: t.choose()}
	if err := k.trigger.requires(); err != nil {
		return nil, err
	}
	for other, name := range triggerPrograms {
		if other != k.trigger && other != triggerTestRun {
			delete(spec.Programs, name)
		}
	}
	if entry := spec.Programs[progs.ProgEntry]; entry != nil {
		entry.AttachTo = getpgidEntry[runtime.GOARCH]
	}
	spec.Maps[progs.MapSlots].MaxEntries = uint32(producers)
	if k.coll, err = loadObject(spec, own); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, k.close())
		}
	}()
	m := k.coll.Maps[progs.MapSlots]
	k.stride = int(m.ValueSize())
	if k.slots, err = mapSlots(m); err != nil {
		return nil, err
	}
	return k, k.attach()
}

// loadObject loads an object. The library maps the memory of each variable that it knows, and that keeps its map alive until the
// garbage collector finds it; so it is left none: their values go into the maps before.
func loadObject(spec *ebpf.CollectionSpec, own map[string]*ebpf.Map) (*ebpf.Collection, error) {
	for _, v := range spec.Variables {
		copy(spec.Maps[v.SectionName].Contents[0].Value.([]byte)[v.Offset:], v.Value)
	}
	clear(spec.Variables)
	coll, err := ebpf.NewCollectionWithOptions(spec, ebpf.CollectionOptions{MapReplacements: own})
	return coll, kernel.Explain(err, "load the program", kernel.CapBPF, kernel.CapPerfmon)
}

// setConstants sets constants of an object's programs, by name.
func setConstants(spec *ebpf.CollectionSpec, constants map[string]any) error {
	for name, value := range constants {
		if err := spec.Variables[name].Set(value); err != nil {
			return fmt.Errorf("set constant %s of the program: %w", name, err)
		}
	}
	return nil
}

// attach puts the program on getpgid, where it runs when this process asks for it and at no other call.
func (k *work) attach() (err error) {
	switch k.trigger {
	case triggerTP:
		if err := tracefs.Mount(); err != nil {
			return err
		}
		k.at, err = link.Tracepoint("syscalls", "sys_enter_getpgid", k.coll.Programs[progs.ProgTP], nil)
	case triggerFentry:
		k.at, err = link.AttachTracing(link.TracingOptions{Program: k.coll.Programs[progs.ProgEntry]})
	}
	return kernel.Explain(err, "attach to getpgid", kernel.CapPerfmon)
}

// close undoes loadWork.
func (k *work) close() error {
	var errs []error
	if k.at != nil {
		errs = append(errs, k.at.Close())
	}
	if k.slots != nil {
		errs = append(errs, unix.Munmap(k.slots))
	}
	k.coll.Close()
	return errors.Join(errs...)
}

// slot is the memory of producer i's slot.
func (k *work) slot(i int) []byte { return k.slots[i*k.stride:][:k.stride] }

// header is what the slot of producer i begins with, as the program sees it.
func (k *work) header(i int) *progs.Slot { return (*progs.Slot)(unsafe.Pointer(&k.slot(i)[0])) }

// testRun is what runs the work for producer i by test_run, whatever the trigger.
func (k *work) testRun(i int) caller {
	return producers.NewTestRun(k.coll.Programs[progs.ProgCall].FD(), uint64(i))
}

// caller is what runs the work for producer i by the trigger.
func (k *work) caller(i int) caller {
	if k.trigger == triggerTestRun {
		return k.testRun(i)
	}
	return producers.NewGetpgid(uint32(i))
}

// split is batches of producer w, each of passes passes over pass operations. mode is of the object's enum mode, and what
// names the operation in errors.
func (k *work) split(w *harness.Worker, mode uint32, what string, pass, passes uint64) *producers.Split {
	return &producers.Split{Pass: pass, Passes: passes, Aborted: w.Aborted, Call: k.request(w.ID, mode, what, k.caller(w.ID)).do}
}

// request asks for work, time and again, through a slot.
type request struct {
	exchange
	mode progs.HashmapLookupMode // as all objects have it
	what string
	slot progs.Slot
}

// request returns what asks for work through slot i.
func (k *work) request(i int, mode uint32, what string, run caller) *request {
	r := &request{mode: progs.HashmapLookupMode(mode), what: what}
	header := unsafe.Slice((*byte)(unsafe.Pointer(&r.slot)), unsafe.Offsetof(r.slot.Counts))
	r.exchange = exchange{memory: k.slot(i), run: run, slot: header, request: int(unsafe.Offsetof(r.slot.Ops))}
	return r
}

// opError is an operation that failed, and with it the call.
type opError struct {
	op    string
	at    uint32 // its index
	after uint64 // operations of the call that succeeded before it
	errno unix.Errno
}

func (e *opError) Error() string {
	return fmt.Sprintf("%s %d: %v", e.op, e.at, e.errno)
}

func (e *opError) Unwrap() error { return e.errno }

// skips is how often a call may be in vain. On a tracepoint, the kernel skips a program while another thread's program, which
// was preempted, is not done on that CPU (bpf_prog_active in kernel/trace/bpf_trace.c). Nothing was done then, and nothing timed.
const skips = 100

// do does one call: passes times, the operations from number first up to number first+count. It checks that the program ran,
// once, and did all of that.
func (r *request) do(first, count, passes uint32) (producers.Done, error) {
	s := &r.slot
	s.Mode, s.First, s.Count, s.Passes, s.Calls = r.mode, first, count, passes, 0
	for tries := 0; ; tries++ {
		if err := r.exchange.do(); err != nil {
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
		return done, &opError{op: r.what, at: s.At, after: s.Ops, errno: unix.Errno(-s.Err)}
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

// insert is do for inserts into a map: it goes on where the kernel had no element at hand.
func (r *request) insert(first, count, _ uint32) (producers.Done, error) {
	var sum producers.Done
	for tries := 0; ; tries++ {
		done, err := r.do(first, count, 1)
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

// caller makes a program run once.
type caller interface{ Run() error }

// mapSlots maps the values of an array into memory, until unix.Munmap. The library's Map.Memory is unmapped when the garbage
// collector finds it, and the map lives until then.
func mapSlots(m *ebpf.Map) ([]byte, error) {
	page := os.Getpagesize()
	size := (int(m.ValueSize())*int(m.MaxEntries()) + page - 1) / page * page
	slots, err := unix.Mmap(m.FD(), 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("map the producers' slots into memory: %w", err)
	}
	return slots, nil
}

// exchange is memory that a program shares with one producer: a request is written, the program is run, the answer is read.
// The system call between the two orders them.
type exchange struct {
	memory  []byte // the producer's slot
	run     caller
	slot    []byte // the slot, as this process has it
	request int    // how many of its bytes are the request
}

func (x *exchange) do() error {
	copy(x.memory, x.slot[:x.request])
	if err := x.run.Run(); err != nil {
		return err
	}
	copy(x.slot, x.memory)
	return nil
}
