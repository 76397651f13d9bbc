package fetcharg

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"fmt"
	"slices"
)

// Layout tells how the records of a compiled program are laid out. All numbers have the byte order of the machine.
//
//	u64 faults[Faults]  argument i could not be read if bit i%64 of word i/64 is set; its field has no meaning then
//	fields              one for each argument, without any gap: those of 8 bytes first, then those of 4, 2 and 1, and
//	                    those of the same size in the order of the arguments
//
// A field is one of
//
//	a number            of the argument's type
//	an array of these
//	the task's name     16 bytes, with a zero byte at its end
//	a constant text     with a zero byte at its end, filled up with such to a multiple of 4 bytes
//	a text              u32 length, with the zero byte at its end; then room for MaxString bytes, rounded up to a multiple
//	                    of 4. What is behind the zero byte is of an earlier record. The length is 0 if the text could
//	                    not be read; if it is that of the room, the text may have been longer.
//	an array of texts   of these, each with its room
//
// An array of numbers is read at once: if a part of it cannot be read, all of it is faulted. Of an array of texts each one
// has its own length; the bit is set if the pointers could not be read at all.
type Layout struct {
	Size   int // of a record, bytes
	Faults int // words
	Fields []LayoutField
	// Symbols returns the text for an address of type symbol, as in Format. It may be nil.
	Symbols func(address uint64) string
}

// LayoutField is the field of an argument. Its Offset, and its Size of all elements, are those in the compiled program's
// record. Its Type is that of an element, its Verb how the kernel prints it.
type LayoutField struct {
	RecordField
	Arg  Arg // as it was compiled: $arg* is one for each parameter
	Room int // bytes for a text, behind its length; 0: it has no length
}

// taskNameSize is TASK_COMM_LEN of the kernel, lengthSize that of a text's length.
const (
	taskNameSize = 16
	lengthSize   = 4
)

// textRoom returns the room that text has, for CompileOptions.MaxString.
func textRoom(maxString int) int { return (maxString + 3) &^ 3 }

// room returns the bytes that a fetch needs in the record, and what its place must be a multiple of.
func (f *fetch) room(maxString int) (size, align int) {
	switch f.how {
	case taskName:
		return taskNameSize, 8
	case literal:
		return (len(f.text) + 4) &^ 3, 4
	case readText, readTexts, symbolText:
		return f.elements() * (lengthSize + textRoom(maxString)), 4
	}
	return f.elements() * f.typ.ElemSize(), f.typ.ElemSize()
}

// layout places the fields.
func (c *compiler) layout() Layout {
	l := Layout{Faults: max(1, (len(c.list)+63)/64), Fields: make([]LayoutField, len(c.list))}
	order := make([]int, len(c.list))
	for i := range order {
		order[i] = i
	}
	align := func(i int) int {
		_, align := c.list[i].room(c.opt.MaxString)
		return align
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(align(b), align(a)) })
	l.Size = 8 * l.Faults
	for _, i := range order {
		size, _ := c.list[i].room(c.opt.MaxString)
		l.Fields[i] = c.list[i].field(c.opt.MaxString)
		l.Fields[i].Offset, l.Fields[i].Size = l.Size, size
		l.Size += size
	}
	return l
}

// field describes a fetch's field, but for its place.
func (f *fetch) field(maxString int) LayoutField {
	r := LayoutField{Arg: f.arg}
	r.Name, r.Len = f.name, f.typ.Len
	switch f.how {
	case taskName, literal:
		r.Type = "char"
		r.Verb = `\"%s\"`
	case readText, readTexts, symbolText:
		r.Type, r.Room = "char", textRoom(maxString)
		r.Verb = `\"%s\"`
	default:
		r.Signed = f.typ.Signed()
		r.Type = fmt.Sprintf("%c%d", "us"[btoi(r.Signed)], 8*f.typ.ElemSize())
		r.Verb = f.typ.verbInFull()
	}
	return r
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

// verbInFull is the conversion of a number as it stands in a print fmt.
func (t Type) verbInFull() string {
	verb := t.verb()
	if t.Signed() {
		verb = "%d"
	}
	if t.ElemSize() == 8 && t.Base != SymbolType {
		verb = map[string]string{"%u": "%Lu", "%d": "%Ld", "0x%x": "0x%Lx"}[verb]
	}
	return verb
}

// Decode returns the values of a record, in the order of the arguments. The record may be followed by more. In the value of
// the map "last" it begins at LastOffset. What could not be read is a Fault.
func (c *Compiled) Decode(record []byte) ([]Value, error) {
	l := &c.Layout
	if len(record) < l.Size {
		return nil, fmt.Errorf("decode record: it has %d bytes, expected %d", len(record), l.Size)
	}
	values := make([]Value, len(l.Fields))
	for i, f := range l.Fields {
		faulted := binary.NativeEndian.Uint64(record[i/64*8:])>>(i%64)&1 != 0
		data, err := f.decode(record[f.Offset:][:f.Size], faulted)
		if err != nil {
			return nil, fmt.Errorf("decode record: field %s: %w", f.Name, err)
		}
		values[i] = Value{f.RecordField, data, l.Symbols}
	}
	return values, nil
}

func (f LayoutField) decode(raw []byte, faulted bool) (any, error) {
	isArray := f.Len > 0
	switch {
	case f.Room > 0 && isArray:
		texts := make([]any, f.Len)
		size := len(raw) / f.Len
		for i := range texts {
			var err error
			if texts[i], err = f.decodeText(raw[i*size:][:size], faulted); err != nil {
				return nil, err
			}
		}
		return texts, nil
	case f.Room > 0:
		return f.decodeText(raw, faulted)
	case faulted:
		return Fault{}, nil
	case f.Type == "char":
		text, _, _ := bytes.Cut(raw, []byte{0})
		return string(text), nil
	case isArray:
		return integers(raw, len(raw)/f.Len, f.Signed), nil
	}
	return integer(raw, f.Signed), nil
}

// decodeText decodes a text with its length.
func (f LayoutField) decodeText(raw []byte, faulted bool) (any, error) {
	n := binary.NativeEndian.Uint32(raw)
	if faulted || n == 0 {
		return Fault{}, nil
	}
	if n > uint32(f.Room) {
		return nil, fmt.Errorf("text of %d bytes where there is room for %d", n, f.Room)
	}
	text, _, _ := bytes.Cut(raw[lengthSize:][:n], []byte{0})
	return string(text), nil
}
