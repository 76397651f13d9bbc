package fetcharg

import (
	"math"

	"github.com/cilium/ebpf/btf"
)

// typed is what BTF tells of an expression. Of a field it tells where it is: at in + off.
type typed struct {
	typ         btf.Type // without names and const; nil: it tells nothing
	in          *node
	off         int64 // bytes
	bits, shift int   // of a bit field; bits is 0 if it is none
}

// typed returns what BTF tells of an expression that may have its type from there. ok is false if the expression cannot be
// compiled; then it is noted why.
func (c *compiler) typed(e Expr) (typed, bool) {
	switch e := e.(type) {
	case Var:
		n, ok := c.paramNumber(e)
		if !ok {
			return typed{}, false
		}
		params, _ := c.types.params()
		return typed{typ: btf.UnderlyingType(params[n-1].Type)}, true
	case RetVal:
		proto, err := c.types.function()
		if err != nil {
			return typed{}, true
		}
		typ := btf.UnderlyingType(proto.Return)
		if _, ok := typ.(*btf.Void); ok {
			c.fail(e.Pos, Text(e), "%s returns nothing", c.event.Target)
			return typed{}, false
		}
		return typed{typ: typ}, true
	case Member:
		return c.member(e)
	}
	return typed{}, true
}

// paramNumber finds a parameter by its name, and counts from 1.
func (c *compiler) paramNumber(e Var) (int, bool) {
	params, err := c.types.params()
	if err != nil {
		c.unsupported(e.Pos, err, "the parameters of %s are not known", c.event.Target)
		return 0, false
	}
	for i, p := range params {
		if p.Name == e.Name {
			return i + 1, true
		}
	}
	c.fail(e.Pos, e.Name, "%s has no such parameter", c.event.Target)
	return 0, false
}

// member finds a field.
func (c *compiler) member(e Member) (typed, bool) {
	m, ok := c.memberBase(e)
	if !ok {
		return typed{}, false
	}
	for i, s := range e.Path {
		if !s.Dot && i > 0 {
			m.in, m.off = c.deref(m.in, m.off, false), 0
			if m.typ = pointee(m.typ); m.typ == nil {
				c.fail(e.Pos, s.Name, "the field before it is no pointer")
				return typed{}, false
			}
		}
		found, offset, ok := member(m.typ, s.Name)
		if !ok {
			c.fail(e.Pos, s.Name, "%s has no such field", typeName(m.typ))
			return typed{}, false
		}
		bits := m.shift + int(offset)
		m.off, m.shift = m.off+int64(bits/8), bits%8
		m.typ, m.bits = btf.UnderlyingType(found.Type), int(found.BitfieldSize)
	}
	if m.bits == 0 {
		m.shift = 0
	}
	if m.off < math.MinInt32 || m.off > math.MaxInt32 || m.bits+m.shift > 64 {
		c.unsupported(e.Pos, nil, "the field is too far away")
		return typed{}, false
	}
	return m, true
}

func typeName(t btf.Type) string {
	if len(members(t)) == 0 {
		return "what is no struct"
	}
	return "struct " + t.TypeName()
}

// memberBase returns the struct that the first field is in, and where it is.
func (c *compiler) memberBase(e Member) (typed, bool) {
	if cast, ok := e.Base.(Cast); ok {
		return c.cast(cast)
	}
	m := typed{}
	if _, ok := e.Base.(Current); ok {
		return c.structure(e.Pos, "task_struct", e.Base)
	}
	m, ok := c.typed(e.Base)
	if !ok {
		return m, false
	}
	if m.typ == nil {
		_, err := c.types.function()
		c.unsupported(e.Pos, err, "the type of %s is not known", Text(e.Base))
		return m, false
	}
	if m.typ = pointee(m.typ); m.typ == nil {
		c.fail(e.Pos, Text(e.Base), "it is no pointer")
		return m, false
	}
	m.in = c.value(e.Base)
	return m, m.in != nil
}

// structure returns the struct of the name, at the address that the expression is.
func (c *compiler) structure(at Pos, name string, e Expr) (typed, bool) {
	spec, err := c.types.kernel()
	if err != nil {
		c.unsupported(at, err, "struct %s is not known", name)
		return typed{}, false
	}
	s, ok := find[*btf.Struct](spec, name)
	if !ok {
		c.fail(at, name, "there is no struct of this name")
		return typed{}, false
	}
	n := c.value(e)
	return typed{typ: s, in: n}, n != nil
}

// cast returns the struct that an address is taken for that of, or of a field of.
func (c *compiler) cast(e Cast) (typed, bool) {
	m, ok := c.structure(e.Pos, e.Struct, e.Base)
	if !ok || len(e.Via) == 0 {
		return m, ok
	}
	off, err := c.types.offsetOf(e.Struct, e.Via...)
	if err != nil {
		c.fail(e.Pos, e.Struct, "%v", err)
		return m, false
	}
	m.off = -off
	return m, true
}
