package fetcharg

import (
	"cmp"
	"slices"

	"github.com/cilium/ebpf/asm"
)

// group are reads of the kernel's memory near one number, such as the fields of a structure. Once one of them was read, its
// page is there, and so a load that gives zero on the same page has read a zero: nobody needs to ask.
type group struct {
	reg       asm.Register // 1 once one was read
	reads     int
	low, high int64 // where the first begins and the last ends, in bytes from the number
}

// groupRegs are what is left of the registers that keep their values over calls.
var groupRegs = []asm.Register{asm.R8, asm.R9}

// pageSize is the smallest that a kernel has.
const pageSize, pageBits = 1 << pageBits, 12

// findGroups gives the numbers with the most reads near them a register each.
func (p *program) findGroups() {
	p.groups = map[*node]*group{}
	if p.opt.Loads == nil {
		return
	}
	var order []*node
	add := func(n *node, off int64, size int) {
		g := p.groups[n]
		if g == nil {
			g = &group{low: off, high: off}
			p.groups[n] = g
			order = append(order, n)
		}
		g.reads++
		g.low, g.high = min(g.low, off), max(g.high, off+int64(size))
	}
	seen := map[*node]bool{}
	for _, f := range p.list {
		if f.how == readMemory && !f.user {
			add(f.node, f.off, f.typ.ElemSize()*f.elements())
		}
		for _, n := range f.node.chain() {
			if n.op == dereferred && !n.user && !seen[n] {
				add(n.in, n.off, 8)
			}
			seen[n] = true
		}
	}
	slices.SortStableFunc(order, func(a, b *node) int { return cmp.Compare(p.groups[b].reads, p.groups[a].reads) })
	free := groupRegs
	for _, n := range order {
		if g := p.groups[n]; len(free) > 0 && g.reads > 1 && g.high-g.low <= pageSize && !n.inContext() {
			g.reg, free = free[0], free[1:]
			p.comment("of %d reads near each other, none was done", g.reads)
			p.emit(asm.Mov.Imm(g.reg, 0))
		} else {
			delete(p.groups, n)
		}
	}
}

// group returns the group of reads near n, which is prepared, or nil. One that is got anew each time may change in between.
func (p *program) group(n *node) *group {
	if n.remembered() && n.op != currentTask && !n.ready {
		return nil
	}
	return p.groups[n]
}

// known emits what stores a zero that a load near n gave, and goes to read, if one of the group was read and all of it is on
// one page. Else it goes to ask, or on.
func (p *program) known(g *group, n *node, to spot, size int, read, ask string) {
	p.emit(asm.JEq.Imm(g.reg, 0, ask))
	p.address(asm.R1, n, g.low)
	p.move(asm.R3, asm.R1, int(g.high-g.low-1))
	p.emit(asm.Xor.Reg(asm.R3, asm.R1), asm.RSh.Imm(asm.R3, pageBits), asm.JNE.Imm(asm.R3, 0, ask))
	p.emit(asm.Mov.Imm(asm.R1, 0), asm.StoreMem(to.base, int16(to.off), asm.R1, sizeOf(size)), asm.Ja.Label(read))
}
