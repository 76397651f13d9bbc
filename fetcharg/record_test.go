package fetcharg

import (
	"bufio"
	"encoding/binary"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestCompiledDecode decodes a record that was put together by hand.
func TestCompiledDecode(t *testing.T) {
	c := compileTest(t, Kprobe, `a=$arg1:s8 b=$arg2 c=$comm d=+0($arg1):u16[2] e=+0($arg1):string f=+0($arg1):string[2] g=\"hi" h=$arg1:symbol i=+0($arg1):char j=+0($arg2):u32 k=+0($arg2):string l=+0($arg2):u8[2] m=+0($arg3):string[1]`)
	c.Layout.Symbols = func(address uint64) string { return "f+0x4/0x8" }
	record := make([]byte, c.Layout.Size+3)
	at := func(name string) []byte {
		for _, f := range c.Layout.Fields {
			if f.Name == name {
				return record[f.Offset:][:f.Size]
			}
		}
		t.Fatal(name)
		return nil
	}
	text := func(room []byte, s string) {
		binary.NativeEndian.PutUint32(room, uint32(len(s)+1))
		copy(room[lengthSize:], s+"\x00stale")
	}
	copy(record, []byte{0, 0x1e, 0, 0, 0, 0, 0, 0}) // j, k, l, m
	at("a")[0] = 0xff
	binary.NativeEndian.PutUint64(at("b"), 1<<63)
	copy(at("c"), "task\x00stale")
	binary.NativeEndian.PutUint16(at("d"), 1)
	binary.NativeEndian.PutUint16(at("d")[2:], 0xffff)
	text(at("e"), "text")
	text(at("f"), "")
	copy(at("g"), "hi")
	binary.NativeEndian.PutUint64(at("h"), 0xff)
	at("i")[0] = 'x'
	text(at("k"), "stale")
	text(at("m"), "stale")
	values, err := c.Decode(record)
	if err != nil {
		t.Fatal(err)
	}
	var got []any
	for _, v := range values {
		got = append(got, v.Data)
	}
	want := []any{int64(-1), uint64(1 << 63), "task", []any{uint64(1), uint64(0xffff)}, "text", []any{"", Fault{}}, "hi", uint64(0xff), uint64('x'), Fault{}, Fault{}, Fault{}, []any{Fault{}}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	line := ` a=-1 b=0x8000000000000000 c="task" d={1,65535} e="text" f={"",(fault)} g="hi" h=f+0x4/0x8 i='x' j=(fault) k=(fault) l=(fault) m={(fault)}`
	if got := FormatLine(values, nil); got != line {
		t.Errorf("got %s", got)
	}
	if got := FormatLine(values, c.event.Args); got != line {
		t.Errorf("with arguments, got %s", got)
	}
	if _, err := c.Decode(record[:c.Layout.Size-1]); err == nil {
		t.Error("a record that is cut is decoded")
	}
	binary.NativeEndian.PutUint32(at("e"), 1000)
	if _, err := c.Decode(record); err == nil {
		t.Error("text that is longer than its room is decoded")
	}
}

func TestFindSymbol(t *testing.T) {
	const table = "0000000000000000 A first\n0000000000000010 A second\nffffffff81000000 T vfs_read\nffffffff81000010 t vfs_read\nffffffffc0000000 t in_module\t[module]\n"
	for _, c := range []struct {
		table, name string
		want        uint64
		err         string
	}{
		{table, "first", 0, ""}, {table, "second", 16, ""}, {table, "vfs_read", 0xffffffff81000000, ""}, {table, "in_module", 0xffffffffc0000000, ""},
		{table, "vfs_rea", 0, "no such symbol"}, {"", "x", 0, "no such symbol"}, {"x\n0 T\n", "x", 0, "no such symbol"},
		{"0000000000000000 T a\n0000000000000000 T b\n", "b", 0, "hides addresses"},
	} {
		got, err := findSymbol(bufio.NewScanner(strings.NewReader(c.table)), c.name)
		if got != c.want || (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%s: %#x, %v", c.name, got, err)
		}
	}
}
