package report

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"reflect"
	"slices"
)

// What the two formats add to the record's own form. In both, empty lists are [] and not null, so that readers can
// iterate over them, and a result that is skipped or failed has no summary: its samples are there, but no speed.
type (
	jsonDocument struct {
		Schema  int          `json:"schema"`
		Session Session      `json:"session"`
		Results []jsonResult `json:"results"`
	}
	jsonResult struct {
		*Result
		Summary *Summary `json:"summary,omitempty"`
	}

	// The types of lines, in the order in which they come.
	sessionLine struct {
		Type    string          `json:"type"`
		Schema  int             `json:"schema"`
		Session Session         `json:"session"`
		Results []plannedResult `json:"results"`
	}
	runLine struct {
		Type   string  `json:"type"`
		Result int     `json:"result"` // index into the session line's results
		Run    *Run    `json:"run"`
		Facts  []Param `json:"facts,omitempty"` // all of the result's, where they are others than those told before
	}
	resultLine struct {
		Type     string    `json:"type"`
		Result   int       `json:"result"`
		Status   Status    `json:"status"`
		Reason   string    `json:"reason,omitempty"`
		Warnings []Warning `json:"warnings,omitempty"`
		Facts    []Param   `json:"facts,omitempty"` // likewise
		Summary  *Summary  `json:"summary,omitempty"`
	}
	endLine struct {
		Type        string `json:"type"`
		Interrupted bool   `json:"interrupted"`
		Hosts       []Host `json:"hosts,omitempty"` // where more is known of them than at the beginning
	}

	// plannedResult is a result before there is anything of it to show: what shadows the fields is always nil.
	plannedResult struct {
		*Result
		Status   *struct{} `json:"status,omitempty"`
		Reason   *struct{} `json:"reason,omitempty"`
		Warnings *struct{} `json:"warnings,omitempty"`
		Runs     *struct{} `json:"runs,omitempty"`
	}
)

const (
	typeSession = "session"
	typeRun     = "run"
	typeResult  = "result"
	typeEnd     = "end"
)

type jsonWriter struct{ w io.Writer }

// NewJSON gives the writer of one JSON document, written at the end: the record, and beside each result's raw samples
// their Summary. All is in base units.
func NewJSON(w io.Writer) Writer { return jsonWriter{w} }

func (jsonWriter) Begin(*Record) error    { return nil }
func (jsonWriter) Run(*Record, int) error { return nil }

func (j jsonWriter) End(rec *Record) error {
	doc := jsonDocument{Schema: rec.Schema, Session: session(rec), Results: []jsonResult{}}
	for _, r := range rec.Results {
		doc.Results = append(doc.Results, jsonResult{result(r), summary(r)})
	}
	b, err := indented(doc)
	if err != nil {
		return err
	}
	if _, err := j.w.Write(b); err != nil {
		return fmt.Errorf("write json: %w", err)
	}
	return nil
}

// indented gives v as a document that people can read.
func indented(v any) ([]byte, error) {
	b, err := encode(v)
	if err != nil {
		return nil, fmt.Errorf("encode json: %w", err)
	}
	var out bytes.Buffer
	if err := json.Indent(&out, b, "", "  "); err != nil {
		return nil, fmt.Errorf("indent json: %w", err)
	}
	return out.Bytes(), nil
}

type jsonlWriter struct {
	w     io.Writer
	hosts []Host    // as the session line told them
	facts [][]Param // of each result, as last told
}

// NewJSONL gives the writer of JSON lines. Each comes as soon as it can, in one Write: the session with the results that
// are to come, every run as it ends, and at the end a line for each result, and one that says that nothing is missing.
func NewJSONL(w io.Writer) Writer { return &jsonlWriter{w: w} }

func (j *jsonlWriter) Begin(rec *Record) error {
	line := sessionLine{Type: typeSession, Schema: rec.Schema, Session: session(rec), Results: []plannedResult{}}
	line.Session.Interrupted = false // the last line says it
	j.hosts = slices.Clone(rec.Session.Hosts)
	for _, r := range rec.Results {
		line.Results = append(line.Results, plannedResult{Result: result(r)})
		j.facts = append(j.facts, slices.Clone(r.Facts))
	}
	return j.line(line)
}

func (j *jsonlWriter) Run(rec *Record, i int) error {
	runs := rec.Results[i].Runs
	return j.line(runLine{typeRun, i, run(runs[len(runs)-1]), j.newFacts(rec, i)})
}

// newFacts are the facts of a result, or nil where they have been told as they are.
func (j *jsonlWriter) newFacts(rec *Record, i int) []Param {
	facts := rec.Results[i].Facts
	if slices.EqualFunc(facts, j.facts[i], func(a, b Param) bool { return a.Name == b.Name && a.Text() == b.Text() }) {
		return nil
	}
	j.facts[i] = slices.Clone(facts)
	return facts
}

func (j *jsonlWriter) End(rec *Record) error {
	for i, r := range rec.Results {
		line := resultLine{typeResult, i, r.Status, r.Reason, r.Warnings, j.newFacts(rec, i), summary(r)}
		if err := j.line(line); err != nil {
			return err
		}
	}
	end := endLine{Type: typeEnd, Interrupted: rec.Session.Interrupted}
	if !reflect.DeepEqual(j.hosts, rec.Session.Hosts) {
		end.Hosts = rec.Session.Hosts
	}
	return j.line(end)
}

func (j *jsonlWriter) line(v any) error {
	b, err := encode(v)
	if err != nil {
		return fmt.Errorf("encode json line: %w", err)
	}
	if _, err := j.w.Write(b); err != nil {
		return fmt.Errorf("write json line: %w", err)
	}
	return nil
}

// encode gives v on a line of its own, with <, > and & as they are.
func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return b.Bytes(), err
}

func summary(r *Result) *Summary {
	if unfit(r) != "" {
		return nil
	}
	s := Summarize(r)
	return &s
}

// session, result and run are copies in which no list is nil.

func session(rec *Record) Session {
	s := rec.Session
	s.Args, s.Hosts = list(s.Args), list(s.Hosts)
	return s
}

func result(r *Result) *Result {
	c := *r
	c.Params = list(c.Params)
	c.Runs = make([]*Run, len(r.Runs))
	for i := range r.Runs {
		c.Runs[i] = run(r.Runs[i])
	}
	return &c
}

func run(r *Run) *Run {
	c := *r
	c.Samples = list(c.Samples)
	return &c
}

func list[T any](s []T) []T {
	if s == nil {
		return []T{}
	}
	return s
}
