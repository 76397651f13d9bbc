package report

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"strings"
	"testing"
)

// mixed has a result of each status, and a warning.
func mixed() *Record {
	failed := aResult(65536, 19708000, 1, 1)
	failed.Runs[0].Samples[1].Misses = 17
	r := aResult(4096, 19708000, 2, 1)
	r.Warnings = []Warning{{What: "2 runs have no 95 % interval", Remedy: "--runs 6"}}
	rec := aRecord(r,
		ended(aResult(8192, 0, 0, 1), Skipped, "no map type <hash> & such"),
		ended(failed, Failed, "17 lookups missed"),
		ended(aResult(16384, 19708000, 1, 1), Interrupted, ""),
	)
	for _, r := range rec.Results {
		r.Varied = []string{"nr_entries"}
	}
	rec.Session.Interrupted = true
	return rec
}

var formats = map[string]func(*bytes.Buffer) Writer{"json": toJSON, "jsonl": toJSONL}

func TestJSON(t *testing.T) {
	for format, to := range formats {
		golden(t, "mixed."+format, write(t, mixed(), to))
		golden(t, "exact."+format, write(t, exact(aRecord(aResult(4096, 0, 1, 0))), to))
	}
}

// TestRoundTrip holds that what is written, read and written again is the same to the byte, and the same as text.
func TestRoundTrip(t *testing.T) {
	records := map[string]func() *Record{"mixed": mixed, "empty": func() *Record { return aRecord() }}
	for name, make := range texts {
		records[name] = make
	}
	for name, make := range records {
		for format, to := range formats {
			first := write(t, make(), to)
			rec, err := Read(bytes.NewReader(first))
			if err != nil {
				t.Fatalf("%s: %s: %v", name, format, err)
			}
			if second := write(t, rec, to); !bytes.Equal(first, second) {
				t.Errorf("%s: %s:\n%s\nand then\n%s", name, format, first, second)
			}
			if a, b := write(t, make(), toText), write(t, rec, toText); !bytes.Equal(a, b) {
				t.Errorf("%s: %s:\n%s\nand then\n%s", name, format, a, b)
			}
		}
	}
}

// TestLines holds that every line comes in one piece as soon as there is something to say.
func TestLines(t *testing.T) {
	var w recorder
	rec := aRecord(aResult(4096, 19708000, 1, 1))
	j := NewJSONL(&w)
	must(t, j.Begin(rec))
	must(t, j.Run(rec, 0))
	if len(w.writes) != 2 {
		t.Errorf("%d writes before the end", len(w.writes))
	}
	must(t, j.End(rec))
	var types []string
	for _, b := range w.writes {
		var line struct{ Type string }
		must(t, json.Unmarshal(b, &line))
		types = append(types, line.Type)
		if bytes.Count(b, []byte("\n")) != 1 || b[len(b)-1] != '\n' {
			t.Errorf("%q is not a line", b)
		}
	}
	if got := strings.Join(types, " "); got != "session run result end" {
		t.Error(got)
	}
}

type recorder struct{ writes [][]byte }

func (r *recorder) Write(p []byte) (int, error) {
	r.writes = append(r.writes, bytes.Clone(p))
	return len(p), nil
}

func TestReadCut(t *testing.T) {
	whole := write(t, aRecord(aResult(4096, 19708000, 6, 1)), toJSONL)
	lines := bytes.SplitAfter(whole, []byte("\n"))
	three := bytes.Join(lines[:4], nil) // the session and three runs
	for name, cut := range map[string][]byte{
		"between lines":  three,
		"inside a line":  append(bytes.Clone(three), lines[4][:len(lines[4])/2]...),
		"before newline": bytes.TrimSuffix(three, []byte("\n")),
	} {
		rec, err := Read(bytes.NewReader(cut))
		if !errors.Is(err, io.ErrUnexpectedEOF) || rec == nil {
			t.Fatalf("%s: %v", name, err)
		}
		r := rec.Results[0]
		if !rec.Session.Interrupted || r.Status != Interrupted || len(r.Runs) != 3 {
			t.Errorf("%s: %v %s %d", name, rec.Session.Interrupted, r.Status, len(r.Runs))
		}
		if got := string(write(t, rec, toText)); !strings.HasSuffix(got, "interrupted after 3 of 6 runs\n") {
			t.Errorf("%s:\n%s", name, got)
		}
	}
	// Before the session's line is whole there is nothing to show; the same of a document.
	for _, cut := range [][]byte{nil, lines[0][:20], write(t, mixed(), toJSON)[:1000]} {
		if rec, err := Read(bytes.NewReader(cut)); rec != nil || !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("%.20q: %v, %v", cut, rec, err)
		}
	}
}

