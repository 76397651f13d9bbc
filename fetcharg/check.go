package fetcharg

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
)

// Check reports all that keeps a probe of the kind from having the arguments: it joins an *Error for each problem. Kernels
// differ: what one of them takes passes, and Needs tells which. What the kernel has to look up is not checked: whether
// symbols, parameters, structs and their fields exist, and an eprobe's fields (Format.CheckFields checks those).
func Check(args []Arg, kind Kind) error { return check(args, kind, true) }

// check is Check for a probe that may be inside a function, where there are no parameters.
func check(args []Arg, kind Kind, atEntry bool) error {
	if !kind.valid() {
		return fmt.Errorf("check arguments: there is no %v", kind)
	}
	c := &checker{kind: kind, arch: runtime.GOARCH, atEntry: atEntry, allAt: -1}
	if len(args) > MaxArgs {
		c.arg = args[MaxArgs]
		c.fail(c.arg.Pos, "", "an event has 128 arguments at most, and this is one of %d", len(args))
	}
	c.names(args)
	for i, a := range args {
		c.arg, c.index = a, i
		c.check()
	}
	c.record(args)
	return errors.Join(c.errs...)
}

type checker struct {
	kind    Kind
	arch    string
	atEntry bool
	arg     Arg // the one that is checked
	index   int // of it
	allAt   int // the index of $arg*; -1: there is none
	errs    []error
}

func (c *checker) fail(at Pos, text, format string, args ...any) {
	c.errs = append(c.errs, &Error{Col: int(at), Text: text, Arg: c.arg.String(), Msg: fmt.Sprintf(format, args...)})
}

// check checks one argument.
func (c *checker) check() {
	a := c.arg
	// What was not parsed may hold any text.
	if parsed, err := Parse(a.String()); err != nil || len(parsed) != 1 || parsed[0].String() != a.String() {
		if err == nil {
			err = errors.New("it would be read as something else")
		}
		c.fail(a.Pos, "", "it cannot be written: %v", err)
		return
	}
	failed := len(c.errs)
	Walk(a.Expr, func(e Expr) bool {
		c.expr(e)
		return true
	})
	if len(c.errs) > failed {
		return // its type would be the next to fail
	}
	c.typ()
	c.depth()
}

// reserved are the names that fields of every event have (kernel/trace/trace_probe.c, reserved_field_names).
var reserved = []string{"common_type", "common_flags", "common_preempt_count", "common_pid", "common_tgid",
	"__probe_ip", "__probe_ret_ip", "__probe_func"}

// names checks the names of the arguments, also those that the kernel makes up.
func (c *checker) names(args []Arg) {
	seen := map[string]int{}
	expanded := false
	for i, a := range args {
		c.arg = a
		if len(a.Name) > MaxName {
			c.fail(a.Pos, a.Name, "a name has 32 bytes at most, and this one %d", len(a.Name))
		}
		if slices.Contains(reserved, a.Name) {
			c.fail(a.Pos, a.Name, "every event has a field of this name")
		}
		if _, ok := a.Expr.(AllParams); ok {
			expanded = true // to a number of arguments that is not known here
			continue
		}
		name, known := c.name(a, i)
		if !known || a.Name == "" && expanded {
			continue
		}
		if first, ok := seen[name]; ok {
			c.fail(a.Pos, "", "argument %d has the name %s, too", first+1, name)
		}
		seen[name] = i
	}
}

// name returns the name of the argument at i. One that the kernel takes from BTF is only known to be that of a parameter.
func (c *checker) name(a Arg, i int) (name string, known bool) {
	if a.Name != "" {
		return a.Name, true
	}
	switch e := a.Expr.(type) {
	case Var:
		return e.Name, true
	case Param:
		if c.kind.function() {
			return Text(e), true
		}
	}
	return fmt.Sprintf("arg%d", i+1), true
}

// record checks the size of the record, and of a buffer that the kernel uses to replace %pd and %pD.
func (c *checker) record(args []Arg) {
	const dentryBuffer = 256 // kernel/trace/trace_probe.h, MAX_DENTRY_ARGS_LEN
	size, dentry := 0, 0
	for _, a := range args {
		c.arg = a
		t, fromBTF := a.Typed(c.kind)
		before := size
		if fromBTF {
			size++ // or more
		} else {
			size += t.ElemSize() * max(t.Len, 1)
		}
		if before <= MaxRecord && size > MaxRecord {
			c.fail(a.Pos, "", "the arguments up to here need %d bytes of the record, and %d is the most", size, MaxRecord)
		}
		if t.Base == Dentry || t.Base == File {
			before = dentry
			if dentry += expandedLen(a) + 1; a.Name != "" {
				dentry += len(a.Name) + 1
			}
			if before <= dentryBuffer && dentry > dentryBuffer {
				c.fail(a.TypePos, a.Type.String(), "there are more arguments with %%pd and %%pD than the kernel can replace")
			}
		}
	}
}

// expandedLen returns the bytes of EXPR:TYPE as the kernel reads it: %pd and %pD are replaced by dereferences.
func expandedLen(a Arg) int {
	switch a.Type.Base {
	case Dentry:
		return len("+0x0(+0x28(") + len(Text(a.Expr)) + len(")):string")
	case File:
		return len("+0x0(+0x28(+0x48(") + len(Text(a.Expr)) + len("))):string")
	}
	return len(a.body())
}
