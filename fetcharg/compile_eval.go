package fetcharg

import "github.com/cilium/ebpf/asm"

// isKept reports whether the number is kept on the stack for other fetches, if it finds a place there.
func (p *program) isKept(n *node) bool {
	switch {
	case n.slot > 0:
	case n.op == cpuOffset: // its own place is always there
		n.slot = tempB + 8*(maxKept+1)
	case n.remembered() && n.uses > 1 && p.kept < maxKept:
		p.kept++
		n.slot = tempB + 8*p.kept
	}
	return n.slot > 0
}

// hoist gets first what is not in the chain, so that a fault in that does not miss it.
func (p *program) hoist(n *node) {
	for _, n := range n.chain() {
		if cpu := p.node(nodeKey{op: cpuOffset}); n.op == perCPU && p.isKept(cpu) {
			p.prepare(cpu)
		}
	}
}

// prepare makes the number ready to be loaded without a call that could fail, or change other registers than R0 to R5.
func (p *program) prepare(n *node) {
	if n.ready {
		return
	}
	if n.in != nil {
		p.prepare(n.in)
	}
	switch n.op {
	case currentTask:
		if !p.isKept(n) {
			return
		}
		p.load(n, asm.R1, 8)
		p.emit(asm.StoreMem(asm.RFP, -n.slot, asm.R1, asm.DWord))
	case cpuOffset:
		missed := append([]*node{n}, p.missed(p.list[p.current].node.chain()[0])...)
		p.readKernel(func(dst asm.Register) {
			p.emit(asm.FnGetSmpProcessorId.Call(), asm.LSh.Imm(asm.R0, 3))
			p.set(dst, p.cpuTable)
			p.emit(asm.Add.Reg(dst, asm.R0))
		}, stackSpot(n.slot), 8, p.fault(missed))
	case stackWord:
		place := p.placeOf(n)
		p.readStack(n, stackSpot(place), 8, func() { p.emit(storeWord(asm.RFP, -place, 0)) })
	case dereferred:
		place := p.placeOf(n)
		p.read(n.in, n.off, n.user, stackSpot(place), 8, p.fault(p.missed(n)))
	default:
		return
	}
	n.ready = n.slot > 0
}

// placeOf returns where on the stack the number is put.
func (p *program) placeOf(n *node) int16 {
	if p.isKept(n) {
		return n.slot
	}
	n.temp = p.place(n.in)
	return n.temp
}

// place returns a place on the stack for a number that is made of n, other than that of n itself.
func (p *program) place(n *node) int16 {
	for n != nil && n.op == perCPU {
		n = n.in
	}
	if n != nil && n.slot == 0 && n.temp == tempA {
		return tempB
	}
	return tempA
}

// load loads a number that is prepared into a register. Of the lower bytes bytes only need to be right. R2 may be lost, and
// R0 to R5 if the number is the task.
func (p *program) load(n *node, dst asm.Register, bytes int) {
	if n.ready {
		p.emit(asm.LoadMem(dst, asm.RFP, -n.slot, asm.DWord))
		return
	}
	switch n.op {
	case constant:
		p.set(dst, n.off)
	case fromContext:
		p.emit(asm.LoadMem(dst, ctxReg, int16(n.off), n.size))
		if unused := int32(64 - 8*n.size.Sizeof()); n.signed && bytes > n.size.Sizeof() {
			p.emit(asm.LSh.Imm(dst, unused), asm.ArSh.Imm(dst, unused))
		}
	case contextAddress:
		p.move(dst, ctxReg, int(n.off))
	case contextText:
		p.emit(asm.LoadMem(dst, ctxReg, int16(n.off), asm.Word), asm.And.Imm(dst, 0xffff), asm.Add.Reg(dst, ctxReg))
		if n.signed {
			p.add(dst, n.off, dst)
		}
	case currentTask:
		p.emit(asm.FnGetCurrentTask.Call(), asm.Mov.Reg(dst, asm.R0))
		p.add(dst, n.off, dst)
	case perCPU:
		p.load(n.in, dst, 8)
		p.emit(asm.LoadMem(asm.R2, asm.RFP, -p.node(nodeKey{op: cpuOffset}).slot, asm.DWord), asm.Add.Reg(dst, asm.R2))
	default:
		p.emit(asm.LoadMem(dst, asm.RFP, -n.temp, asm.DWord))
	}
}

// address loads a number that is prepared, + off, into a register other than R2.
func (p *program) address(dst asm.Register, n *node, off int64) {
	if n.op == constant {
		p.set(dst, n.off+off)
		return
	}
	p.load(n, dst, 8)
	p.add(dst, off, asm.R2)
}

