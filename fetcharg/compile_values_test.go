package fetcharg

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"bpfbench/internal/testutils"
	"bpfbench/internal/tracefs"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/btf"
)

// TestKernelCompileValues: at the same hit, a compiled program records what the kernel's own event records, faults included.
// Where they differ, that is in a table, with the reason.
func TestKernelCompileValues(t *testing.T) {
	testutils.NeedsBPF(t)
	tr := newTracing(t)
	v := &valuesRun{T: t, tr: tr, symbols: symbols(t), btf: kernelBTF(t), loads: kernelLoads(t)}
	for _, kind := range Kinds {
		t.Run(kind.String(), func(t *testing.T) {
			v := *v
			v.T, v.tr = t, tr.on(t)
			v.tr.needs(kind)
			for _, c := range valueCases {
				if c.kind == kind {
					v.one(c)
				}
			}
			t.Logf("%d values, %d of them equal, %d differ as in the table, %d not compiled as in the table", v.count, v.equal, v.differ, v.left)
		})
	}
}

type valuesRun struct {
	*testing.T
	tr      *tracing
	symbols func(string) (uint64, error)
	btf     *btf.Spec
	loads   *Loads

	count, equal, differ, left int
}

// one runs the arguments of a case, as many in an event as it can have.
func (v *valuesRun) one(c valueCase) {
	version := v.tr.version
	if version.Before(c.since) {
		return
	}
	hit, close := c.trigger(v.T)
	if hit == nil {
		return
	}
	defer close()
	e := Event{Kind: c.kind, Group: v.tr.group, Name: "x", Target: c.target}
	if c.kind.User() {
		leaf := leafEvent(v, c.kind)
		e.Target, e.Offset = leaf.Target, leaf.Offset
	}
	flush := func() {
		if len(e.Args) > 0 {
			e.Args = append(e.Args, mustParse(v.T, `pad=\0`)...) // room behind a bit field: see Hazard
			v.compare(e, hit)
			e.Args = nil
		}
	}
	for i, body := range strings.Fields(c.args) {
		text := body
		if !c.unnamed {
			text = fmt.Sprintf("v%d=%s", i, body)
		}
		a, ok := v.parse(c, text)
		if !ok {
			continue
		}
		if list := append(e.Args[:len(e.Args):len(e.Args)], a...); len(list) > 24 || Check(list, c.kind) != nil || len(Join(list)) > 2000 {
			flush()
		}
		e.Args = append(e.Args, a...)
	}
	flush()
}

// parse reads one argument, which may be more. ok is false if the kernel does not have it.
func (v *valuesRun) parse(c valueCase, text string) ([]Arg, bool) {
	args, err := Parse(text)
	if err == nil {
		err = Check(args, c.kind)
	}
	if err != nil {
		v.Fatalf("%v: %v", c.kind, err)
	}
	for _, n := range Needs(args, c.kind) {
		if !n.In(v.tr.version) {
			return nil, false
		}
	}
	return args, true
}

// compare runs both engines on the same hit.
func (v *valuesRun) compare(e Event, hit func()) {
	opt := CompileOptions{Symbols: v.symbols, BTF: v.btf, Loads: v.loads, SkipUnsupported: true, MaxString: 256}
	if e.Kind == Eprobe {
		system, event, _ := strings.Cut(e.Target, ".")
		opt.Format = v.tr.format(system + "/" + event)
	}
	c, err := Compile(e, opt)
	if err != nil {
		v.Errorf("%v: %v", e.Kind, err)
		return
	}
	coll := load(v, c)
	kernel := v.kernelEvent(e)
	defer kernel.close()
	detach := mustAttach(v, e, coll)
	defer detach()
	for range 10 { // until there is one hit, and none of someone else's
		var hits uint64
		var record []byte
		records := kernel.record(func() {
			clearLast(v, coll)
			hit()
			hits, record = lastRecord(v, coll)
		})
		if hits == 1 && len(records) == 1 {
			v.same(e, c, records[0], kernel.format, record)
			return
		}
		v.Logf("%v %s: %d hits, %d records of the kernel's", e.Kind, e.Target, hits, len(records))
	}
	v.Errorf("%v %s: it is never hit just once", e.Kind, e.Target)
}

// clearLast sets the counts of hits to zero.
func clearLast(t testing.TB, coll *ebpf.Collection) {
	t.Helper()
	m := coll.Maps[mapLast]
	values := make([][]byte, ebpf.MustPossibleCPU())
	for i := range values {
		values[i] = make([]byte, m.ValueSize())
	}
	if err := m.Put(uint32(0), values); err != nil {
		t.Fatal(err)
	}
}

