package fetcharg

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// FuzzParse: what is read is printed as what is read as the same, and nothing that is read makes a check fail badly.
func FuzzParse(f *testing.F) {
	for _, part := range corpus {
		for _, kind := range part.kinds {
			for _, list := range part.lists {
				f.Add(expand(kind, list))
			}
		}
	}
	f.Fuzz(func(t *testing.T, list string) {
		args, err := Parse(list)
		for _, e := range problems(err) {
			if e.Col < 1 || e.Col > len(list)+1 || e.Msg == "" {
				t.Errorf("column %d of %d: %v", e.Col, len(list), e)
			}
		}
		if len(list) > maxLine {
			return // no event can have it, and comparing takes long
		}
		text := Join(args)
		if len(text) > len(list) {
			t.Errorf("%q becomes longer: %q", list, text)
		}
		again, err := Parse(text)
		if err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		if diff := cmp.Diff(args, again, noPos); diff != "" {
			t.Fatalf("%q, %q: %s", list, text, diff)
		}
		if Join(again) != text {
			t.Fatalf("%q, %q", text, Join(again))
		}
		for _, kind := range Kinds {
			for _, e := range problems(Check(args, kind)) {
				if e.Col < 1 || e.Col > len(list) || strings.Contains(e.Msg, "cannot be written") {
					t.Errorf("%v: %v", kind, e)
				}
			}
			Needs(args, kind)
			line, err := Event{Kind: kind, Group: "g", Name: "x", Target: "f", Args: args}.Definition()
			if strings.ContainsAny(line, "\n#") || err == nil && line == "" {
				t.Errorf("%q, %v", line, err)
			}
		}
	})
}

// FuzzFormat: no format and no record makes decoding fail badly.
func FuzzFormat(f *testing.F) {
	for _, name := range []string{"probe.format", "event.format"} {
		text, err := os.ReadFile("testdata/" + name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text, probeRecord())
	}
	f.Add([]byte("name: x\nfield:__rel_loc int[][2] a;\toffset:0;\tsize:8;"), []byte("\x00\x00\x04\x00\x00\x00\x04\x00"))
	f.Fuzz(func(t *testing.T, text, record []byte) {
		format, err := ParseFormat(bytes.NewReader(text))
		if err != nil {
			return
		}
		if values, err := format.Decode(record); err == nil {
			FormatLine(values, nil)
			FormatLine(values, []Arg{{Expr: Comm{}, Type: Type{Base: SymbolType}}, {Expr: AllParams{}}})
		}
		_ = format.CheckFields([]Arg{{Expr: Field{Name: "a"}}})
	})
}
