package fetcharg

import (
	"errors"
	"strings"
)

// Limits of the kernel (kernel/trace/trace_probe.h).
const (
	MaxArgs    = 128  // arguments of an event
	MaxName    = 32   // bytes of an argument's name
	MaxText    = 255  // bytes of EXPR:TYPE; see oldMaxText
	MaxRecord  = 3072 // bytes of an event's arguments in the record, the text of strings not counted
	oldMaxText = 63   // before 7.3
)

// Parse reads a list of arguments as it stands in a definition. It reads what any kernel can read: whether a kind of probe
// has an argument, Check says. The error joins an *Error for each argument that cannot be read; the others are returned.
func Parse(list string) ([]Arg, error) {
	var args []Arg
	var errs []error
	for start := 0; start < len(list); {
		if isSpace(list[start]) {
			start++
			continue
		}
		end := start
		for end < len(list) && !isSpace(list[end]) {
			end++
		}
		p := &parser{token: list[start:end], col: start + 1}
		if a, err := p.arg(); err != nil {
			errs = append(errs, err)
		} else {
			args = append(args, a)
		}
		start = end
	}
	return args, errors.Join(errs...)
}

// isSpace is what the kernel's argv_split takes for a blank: also 0xa0, the Latin-1 no-break space, wherever in a UTF-8
// sequence that byte is (lib/ctype.c).
func isSpace(c byte) bool { return c == ' ' || '\t' <= c && c <= '\r' || c == 0xa0 }

// isName reports whether s is a name as in C. The kernel also takes the letters of Latin-1 (is_good_name in
// include/linux/trace_events.h), which would be no UTF-8.
func isName(s string) bool {
	for i := range len(s) {
		if !isNameByte(s[i]) || i == 0 && isDigit(s[i]) {
			return false
		}
	}
	return s != ""
}

func isNameByte(c byte) bool { return isDigit(c) || c == '_' || 'a' <= c|0x20 && c|0x20 <= 'z' }

// parser reads one argument.
type parser struct {
	token string
	col   int // of the token in the list
	pos   int // in the token
	end   int // of the expression in the token
}

// fail says what is wrong with the part of the token that begins at from.
func (p *parser) fail(from int, text, msg string) *Error {
	return &Error{Col: p.col + from, Text: text, Arg: p.token, Msg: msg}
}

// expected says what there should be at the parser's place.
func (p *parser) expected(what string) *Error {
	rest := p.token[p.pos:p.end]
	if rest == "" {
		rest = "the end"
		if p.end < len(p.token) {
			rest = "the type"
		}
		return p.fail(p.pos, "", "expected "+what+", found "+rest)
	}
	return p.fail(p.pos, rest, "expected "+what)
}

func (p *parser) arg() (Arg, error) {
	a := Arg{Pos: Pos(p.col)}
	if i := strings.IndexAny(p.token, "#\x00"); i >= 0 {
		return a, p.fail(i, p.token[i:i+1], "the kernel would read no further: # starts a comment, and a zero byte ends the text")
	}
	name, body, named := strings.Cut(p.token, "=")
	switch {
	case !named:
		body = p.token
	case name == "":
		return a, p.fail(0, "", "expected a name before =")
	case !isName(name):
		return a, p.fail(0, name, "expected a name: a letter or _, then letters, digits and _ (an unnamed string cannot have = in it)")
	default:
		a.Name, p.pos = name, len(name)+1
	}
	if body == "" {
		return a, p.fail(p.pos, "", "expected an expression")
	}
	if len(body) > MaxText {
		return a, p.fail(p.pos, "", "too long: the kernel takes 255 bytes of EXPR:TYPE, before 7.3 63")
	}
	p.end = len(p.token)
	if i := strings.IndexByte(body, ':'); i >= 0 { // in a string, too
		p.end = p.pos + i
		a.TypePos = Pos(p.col + p.end + 1)
		var err *Error
		if a.Type, err = p.parseType(p.end + 1); err != nil {
			return a, err
		}
	}
	e, err := p.expr(false)
	if err != nil {
		return a, err
	}
	if p.pos < p.end {
		return a, p.expected("nothing more, or : and a type")
	}
	a.Expr = e
	return a, nil
}

// parseType reads the type that begins at from.
func (p *parser) parseType(from int) (Type, *Error) {
	var t Type
	text := p.token[from:]
	name, array, isArray := strings.Cut(text, "[")
	if isArray {
		at := from + len(name) + 1
		number, rest, ok := strings.Cut(array, "]")
		n, isNumber := parseUint(number)
		switch {
		case !ok:
			return t, p.fail(len(p.token), "", "expected ] at the end of the array's length")
		case rest != "":
			return t, p.fail(at+len(number)+1, rest, "expected nothing after the array's length")
		case !isNumber || n < 1 || n > MaxLen:
			return t, p.fail(at, number, "expected an array's length from 1 to 64")
		}
		t.Len = int(n)
	}
	if len(name) > 1 && name[0] == 'b' && (isDigit(name[1]) || strings.ContainsAny(name, "@/")) {
		err := p.parseBits(from, name, &t)
		return t, err
	}
	for b := U8; b < BitField; b++ {
		if bases[b].name == name && (t.Len == 0 || b != Dentry && b != File) { // the kernel looks for them at the end
			t.Base = b
			return t, nil
		}
	}
	return t, p.fail(from, text, "expected a type: u8, u16, u32, u64, s…, x…, char, string, ustring, symbol, symstr, %pd, %pD, "+
		"bWIDTH@SHIFT/8, /16, /32, /64, or one of these but for %pd and %pD with [LENGTH]")
}

// parseBits reads bWIDTH@SHIFT/SIZE.
func (p *parser) parseBits(from int, text string, t *Type) *Error {
	width, rest, ok1 := strings.Cut(text[1:], "@")
	shift, size, ok2 := strings.Cut(rest, "/")
	w, ok3 := digitsUint(width)
	s, ok4 := digitsUint(shift)
	c, ok5 := parseUint(size)
	if !ok1 || !ok2 || !ok3 || !ok4 || !ok5 || c != 8 && c != 16 && c != 32 && c != 64 {
		return p.fail(from, text, "expected a bit field bWIDTH@SHIFT/SIZE of size 8, 16, 32 or 64")
	}
	if w < 1 || w > c || s > c-w {
		return p.fail(from, text, "expected a bit field of at least one bit inside its container")
	}
	t.Base, t.Width, t.Shift, t.Size = BitField, int(w), int(s), int(c)
	return nil
}
