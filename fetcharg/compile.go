package fetcharg

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"runtime"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/btf"
)

// Record is what a compiled program does with its record.
type Record uint8

const (
	// RecordNone keeps the last record of each CPU in the per-CPU array "last", behind the number of hits: its value is
	// {u64 hits; record}.
	RecordNone Record = iota
	// RecordRingbuf submits records to the ring buffer "records", and wakes no reader. Where there is no room, the program
	// counts that in the array "lost" (one u64, which may be mapped) and fetches nothing.
	RecordRingbuf
	// RecordPerf writes records to the perf event array "events". Hits and lost records are counted as above.
	RecordPerf
)

// Records are all of these.
var Records = []Record{RecordNone, RecordRingbuf, RecordPerf}

func (r Record) String() string {
	switch r {
	case RecordNone:
		return "none"
	case RecordRingbuf:
		return "ringbuf"
	case RecordPerf:
		return "perf"
	}
	return fmt.Sprintf("record %d", uint8(r))
}

// LastOffset is where the record begins in a value of the map "last": the hits are before it.
const LastOffset = 8

// Names of the compiled program, and of its maps.
const (
	ProgramName = "event"
	mapLast     = "last"
	mapRecords  = "records"
	mapLost     = "lost"
	mapEvents   = "events"
	mapConst    = ".rodata" // by this name the library knows that it is to be frozen
)

// Limits of what is compiled.
const (
	defaultString = 128
	minString     = 32
	maxString     = 4096  // as the kernel's own limit, PATH_MAX
	maxCompiled   = 32752 // bytes of a record: what a per-CPU array can have in a value, and an offset can reach
	minRingbuf    = 1 << 16
)

// CompileOptions say for what to compile, and how.
type CompileOptions struct {
	Arch   string  // "amd64" or "arm64", whose registers the program reads; empty for the one this runs on
	Format *Format // of the event that an eprobe is attached to
	// Symbols returns the address of a symbol of the kernel. If it is nil, /proc/kallsyms is read.
	Symbols func(name string) (uint64, error)
	// BTF has the types of the kernel: names of parameters and fields come from it. If it is nil, that of the running kernel
	// is loaded where it is needed.
	BTF *btf.Spec
	// Loads, from KernelLoads, has the program read memory of the kernel by loads. If it is nil, a helper does it.
	Loads  *Loads
	Record Record
	// MaxString is how many bytes of a text are recorded, with the zero at its end: from 32 to 4096, 0 for 128. Longer text is
	// cut.
	MaxString int
	// SkipUnsupported leaves out the arguments that cannot be compiled, and keeps the others.
	SkipUnsupported bool
}

// Compiled is an event's arguments as a BPF program.
type Compiled struct {
	// Spec has the program, named "event", and its maps. The ring buffer's MaxEntries, 64 KiB here, and the name of the
	// program may be changed before it is loaded.
	Spec    *ebpf.CollectionSpec
	Layout  Layout
	Skipped []error // an *UnsupportedError for each argument that was left out
	// Loads says whether memory of the kernel is read by loads. If not, a helper reads it.
	Loads bool

	event  Event
	record Record
}

// UnsupportedError says that the kernel can fetch an argument, but no compiled program can.
type UnsupportedError struct {
	Arg string // as in Arg.String
	Col int    // of the part that it is about; 0 if the argument was not parsed
	Why string
	Err error // what was in the way; may be nil
}

func (e *UnsupportedError) Error() string {
	s := e.Arg + ": cannot be compiled: " + e.Why
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	if e.Col > 0 {
		s = fmt.Sprintf("column %d: %s", e.Col, s)
	}
	return s
}

func (e *UnsupportedError) Unwrap() error { return e.Err }

// Is reports that the error is errors.ErrUnsupported.
func (e *UnsupportedError) Is(target error) bool { return target == errors.ErrUnsupported }

// Compile makes a program of the event's arguments, which does at each hit what the kernel does for the event that
// Definition defines: it evaluates all of them and stores the values in one record. The type of the program is that of the
// event's kind: a kprobe (also one for kprobe.multi, which is an fprobe), a tracepoint for an eprobe, a raw tracepoint for
// a tprobe. Group, Name and, but for BTF, Target are not looked at.
//
// The error joins all that is wrong: an *Error for what no event can have, and, unless they are to be left out, an
// *UnsupportedError for each argument that cannot be compiled.
func Compile(ev Event, opt CompileOptions) (*Compiled, error) {
	c := &compiler{event: ev, opt: opt, nodes: map[nodeKey]*node{}}
	if err := c.setUp(); err != nil {
		return nil, fmt.Errorf("compile event: %w", err)
	}
	c.lowerAll(c.resolve())
	if len(c.errs) > 0 {
		return nil, fmt.Errorf("compile event: %w", errors.Join(c.errs...))
	}
	c.share()
	out := &Compiled{Layout: c.layout(), Skipped: c.skipped, event: ev, record: c.opt.Record, Loads: opt.Loads != nil}
	p := newProgram(c, &out.Layout)
	out.Spec = &ebpf.CollectionSpec{
		Maps:      c.maps(out.Layout.Size),
		Programs:  map[string]*ebpf.ProgramSpec{ProgramName: c.programSpec(p)},
		ByteOrder: binary.LittleEndian, // both architectures
	}
	if n := p.insns.Size() / 8; n > maxProgram {
		return nil, fmt.Errorf("compile event: the program would have %d instructions, and a jump can skip %d", n, maxProgram)
	}
	return out, nil
}

