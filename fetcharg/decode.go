package fetcharg

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"strconv"
	"strings"
)

// Value is the value of a field in a record.
type Value struct {
	Field RecordField
	// Data is an int64 or uint64, a string, a Fault, or for arrays a []any of these. The bytes of what is none of C's
	// integers are an array of uint64.
	Data any

	symbols func(uint64) string
}

// Fault stands for text that could not be read when the event happened. Of numbers that could not be read the record does
// not tell: it has what was in the buffer before.
type Fault struct{}

// String returns what the kernel prints.
func (Fault) String() string { return "(fault)" }

// Decode returns the values of all the fields of a record, which begins with common_type and has the byte order of this
// machine. A string is what the kernel prints: it ends at the first zero byte, even if that is after its recorded length
// (symstr is recorded without one).
func (f *Format) Decode(record []byte) ([]Value, error) {
	values := make([]Value, 0, len(f.Fields))
	for _, field := range f.Fields {
		data, err := field.decode(record)
		if err != nil {
			return nil, fmt.Errorf("decode record of %s: field %s: %w", f.Name, field.Name, err)
		}
		values = append(values, Value{field, data, f.Symbols})
	}
	return values, nil
}

// part returns the bytes of the record from offset on.
func part(record []byte, offset, size int) ([]byte, error) {
	if offset < 0 || size < 0 || offset > len(record) || size > len(record)-offset {
		return nil, fmt.Errorf("it has %d bytes at %d, and the record ends at %d", size, offset, len(record))
	}
	return record[offset : offset+size], nil
}

func (field RecordField) decode(record []byte) (any, error) {
	raw, err := part(record, field.Offset, field.Size)
	if err != nil {
		return nil, err
	}
	switch {
	case field.Loc != "":
		return field.decodeLocs(record, raw)
	case field.Len > 0 && field.Type == "char" && field.Verb == "":
		text, _, _ := bytes.Cut(raw, []byte{0})
		return string(text), nil
	case field.Len > 0:
		return integers(raw, field.Size/field.Len, field.Signed), nil
	case isInteger(field.Size):
		return integer(raw, field.Signed), nil
	}
	return integers(raw, 1, false), nil
}

// decodeLocs decodes the data that one or more __data_loc or __rel_loc point to: each has the data's offset in its lower
// half and the length in the upper one.
func (field RecordField) decodeLocs(record, raw []byte) (any, error) {
	var all []any
	for i := 0; i+4 <= len(raw); i += 4 {
		loc := binary.NativeEndian.Uint32(raw[i:])
		offset, size := int(loc&0xffff), int(loc>>16)
		if field.Loc == "__rel_loc" {
			offset += field.Offset + i + 4
		}
		data, err := field.decodeAt(record, offset, size)
		if err != nil {
			return nil, err
		}
		all = append(all, data)
	}
	if field.Len == 0 && len(all) == 1 {
		return all[0], nil
	}
	return all, nil
}

func (field RecordField) decodeAt(record []byte, offset, size int) (any, error) {
	isText := field.Type == "char"
	if isText && size == 0 {
		return Fault{}, nil
	}
	raw, err := part(record, offset, size)
	if err != nil {
		return nil, err
	}
	if isText {
		text, _, _ := bytes.Cut(record[offset:], []byte{0})
		return string(text), nil
	}
	return integers(raw, elemSize(field.Type), field.Signed), nil
}

func isInteger(size int) bool { return size == 1 || size == 2 || size == 4 || size == 8 }

// integers cuts raw into integers of the size, or into bytes.
func integers(raw []byte, size int, signed bool) []any {
	if !isInteger(size) {
		size, signed = 1, false
	}
	all := make([]any, 0, len(raw)/size)
	for ; len(raw) >= size; raw = raw[size:] {
		all = append(all, integer(raw[:size], signed))
	}
	return all
}

