package fetcharg

import (
	"errors"
	"fmt"
	"strings"
)

// CheckFields checks an eprobe's arguments against the format of the event that it is attached to: the fields that they
// name must be there (common_… cannot be fetched). It joins an *Error for each problem.
func (f *Format) CheckFields(args []Arg) error {
	c := &checker{kind: Eprobe}
	for _, a := range args {
		c.arg = a
		Walk(a.Expr, func(e Expr) bool {
			c.field(f, e)
			return true
		})
		if task(f, a.Expr) && a.Type.Base == SymStr {
			c.failType("the task's name is no symbol's address")
		}
	}
	return errors.Join(c.errs...)
}

// task reports whether the expression is the task's name, as the event has no field of that.
func task(f *Format, e Expr) bool {
	c, ok := e.(Comm)
	return ok && (c.Upper || !f.has("comm"))
}

func (c *checker) field(f *Format, e Expr) {
	switch inner := base(e); e.(type) {
	case Deref, PerCPU:
		if inner != nil && task(f, inner) {
			c.fail(Pos(inner.Column()), Text(inner), "the task's name has no address to be used")
		}
	}
	if !isField(e) || task(f, e) {
		return
	}
	name := strings.TrimPrefix(Text(e), "$")
	if !f.has(name) {
		c.fail(Pos(e.Column()), Text(e), "event %s has no such field: expected %s", f.Name, f.list())
	}
}

func (f *Format) has(name string) bool {
	for _, field := range f.Fields {
		if field.Name == name && !strings.HasPrefix(name, "common_") {
			return true
		}
	}
	return false
}

// list names the fields, for a message.
func (f *Format) list() string {
	var names []string
	for _, field := range f.Fields {
		if !strings.HasPrefix(field.Name, "common_") {
			names = append(names, "$"+field.Name)
		}
	}
	if len(names) == 0 {
		return "none"
	}
	return fmt.Sprintf("one of %s", strings.Join(names, ", "))
}
