package fetcharg

import (
	"encoding/binary"
	"errors"
	"os"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
)

func readFormat(t testing.TB, name string) *Format {
	t.Helper()
	file, err := os.Open("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	f, err := ParseFormat(file)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func TestParseFormat(t *testing.T) {
	f := readFormat(t, "probe.format")
	if f.Name != "x" || f.ID != 1554 || !strings.HasPrefix(f.Print, `"(%lx) a=0x%Lx`) || !strings.HasSuffix(f.Print, "REC->i[0]") {
		t.Errorf("%+v", f)
	}
	want := []RecordField{
		{Name: "__probe_ip", Type: "unsigned long", Offset: 8, Size: 8},
		{Name: "a", Type: "u64", Offset: 16, Size: 8, Verb: "0x%Lx"},
		{Name: "b", Type: "u32", Offset: 24, Size: 4, Verb: "%u"},
		{Name: "c", Type: "s16", Offset: 28, Size: 2, Signed: true, Verb: "%d"},
		{Name: "d", Type: "u8", Offset: 30, Size: 2, Len: 2, Verb: "0x%x"},
		{Name: "e", Type: "char", Offset: 32, Size: 4, Signed: true, Loc: "__data_loc", Verb: `\"%s\"`},
		{Name: "f", Type: "char", Offset: 36, Size: 8, Signed: true, Len: 2, Loc: "__data_loc", Verb: `\"%s\"`},
		{Name: "g", Type: "u64", Offset: 44, Size: 8, Verb: "%pS"},
		{Name: "h", Type: "u8", Offset: 52, Size: 1, Verb: "'%c'"},
		{Name: "i", Type: "u8", Offset: 53, Size: 1, Len: 1, Verb: "%u"},
	}
	if diff := cmp.Diff(want, f.Fields[4:]); diff != "" {
		t.Error(diff)
	}
}

func TestParseFormatErrors(t *testing.T) {
	const head = "name: x\nID: 1\nformat:\n"
	for _, c := range []struct{ text, want string }{
		{"", "it has no name or no fields"},
		{head, "it has no name or no fields"},
		{"field:int a;\toffset:0;\tsize:4;\tsigned:1;", "it has no name or no fields"},
		{"name: x\nID: y\n", "line 2: "},
		{head + "junk", `line 4: expected name, ID, format, field or print fmt, found "junk"`},
		{head + "field:int;\toffset:0;\tsize:4;\tsigned:1;", "line 4: field \"int\": expected a type and a name"},
		{head + "field:int a;\toffset:x;\tsize:4;\tsigned:1;", "line 4: field \"int a\": strconv.ParseUint"},
		{head + "field:int a;\toffset:0;\tsize:-4;\tsigned:1;", "line 4: field \"int a\": strconv.ParseUint"},
		{head + "field:int a;\toffset:99999999999;\tsize:4;\tsigned:1;", "value out of range"},
		{head + "field:int a[3];\toffset:0;\tsize:4;\tsigned:1;", "4 bytes are no array of 3"},
		{head + "field:int a[0];\toffset:0;\tsize:4;\tsigned:1;", "4 bytes are no array of 0"},
		{head + "field:__data_loc char[] a;\toffset:0;\tsize:8;\tsigned:1;", "a __data_loc has 4 bytes, this one 8"},
		{head + "field:__data_loc char[][3] a;\toffset:0;\tsize:8;\tsigned:1;", "8 bytes are no array of 3"},
		{head + "field:int a;\toffset:0;\tsize:4;\nfield:int a;\toffset:4;\tsize:4;", "there are two of that name"},
		{head + strings.Repeat("x", 2<<20), "token too long"},
	} {
		if _, err := ParseFormat(strings.NewReader(c.text)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%.100q: got %v, want %s", c.text, err, c.want)
		}
	}
	broken := errors.New("broken")
	if _, err := ParseFormat(iotest.ErrReader(broken)); !errors.Is(err, broken) {
		t.Error(err)
	}
}

// record puts values at their offsets, and returns so many bytes.
func record(size int, at map[int]any) []byte {
	b := make([]byte, size)
	for offset, v := range at {
		if text, ok := v.(string); ok {
			copy(b[offset:], text)
		} else if _, err := binary.Encode(b[offset:], binary.NativeEndian, v); err != nil {
			panic(err)
		}
	}
	return b
}

func loc(offset, size int) uint32 { return uint32(size)<<16 | uint32(offset) }

func probeRecord() []byte {
	return record(72, map[int]any{0: uint16(1554), 4: int32(-7), 8: uint64(0xffffffff81000000), 16: uint64(8), 24: uint32(77), 28: int16(-2), 30: []byte{1, 255},
		32: loc(54, 3), 36: loc(57, 4), 40: loc(61, 0), 44: uint64(0xffffffff81000010), 52: byte('c'), 53: byte(9), 54: "hi\x00abc\x00"})
}

func TestDecode(t *testing.T) {
	f := readFormat(t, "probe.format")
	values, err := f.Decode(probeRecord())
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]any{}
	for _, v := range values {
		got[v.Field.Name] = v.Data
	}
	want := map[string]any{
		"common_type": uint64(1554), "common_flags": uint64(0), "common_preempt_count": uint64(0), "common_pid": int64(-7), "__probe_ip": uint64(0xffffffff81000000),
		"a": uint64(8), "b": uint64(77), "c": int64(-2), "d": []any{uint64(1), uint64(255)}, "e": "hi", "f": []any{"abc", Fault{}},
		"g": uint64(0xffffffff81000010), "h": uint64('c'), "i": []any{uint64(9)},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	line := ` a=0x8 b=77 c=-2 d={0x1,0xff} e="hi" f={"abc",(fault)} g=0xffffffff81000010 h='c' i={9}`
	if got := FormatLine(values, nil); got != line {
		t.Errorf("got  %s\nwant %s", got, line)
	}
	f.Symbols = func(address uint64) string {
		return map[uint64]string{0xffffffff81000010: "_stext+0x10/0x20"}[address]
	}
	values, err = f.Decode(probeRecord())
	if err != nil {
		t.Fatal(err)
	}
	args := mustParse(t, "a=%di:u64 b=@1:x32 c=@1 d=@1:char[2] e=@1:string f=@1:string[2] g=@1:symbol h=@1:b4@0/8")
	line = ` a=8 b=0x4d c=-2 d={'` + "\x01','\xff" + `'} e="hi" f={"abc",(fault)} g=_stext+0x10/0x20 h=99 i={9}`
	if got := FormatLine(values, args); got != line {
		t.Errorf("got  %q\nwant %q", got, line)
	}
	line = ` a=0x8 b=77 c=-2 d={0x1,0xff} e="hi" f={"abc",(fault)} g=_stext+0x10/0x20 h='c' i={9}`
	if got := FormatLine(values, mustParse(t, "$arg* b=@1:x32")); got != line {
		t.Errorf("got  %s\nwant %s", got, line)
	}
	if got := values[3].String(); got != "-7" {
		t.Error(got)
	}
}

func TestDecodeEvent(t *testing.T) {
	f := readFormat(t, "event.format")
	values, err := f.Decode(record(112, map[int]any{8: "bash\x00junk", 24: int32(-1), 32: uint64(99), 40: uint64(1), 48: uint64(2),
		56: loc(88, 3), 60: loc(91-64, 5), 64: loc(96, 4), 68: loc(100, 2), 72: "\x01\x02\x03\x04\x05\x06", 78: "\x07\x08\x09", 81: "full",
		88: "ab\x00", 91: "cdef\x00", 96: uint16(3), 98: uint16(4), 100: "\x05\x06"}))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, v := range values {
		got = append(got, v.Field.Name+"="+v.String())
	}
	want := []string{"common_type=0", `comm="bash"`, "pid=-1", "name=99", "args={1,2}", `text="ab"`, `rel="cdef"`, "words={3,4}", "mask={5,6}", "addr={1,2,3,4,5,6}", "odd={7,8,9}", `task="full"`, "rest={}"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// TestDecodeBounds: a record that was cut anywhere is an error or ends its strings.
func TestDecodeBounds(t *testing.T) {
	f := readFormat(t, "probe.format")
	whole := probeRecord()
	for n := range 61 {
		if _, err := f.Decode(whole[:n:n]); err == nil {
			t.Errorf("a record of %d bytes is decoded", n)
		} else if n == 20 && err.Error() != "decode record of x: field a: it has 8 bytes at 16, and the record ends at 20" {
			t.Error(err)
		}
	}
	if _, err := f.Decode(whole[:61]); err != nil {
		t.Error(err)
	}
	// A string without an end goes to that of the record.
	values, err := f.Decode(record(60, map[int]any{32: loc(54, 6), 54: "abcdef"}))
	if err != nil || values[9].Data != "abcdef" {
		t.Error(values, err)
	}
}

func TestCheckFields(t *testing.T) {
	f := readFormat(t, "event.format")
	for _, c := range []struct {
		list string
		col  int
		want string
	}{
		{"$comm $pid a=+0($name):string (s)pid->x pid b=+0($comm) c=$comm:symstr $COMM @jiffies", 0, ""},
		{"a=$nosuch", 3, "event made_up has no such field: expected one of $comm, $pid, $name, "},
		{"(s)nosuch->x", 4, "event made_up has no such field"},
		{"$common_type", 1, "event made_up has no such field"},
		{"+0($retval)", 4, "event made_up has no such field"},
		{"$arg1", 1, "event made_up has no such field"},
		{"$current", 1, "event made_up has no such field"},
		{"$COMM:symstr", 7, "the task's name is no symbol's address"},
	} {
		got := problems(f.CheckFields(mustParse(t, c.list)))
		switch {
		case c.col == 0 && len(got) > 0:
			t.Errorf("%s: %v", c.list, got)
		case c.col > 0 && (len(got) != 1 || got[0].Col != c.col || !strings.Contains(got[0].Msg, c.want)):
			t.Errorf("%s: got %v, want column %d, %s", c.list, got, c.col, c.want)
		}
	}
	other := readFormat(t, "probe.format")
	for list, want := range map[string]string{"+0($comm)": "the task's name has no address", "$comm:symstr": "the task's name is no symbol's address", "$comm": ""} {
		if err := other.CheckFields(mustParse(t, list)); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", list, err)
		}
	}
	if err := (&Format{Name: "empty"}).CheckFields(mustParse(t, "$a")); err == nil || !strings.Contains(err.Error(), "expected none") {
		t.Error(err)
	}
}
