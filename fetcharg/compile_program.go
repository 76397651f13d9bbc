package fetcharg

import (
	"math"

	"github.com/cilium/ebpf/asm"
)

// Registers that keep their values over calls.
const (
	ctxReg    = asm.R6 // the program's context
	recordReg = asm.R7 // what the record is in
)

// Places on the stack, in bytes below the frame pointer: two for numbers that are needed at once, then those that are kept.
const (
	tempA     = 8
	tempB     = 16
	maxKept   = 16                    // numbers; what is more is evaluated again
	allKept   = tempB + 8*(maxKept+1) // one more for cpuOffset
	stackSize = 512
)

// wakeNone is BPF_RB_NO_WAKEUP, currentCPU BPF_F_CURRENT_CPU (<linux/bpf.h>).
const (
	wakeNone   = 1
	currentCPU = math.MaxUint32
)

// program is the code of an event.
type program struct {
	code
	*compiler
	layout  *Layout
	begin   int   // of the record, from recordReg
	kept    int16 // places on the stack that are taken
	current int   // index of the fetch that code is made for
	done    string
	groups  map[*node]*group
	faults  map[int]string // labels of the code that marks a fetch as faulted
}

// onStack reports whether a record of the size is put together on the stack. Programs of uprobes can be interrupted by others
// of the same CPU, which would have the same per-CPU array. (Where there is no room, that is taken.)
func (c *compiler) onStack(size int) bool {
	return c.opt.Record == RecordPerf && c.event.Kind.User() && size <= stackSize-allKept
}

// newProgram makes the code.
func newProgram(c *compiler, l *Layout) *program {
	p := &program{code: code{same: map[string]string{}}, compiler: c, layout: l, faults: map[int]string{}}
	if c.needsContext() {
		p.comment("the context")
		p.emit(asm.Mov.Reg(ctxReg, asm.R1))
	}
	p.findGroups()
	if c.opt.Record == RecordRingbuf {
		p.reserve()
	} else {
		p.lookUp()
	}
	for i := range c.list {
		p.current = i
		p.fetch()
	}
	switch c.opt.Record {
	case RecordRingbuf:
		p.comment("submit the record")
		p.emit(asm.Mov.Reg(asm.R1, recordReg), asm.Mov.Imm(asm.R2, wakeNone), asm.FnRingbufSubmit.Call())
	case RecordPerf:
		p.output()
	}
	p.mark("out")
	p.emit(asm.Mov.Imm(asm.R0, 0), asm.Return())
	p.finish()
	return p
}

// needsContext reports whether the context is needed after the first call.
func (c *compiler) needsContext() bool {
	for _, n := range c.nodes {
		if n.uses > 0 && (n.op >= fromContext && n.op <= contextText || n.op == stackWord) {
			return true
		}
	}
	return c.opt.Record == RecordPerf
}

// reserve gets room in the ring buffer.
func (p *program) reserve() {
	p.comment("reserve %d bytes", p.layout.Size)
	p.emit(
		asm.LoadMapPtr(asm.R1, 0).WithReference(mapRecords),
		asm.Mov.Imm(asm.R2, int32(p.layout.Size)),
		asm.Mov.Imm(asm.R3, 0),
		asm.FnRingbufReserve.Call(),
		asm.JEq.Imm(asm.R0, 0, "lost"),
		asm.Mov.Reg(recordReg, asm.R0),
	)
	p.clearFaults()
	p.later(p.countLost)
}

// clearFaults sets the bitmap to zero.
func (p *program) clearFaults() {
	for i := range p.layout.Faults {
		p.emit(storeWord(recordReg, int16(p.begin+8*i), 0))
	}
}

// countLost counts a record that could not be delivered.
func (p *program) countLost() {
	p.comment("count a lost record")
	p.mark("lost")
	p.emit(
		asm.LoadMapValue(asm.R1, 0, 0).WithReference(mapLost),
		asm.Mov.Imm(asm.R2, 1),
		asm.StoreXAdd(asm.R1, asm.R2, asm.DWord),
		asm.Ja.Label("out"),
	)
}

// lookUp finds this CPU's record and counts the hit.
func (p *program) lookUp() {
	p.comment("this CPU's record")
	p.emit(asm.StoreImm(asm.RFP, -tempA, 0, asm.Word))
	p.move(asm.R2, asm.RFP, -tempA)
	p.emit(
		asm.LoadMapPtr(asm.R1, 0).WithReference(mapLast),
		asm.FnMapLookupElem.Call(),
		asm.JEq.Imm(asm.R0, 0, "out"),
	)
	p.comment("count the hit")
	if p.event.Kind.User() { // others of this CPU may come between
		p.emit(asm.Mov.Imm(asm.R1, 1), asm.StoreXAdd(asm.R0, asm.R1, asm.DWord))
	} else {
		p.emit(
			asm.LoadMem(asm.R1, asm.R0, 0, asm.DWord),
			asm.Add.Imm(asm.R1, 1),
			asm.StoreMem(asm.R0, 0, asm.R1, asm.DWord),
		)
	}
	if !p.onStack(p.layout.Size) {
		p.emit(asm.Mov.Reg(recordReg, asm.R0))
		p.begin = LastOffset
		p.clearFaults()
		return
	}
	// All of it is cleared: text does not fill its room, and what is read with a fault in it may not be written.
	size := (p.layout.Size + 7) &^ 7
	p.comment("the record, on the stack")
	p.move(recordReg, asm.RFP, -(allKept + size))
	for i := 0; i < size; i += 8 {
		p.emit(storeWord(recordReg, int16(i), 0))
	}
}

// output writes the record to the perf buffer.
func (p *program) output() {
	p.comment("output %d bytes", p.layout.Size)
	p.emit(
		asm.Mov.Reg(asm.R1, ctxReg),
		asm.LoadMapPtr(asm.R2, 0).WithReference(mapEvents),
		asm.LoadImm(asm.R3, currentCPU, asm.DWord),
	)
	p.move(asm.R4, recordReg, p.begin)
	p.emit(
		asm.Mov.Imm(asm.R5, int32(p.layout.Size)),
		asm.FnPerfEventOutput.Call(),
		asm.JNE.Imm(asm.R0, 0, "lost"),
	)
	p.later(p.countLost)
}