const minimal = `{"type":"session","schema":1,"session":{"unit":"ns"},"results":[{"benchmark":"x"}]}`

func TestReadIgnoresUnknown(t *testing.T) {
	in := `{"type":"session","schema":1,"new":1,"session":{"unit":"ns","new":{}},"results":[{"benchmark":"x","params":[{"name":"n","value":65536,"new":0}]}]}
{"type":"new","run":7}
{"type":"run","result":0,"new":[],"run":{"round":0,"samples":[{"ops":3,"elapsed":2,"new":1}]}}

{"type":"result","result":0,"status":"ok"} {"type":"end"}
`
	rec, err := Read(strings.NewReader(in))
	must(t, err)
	r := rec.Results[0]
	if r.Status != OK || r.Params[0].Value != json.Number("65536") || r.Runs[0].Samples[0].Ops != 3 {
		t.Errorf("%+v", r)
	}
}

func TestReadRefuses(t *testing.T) {
	for want, in := range map[string]string{
		"schema 2 is newer than this bench, which reads up to 1: use a newer bench": `{"schema":2,"session":"another","results":1}`,
		"value 1: schema 2 is newer":         `{"type":"session","schema":2,"session":7}`,
		"no schema":                          `{"session":{"unit":"ns"}}`,
		"unknown unit \"us\"":                `{"schema":1,"session":{"unit":"us"}}`,
		"is null":                            `{"schema":1,"session":{"unit":"ns"},"results":[null]}`,
		"or a run of it, is null":            `{"schema":1,"session":{"unit":"ns"},"results":[{"runs":[null]}]}`,
		"split the file":                     `{"schema":1,"session":{"unit":"ns"}} {"schema":1}`,
		"a second record begins":             minimal + minimal,
		"before that of the session":         `{"type":"run","result":0}`,
		"result 1 is none of":                minimal + `{"type":"run","result":1,"run":{}}`,
		"result -1 is none of":               minimal + `{"type":"result","result":-1}`,
		"has no run":                         minimal + `{"type":"run","result":0}`,
		"value 1: invalid character":         "cpu01: lookup 50.739M",
		"value 2: invalid character":         minimal + "\x00",
		"cannot unmarshal":                   `[1]`,
		"value 2: json: cannot unmarshal":    minimal + `{"type":"run","result":0,"run":{"setup":-1}}`,
		"something follows its end, value 2": minimal + `{"type":"end"} x`,
	} {
		rec, err := Read(strings.NewReader(in))
		if err == nil || rec != nil || !strings.Contains(err.Error(), want) || errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("%s: %v", want, err)
		}
	}
}

type broken struct{}

func (broken) Read([]byte) (int, error) { return 0, os.ErrDeadlineExceeded }

func TestReadError(t *testing.T) {
	if rec, err := Read(io.MultiReader(strings.NewReader(minimal), broken{})); rec != nil || !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("%v, %v", rec, err)
	}
}

// FuzzRead holds that whatever is read can be shown in every form, and that it comes back the same.
func FuzzRead(f *testing.F) {
	// Small ones: the fuzzer shortens what it finds, which takes it minutes with the golden files.
	f.Add([]byte(minimal + "\n"))
	f.Add([]byte(minimal + `{"type":"run","result":0,"run":{"samples":[{"ops":3,"elapsed":2,"cpu":-1}]}}{"type":"end"}`))
	f.Add([]byte(`{"schema":1,"session":{"unit":"insn","plan":{"runs":-1}},"results":[{"host":9},{"producers":-3,"params":[{"value":null}]}]}`))
	f.Add([]byte(`{"schema":1,"session":{"unit":"ns","plan":{"runs":6}},"results":[{"status":"interrupted","runs":[{"samples":[{"ops":9,"elapsed":3}],"twin":[{"ops":9,"elapsed":1}]}]},{"status":"failed","reason":"x"}]}`))
	f.Fuzz(func(t *testing.T, in []byte) {
		rec, err := Read(bytes.NewReader(in))
		if rec == nil {
			return
		}
		if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Fatal(err)
		}
		write(t, rec, toText)
		write(t, rec, toQuiet)
		for _, to := range tables {
			write(t, rec, to)
		}
		if c, err := Compare(rec, rec, CompareOptions{}); err == nil {
			must(t, errors.Join(c.WriteText(io.Discard), c.WriteMarkdown(io.Discard), c.WriteJSON(io.Discard)))
		}
		Advise(rec)
		for format, to := range formats {
			first := write(t, rec, to)
			again, err := Read(bytes.NewReader(first))
			must(t, err)
			if second := write(t, again, to); !bytes.Equal(first, second) {
				t.Errorf("%s:\n%s\nand then\n%s", format, first, second)
			}
		}
	})
}
