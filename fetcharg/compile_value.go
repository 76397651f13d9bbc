package fetcharg

import (
	"strings"

	"github.com/cilium/ebpf/asm"
)

// memory returns where the memory is that the expression ends in: at in + off. ok is false if it does not end in any; in is
// nil if it cannot be compiled.
func (c *compiler) memory(e Expr) (in *node, off int64, user, ok bool) {
	user = c.event.Kind.User()
	switch e := e.(type) {
	case Deref:
		in = c.value(e.Base)
		if in != nil && in.inContext() && (e.Offset <= -farAway || e.Offset >= farAway) {
			c.unsupported(e.Pos, nil, "the offset is too far away from the event's record")
			in = nil
		}
		return in, e.Offset, user || e.User, true
	case Memory, Symbol, FileMemory:
		return c.address(e), 0, user, true
	case PerCPU:
		if e.Read {
			return c.value(PerCPU{Pos: e.Pos, Base: e.Base}), 0, false, true
		}
	case Member:
		m, ok := c.typed(e)
		if !ok {
			return nil, 0, false, true
		}
		return m.in, m.off, false, true
	}
	return nil, 0, false, false
}

// farAway is what can be added to the address of the context (BPF_MAX_VAR_OFF, 1<<29, with what is added already).
const farAway = 1 << 28

// address returns the address after an @.
func (c *compiler) address(e Expr) *node {
	switch e := e.(type) {
	case Memory:
		return c.constant(int64(e.Addr))
	case Symbol:
		address, err := c.opt.Symbols(e.Name)
		if err != nil {
			c.unsupported(e.Pos, err, "the address of %s is not known", e.Name)
			return nil
		}
		return c.constant(int64(address) + e.Offset)
	case FileMemory:
		c.unsupported(e.Pos, nil, "where the file is mapped is only known in the process")
	}
	return nil
}

// textMemory returns where the argument's text is, or the pointers to its texts.
func (c *compiler) textMemory(a Arg) (in *node, off int64, user, ok bool) {
	m, ok := typed{}, true
	if _, fromBTF := (Arg{Name: a.Name, Expr: a.Expr}).Typed(c.event.Kind); fromBTF {
		m, ok = c.typed(a.Expr)
	}
	if !ok {
		return nil, 0, false, false
	}
	if m.typ != nil && !isChars(m.typ) {
		if !isCharPointer(m.typ) {
			c.fail(a.TypePos, ":"+a.Type.String(), "it is no text: expected a pointer to char, or an array of it")
			return nil, 0, false, false
		}
		in = c.value(a.Expr)
		return in, 0, false, in != nil
	}
	if in, off, user, ok = c.memory(a.Expr); !ok { // the number is an address
		in, off, user = c.value(a.Expr), 0, c.event.Kind.User()
	}
	return in, off, user, in != nil
}

// value returns the number that an expression is, or nil if it cannot be compiled.
func (c *compiler) value(e Expr) *node {
	if c.typesOnly {
		return c.constant(0)
	}
	if in, off, user, ok := c.memory(e); ok {
		if in == nil {
			return nil
		}
		return c.deref(in, off, user)
	}
	at := Pos(e.Column())
	if c.event.Kind == Eprobe && isField(e) {
		return c.field(e)
	}
	switch e := e.(type) {
	case Imm:
		return c.constant(e.Value)
	case Register:
		return c.register(e.Name)
	case Param:
		return c.param(at, int(e.N))
	case Var:
		n, ok := c.paramNumber(e)
		if !ok {
			return nil
		}
		return c.param(at, n)
	case StackEntry:
		return c.stack(at, int64(e.N))
	case StackPointer:
		if c.event.Kind == Tprobe {
			c.unsupported(at, nil, "a raw tracepoint has no registers, so no stack pointer")
			return nil
		}
		return c.register("sp")
	case RetVal:
		return c.register(c.arch.retval)
	case Current:
		return c.node(nodeKey{op: currentTask})
	case PerCPU:
		return c.perCPU(e)
	}
	c.unsupported(at, nil, "the address of the text is that of the kernel's copy: expected type string")
	return nil
}

