package fetcharg

import (
	"fmt"
	"slices"

	"github.com/cilium/ebpf/asm"
)

// fetch emits the code for the current fetch.
func (p *program) fetch() {
	f := p.list[p.current]
	at := &p.layout.Fields[p.current]
	p.prefix = f.name
	p.done = p.newLabel("done")
	p.comment("%s=%s: %s", f.name, f.arg.body(), describe(f, at))
	p.hoist(f.node)
	switch f.how {
	case storeValue:
		p.storeValue(f, at.Offset)
	case readMemory:
		p.readMemory(f, at)
	case readText:
		p.prepare(f.node)
		p.readText(f.node, f.off, f.user, at.Offset, p.fault(nil))
	case readTexts:
		p.readTexts(f, at)
	case symbolText:
		p.symbolText(f, at)
	case literal:
		p.literal(f.text, at)
	case taskName:
		p.recordAddress(asm.R1, at.Offset)
		p.emit(asm.Mov.Imm(asm.R2, taskNameSize), asm.FnGetCurrentComm.Call())
	}
	p.mark(p.done)
}

// describe is for the comment on a fetch.
func describe(f *fetch, at *LayoutField) string {
	what := map[how]string{storeValue: "value", readMemory: "memory", readText: "text", readTexts: "texts", taskName: "name of the task",
		literal: "text", symbolText: "symbol"}[f.how]
	if f.width > 0 {
		what = fmt.Sprintf("%s, %d bits at %d", what, f.width, f.shift)
	}
	return fmt.Sprintf("%s, %d bytes at %d", what, at.Size, at.Offset)
}

// recordAddress sets a register to the address of a place in the record.
func (p *program) recordAddress(dst asm.Register, offset int) {
	p.move(dst, recordReg, p.begin+offset)
}

// store stores a register in the record.
func (p *program) store(src asm.Register, offset, size int) {
	p.emit(asm.StoreMem(recordReg, int16(p.begin+offset), src, sizeOf(size)))
}

// storeImm stores a number in the record.
func (p *program) storeImm(n int64, offset, size int) {
	if !fits(n, size) {
		p.set(asm.R1, n)
		p.store(asm.R1, offset, size)
		return
	}
	unused := 64 - 8*size
	n = n << unused >> unused
	if at := int16(p.begin + offset); size == 8 {
		p.emit(storeWord(recordReg, at, int32(n)))
	} else {
		p.emit(asm.StoreImm(recordReg, at, n, sizeOf(size)))
	}
}

// storeValue stores a number.
func (p *program) storeValue(f *fetch, offset int) {
	size, n := f.typ.ElemSize(), f.node
	if n.op == constant {
		value := uint64(n.off)
		if f.width > 0 {
			value = value >> f.shift & (1<<f.width - 1)
		}
		p.storeImm(int64(value), offset, size)
		return
	}
	if n.op == stackWord && !p.isKept(n) && f.width == 0 { // both architectures have the lowest byte first
		p.readStack(n, p.recordSpot(offset), size, func() { p.storeImm(0, offset, size) })
		return
	}
	p.prepare(n)
	p.load(n, asm.R1, size)
	if f.width > 0 {
		p.cut(asm.R1, f.width, f.shift)
	}
	p.store(asm.R1, offset, size)
}

// readMemory stores what is in memory, and then takes the bit fields out of it.
func (p *program) readMemory(f *fetch, at *LayoutField) {
	size := f.typ.ElemSize()
	p.prepare(f.node)
	if f.width+f.shift > 8*size { // a field of a struct that its type does not hold
		place := p.place(f.node)
		p.read(f.node, f.off, f.user, stackSpot(place), 8, p.fault(nil))
		p.emit(asm.LoadMem(asm.R1, asm.RFP, -place, asm.DWord))
		p.cut(asm.R1, f.width, f.shift)
		p.store(asm.R1, at.Offset, size)
		return
	}
	p.read(f.node, f.off, f.user, p.recordSpot(at.Offset), size*f.elements(), p.fault(nil))
	if f.width == 0 || f.width == 8*size {
		return
	}
	for i := range f.elements() {
		offset := at.Offset + i*size
		p.emit(asm.LoadMem(asm.R1, recordReg, int16(p.begin+offset), sizeOf(size)))
		p.cut(asm.R1, f.width, f.shift)
		p.store(asm.R1, offset, size)
	}
}

// literal stores text that is known.
func (p *program) literal(text string, at *LayoutField) {
	room := make([]byte, at.Size)
	copy(room, text)
	for i := 0; i < len(room); i += 4 {
		n := uint32(room[i]) | uint32(room[i+1])<<8 | uint32(room[i+2])<<16 | uint32(room[i+3])<<24
		p.storeImm(int64(n), at.Offset+i, 4)
	}
}

