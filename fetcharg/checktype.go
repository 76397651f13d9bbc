package fetcharg

// maxOps is the index of the last of the steps that the kernel makes of an argument that may fetch or store
// (kernel/trace/trace_probe.h, FETCH_INSN_MAX is 16, of which the last ends it).
const maxOps = 14

// maxNested is how many dereferences, casts and this_cpu_… may be inside each other from 7.3 on. Before, maxOps bounds them.
const maxNested = 8

// isMemory reports whether the expression ends in reading memory: of the kernel, or what a uprobe sees.
func isMemory(e Expr) bool {
	switch e := e.(type) {
	case Memory, Symbol, FileMemory, Member:
		return true
	case Deref:
		return !e.User
	case PerCPU:
		return e.Read
	}
	return false
}

// isUserMemory reports whether it ends in reading memory with +u.
func isUserMemory(e Expr) bool {
	d, ok := e.(Deref)
	return ok && d.User
}

// isField reports whether, in an eprobe, the expression can be a field of the event.
func isField(e Expr) bool {
	switch e := e.(type) {
	case Var:
		return true
	case AllParams:
		return false
	case Comm:
		return !e.Upper
	}
	_, ok := variable(e)
	return ok
}

// fromBTF reports whether the kernel takes the expression's type from BTF, so that text can be had from a char pointer.
func (c *checker) fromBTF() bool {
	_, ok := Arg{Name: c.arg.Name, Expr: c.arg.Expr}.Typed(c.kind)
	return ok
}

// typ checks the argument's type.
func (c *checker) typ() {
	a, t := c.arg, c.arg.Type
	switch a.Expr.(type) {
	case Comm, ImmString:
		if c.kind != Eprobe && t != (Type{}) && t != (Type{Base: String}) {
			c.failType("it is a string: expected no type, or string")
			return
		}
	}
	if c.kind.User() && (t.Base == SymbolType || t.Base == SymStr) {
		c.failType("%s has no symbols", c.title())
	}
	switch t.Base {
	case Dentry, File:
		if !c.kind.function() {
			c.failType("%s cannot have it", c.title())
		}
		c.pointer(a.Expr)
		return
	case SymStr:
		if t.Len > 0 {
			c.failType("there are no arrays of it")
		} else if !c.isAddress() {
			c.failType("expected a register, an entry of the stack, a parameter (on entry), a returned value, a field or memory of the kernel")
		}
	case String, UString:
		if !c.hasText() {
			c.failType("text is in memory: expected memory, as of a dereference +0(%s)", Text(a.Expr))
		}
	default:
		if t.Len > 0 && !isMemory(a.Expr) {
			c.failType("an array is in memory of the kernel: expected memory (but none of +u), as of a dereference +0(%s)", Text(a.Expr))
		}
	}
}

func (c *checker) failType(format string, args ...any) {
	c.fail(c.arg.TypePos, ":"+c.arg.Type.String(), format, args...)
}

// isAddress reports whether the argument can be the address of a symbol: symstr's operations in trace_probe.c.
func (c *checker) isAddress() bool {
	switch e := c.arg.Expr.(type) {
	case Register, StackEntry, RetVal:
		return true
	case Param, Var:
		return !c.kind.Return() // there it was saved on entry
	default:
		return isMemory(e) || c.kind == Eprobe && isField(e)
	}
}

// hasText reports whether text can be read at what the argument is.
func (c *checker) hasText() bool {
	switch e := c.arg.Expr.(type) {
	case Imm, Comm, ImmString:
		return true
	default:
		return isMemory(e) || isUserMemory(e) || c.kind == Eprobe && isField(e) || c.fromBTF()
	}
}

// depth checks how much the argument asks for at once.
func (c *checker) depth() {
	a := c.arg
	if n := expandedLen(a); n > MaxText {
		c.fail(a.Pos, "", "it is too long: the kernel would read %d bytes of EXPR:TYPE, and takes %d", n, MaxText)
	}
	if ops(a) > maxOps || isNew(a.Expr) && nested(a) > maxNested {
		c.fail(a.Pos, "", "too much is inside each other: expected fewer dereferences")
	}
}

// ops returns the index of the last step that the argument needs in the kernel.
func ops(a Arg) int {
	n := fetches(a.Expr)
	switch {
	case a.Type.Base == Dentry:
		n += 2
	case a.Type.Base == File:
		n += 3
	case a.Type.IsString():
		// The last of the dereferences reads the text, unless each element is a pointer that is read first.
		if a.Type.Len > 0 || a.Type.Base == SymStr || !isMemory(a.Expr) && !isUserMemory(a.Expr) {
			n++
		}
	case !isMemory(a.Expr) && !isUserMemory(a.Expr):
		n++
	}
	if a.Type.Base == BitField {
		n++
	}
	if a.Type.Len > 0 {
		n++
	}
	return n
}

// fetches returns the index of the last step of fetching the expression.
func fetches(e Expr) int {
	n := 0
	Walk(e, func(e Expr) bool {
		switch e := e.(type) {
		case Memory, FileMemory, Deref, PerCPU:
			n++
		case Symbol:
			n += 2
		case Member:
			for _, s := range e.Path {
				if !s.Dot {
					n++
				}
			}
		}
		return true
	})
	return n
}

// nested returns how many expressions are inside each other, those that %pd and %pD stand for counted.
func nested(a Arg) int {
	n := map[Base]int{Dentry: 2, File: 3}[a.Type.Base]
	Walk(a.Expr, func(e Expr) bool {
		switch e.(type) {
		case Deref, PerCPU, Cast:
			n++
		}
		return true
	})
	return n
}

// isNew reports whether the expression has something that came with the limit maxNested.
func isNew(e Expr) bool {
	found := false
	Walk(e, func(e Expr) bool {
		switch e.(type) {
		case PerCPU, Cast, Current:
			found = true
		}
		return !found
	})
	return found
}