func (c *compiler) register(name string) *node {
	return c.node(nodeKey{op: fromContext, off: int64(c.arch.regs[name]), size: asm.DWord})
}

// param returns parameter n, from 1.
func (c *compiler) param(at Pos, n int) *node {
	switch {
	case c.event.Kind.Return():
		c.unsupported(at, nil, "parameters are gone at the return: the kernel saves them at the entry")
	case c.event.Kind == Tprobe:
		if most, err := c.types.tracepointParams(); n > most {
			c.unsupported(at, err, "expected a parameter of the tracepoint, from $arg1 to $arg%d", most)
			return nil
		}
		return c.node(nodeKey{op: fromContext, off: int64(8 * (n - 1)), size: asm.DWord})
	case n <= len(c.arch.params):
		return c.register(c.arch.params[n-1])
	case c.arch.onStack:
		return c.stack(at, int64(n-len(c.arch.params)))
	default:
		c.unsupported(at, nil, "only the first %d parameters are in registers", len(c.arch.params))
	}
	return nil
}

// stack returns a word of the stack.
func (c *compiler) stack(at Pos, n int64) *node {
	switch {
	case c.event.Kind == Tprobe:
		c.unsupported(at, nil, "a raw tracepoint has no registers, so no stack pointer")
		return nil
	case c.event.Kind.User():
		return c.deref(c.register("sp"), 8*n, true)
	}
	return c.node(nodeKey{op: stackWord, off: 8 * n})
}

// perCPU returns the address of this CPU's copy of a variable. With an @ in front, the variable is the one at that address.
func (c *compiler) perCPU(e PerCPU) *node {
	var in *node
	switch e.Base.(type) {
	case Memory, Symbol:
		in = c.address(e.Base)
	default:
		in = c.value(e.Base)
	}
	table, err := c.opt.Symbols("__per_cpu_offset")
	if err != nil {
		c.unsupported(e.Pos, err, "the address of __per_cpu_offset is not known")
		return nil
	}
	if in == nil {
		return nil
	}
	c.cpuTable = int64(table)
	return c.node(nodeKey{op: perCPU, in: in})
}

// field returns the number that the kernel takes a field of the event for (get_event_field in trace_eprobe.c, or
// trace_probe_kernel.h): the address of text, else the first 8 bytes at most.
func (c *compiler) field(e Expr) *node {
	if task(c.opt.Format, e) {
		off, err := c.types.offsetOf("task_struct", "comm")
		if err != nil {
			c.unsupported(Pos(e.Column()), err, "where the task has its name is not known")
			return nil
		}
		return c.node(nodeKey{op: currentTask, off: off})
	}
	name := strings.TrimPrefix(Text(e), "$")
	for _, f := range c.opt.Format.Fields {
		if f.Name == name {
			return c.recordField(f)
		}
	}
	return nil // CheckFields has found it
}

func (c *compiler) recordField(f RecordField) *node {
	off := int64(f.Offset)
	isText := strings.Contains(f.Type, "char")
	switch {
	case f.Loc != "" && isText:
		return c.node(nodeKey{op: contextText, off: off, signed: f.Loc == "__rel_loc"})
	case f.Loc == "" && f.Len > 0 && isText:
		return c.node(nodeKey{op: contextAddress, off: off})
	}
	size := 8
	if isInteger(f.Size) {
		size = f.Size
	}
	if off%int64(size) != 0 { // which the verifier refuses
		return c.deref(c.node(nodeKey{op: contextAddress}), off, false)
	}
	return c.node(nodeKey{op: fromContext, off: off, size: sizeOf(size), signed: f.Signed && size < 8})
}

// sizeOf returns the operand size of 1, 2, 4 or 8 bytes.
func sizeOf(bytes int) asm.Size {
	return map[int]asm.Size{1: asm.Byte, 2: asm.Half, 4: asm.Word, 8: asm.DWord}[bytes]
}