// spot is a place in memory of the program's own, at base + off.
type spot struct {
	base asm.Register
	off  int
}

// stackSpot is a place on the stack, so many bytes below the frame pointer.
func stackSpot(place int16) spot { return spot{asm.RFP, -int(place)} }

// recordSpot is a place in the record.
func (p *program) recordSpot(offset int) spot { return spot{recordReg, p.begin + offset} }

// helper calls one that reads memory at the address in R3 to a place.
func (p *program) helper(fn asm.BuiltinFunc, to spot, size int) {
	p.move(asm.R1, to.base, to.off)
	p.emit(asm.Mov.Imm(asm.R2, int32(size)), fn.Call())
}

// readKernel reads memory of the kernel to a place, and goes to the label if that fails. The address is what address sets in
// a register other than R2; where a load gives zero, which may be a fault, it is asked for again and the helper decides.
func (p *program) readKernel(address func(dst asm.Register), to spot, size int, failed string) {
	p.readNear(nil, nil, address, to, size, failed)
}

// readNear is readKernel for an address near n, which may have a group.
func (p *program) readNear(g *group, n *node, address func(dst asm.Register), to spot, size int, failed string) {
	call := func() {
		address(asm.R3)
		p.helper(asm.FnProbeReadKernel, to, size)
	}
	if p.opt.Loads == nil || !isInteger(size) || to.base == asm.RFP && to.off%size != 0 { // which the verifier refuses
		call()
		p.emit(asm.JNE.Imm(asm.R0, 0, failed))
		return
	}
	zero, read, ask := p.newLabel("zero"), p.newLabel("read"), p.newLabel("ask")
	address(asm.R1)
	p.emit(p.opt.Loads.read(asm.R1, size)...)
	p.emit(asm.JEq.Imm(asm.R1, 0, zero), asm.StoreMem(to.base, int16(to.off), asm.R1, sizeOf(size)))
	if g != nil {
		p.emit(asm.Mov.Imm(g.reg, 1))
	}
	p.mark(read)
	p.later(func() {
		p.comment("it is zero, or cannot be loaded")
		p.mark(zero)
		if g != nil {
			p.known(g, n, to, size, read, ask)
			p.mark(ask)
		}
		call()
		p.emit(asm.JNE.Imm(asm.R0, 0, failed))
		if g != nil {
			p.emit(asm.Mov.Imm(g.reg, 1))
		}
		p.emit(asm.Ja.Label(read))
	})
}

// read reads memory at n + off, which is prepared, to a place. It goes to the label if that fails. Addresses of the process
// are also read where memory of the kernel is asked for, as the kernel does; it is tried last, as it is rare.
func (p *program) read(n *node, off int64, user bool, to spot, size int, fault string) {
	address := func(dst asm.Register) { p.address(dst, n, off) }
	if user {
		address(asm.R3)
		p.helper(asm.FnProbeReadUser, to, size)
		p.emit(asm.JNE.Imm(asm.R0, 0, fault))
		return
	}
	again, resumed := p.newLabel("again"), p.newLabel("read")
	p.readNear(p.group(n), n, address, to, size, again)
	p.mark(resumed)
	p.later(func() {
		p.comment("it may be the process's memory")
		p.mark(again)
		address(asm.R3)
		p.helper(asm.FnProbeReadUser, to, size)
		p.emit(asm.JEq.Imm(asm.R0, 0, resumed), asm.Ja.Label(fault))
	})
}

// readStack reads a word of the kernel's stack to a place; outside of the stack it does what outside emits, as the kernel
// takes zero for it (regs_get_kernel_stack_nth).
func (p *program) readStack(n *node, to spot, size int, outside func()) {
	address := func(dst asm.Register) {
		p.emit(asm.LoadMem(dst, ctxReg, p.arch.regs["sp"], asm.DWord))
		p.add(dst, n.off, asm.R2)
	}
	out, read := p.newLabel("outside"), p.newLabel("read")
	if n.off > 0 {
		address(asm.R3)
		p.emit(asm.LoadMem(asm.R1, ctxReg, p.arch.regs["sp"], asm.DWord), asm.Xor.Reg(asm.R1, asm.R3))
		p.emit(asm.RSh.Imm(asm.R1, int32(p.arch.threadBit)), asm.JNE.Imm(asm.R1, 0, out))
		p.later(func() {
			p.mark(out)
			outside()
			p.emit(asm.Ja.Label(read))
		})
	}
	p.readKernel(address, to, size, p.fault(p.missed(n)))
	p.mark(read)
}
