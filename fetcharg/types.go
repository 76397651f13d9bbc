package fetcharg

import (
	"fmt"
	"strconv"
)

// Base is the type of an argument, or of the elements of its array.
type Base uint8

const (
	Default Base = iota // see Type.Or
	U8
	U16
	U32
	U64
	S8
	S16
	S32
	S64
	X8
	X16
	X32
	X64
	Char
	String     // text in memory of the kernel; in uprobes of the process
	UString    // text in memory of the process
	SymbolType // an address, printed as symbol+offset/size
	SymStr     // the symbol of an address, recorded as text
	Dentry     // %pd: the name that a struct dentry * has
	File       // %pD: the name that a struct file * has
	BitField   // see Type's Width, Shift and Size
)

// bases are the names, sizes in the record in bytes, and signs. Strings are recorded as the place of their text
// (kernel/trace/trace_probe.c, probe_fetch_types).
var bases = [...]struct {
	name   string
	size   int
	signed bool
}{
	U8: {"u8", 1, false}, U16: {"u16", 2, false}, U32: {"u32", 4, false}, U64: {"u64", 8, false},
	S8: {"s8", 1, true}, S16: {"s16", 2, true}, S32: {"s32", 4, true}, S64: {"s64", 8, true},
	X8: {"x8", 1, false}, X16: {"x16", 2, false}, X32: {"x32", 4, false}, X64: {"x64", 8, false},
	Char: {"char", 1, false}, String: {"string", 4, false}, UString: {"ustring", 4, false}, SymbolType: {"symbol", 8, false},
	SymStr: {"symstr", 4, false}, Dentry: {"%pd", 4, false}, File: {"%pD", 4, false}, BitField: {},
}

// MaxLen is the largest length of an array (kernel/trace/trace_probe.h, MAX_ARRAY_LEN).
const MaxLen = 64

// Type is the type of an argument.
type Type struct {
	Base               Base
	Width, Shift, Size int // of a BitField: bits, from the lowest bit, in a container of so many bits
	Len                int // elements of an array; 0: it is no array
}

// ElemSize returns the bytes of one element in the record, also of the default type where it is not taken from BTF.
func (t Type) ElemSize() int {
	switch t.Base {
	case Default:
		return bases[X64].size
	case BitField:
		return t.Size / 8
	}
	return bases[t.Base].size
}

// Signed reports whether the values are signed.
func (t Type) Signed() bool { return bases[t.Base].signed }

// IsString reports whether the record holds text.
func (t Type) IsString() bool {
	switch t.Base {
	case String, UString, SymStr, Dentry, File:
		return true
	}
	return false
}

// String returns the type as it is written after the colon, or "".
func (t Type) String() string {
	s := bases[t.Base].name
	if t.Base == BitField {
		s = fmt.Sprintf("b%d@%d/%d", t.Width, t.Shift, t.Size)
	}
	if t.Len > 0 {
		s += "[" + strconv.Itoa(t.Len) + "]"
	}
	return s
}

// Typed returns the type that the argument has in a probe of the kind. Without a type it is String for $comm and \"TEXT",
// but for eprobes, which record their address; and X64 for the others. fromBTF says that a kernel that knows the function
// from BTF may take another: that of the parameter, of the field or of the returned value. The event's format file tells.
func (a Arg) Typed(kind Kind) (t Type, fromBTF bool) {
	if a.Type.Base != Default {
		return a.Type, false
	}
	switch a.Expr.(type) {
	case Comm, ImmString:
		if kind != Eprobe {
			return Type{Base: String}, false
		}
	case Member:
		fromBTF = true
	case Var, AllParams:
		fromBTF = kind.function()
	case RetVal:
		fromBTF = kind != Uretprobe && kind != Eprobe
	case Param:
		fromBTF = a.Name == "" && kind != Eprobe
	}
	return Type{Base: X64}, fromBTF
}