// readText stores text with its length. Where it cannot be read, it sets that to zero and goes to the label.
func (p *program) readText(n *node, off int64, user bool, offset int, fault string) {
	read, reread := asm.FnProbeReadKernelStr, asm.FnProbeReadUserStr
	room := p.roomOfText()
	call := func(helper asm.BuiltinFunc) {
		p.address(asm.R3, n, off)
		p.recordAddress(asm.R1, offset+lengthSize)
		p.emit(asm.Mov.Imm(asm.R2, int32(room)), helper.Call())
	}
	if user {
		read = reread
	}
	call(read)
	failed, stored := p.newLabel("failed"), p.newLabel("stored")
	p.emit(asm.JSLT.Imm(asm.R0, 0, failed))
	p.mark(stored)
	p.store(asm.R0, offset, lengthSize)
	p.later(func() {
		p.mark(failed)
		if !user {
			p.comment("it may be the process's memory")
			call(reread)
			p.emit(asm.JSGE.Imm(asm.R0, 0, stored))
		}
		p.storeImm(0, offset, lengthSize)
		p.emit(asm.Ja.Label(fault))
	})
}

func (p *program) roomOfText() int { return textRoom(p.opt.MaxString) }

// readTexts stores the texts that pointers in memory point to. One that cannot be read has the length zero.
func (p *program) readTexts(f *fetch, at *LayoutField) {
	p.prepare(f.node)
	size := lengthSize + p.roomOfText()
	place := p.place(f.node)
	for i := range f.elements() {
		offset, next, failed := at.Offset+i*size, p.newLabel("next"), p.newLabel("failed")
		p.later(func() {
			p.mark(failed)
			p.storeImm(0, offset, lengthSize)
			p.emit(asm.Ja.Label(next))
		})
		p.read(f.node, f.off+int64(8*i), f.user, stackSpot(place), 8, failed)
		pointer := &node{nodeKey: nodeKey{op: dereferred}, temp: place}
		p.readText(pointer, 0, f.utext, offset, next)
		p.mark(next)
	}
}

// symbolFormat is how the kernel prints an address with the symbol before it.
const symbolFormat = "%pS\x00"

// symbolText stores the text of an address.
func (p *program) symbolText(f *fetch, at *LayoutField) {
	p.prepare(f.node)
	p.load(f.node, asm.R1, 8)
	p.emit(asm.StoreMem(asm.RFP, -tempA, asm.R1, asm.DWord))
	room := p.roomOfText()
	p.recordAddress(asm.R1, at.Offset+lengthSize)
	p.emit(
		asm.Mov.Imm(asm.R2, int32(room)),
		asm.LoadMapValue(asm.R3, 0, 0).WithReference(mapConst),
	)
	p.move(asm.R4, asm.RFP, -tempA)
	p.emit(asm.Mov.Imm(asm.R5, 8), asm.FnSnprintf.Call())
	failed, stored := p.newLabel("failed"), p.newLabel("stored")
	p.emit(asm.JSLE.Imm(asm.R0, 0, failed), asm.JLE.Imm(asm.R0, int32(room), stored), asm.Mov.Imm(asm.R0, int32(room)))
	p.mark(stored)
	p.store(asm.R0, at.Offset, lengthSize)
	fault := p.fault(nil)
	p.later(func() {
		p.mark(failed)
		p.storeImm(0, at.Offset, lengthSize)
		p.emit(asm.Ja.Label(fault))
	})
}

// fault returns the label of code that marks the current fetch as faulted, and goes on with the next. Where numbers that are
// kept are missed by that, they are set to zero, and the fetches that need them are marked, too.
func (p *program) fault(missed []*node) string {
	if label := p.faults[p.current]; label != "" && len(missed) == 0 {
		return label
	}
	label, done := p.newLabel("fault"), p.done
	affected := []int{p.current}
	for _, n := range missed {
		affected = append(affected, n.args...)
	}
	if len(missed) == 0 {
		p.faults[p.current] = label
	}
	name := p.list[p.current].name
	p.later(func() {
		p.comment("%s is faulted", name)
		p.mark(label)
		for _, n := range missed {
			p.emit(storeWord(asm.RFP, -n.slot, 0))
		}
		p.setFaults(affected)
		p.emit(asm.Ja.Label(done))
	})
	return label
}

// setFaults sets the bits of fetches.
func (p *program) setFaults(list []int) {
	for word := range p.layout.Faults {
		var mask uint64
		for _, i := range list {
			if i/64 == word {
				mask |= 1 << (i % 64)
			}
		}
		if mask == 0 {
			continue
		}
		at := int16(p.begin + 8*word)
		p.emit(asm.LoadMem(asm.R1, recordReg, at, asm.DWord))
		if mask <= 1<<31-1 {
			p.emit(asm.Or.Imm(asm.R1, int32(mask)))
		} else {
			p.emit(asm.LoadImm(asm.R2, int64(mask), asm.DWord), asm.Or.Reg(asm.R1, asm.R2))
		}
		p.emit(asm.StoreMem(recordReg, at, asm.R1, asm.DWord))
	}
}

// missed returns the numbers to keep that are not there yet where n cannot be read: of the current fetch's, n and those that
// are made of it.
func (p *program) missed(n *node) []*node {
	all := p.list[p.current].node.chain()
	all = all[slices.Index(all, n):]
	var missed []*node
	for _, n := range all {
		if p.isKept(n) && !n.ready {
			missed = append(missed, n)
		}
	}
	return missed
}