func integer(raw []byte, signed bool) any {
	var n uint64
	switch len(raw) {
	case 1:
		n = uint64(raw[0])
	case 2:
		n = uint64(binary.NativeEndian.Uint16(raw))
	case 4:
		n = uint64(binary.NativeEndian.Uint32(raw))
	default:
		n = binary.NativeEndian.Uint64(raw)
	}
	if signed {
		unused := 64 - 8*len(raw)
		return int64(n<<unused) >> unused
	}
	return n
}

// verbs are the conversions that the print fmt of a probe event has (PRINT_TYPE_FMT_NAME in kernel/trace/trace_probe.c).
var verbs = map[string]func(data any, symbols func(uint64) string) string{
	"%u": decimal, "%Lu": decimal, "%d": decimal, "%Ld": decimal,
	"0x%x": hexadecimal, "0x%Lx": hexadecimal,
	"'%c'": character, "%pS": symbol, `\"%s\"`: quoted,
}

// String returns the value as the kernel's trace_pipe prints it: arrays in braces, text in quotation marks. Without a print
// fmt that says otherwise, numbers are decimal.
func (v Value) String() string { return v.format(v.Field.Verb) }

func (v Value) format(verb string) string {
	print := verbs[verb]
	if print == nil {
		print = decimal
	}
	array, ok := v.Data.([]any)
	if !ok {
		return print(v.Data, v.symbols)
	}
	texts := make([]string, len(array))
	for i, data := range array {
		texts[i] = print(data, v.symbols)
	}
	return "{" + strings.Join(texts, ",") + "}"
}

func decimal(data any, _ func(uint64) string) string {
	switch n := data.(type) {
	case int64:
		return strconv.FormatInt(n, 10)
	case uint64:
		return strconv.FormatUint(n, 10)
	}
	return quoted(data, nil)
}

func hexadecimal(data any, symbols func(uint64) string) string {
	switch n := data.(type) {
	case int64:
		return "0x" + strconv.FormatUint(uint64(n), 16)
	case uint64:
		return "0x" + strconv.FormatUint(n, 16)
	}
	return quoted(data, symbols)
}

func character(data any, symbols func(uint64) string) string {
	switch n := data.(type) {
	case int64:
		return "'" + string([]byte{byte(n)}) + "'"
	case uint64:
		return "'" + string([]byte{byte(n)}) + "'"
	}
	return quoted(data, symbols)
}

// symbol prints an address that is no symbol's as a number, as the kernel does.
func symbol(data any, symbols func(uint64) string) string {
	if address, ok := data.(uint64); ok && symbols != nil {
		if text := symbols(address); text != "" {
			return text
		}
	}
	return hexadecimal(data, symbols)
}

func quoted(data any, _ func(uint64) string) string {
	if text, ok := data.(string); ok {
		return `"` + text + `"`
	}
	return fmt.Sprint(data)
}

// FormatLine returns the values of a probe event's arguments as trace_pipe prints them after the event's place: with a
// blank, the name and = before each. args may be nil; if they are the event's, their types say how to print, and the
// print fmt where they have none.
func FormatLine(values []Value, args []Arg) string {
	var b strings.Builder
	i := 0
	for _, v := range values {
		if v.Field.common() {
			continue
		}
		verb := v.Field.Verb
		if i < len(args) {
			if _, several := args[i].Expr.(AllParams); several {
				args = nil // from here on, it is not known which is whose
			} else if own := args[i].Type.verb(); own != "" {
				verb = own
			}
		}
		i++
		b.WriteString(" " + v.Field.Name + "=" + v.format(verb))
	}
	return b.String()
}

// verb returns the conversion that the kernel prints the type with, or "" for the default type.
func (t Type) verb() string {
	switch t.Base {
	case Default:
		return ""
	case Char:
		return "'%c'"
	case SymbolType:
		return "%pS"
	case X8, X16, X32, X64:
		return "0x%x"
	case String, UString, SymStr, Dentry, File:
		return `\"%s\"`
	}
	return "%u"
}
