package fetcharg

import (
	"fmt"
	"math"

	"github.com/cilium/ebpf/asm"
)

// code is a program that grows. What is rarely run is put off to its end, out of the way of the rest.
type code struct {
	insns  asm.Instructions
	prefix string // of labels
	labels int
	label  string            // of the next instruction
	same   map[string]string // for labels that did not stay, others at the same place
	note   string            // a comment on the next instruction
	late   []func()
}

// newLabel returns a label of its own.
func (c *code) newLabel(what string) string {
	c.labels++
	return fmt.Sprintf("%s_%s_%d", c.prefix, what, c.labels)
}

// mark puts a label before the next instruction. Of several, the last stays.
func (c *code) mark(label string) {
	if c.label != "" {
		c.same[c.label] = label
	}
	c.label = label
}

// comment puts a comment on the next instruction.
func (c *code) comment(format string, args ...any) { c.note = fmt.Sprintf(format, args...) }

func (c *code) emit(insns ...asm.Instruction) {
	for _, ins := range insns {
		if c.label != "" {
			ins, c.label = ins.WithSymbol(c.label), ""
		}
		if c.note != "" {
			ins, c.note = ins.WithSource(asm.Comment(c.note)), ""
		}
		c.insns = append(c.insns, ins)
	}
}

// later puts off what f emits.
func (c *code) later(f func()) { c.late = append(c.late, f) }

// finish emits what was put off, and makes all jumps go to labels that are there.
func (c *code) finish() {
	for _, f := range c.late {
		f()
	}
	used := map[string]bool{}
	for i, ins := range c.insns {
		for label, ok := c.same[ins.Reference()]; ok; label, ok = c.same[label] {
			c.insns[i] = ins.WithReference(label)
		}
		used[c.insns[i].Reference()] = true
	}
	for i, ins := range c.insns {
		if !used[ins.Symbol()] {
			c.insns[i] = ins.WithSymbol("")
		}
	}
}

// set loads a number into a register.
func (c *code) set(dst asm.Register, n int64) {
	if n == int64(int32(n)) {
		c.emit(asm.Mov.Imm(dst, int32(n)))
	} else {
		c.emit(asm.LoadImm(dst, n, asm.DWord))
	}
}

// add adds a number to a register. A large one needs another register.
func (c *code) add(dst asm.Register, n int64, scratch asm.Register) {
	switch {
	case n == 0:
	case n == int64(int32(n)):
		c.emit(asm.Add.Imm(dst, int32(n)))
	default:
		c.emit(asm.LoadImm(scratch, n, asm.DWord), asm.Add.Reg(dst, scratch))
	}
}

// move copies base + off to a register.
func (c *code) move(dst, base asm.Register, off int) {
	c.emit(asm.Mov.Reg(dst, base))
	c.add(dst, int64(off), dst)
}

// cut leaves of a register the bits of a bit field.
func (c *code) cut(r asm.Register, width, shift int) {
	switch {
	case width == 64:
		return
	case shift == 0 && width < 32:
		c.emit(asm.And.Imm(r, int32(1)<<width-1))
		return
	case shift+width < 64:
		c.emit(asm.LSh.Imm(r, int32(64-shift-width)))
	}
	c.emit(asm.RSh.Imm(r, int32(64-width)))
}

// storeWord stores a number in 8 bytes, which the library has no constructor for.
func storeWord(dst asm.Register, off int16, n int32) asm.Instruction {
	op := asm.OpCode(asm.StClass).SetMode(asm.MemMode).SetSize(asm.DWord)
	return asm.Instruction{OpCode: op, Dst: dst, Offset: off, Constant: int64(n)}
}

// fits reports whether a number can be stored as it is, in so many bytes.
func fits(n int64, bytes int) bool {
	return bytes < 8 || n >= math.MinInt32 && n <= math.MaxInt32
}
