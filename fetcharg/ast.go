package fetcharg

// Pos is a place in the text that was parsed: a column in bytes, from 1. It is 0 in what was not parsed.
type Pos int

// Column returns p.
func (p Pos) Column() int { return int(p) }

// Arg is one argument: [Name=]Expr[:Type].
type Arg struct {
	Pos
	Name    string // empty: the kernel finds one
	Expr    Expr
	Type    Type // zero: the default
	TypePos Pos
}

// Expr is what an argument fetches: one of the types of this file.
type Expr interface {
	Column() int
	isExpr()
}

// Register is %NAME: a register of the probed code.
type Register struct {
	Pos
	Name string // without the %
}

// Param is $argN: a parameter of the probed function or tracepoint, as it was on entry.
type Param struct {
	Pos
	N uint64 // from 1
}

// AllParams is $arg*: all the parameters, each an argument of its own. The kernel replaces it when it reads the list.
type AllParams struct{ Pos }

// Var is a bare NAME: a parameter that the kernel finds in BTF by its name, or in an eprobe a field of the event.
type Var struct {
	Pos
	Name string
}

// Field is $NAME: a field of the event that an eprobe is attached to.
type Field struct {
	Pos
	Name string // without the $
}

// StackEntry is $stackN: a word of the stack, N words above the stack pointer.
type StackEntry struct {
	Pos
	N uint64
}

// StackPointer is $stack.
type StackPointer struct{ Pos }

// RetVal is $retval: what the probed function returns.
type RetVal struct{ Pos }

// Comm is $comm or $COMM: the name of the running task. In an eprobe $comm is the field of that name if the event has one.
type Comm struct {
	Pos
	Upper bool // $COMM, never a field
}

// Current is $current: the address of the running task's task_struct.
type Current struct{ Pos }

// Memory is @ADDR: what is in memory at a fixed address; of the kernel, or in a uprobe of the process.
type Memory struct {
	Pos
	Addr uint64
}

// Symbol is @NAME+OFFSET: what is in memory at a symbol of the kernel.
type Symbol struct {
	Pos
	Name   string
	Offset int64 // bytes
}

// FileMemory is @+OFFSET: what is in memory where the probed file's byte of that offset is mapped.
type FileMemory struct {
	Pos
	Offset int64
}

// Imm is \NUMBER: the number itself.
type Imm struct {
	Pos
	Value int64 // the kernel's unsigned long as a signed number
}

// ImmString is \"TEXT": the text itself. A quotation mark inside is nothing special.
type ImmString struct {
	Pos
	Value string
}

// Deref is +OFFSET(Base) or -OFFSET(Base): what is in memory at Base + Offset. It is a pointer's 8 bytes if something is
// done with it, and as many as the argument's type has if it is the argument.
type Deref struct {
	Pos
	User   bool  // +u, memory of the process; in uprobes all memory is
	Offset int64 // bytes; Check wants 32 bits
	Base   Expr
}

// PerCPU is this_cpu_ptr(Base) or this_cpu_read(Base), Base being the address of a per-CPU variable.
type PerCPU struct {
	Pos
	Read bool // what is in memory there, as Deref; else the address of this CPU's copy
	Base Expr
}

// Cast is (Struct)Base or (Struct,Via)Base: Base taken as the address of a struct, or of a member of one, as container_of
// does. It is the Base of a Member.
type Cast struct {
	Pos
	Struct string
	Via    []string // the member's path
	Base   Expr
}

// Member is Base->f.g->h: a field of the struct that Base points to. Base is a Var, RetVal, Current or Cast.
type Member struct {
	Pos
	Base Expr
	Path []Step
}

// Step is one ->Name or .Name of a Member; the first is an arrow. Each arrow is a dereference.
type Step struct {
	Dot  bool
	Name string
}

func (Register) isExpr()     {}
func (Param) isExpr()        {}
func (AllParams) isExpr()    {}
func (Var) isExpr()          {}
func (Field) isExpr()        {}
func (StackEntry) isExpr()   {}
func (StackPointer) isExpr() {}
func (RetVal) isExpr()       {}
func (Comm) isExpr()         {}
func (Current) isExpr()      {}
func (Memory) isExpr()       {}
func (Symbol) isExpr()       {}
func (FileMemory) isExpr()   {}
func (Imm) isExpr()          {}
func (ImmString) isExpr()    {}
func (Deref) isExpr()        {}
func (PerCPU) isExpr()       {}
func (Cast) isExpr()         {}
func (Member) isExpr()       {}

// Walk calls f for e and, where f returns true, for the expressions it is made of.
func Walk(e Expr, f func(Expr) bool) {
	if e == nil || !f(e) {
		return
	}
	if inner := base(e); inner != nil {
		Walk(inner, f)
	}
}

// base returns the expression that e is made of, or nil: there is never more than one.
func base(e Expr) Expr {
	switch e := e.(type) {
	case Deref:
		return e.Base
	case PerCPU:
		return e.Base
	case Cast:
		return e.Base
	case Member:
		return e.Base
	}
	return nil
}
