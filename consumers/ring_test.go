package consumers

import (
	"encoding/binary"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"

	"bpfbench/internal/kernel"
	"bpfbench/internal/testutils"
	"bpfbench/producers"
)

// writer is a program that writes its argument into a ring buffer of 4 KiB.
func writer(t *testing.T) (*ebpf.Map, func(uint64) error) {
	t.Helper()
	testutils.NeedsBPF(t)
	testutils.Needs(t, kernel.Helper(ebpf.RawTracepoint, asm.FnRingbufOutput))
	m, err := ebpf.NewMap(&ebpf.MapSpec{Type: ebpf.RingBuf, MaxEntries: 4096})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close() })
	prog, err := ebpf.NewProgram(&ebpf.ProgramSpec{Type: ebpf.RawTracepoint, License: "Dual MIT/GPL", Instructions: asm.Instructions{
		asm.LoadMem(asm.R1, asm.R1, 0, asm.DWord),
		asm.StoreMem(asm.RFP, -8, asm.R1, asm.DWord),
		asm.LoadMapPtr(asm.R1, m.FD()),
		asm.Mov.Reg(asm.R2, asm.RFP),
		asm.Add.Imm(asm.R2, -8),
		asm.Mov.Imm(asm.R3, 8),
		asm.Mov.Imm(asm.R4, 0),
		asm.FnRingbufOutput.Call(),
		asm.Mov.Imm(asm.R0, 0),
		asm.Return(),
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { prog.Close() })
	return m, func(v uint64) error { return producers.NewTestRun(prog.FD(), v).Run() }
}

// What is produced is counted, also when the ring is full and when it wraps; skipping makes room.
func TestRing(t *testing.T) {
	testutils.NoLeaks(t)
	m, write := writer(t)
	r, err := OpenRing(m)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	}()
	if r.Last(8) != nil || r.Produced() != 0 || RecordSize(8) != 16 || RecordSize(9) != 24 {
		t.Errorf("an empty ring has %d bytes, the last record %v", r.Produced(), r.Last(8))
	}
	fits := r.Size() / RecordSize(8)
	for i := range 10 * fits {
		if err := write(i); err != nil {
			t.Fatal(err)
		}
		if i%100 == 0 {
			r.Skip()
		}
		if got := binary.NativeEndian.Uint64(r.Last(8)); got != i {
			t.Fatalf("the last record has %d, want %d", got, i)
		}
	}
	if want := 10 * fits * RecordSize(8); r.Produced() != want {
		t.Errorf("%d bytes were produced, want %d", r.Produced(), want)
	}
	r.Skip()
	for range 2 * fits {
		if err := write(0); err != nil {
			t.Fatal(err)
		}
	}
	if got := r.Produced() - 10*fits*RecordSize(8); got > r.Size() {
		t.Errorf("%d bytes were produced into a ring of %d that nobody reads", got, r.Size())
	}
}

func TestNoRing(t *testing.T) {
	testutils.NeedsBPF(t)
	m, err := ebpf.NewMap(&ebpf.MapSpec{Type: ebpf.Array, KeySize: 4, ValueSize: 4, MaxEntries: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	if _, err := OpenRing(m); err == nil {
		t.Error("an array is mapped as a ring")
	}
}
