package report

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
)

// Read reads a record that NewJSON's or NewJSONL's writer wrote; it sees which. Fields and types of lines that it does
// not know are ignored, numbers among the parameters' values become json.Number, and a record with a newer schema is an
// error. So is what follows a complete record.
//
// Where JSON lines break off, Read gives what was there, marked as interrupted, and an error that wraps
// io.ErrUnexpectedEOF. With every other error the record is nil.
func Read(r io.Reader) (*Record, error) {
	d := reader{dec: json.NewDecoder(r)}
	d.dec.UseNumber()
	for !d.done {
		if err := d.next(); err != nil {
			return d.cut(err)
		}
	}
	if err := d.nothingMore(); err != nil {
		return nil, err
	}
	return d.rec, nil
}

// reader puts a record together from JSON values: one document, or a line after the other.
type reader struct {
	dec  *json.Decoder
	rec  *Record // nil before the first value
	n    int     // values read
	done bool
	// added is the result that the last value added a run to, where it did.
	added int
}

// Lines puts a record together from JSON lines as they come.
type Lines struct{ reader reader }

// Add takes the next line. run is the index of the result that it added a run to, or -1.
func (l *Lines) Add(line []byte) (run int, err error) {
	l.reader.added = -1
	err = l.reader.value(line)
	return l.reader.added, err
}

// Record is what the lines so far have told: nil before the first. It grows with each line.
func (l *Lines) Record() *Record { return l.reader.rec }

// Complete reports whether the last line was the record's last.
func (l *Lines) Complete() bool { return l.reader.done }

// next reads a value.
func (d *reader) next() error {
	var raw json.RawMessage
	if err := d.dec.Decode(&raw); err != nil {
		return fmt.Errorf("read record: value %d: %w", d.n+1, err)
	}
	return d.value(raw)
}

// value takes the next value. Its schema is looked at before the rest, which in a newer one may be of other types.
func (d *reader) value(raw []byte) error {
	d.n++
	var head struct {
		Type   string `json:"type"`
		Schema int    `json:"schema"`
	}
	err := json.Unmarshal(raw, &head)
	if err == nil && (head.Type == "" || head.Type == typeSession) {
		err = checkSchema(head.Schema)
	}
	if err == nil {
		err = d.take(head.Type, raw)
	}
	if err != nil {
		return fmt.Errorf("read record: value %d: %w", d.n, err)
	}
	return nil
}

func checkSchema(schema int) error {
	switch {
	case schema > Schema:
		return fmt.Errorf("schema %d is newer than this bench, which reads up to %d: use a newer bench", schema, Schema)
	case schema < 1:
		return errors.New("no schema: this is not a record of bench")
	}
	return nil
}

// take adds a value of a type, which is empty for a whole document.
func (d *reader) take(kind string, raw []byte) error {
	if kind == "" || kind == typeSession {
		if d.rec != nil {
			return errors.New("a second record begins: split the file")
		}
		d.done = kind == ""
		return d.begin(raw)
	}
	if d.rec == nil {
		return fmt.Errorf("a line of type %q comes before that of the session", kind)
	}
	switch kind {
	case typeRun:
		return d.run(raw)
	case typeResult:
		return d.result(raw)
	case typeEnd:
		var line endLine
		err := unmarshal(raw, &line)
		d.rec.Session.Interrupted = line.Interrupted
		if line.Hosts != nil {
			d.rec.Session.Hosts = line.Hosts
		}
		d.done = true
		return err
	}
	return nil
}

func (d *reader) begin(raw []byte) error {
	var rec Record
	if err := unmarshal(raw, &rec); err != nil {
		return err
	}
	if u := rec.Session.Unit; u != Nanoseconds && u != Instructions {
		return fmt.Errorf("unknown unit %q of elapsed times", u)
	}
	for i, r := range rec.Results {
		if r == nil || slices.Contains(r.Runs, nil) {
			return fmt.Errorf("result %d, or a run of it, is null", i)
		}
	}
	d.rec = &rec
	return nil
}

func (d *reader) run(raw []byte) error {
	var line runLine
	if err := unmarshal(raw, &line); err != nil {
		return err
	}
	r, err := d.of(line.Result)
	if err != nil {
		return err
	}
	if line.Run == nil {
		return errors.New("a line of type \"run\" has no run")
	}
	r.Runs = append(r.Runs, line.Run)
	if line.Facts != nil {
		r.Facts = line.Facts
	}
	d.added = line.Result
	return nil
}

func (d *reader) result(raw []byte) error {
	var line resultLine
	if err := unmarshal(raw, &line); err != nil {
		return err
	}
	r, err := d.of(line.Result)
	if err != nil {
		return err
	}
	r.Status, r.Reason, r.Warnings = line.Status, line.Reason, line.Warnings
	if line.Facts != nil {
		r.Facts = line.Facts
	}
	return nil
}

func (d *reader) of(result int) (*Result, error) {
	if result < 0 || result >= len(d.rec.Results) {
		return nil, fmt.Errorf("result %d is none of the session's %d", result, len(d.rec.Results))
	}
	return d.rec.Results[result], nil
}

// cut tells a file that breaks off from one that is wrong.
func (d *reader) cut(err error) (*Record, error) {
	if !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return nil, err
	}
	if d.rec == nil {
		return nil, fmt.Errorf("read record: it breaks off before the first result: %w", io.ErrUnexpectedEOF)
	}
	d.rec.Session.Interrupted = true
	for _, r := range d.rec.Results {
		if r.Status == "" {
			r.Status = Interrupted
		}
	}
	return d.rec, fmt.Errorf("read record: it breaks off after value %d: %w", d.n, io.ErrUnexpectedEOF)
}

// nothingMore checks that only white space follows the record.
func (d *reader) nothingMore() error {
	var more json.RawMessage
	if err := d.dec.Decode(&more); !errors.Is(err, io.EOF) {
		return fmt.Errorf("read record: something follows its end, value %d: split the file", d.n)
	}
	return nil
}

// unmarshal is json.Unmarshal that keeps numbers of any type as they are written.
func unmarshal(raw []byte, v any) error {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	return d.Decode(v)
}