// same compares the values of both records.
func (v *valuesRun) same(e Event, c *Compiled, record []byte, format *Format, compiled []byte) {
	ours, err := c.Decode(compiled)
	if err != nil {
		v.Fatal(err)
	}
	for _, field := range format.Fields {
		if field.common() {
			continue
		}
		value := Value{Field: field}
		if value.Data, err = field.decode(record); err != nil { // it is not always there
			value.Data = err.Error()
		}
		v.count++
		if len(ours) == 0 || ours[0].Field.Name != value.Field.Name {
			v.missing(e, c, value.Field.Name)
			continue
		}
		v.sameValue(e, c.Layout.Fields[len(c.Layout.Fields)-len(ours)].Arg, value, ours[0])
		ours = ours[1:]
	}
	if len(ours) > 0 {
		v.Errorf("%v: the kernel has no %v", e.Kind, ours)
	}
}

// missing checks that a value that was not compiled is one that cannot be.
func (v *valuesRun) missing(e Event, c *Compiled, name string) {
	for _, err := range c.Skipped {
		var u *UnsupportedError
		if errors.As(err, &u) && (strings.HasPrefix(u.Arg, name+"=") || u.Arg == name) {
			body := strings.TrimPrefix(u.Arg, name+"=")
			if v.known(e, body) == nil {
				v.Errorf("%v: %v", e.Kind, err)
			}
			v.left++
			return
		}
	}
	v.Errorf("%v %s: %s was not compiled, and it is not said why: %v", e.Kind, Join(e.Args), name, c.Skipped)
}

func (v *valuesRun) sameValue(e Event, a Arg, theirs, ours Value) {
	same := reflect.DeepEqual(theirs.Data, ours.Data) && theirs.String() == ours.String()
	d := v.known(e, a.body())
	known := d != nil
	switch {
	case same && known && !d.byChance:
		v.Errorf("%v %s: the table has a difference, but both are %v", e.Kind, a, ours)
	case !same && !known:
		v.Errorf("%v %s: the kernel has %v (%#v), compiled it is %v (%#v)", e.Kind, a, theirs, theirs.Data, ours, ours.Data)
	case same:
		v.equal++
	default:
		v.differ++
	}
}

// known returns what the table has of the argument, for the event and the kernel; nil if nothing.
func (v *valuesRun) known(e Event, body string) *valueDifference {
	for i, d := range valueDifferences {
		if d.holds(v.tr.version, e.Kind) && (d.target == "" || d.target == e.Target) && slices.Contains(strings.Fields(d.args), body) {
			return &valueDifferences[i]
		}
	}
	return nil
}

// kernelEvent is an event of the kernel, in a ring buffer of its own.
type kernelEvent struct {
	v        *valuesRun
	e        Event
	format   *Format
	instance *tracefs.Instance
	dir      string
	enable   *os.File // kept open, as to open it may be a hit
}

func (v *valuesRun) kernelEvent(e Event) *kernelEvent {
	if h := e.Hazard(HazardOptions{Version: v.tr.version, BTF: v.btf, Symbols: v.symbols}); h != nil && h.Arg.Type.Base != SymStr { // that is harmless once
		v.Fatal(h)
	}
	line := mustDefine(v.T, e)
	if err := tracefs.AddEvent(line); err != nil {
		v.Fatalf("%s: %v", line, err)
	}
	name := "values_" + fmt.Sprint(os.Getpid())
	i, err := tracefs.NewInstance(name, 1<<20)
	if err != nil {
		v.Fatal(err)
	}
	k := &kernelEvent{v: v, e: e, format: v.tr.format(e.Group + "/" + e.Name), instance: i}
	k.dir = filepath.Join(tracingDir, "instances", tracefs.Prefix+name)
	if k.enable, err = os.OpenFile(filepath.Join(k.dir, "events", e.Group, e.Name, "enable"), os.O_WRONLY, 0); err != nil {
		v.Fatal(err)
	}
	return k
}

func (k *kernelEvent) close() {
	if err := errors.Join(k.enable.Close(), k.instance.Remove(), tracefs.RemoveEvent(k.e.Group, k.e.Name)); err != nil {
		k.v.Error(err)
	}
}

// record returns the records of what hit makes happen.
func (k *kernelEvent) record(hit func()) (records [][]byte) {
	if err := k.instance.Clear(); err != nil {
		k.v.Fatal(err)
	}
	k.set("1")
	hit()
	k.set("0")
	cpus, err := filepath.Glob(filepath.Join(k.dir, "per_cpu", "cpu*", "trace_pipe_raw"))
	if err != nil {
		k.v.Fatal(err)
	}
	for _, cpu := range cpus {
		for _, record := range rawRecords(k.v.T, cpu) {
			if len(record) >= 2 && int(binary.NativeEndian.Uint16(record)) == k.format.ID {
				records = append(records, record)
			}
		}
	}
	return records
}

// set enables or disables the event.
func (k *kernelEvent) set(value string) {
	if _, err := k.enable.WriteAt([]byte(value), 0); err != nil {
		k.v.Fatal(err)
	}
}
