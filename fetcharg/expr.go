package fetcharg

import (
	"strconv"
	"strings"
)

func (p *parser) here() Pos { return Pos(p.col + p.pos) }

// rest is what is left of the expression.
func (p *parser) rest() string { return p.token[p.pos:p.end] }

// skip takes the text s if it comes next.
func (p *parser) skip(s string) bool {
	if !strings.HasPrefix(p.rest(), s) {
		return false
	}
	p.pos += len(s)
	return true
}

// take takes what comes next as long as ok holds.
func (p *parser) take(ok func(byte) bool) string {
	start := p.pos
	for p.pos < p.end && ok(p.token[p.pos]) {
		p.pos++
	}
	return p.token[start:p.pos]
}

// expr reads one expression. That of a cast (without parentheses) ends before the first -, which begins the field.
func (p *parser) expr(ofCast bool) (Expr, *Error) {
	if p.pos == p.end {
		return nil, p.expected("an expression")
	}
	at := p.here()
	switch c := p.token[p.pos]; {
	case c == '$':
		return p.variable(ofCast)
	case c == '%':
		p.pos++
		name := p.take(func(c byte) bool { return isNameByte(c) })
		if name == "" {
			return nil, p.expected("the name of a register")
		}
		return Register{at, name}, nil
	case c == '@':
		return p.memory(ofCast)
	case c == '+', c == '-':
		return p.deref()
	case c == '\\':
		return p.immediate(ofCast)
	case c == '(':
		return p.cast()
	case p.skip("this_cpu_read("):
		e, err := p.closed()
		return PerCPU{at, true, e}, err
	case p.skip("this_cpu_ptr("):
		e, err := p.closed()
		return PerCPU{at, false, e}, err
	}
	name := p.take(isNameByte)
	if !isName(name) {
		p.pos -= len(name)
		return nil, p.expected(`an expression: %REGISTER, $NAME, @ADDRESS, @SYMBOL, \NUMBER, \"STRING", +OFFSET(EXPRESSION) or a name`)
	}
	return p.members(Var{at, name}, ofCast)
}

// closed reads an expression and the parenthesis after it.
func (p *parser) closed() (Expr, *Error) {
	e, err := p.expr(false)
	if err != nil {
		return nil, err
	}
	if !p.skip(")") {
		return nil, p.expected(")")
	}
	return e, nil
}

// variable reads what begins with $.
func (p *parser) variable(ofCast bool) (Expr, *Error) {
	at, start := p.here(), p.pos
	p.pos++
	if p.skip("arg*") {
		return AllParams{at}, nil
	}
	name := p.take(isNameByte)
	if n, ok := numbered(name, "arg"); ok {
		return Param{at, n}, nil
	}
	if n, ok := numbered(name, "stack"); ok {
		return StackEntry{at, n}, nil
	}
	switch {
	case name == "stack":
		return StackPointer{at}, nil
	case name == "comm", name == "COMM":
		return Comm{at, name == "COMM"}, nil
	case name == "retval":
		return p.members(RetVal{at}, ofCast)
	case name == "current":
		return p.members(Current{at}, ofCast)
	case !isName(name):
		p.pos = start
		return nil, p.expected("$ and a name")
	}
	return Field{at, name}, nil
}

// numbered splits names such as arg1. Those with leading zeros, which the kernel takes as well, are not among them, as an
// eprobe's field may have such a name.
func numbered(name, prefix string) (n uint64, ok bool) {
	digits, ok := strings.CutPrefix(name, prefix)
	n, err := strconv.ParseUint(digits, 10, 64)
	return n, ok && err == nil && strconv.FormatUint(n, 10) == digits
}

// memory reads what begins with @.
func (p *parser) memory(ofCast bool) (Expr, *Error) {
	at, start := p.here(), p.pos
	p.pos++
	isOperand := func(c byte) bool { return c != '(' && c != ')' && !(ofCast && c == '-') }
	switch rest := p.rest(); {
	case strings.HasPrefix(rest, "+"):
		p.pos++
		text := p.take(isOperand)
		n, ok := parseInt(text)
		if !ok {
			return nil, p.fail(start, "@+"+text, "expected @+ and an offset in the file")
		}
		return FileMemory{at, n}, nil
	case rest != "" && isDigit(rest[0]):
		text := p.take(isOperand)
		n, ok := parseUint(text)
		if !ok {
			return nil, p.fail(start, "@"+text, "expected @ and an address of 64 bits")
		}
		return Memory{at, n}, nil
	}
	s := Symbol{Pos: at, Name: p.take(isSymbolByte)}
	if s.Name == "" {
		return nil, p.expected("an address, a symbol or +OFFSET after @")
	}
	if rest := p.rest(); !ofCast && rest != "" && (rest[0] == '+' || rest[0] == '-') {
		from := p.pos
		text := p.take(isOperand)
		var ok bool
		if s.Offset, ok = parseInt(text); !ok {
			return nil, p.fail(from, text, "expected an offset from the symbol: + or - and a number")
		}
	}
	return s, nil
}

