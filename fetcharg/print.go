package fetcharg

import (
	"fmt"
	"strings"
)

// String returns the argument in a form that the kernel takes and Parse reads as the same argument: numbers in their
// shorter form, nothing that could be left out.
func (a Arg) String() string {
	var b strings.Builder
	if a.Name != "" {
		b.WriteString(a.Name + "=")
	}
	b.WriteString(a.body())
	return b.String()
}

// body is the argument without its name.
func (a Arg) body() string {
	var b strings.Builder
	writeExpr(&b, a.Expr)
	if t := a.Type.String(); t != "" {
		b.WriteString(":" + t)
	}
	return b.String()
}

// Join returns the list of the arguments as it stands in a definition.
func Join(args []Arg) string {
	texts := make([]string, len(args))
	for i, a := range args {
		texts[i] = a.String()
	}
	return strings.Join(texts, " ")
}

// Text returns the expression in the form of Arg.String.
func Text(e Expr) string {
	var b strings.Builder
	writeExpr(&b, e)
	return b.String()
}

func writeExpr(b *strings.Builder, e Expr) {
	switch e := e.(type) {
	case Register:
		b.WriteString("%" + e.Name)
	case Var:
		b.WriteString(e.Name)
	case Memory:
		b.WriteString("@" + formatUint(e.Addr))
	case FileMemory:
		b.WriteString("@+" + strings.TrimPrefix(formatInt(e.Offset), "+"))
	case Symbol:
		b.WriteString("@" + e.Name)
		if e.Offset != 0 {
			b.WriteString(formatInt(e.Offset))
		}
	case Imm:
		b.WriteString(`\` + strings.TrimPrefix(formatInt(e.Value), "+"))
	case ImmString:
		b.WriteString(`\"` + e.Value + `"`)
	case Deref:
		writeDeref(b, e)
	case PerCPU:
		b.WriteString(map[bool]string{false: "this_cpu_ptr(", true: "this_cpu_read("}[e.Read])
		writeExpr(b, e.Base)
		b.WriteString(")")
	case Cast:
		writeCast(b, e)
	case Member:
		writeExpr(b, e.Base)
		for _, s := range e.Path {
			b.WriteString(map[bool]string{false: "->", true: "."}[s.Dot] + s.Name)
		}
	default:
		name, _ := variable(e)
		b.WriteString("$" + name)
	}
}

// variable returns the name after the $ of the expressions that have one.
func variable(e Expr) (name string, ok bool) {
	switch e := e.(type) {
	case Param:
		return fmt.Sprintf("arg%d", e.N), true
	case AllParams:
		return "arg*", true
	case Field:
		return e.Name, true
	case StackEntry:
		return fmt.Sprintf("stack%d", e.N), true
	case StackPointer:
		return "stack", true
	case RetVal:
		return "retval", true
	case Comm:
		if e.Upper {
			return "COMM", true
		}
		return "comm", true
	case Current:
		return "current", true
	}
	return "", false
}

func writeDeref(b *strings.Builder, d Deref) {
	offset := formatInt(d.Offset)
	b.WriteString(offset[:1])
	if d.User {
		b.WriteString("u")
	}
	b.WriteString(offset[1:] + "(")
	writeExpr(b, d.Base)
	b.WriteString(")")
}

// writeCast leaves out the parentheses that Parse does not need.
func writeCast(b *strings.Builder, c Cast) {
	b.WriteString("(" + c.Struct)
	for i, name := range c.Via {
		b.WriteString(map[bool]string{true: ",", false: "."}[i == 0] + name)
	}
	b.WriteString(")")
	text := Text(c.Base)
	if bare(c.Base) {
		b.WriteString(text)
	} else {
		b.WriteString("(" + text + ")")
	}
}

// bare reports whether the expression can be that of a cast without parentheses: it has no - or + of its own outside of some.
func bare(e Expr) bool {
	switch e := e.(type) {
	case Symbol:
		return e.Offset == 0
	case Imm:
		return e.Value >= 0
	case FileMemory, ImmString, Member:
		return false
	}
	return true
}
