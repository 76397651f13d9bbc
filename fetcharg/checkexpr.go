package fetcharg

import (
	"math"
	"slices"
	"strings"
)

// maxStack is the largest N of $stackN and $argN: the words of a kernel stack of 16 KiB (PARAM_MAX_STACK).
const maxStack = 2048

// expr checks one node of the argument's expression.
func (c *checker) expr(e Expr) {
	at, text := Pos(e.Column()), Text(e)
	if _, ok := variable(e); ok {
		if _, all := e.(AllParams); c.kind == Eprobe && !all {
			return // whatever its name, it is a field if the event has it
		}
	}
	switch e := e.(type) {
	case Register:
		c.register(e)
	case Param:
		c.param(e)
	case AllParams:
		c.allParams(e)
	case Field:
		c.fail(at, text, "%s has no such variable: expected %s", c.title(), c.variables())
	case StackEntry:
		if most := c.mostStack(); e.N > most {
			c.fail(at, text, "expected an entry of the stack from 0 to %d", most)
		}
	case RetVal:
		if !c.kind.Return() {
			c.fail(at, text, "%s has no returned value: expected a return probe", c.title())
		}
	case Var, Current, Symbol:
		c.ofKernel(e)
	case FileMemory:
		if !c.kind.User() {
			c.fail(at, text, "%s has no file: expected @ADDRESS or @SYMBOL", c.title())
		}
	default:
		c.compound(e)
	}
}

// ofKernel checks what only probes of the kernel have.
func (c *checker) ofKernel(e Expr) {
	at, text := Pos(e.Column()), Text(e)
	switch e.(type) {
	case Var:
		switch {
		case c.kind.function():
			c.entry(at, text)
		case c.kind.User():
			c.fail(at, text, "%s has no parameters by name: expected a register or another expression", c.title())
		case c.arg.String() == "if":
			c.fail(at, text, "the kernel would take it for the begin of a filter: expected $if, or a name before it")
		}
	case Current:
		if c.kind.User() {
			c.fail(at, text, "%s has no access to the task_struct", c.title())
		}
	case Symbol:
		if c.kind.User() {
			c.fail(at, text, "%s has no access to symbols of the kernel: expected @ADDRESS or @+OFFSET of the file", c.title())
		}
	}
}

// compound checks what is made of another expression.
func (c *checker) compound(e Expr) {
	at, text := Pos(e.Column()), Text(e)
	switch e := e.(type) {
	case Deref:
		if e.Offset < math.MinInt32 || e.Offset > math.MaxInt32 {
			c.fail(at, text, "the kernel would use the lower 32 bits of the offset only")
		}
		c.pointer(e.Base)
	case PerCPU:
		if !c.kind.function() {
			c.fail(at, text, "%s has no access to per-CPU variables", c.title())
		}
		c.pointer(e.Base)
	case Cast:
		if c.kind.User() {
			c.fail(at, text, "%s has no types: expected no cast", c.title())
		} else if c.kind != Eprobe {
			c.entry(at, text)
		}
	case Member:
		c.member(e)
	}
}

func (c *checker) title() string { return kinds[c.kind].title }

// variables lists what may follow a $.
func (c *checker) variables() string {
	list := []string{"$comm", "$stack", "$stackN"}
	if c.kind.function() {
		list = append(list, "$argN", "$current")
	}
	if c.kind.Return() {
		list = append(list, "$retval")
	}
	return strings.Join(list[:len(list)-1], ", ") + " or " + list[len(list)-1]
}

func (c *checker) mostStack() uint64 {
	if c.kind.User() {
		return math.MaxUint32 // the kernel would cut what is more
	}
	return maxStack
}

// entry checks that the probe is not inside a function: the types and the places of parameters are known at its ends only.
func (c *checker) entry(at Pos, text string) {
	if !c.atEntry {
		c.fail(at, text, "there are no parameters inside a function: expected a probe at its entry, or a register")
	}
}

func (c *checker) register(e Register) {
	if !c.kind.registers() {
		want := "$argN or the name of a parameter"
		if c.kind == Eprobe {
			want = "$FIELD"
		}
		c.fail(e.Pos, Text(e), "%s has no registers: expected %s", c.title(), want)
		return
	}
	if names := regs[c.arch]; names != nil && !slices.Contains(names, e.Name) {
		c.fail(e.Pos, Text(e), "expected a register of %s: %s", c.arch, strings.Join(names, ", "))
	}
}

func (c *checker) param(e Param) {
	switch {
	case !c.kind.function():
		c.fail(e.Pos, Text(e), "%s does not know the function's parameters: expected a register", c.title())
	case e.N < 1 || e.N > maxStack:
		c.fail(e.Pos, Text(e), "expected a parameter from $arg1 to $arg%d", maxStack)
	default:
		c.entry(e.Pos, Text(e))
	}
}

func (c *checker) allParams(e AllParams) {
	switch {
	case !c.kind.function():
		c.fail(e.Pos, Text(e), "%s does not know any parameters", c.title())
	case c.arg.Expr != Expr(e) || c.arg.Name != "" || c.arg.Type != Type{}:
		c.fail(e.Pos, Text(e), "expected it alone, without a name and a type: it stands for several arguments")
	case c.allAt >= 0:
		c.fail(e.Pos, Text(e), "expected it once: argument %d is the same", c.allAt+1)
	default:
		c.entry(e.Pos, Text(e))
		c.allAt = c.index
	}
}

// pointer checks what is taken as an address.
func (c *checker) pointer(e Expr) {
	switch e := e.(type) {
	case Comm:
		if c.kind != Eprobe || e.Upper {
			c.fail(e.Pos, Text(e), "the task's name has no address to be used")
		}
	case ImmString:
		c.fail(e.Pos, Text(e), "a string has no address to be used")
	}
}

// member checks where the type of a struct is to come from.
func (c *checker) member(e Member) {
	at, text := e.Pos, Text(e)
	switch e.Base.(type) {
	case Cast:
		return
	case Var, Current, RetVal:
		if c.kind.function() {
			return
		}
	default:
		c.fail(at, text, "fields are those of a parameter, of $retval, of $current or of a cast: expected one of these before ->")
		return
	}
	if c.kind == Eprobe {
		c.fail(at, text, "what an event's field points to is not known: expected a cast (STRUCT)%s", strings.TrimPrefix(text, "$"))
	} else {
		c.fail(at, text, "%s knows no structs: expected a dereference +OFFSET(EXPRESSION)", c.title())
	}
}
