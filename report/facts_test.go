package report

import (
	"bytes"
	"strings"
	"testing"
)

// live plays a session of rec in which set-ups find facts out: each run of result i sets those of late[i].
func live(t *testing.T, rec *Record, late [][]Param, to func(*bytes.Buffer) Writer) string {
	t.Helper()
	var b bytes.Buffer
	w := to(&b)
	runs := make([][]*Run, len(rec.Results))
	for i, r := range rec.Results {
		runs[i], r.Runs = r.Runs, nil
	}
	must(t, w.Begin(rec))
	for i, r := range rec.Results {
		for _, run := range runs[i] {
			r.SetFacts(late[i]...)
			r.Runs = append(r.Runs, run)
			must(t, w.Run(rec, i))
		}
	}
	must(t, w.End(rec))
	return b.String()
}

var byFentry, byTracepoint = []Param{{Name: "triggered_by", Value: "fentry"}}, []Param{{Name: "triggered_by", Value: "tracepoint"}}

// TestLateFacts holds that text has what set-ups find out: once, in the heading or behind it, or as a column.
func TestLateFacts(t *testing.T) {
	two := func() *Record { return aRecord(aResult(4096, 19708000, 2, 1), aResult(8192, 19708000, 2, 1)) }
	for name, c := range map[string]struct {
		rec  *Record
		late [][]Param
		want string
	}{
		"single":  {aRecord(aResult(4096, 19708000, 2, 1)), [][]Param{byFentry}, "started.\ntriggered_by=fentry\ncpu01"},
		"table":   {two(), [][]Param{byFentry, byFentry}, "started.\ntriggered_by=fentry\n\n"},
		"column":  {two(), [][]Param{byFentry, byTracepoint}, "12  tracepoint "},
		"another": {aRecord(aResult(4096, 19708000, 2, 1)), [][]Param{{{Name: "full", Value: 7, Unit: "%"}}}, "started.\n7 % full\ncpu01"},
		"skipped": {aRecord(aResult(4096, 19708000, 2, 1), ended(aResult(8192, 0, 0, 1), Skipped, "no BPF"), aResult(16384, 19708000, 2, 1)),
			[][]Param{byFentry, nil, byFentry}, "started.\ntriggered_by=fentry\n\n"},
		"some": {aRecord(aResult(4096, 19708000, 2, 1), aResult(8192, 19708000, 2, 1)), [][]Param{byFentry, nil}, "12  - "},
	} {
		text := live(t, c.rec, c.late, toText)
		if !strings.Contains(text, c.want) {
			t.Errorf("%s: no %q in\n%s", name, c.want, text)
		}
		stored := string(write(t, c.rec, toText))
		for _, f := range factTexts(c.late[0]) {
			value := f[strings.Index(f, "=")+1:]
			if n := strings.Count(stored, value); n != 1 {
				t.Errorf("%s: stored, %q is there %d times:\n%s", name, value, n, stored)
			}
		}
		if text := live(t, c.rec, c.late, toQuiet); strings.Contains(text, "triggered") {
			t.Errorf("%s: quiet:\n%s", name, text)
		}
	}
}

// TestFactsAreKept holds that the machine formats have what set-ups find out, wherever a file of lines breaks off.
func TestFactsAreKept(t *testing.T) {
	record := func() *Record {
		return aRecord(aResult(4096, 19708000, 2, 1), aResult(8192, 19708000, 2, 1), ended(aResult(16384, 0, 0, 1), Failed, "no memory"))
	}
	late := [][]Param{byFentry, byTracepoint, nil}
	for format, to := range map[string]func(*bytes.Buffer) Writer{"json": toJSON, "jsonl": toJSONL} {
		rec, err := Read(strings.NewReader(live(t, record(), late, to)))
		must(t, err)
		for i, want := range []string{"6 % full, triggered_by=fentry", "12 % full, triggered_by=tracepoint", "25 % full"} {
			if got := strings.Join(separated(factTexts(rec.Results[i].Facts), ","), " "); got != want {
				t.Errorf("%s: result %d: %s, want %s", format, i, got, want)
			}
		}
	}
	lines := strings.SplitAfter(live(t, record(), late, toJSONL), "\n")
	for i, want := range []bool{false, true, false, true, false, false, false, false} {
		if got := strings.Contains(lines[i], "triggered_by"); got != want {
			t.Errorf("line %d: %s", i, lines[i])
		}
	}
	cut, _ := Read(strings.NewReader(lines[0] + lines[1]))
	if _, ok := lookup(cut.Results[0].Facts, "triggered_by"); !ok {
		t.Errorf("of a file that breaks off: %v", cut.Results[0].Facts)
	}
	// A set-up that fails after it has found something out has no run.
	var b bytes.Buffer
	w, rec := toJSONL(&b), aRecord(aResult(4096, 0, 0, 1))
	must(t, w.Begin(rec))
	rec.Results[0].SetFacts(byFentry...)
	must(t, w.End(rec))
	if rec, err := Read(&b); err != nil || len(rec.Results[0].Facts) != 2 {
		t.Errorf("of a set-up that fails: %v, %v", rec, err)
	}
	csv := live(t, record(), late, toCSV)
	if !strings.Contains(csv, ",fact_full,fact_triggered_by,run,") || !strings.Contains(csv, ",12,tracepoint,1,cpu01,ops,") {
		t.Errorf("csv:\n%s", csv)
	}
}