// isSymbolByte says what names of the kernel's symbols are made of.
func isSymbolByte(c byte) bool { return isNameByte(c) || c == '.' || c == '$' }

// deref reads +OFFSET(EXPR) and -OFFSET(EXPR).
func (p *parser) deref() (Expr, *Error) {
	d := Deref{Pos: p.here()}
	start := p.pos
	number := ""
	if p.token[p.pos] == '-' {
		number = "-" // a plus is left out: the kernel takes another sign after it
	}
	p.pos++
	d.User = p.skip("u")
	number += p.take(func(c byte) bool { return c != '(' && c != ')' })
	var ok bool
	if d.Offset, ok = parseInt(number); !ok {
		return nil, p.fail(start, p.token[start:p.pos], "expected a dereference +OFFSET(EXPRESSION), +uOFFSET(…), -OFFSET(…) or -uOFFSET(…)")
	}
	if !p.skip("(") {
		return nil, p.expected("( after the offset of a dereference")
	}
	e, err := p.closed()
	d.Base = e
	return d, err
}

// immediate reads \NUMBER and \"STRING".
func (p *parser) immediate(ofCast bool) (Expr, *Error) {
	at, start := p.here(), p.pos
	p.pos++
	if p.skip(`"`) {
		text, ok := strings.CutSuffix(p.rest(), `"`)
		switch {
		case start != strings.IndexByte(p.token, '=')+1:
			return nil, p.fail(start, p.token[start:p.end], "a string has no address: it can only be the argument itself")
		case !ok:
			p.pos = p.end
			return nil, p.expected(`" at the end of the string (which can hold no blank and no colon)`)
		}
		p.pos = p.end
		return ImmString{at, text}, nil
	}
	text := p.take(func(c byte) bool { return c != ')' && !(ofCast && c == '-') })
	n, ok := parseInt(strings.TrimPrefix(text, "+"))
	if !ok && text != "" && isDigit(text[0]) {
		var u uint64
		u, ok = parseUint(text)
		n = int64(u)
	}
	if !ok {
		return nil, p.fail(start, `\`+text, `expected \ and a number of 64 bits, or \" and a string`)
	}
	return Imm{at, n}, nil
}

// members reads the fields after what points to a struct, if there are any.
func (p *parser) members(e Expr, ofCast bool) (Expr, *Error) {
	if rest := p.rest(); ofCast || rest == "" || rest[0] != '-' && rest[0] != '.' {
		return e, nil
	}
	path, err := p.path(true)
	return Member{Pos(e.Column()), e, path}, err
}

// path reads ->FIELD.FIELD->FIELD; the first may be required to be an arrow.
func (p *parser) path(arrow bool) ([]Step, *Error) {
	var steps []Step
	for p.pos < p.end && p.token[p.pos] != ')' {
		var s Step
		switch {
		case p.skip("->"):
		case !arrow && p.skip("."):
			s.Dot = true
		case arrow:
			return nil, p.expected("-> and a field")
		default:
			return nil, p.expected("->, . or nothing after a field")
		}
		if s.Name = p.take(isNameByte); !isName(s.Name) {
			p.pos -= len(s.Name)
			return nil, p.expected("the name of a field")
		}
		steps, arrow = append(steps, s), false
	}
	return steps, nil
}

// cast reads (STRUCT)EXPR->FIELD and (STRUCT,FIELD)EXPR->FIELD.
func (p *parser) cast() (Expr, *Error) {
	c := Cast{Pos: p.here()}
	p.pos++
	if c.Struct = p.take(isNameByte); !isName(c.Struct) {
		p.pos -= len(c.Struct)
		return nil, p.expected("the name of a struct in the parentheses of a cast")
	}
	for sep := ","; p.skip(sep); sep = "." {
		name := p.take(isNameByte)
		if !isName(name) {
			p.pos -= len(name)
			return nil, p.expected("the name of a field in the parentheses of a cast")
		}
		c.Via = append(c.Via, name)
	}
	if !p.skip(")") {
		return nil, p.expected(") after the struct of a cast")
	}
	var err *Error
	if p.skip("(") {
		c.Base, err = p.closed()
	} else {
		c.Base, err = p.expr(true)
	}
	if err != nil {
		return nil, err
	}
	if !strings.HasPrefix(p.rest(), "->") {
		return nil, p.expected("-> and a field of the cast's struct (@SYMBOL+OFFSET needs parentheses in a cast)")
	}
	path, err := p.path(true)
	return Member{c.Pos, c, path}, err
}
