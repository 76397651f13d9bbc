package fetcharg

import (
	"errors"
	"os"
	"runtime"
	"testing"
	"time"

	"bpfbench/internal/testutils"
	"bpfbench/progs"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/perf"
	"github.com/cilium/ebpf/ringbuf"
	"github.com/google/go-cmp/cmp"
)

// leafRegs are the registers with the arguments of package producers' function.
var leafRegs = map[string][3]string{"amd64": {"%di", "%si", "%dx"}, "arm64": {"%x0", "%x1", "%x2"}}

// faultArgs returns arguments of which some cannot be read, with a base that others go on from, and what is to be recorded.
func faultArgs(a, b, c string) (list string, want []any) {
	return `v0=` + a + ` v1=+0(+0(` + b + `)):u32 v2=+0(` + c + `):string v3=+0(\8) v4=+0(+0(\8)):u8 v5=+8(+0(\8)):string v6=` + a + `:u8 v7=+0(+0(\8)):string[2] v8=\5:s16 ` +
			`v9=+0(+0(+0(\8))):b3@0/8 v10=+1(` + c + `):char v11=+0(\0):u16[3] v12=+0(+0(` + b + `)):u8 v13=+0(\0):string v14=\"end"`,
		[]any{uint64(probedA), uint64(probedB), "bench", Fault{}, Fault{}, Fault{}, uint64(probedA), []any{Fault{}, Fault{}}, int64(5),
			Fault{}, uint64('e'), Fault{}, uint64(probedB), Fault{}, "end"}
}

// TestKernelCompileModes: what is recorded is the same wherever records go, also by programs that are not compiled further.
func TestKernelCompileModes(t *testing.T) {
	testutils.NeedsBPF(t)
	for _, kind := range []Kind{Kprobe, Fprobe, Uprobe} {
		for _, record := range Records {
			for _, jit := range []bool{true, false} {
				name := kind.String() + "/" + record.String()
				if !jit {
					name += "/interpreted"
				}
				t.Run(name, func(t *testing.T) { testMode(t, kind, record, jit) })
			}
		}
	}
}

func testMode(t *testing.T, kind Kind, record Record, jit bool) {
	e, want, call := modeEvent(t, kind)
	if !jit {
		switchJIT(t, "0")
	}
	loads, err := KernelLoads()
	if !jit && err == nil {
		t.Error("programs that are not compiled cannot call functions of the kernel, and would read by loads")
	}
	c, err := Compile(e, CompileOptions{Record: record, Loads: loads})
	if err != nil {
		t.Fatal(err)
	}
	coll := load(t, c)
	if !jit {
		switchJIT(t, "1")
	}
	next := nextRecord(t, coll, record)
	l, err := attach(e, coll.Programs[ProgramName])
	if err != nil {
		if (kind == Kprobe || kind == Fprobe) && os.Getenv(guestVar) == "" {
			t.Skip(err)
		}
		if kind == Fprobe && errors.Is(err, ebpf.ErrNotSupported) {
			t.Skip(err) // Debian's 6.1
		}
		t.Fatal(err)
	}
	const calls = 3
	call(calls)
	for range calls {
		values, err := c.Decode(next())
		if err != nil {
			t.Fatal(err)
		}
		var got []any
		for _, v := range values {
			got = append(got, v.Data)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
	}
	if record != RecordRingbuf {
		if hits, _ := lastRecord(t, coll); hits != calls {
			t.Errorf("%d hits", hits)
		}
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
}

// modeEvent returns an event, what it is to record, and what makes it happen.
func modeEvent(t *testing.T, kind Kind) (Event, []any, func(calls uint32)) {
	t.Helper()
	e, regs := Event{Kind: kind, Target: stub}, [3]string{"$arg2", "$arg1", "$arg3"}
	var call func(uint32)
	if kind == Uprobe {
		e, regs = leafEvent(t, kind), leafRegs[runtime.GOARCH]
		leaf := newLeaf()
		call = func(n uint32) { leaf.Call(uint64(n)) }
	} else {
		d := newDriver(t, progs.FetchargProgCallStrncmp)
		call = func(n uint32) { d.call(t, n, probedA, probedB) }
	}
	list, want := faultArgs(regs[0], regs[1], regs[2])
	if kind == Uprobe {
		want[2] = "benchmark"
	}
	var err error
	if e.Args, err = Parse(list); err != nil {
		t.Fatal(err)
	}
	return e, want, call
}

// nextRecord returns what reads records.
func nextRecord(t *testing.T, coll *ebpf.Collection, record Record) func() []byte {
	t.Helper()
	switch record {
	case RecordRingbuf:
		r, err := ringbuf.NewReader(coll.Maps[mapRecords])
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = r.Close() })
		r.SetDeadline(time.Now()) // nothing wakes it
		return func() []byte {
			record, err := r.Read()
			if err != nil {
				t.Fatal(err)
			}
			return record.RawSample
		}
	case RecordPerf:
		r, err := perf.NewReader(coll.Maps[mapEvents], 1<<16)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = r.Close() })
		r.SetDeadline(time.Now().Add(time.Minute))
		return func() []byte {
			record, err := r.Read()
			if err != nil {
				t.Fatal(err)
			}
			return record.RawSample
		}
	}
	return func() []byte {
		_, record := lastRecord(t, coll)
		return record
	}
}

// switchJIT sets the sysctl, in guests only.
func switchJIT(t *testing.T, value string) {
	t.Helper()
	if os.Getenv(guestVar) == "" {
		t.Skip("the JIT is switched in guests only")
	}
	if err := os.WriteFile("/proc/sys/net/core/bpf_jit_enable", []byte(value), 0); err != nil {
		t.Fatal(err)
	}
}

// TestKernelCompileLost: records for which there is no room are counted, and no others.
func TestKernelCompileLost(t *testing.T) {
	testutils.NeedsBPF(t)
	for _, record := range []Record{RecordRingbuf, RecordPerf} {
		t.Run(record.String(), func(t *testing.T) {
			e, _, call := modeEvent(t, Uprobe)
			c, err := Compile(e, CompileOptions{Record: record})
			if err != nil {
				t.Fatal(err)
			}
			coll := load(t, c)
			mustAttach(t, e, coll)
			const calls = 1000
			call(calls)
			var lost uint64
			if err := coll.Maps[mapLost].Lookup(uint32(0), &lost); err != nil {
				t.Fatal(err)
			}
			if record == RecordPerf { // no reader has made a buffer
				if hits, _ := lastRecord(t, coll); lost != calls || hits != calls {
					t.Errorf("%d hits, %d lost", hits, lost)
				}
				return
			}
			r, err := ringbuf.NewReader(coll.Maps[mapRecords])
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = r.Close() }()
			read := uint64(0)
			for r.AvailableBytes() > 0 {
				if _, err := r.Read(); err != nil {
					t.Fatal(err)
				}
				read++
			}
			if lost == 0 || lost+read != calls {
				t.Errorf("%d read, %d lost", read, lost)
			}
		})
	}
}
