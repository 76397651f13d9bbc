package fetcharg

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
)

// Format is what an event's format file in tracefs tells of its records.
type Format struct {
	Name   string
	ID     int // common_type of its records
	Fields []RecordField
	Print  string // how the kernel prints a record: a format in quotation marks, and its arguments
	// Symbols returns the text for an address of type symbol, such as "vfs_read+0x4/0x20", or "". It may be nil.
	Symbols func(address uint64) string
}

// RecordField is a field of an event's records.
type RecordField struct {
	Name   string
	Type   string // in C, without an array's length
	Offset int    // in the record, bytes
	Size   int    // bytes, of all elements
	Signed bool
	Len    int // elements of an array; 0: it is no array
	// Loc says that the field tells where the data is: "__data_loc" from the begin of the record, "__rel_loc" from the end
	// of the field. Then Type is that of the data's elements, and Len the number of such fields that follow each other.
	Loc string
	// Verb is how the kernel prints an element of a probe event's argument: one of the conversions below, or "".
	Verb string
}

// ParseFormat reads an event's format file.
func ParseFormat(r io.Reader) (*Format, error) {
	f := &Format{}
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 1<<20)
	for n := 1; lines.Scan(); n++ {
		key, value, ok := strings.Cut(strings.TrimSpace(lines.Text()), ":")
		var err error
		switch value = strings.TrimSpace(value); {
		case key == "name":
			f.Name = value
		case key == "ID":
			f.ID, err = strconv.Atoi(value)
		case key == "field":
			err = f.addField(value)
		case key == "print fmt":
			f.Print = value
		case key != "" && (!ok || key != "format"):
			err = fmt.Errorf("expected name, ID, format, field or print fmt, found %q", key)
		}
		if err != nil {
			return nil, fmt.Errorf("read event format: line %d: %w", n, err)
		}
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("read event format: %w", err)
	}
	if f.Name == "" || len(f.Fields) == 0 {
		return nil, errors.New("read event format: it has no name or no fields")
	}
	f.setVerbs()
	return f, nil
}

// addField reads TYPE NAME;	offset:N;	size:N;	signed:N;
func (f *Format) addField(text string) error {
	decl, rest, _ := strings.Cut(text, ";")
	field := RecordField{}
	for part := range strings.SplitSeq(rest, ";") {
		key, value, ok := strings.Cut(strings.TrimSpace(part), ":")
		if !ok {
			continue
		}
		n, err := strconv.ParseUint(value, 10, 31)
		if err != nil {
			return fmt.Errorf("field %q: %w", decl, err)
		}
		switch key {
		case "offset":
			field.Offset = int(n)
		case "size":
			field.Size = int(n)
		case "signed":
			field.Signed = n != 0
		}
	}
	if err := field.declare(decl); err != nil {
		return fmt.Errorf("field %q: %w", decl, err)
	}
	if slices.ContainsFunc(f.Fields, func(o RecordField) bool { return o.Name == field.Name }) {
		return fmt.Errorf("field %q: there are two of that name", decl)
	}
	f.Fields = append(f.Fields, field)
	return nil
}

// declare reads the type and the name: TYPE NAME, TYPE NAME[N], __data_loc TYPE[] NAME, __data_loc TYPE[][N] NAME.
func (field *RecordField) declare(decl string) error {
	i := strings.LastIndexAny(decl, " \t*")
	if i < 0 {
		return errors.New("expected a type and a name")
	}
	typ, name := strings.TrimSpace(decl[:i+1]), decl[i+1:]
	var length string
	isArray := false
	if loc, rest, ok := strings.Cut(typ, " "); ok && (loc == "__data_loc" || loc == "__rel_loc") {
		field.Loc = loc
		typ, length, isArray = strings.Cut(rest, "[]")
		isArray = isArray && length != ""
	} else if name, length, isArray = strings.Cut(name, "["); isArray {
		length = "[" + length
	}
	field.Name, field.Type = name, strings.TrimSpace(typ)
	if field.Name == "" || field.Type == "" {
		return errors.New("expected a type and a name")
	}
	if !isArray {
		if field.Loc != "" && field.Size != 4 {
			return fmt.Errorf("a %s has 4 bytes, this one %d", field.Loc, field.Size)
		}
		return nil
	}
	return field.setLen(strings.Trim(length, "[]"))
}

// setLen sets the number of the elements. Where it is a name of the kernel's, or missing, the type's size tells.
func (field *RecordField) setLen(text string) error {
	n, err := strconv.ParseUint(text, 10, 31)
	if err != nil {
		n = uint64(field.Size / elemSize(field.Type))
	}
	if n == 0 || field.Size%int(n) != 0 || field.Loc != "" && field.Size != int(n)*4 {
		if field.Size == 0 {
			return nil // an array at the end, whose length no one tells
		}
		return fmt.Errorf("%d bytes are no array of %d", field.Size, n)
	}
	field.Len = int(n)
	return nil
}

// elemSize returns the bytes of a type of C, 1 for those that are not known here.
func elemSize(typ string) int {
	typ = strings.TrimPrefix(typ, "const ")
	switch typ {
	case "u16", "s16", "__u16", "__s16", "short", "unsigned short", "uint16_t", "int16_t", "__be16", "__le16":
		return 2
	case "u32", "s32", "__u32", "__s32", "int", "unsigned int", "unsigned", "uint32_t", "int32_t", "__be32", "__le32", "pid_t":
		return 4
	case "u64", "s64", "__u64", "__s64", "long", "unsigned long", "long long", "unsigned long long", "uint64_t", "int64_t",
		"__be64", "__le64", "size_t", "ssize_t", "loff_t":
		return 8
	}
	if strings.HasSuffix(typ, "*") {
		return 8
	}
	return 1
}

// common reports whether the field is not one of a probe event's arguments.
func (field RecordField) common() bool {
	return strings.HasPrefix(field.Name, "common_") || slices.Contains(reserved, field.Name)
}

// setVerbs takes the conversions of the arguments from the print fmt: "(%lx) a=0x%Lx b={%u,%u}", REC->…
func (f *Format) setVerbs() {
	text, ok := strings.CutPrefix(f.Print, `"`)
	if !ok {
		return
	}
	for i := range text {
		if text[i] == '"' && (i == 0 || text[i-1] != '\\') {
			text = text[:i]
			break
		}
	}
	for part := range strings.SplitSeq(text, " ") {
		name, verb, ok := strings.Cut(part, "=")
		i := slices.IndexFunc(f.Fields, func(field RecordField) bool { return field.Name == name })
		if !ok || i < 0 {
			continue
		}
		if array, ok := strings.CutPrefix(verb, "{"); ok {
			verb, _, _ = strings.Cut(strings.TrimSuffix(array, "}"), ",")
		}
		if _, known := verbs[verb]; known {
			f.Fields[i].Verb = verb
		}
	}
}