// maxProgram is how far a jump can go, in instructions.
const maxProgram = 1<<15 - 1

// compiler turns arguments into fetches.
type compiler struct {
	event Event
	opt   CompileOptions
	arch  *arch
	types types
	nodes map[nodeKey]*node
	list  []*fetch
	size  int // of the record so far, without the bitmap

	cpuTable  int64 // the address of __per_cpu_offset
	typesOnly bool  // values are not needed: each is a constant

	arg     Arg // the one that is looked at
	errs    []error
	skipped []error
}

// setUp checks the options and the arguments.
func (c *compiler) setUp() error {
	o := &c.opt
	o.Arch = cmp.Or(o.Arch, runtime.GOARCH)
	if c.arch = arches[o.Arch]; c.arch == nil {
		return fmt.Errorf("architecture %q: expected amd64 or arm64", o.Arch)
	}
	o.MaxString = cmp.Or(o.MaxString, defaultString)
	if o.MaxString < minString || o.MaxString > maxString {
		return fmt.Errorf("room for strings of %d bytes: expected %d to %d", o.MaxString, minString, maxString)
	}
	if o.Record > RecordPerf {
		return fmt.Errorf("%v: expected none, ringbuf or perf", o.Record)
	}
	if o.Symbols == nil {
		o.Symbols = kallsymsAddress
	}
	if !c.event.Kind.valid() {
		return fmt.Errorf("there is no %v", c.event.Kind)
	}
	if c.event.Kind == Eprobe && o.Format == nil {
		return errors.New("the format of the event that the eprobe is on is missing")
	}
	c.types = types{spec: o.BTF, event: c.event}
	return c.checkArgs()
}

// checkArgs is Check for the architecture that is compiled for.
func (c *compiler) checkArgs() error {
	entry := c.event.Offset == 0 || c.event.Kind.User() || c.opt.Arch == "amd64" && c.event.Offset == 4 // after an endbr64
	check := &checker{kind: c.event.Kind, arch: c.opt.Arch, atEntry: entry, allAt: -1}
	if n := len(c.event.Args); n > MaxArgs {
		return fmt.Errorf("an event has %d arguments at most, and this one %d", MaxArgs, n)
	}
	check.names(c.event.Args)
	for i, a := range c.event.Args {
		check.arg, check.index = a, i
		check.check()
	}
	check.record(c.event.Args)
	if c.event.Kind == Eprobe {
		check.errs = append(check.errs, c.opt.Format.CheckFields(c.event.Args))
	}
	return errors.Join(check.errs...)
}

// fail says that the argument cannot be had at all.
func (c *compiler) fail(at Pos, text, format string, args ...any) {
	c.errs = append(c.errs, &Error{Col: int(at), Text: text, Arg: c.arg.String(), Msg: fmt.Sprintf(format, args...)})
}

// unsupported says that a program cannot fetch the argument.
func (c *compiler) unsupported(at Pos, err error, format string, args ...any) {
	e := &UnsupportedError{Arg: c.arg.String(), Col: int(at), Why: fmt.Sprintf(format, args...), Err: err}
	if c.opt.SkipUnsupported {
		c.skipped = append(c.skipped, e)
	} else {
		c.errs = append(c.errs, e)
	}
}

func (c *compiler) programSpec(p *program) *ebpf.ProgramSpec {
	spec := &ebpf.ProgramSpec{
		Name: ProgramName, Type: ebpf.Kprobe, Instructions: p.insns, License: "Dual MIT/GPL", ByteOrder: binary.LittleEndian,
	}
	switch c.event.Kind {
	case Fprobe, FprobeReturn:
		spec.AttachType = ebpf.AttachTraceKprobeMulti
	case Eprobe:
		spec.Type = ebpf.TracePoint
	case Tprobe:
		spec.Type = ebpf.RawTracepoint
	}
	return spec
}

// maps returns the maps of a program with records of the size.
func (c *compiler) maps(size int) map[string]*ebpf.MapSpec {
	maps := map[string]*ebpf.MapSpec{}
	add := func(m ebpf.MapSpec) { maps[m.Name] = &m }
	if c.opt.Record == RecordRingbuf {
		add(ebpf.MapSpec{Name: mapRecords, Type: ebpf.RingBuf, MaxEntries: minRingbuf})
	} else {
		value := LastOffset + size
		if c.onStack(size) {
			value = LastOffset
		}
		add(ebpf.MapSpec{Name: mapLast, Type: ebpf.PerCPUArray, KeySize: 4, ValueSize: uint32(value), MaxEntries: 1})
	}
	if c.opt.Record != RecordNone {
		add(ebpf.MapSpec{Name: mapLost, Type: ebpf.Array, KeySize: 4, ValueSize: 8, MaxEntries: 1, Flags: flagMmapable})
	}
	if c.opt.Record == RecordPerf {
		add(ebpf.MapSpec{Name: mapEvents, Type: ebpf.PerfEventArray})
	}
	for _, f := range c.list {
		if f.how == symbolText {
			add(ebpf.MapSpec{
				Name: mapConst, Type: ebpf.Array, KeySize: 4, ValueSize: uint32(len(symbolFormat)), MaxEntries: 1,
				Flags: flagReadOnly, Contents: []ebpf.MapKV{{Key: uint32(0), Value: []byte(symbolFormat)}},
			})
		}
	}
	return maps
}

// Flags of maps (<linux/bpf.h>): BPF_F_RDONLY_PROG, BPF_F_MMAPABLE.
const (
	flagReadOnly = 1 << 7
	flagMmapable = 1 << 10
)
