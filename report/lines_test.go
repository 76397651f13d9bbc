package report

import (
	"bytes"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// What comes line by line is what Read reads, and hosts that become known while a session lasts are in it.
func TestAddLines(t *testing.T) {
	rec := &Record{Schema: Schema, Session: Session{Unit: Nanoseconds, Args: []string{}, Hosts: []Host{{Kernel: "6.1"}}},
		Results: []*Result{{Benchmark: "a", Params: []Param{}}, {Benchmark: "b", Params: []Param{}}}}
	var out bytes.Buffer
	w := NewJSONL(&out)
	run := &Run{Samples: []Sample{{Ops: 1, Elapsed: 1}}}
	err := w.Begin(rec)
	rec.Results[1].Runs = append(rec.Results[1].Runs, run)
	if err == nil {
		err = w.Run(rec, 1)
	}
	rec.Session.Hosts = []Host{{Kernel: "6.1", CPUs: 2}}
	rec.Results[0].Status, rec.Results[1].Status = Skipped, OK
	if err == nil {
		err = w.End(rec)
	}
	if err != nil {
		t.Fatal(err)
	}
	want, err := Read(bytes.NewReader(out.Bytes()))
	if err != nil || want.Session.Hosts[0].CPUs != 2 {
		t.Fatalf("read back: %+v, %v", want, err)
	}
	var lines Lines
	var added []int
	for _, line := range bytes.Split(bytes.TrimSpace(out.Bytes()), []byte("\n")) {
		run, err := lines.Add(line)
		if err != nil {
			t.Fatal(err)
		}
		added = append(added, run)
	}
	if diff := cmp.Diff(want, lines.Record()); diff != "" || !lines.Complete() {
		t.Errorf("complete: %v; -read +lines:\n%s", lines.Complete(), diff)
	}
	if diff := cmp.Diff([]int{-1, 1, -1, -1, -1}, added); diff != "" {
		t.Errorf("runs were added to the results -want +got:\n%s", diff)
	}
	if _, err := new(Lines).Add([]byte("{}")); err == nil {
		t.Error("a line that is no record is accepted")
	}
}
