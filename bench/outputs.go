package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"bpfbench/report"
)

// formats are the writers by the name that --format knows them by.
var formats = []struct {
	name string
	make func(io.Writer) report.Writer
}{
	{"text", nil}, // as the command shows it
	{"json", report.NewJSON},
	{"jsonl", report.NewJSONL},
	{"csv", report.NewCSV},
	{"go", report.NewGo},
	{"markdown", report.NewMarkdown},
}

func formatNames() []string {
	names := make([]string, len(formats))
	for i, f := range formats {
		names[i] = f.name
	}
	return names
}

// outputs are where a session's record goes.
type outputs struct {
	writers []report.Writer
	newText func(io.Writer) report.Writer
	text    bool // one of them is the text on the standard output
	files   []*lateFile
}

// openOutputs opens what --format and -o name, before anything is measured: text on the standard output, unless a format
// without a file takes its place.
func (o *options) openOutputs(stdout io.Writer, text func(io.Writer, report.TextOptions) report.Writer) (_ *outputs, err error) {
	outs := &outputs{newText: func(w io.Writer) report.Writer { return text(w, report.TextOptions{Quiet: o.quiet, Live: true}) }}
	defer func() {
		if err != nil {
			err = errors.Join(err, outs.close())
		}
	}()
	specs := o.formats
	if o.output != "" {
		specs = append(specs, "jsonl="+o.output)
	}
	onStdout := ""
	paths := make(map[string]bool)
	for _, spec := range specs {
		name, path, toFile := strings.Cut(spec, "=")
		w := stdout
		switch {
		case toFile && (path == "" || paths[path]):
			return outs, usageError{fmt.Errorf("--format=%s: each format needs a file of its own behind the =", spec)}
		case toFile:
			paths[path] = true
			f, err := openLate(path)
			if err != nil {
				return outs, err
			}
			outs.files = append(outs.files, f)
			w = f
		case onStdout != "":
			return outs, usageError{fmt.Errorf("--format=%s: the standard output already has %s; write one of them to a file: --format %s=FILE", spec, onStdout, spec)}
		default:
			onStdout = name
		}
		if err := outs.add(name, w); err != nil {
			return outs, err
		}
	}
	if onStdout == "" {
		onStdout = "text"
		err = outs.add("text", stdout)
	}
	outs.text = onStdout == "text"
	return outs, err
}

func (outs *outputs) add(name string, w io.Writer) error {
	for _, f := range formats {
		if f.name == name {
			make := f.make
			if make == nil {
				make = outs.newText
			}
			outs.writers = append(outs.writers, make(w))
			return nil
		}
	}
	return usageError{fmt.Errorf("--format=%s: must be one of %s", name, strings.Join(formatNames(), ", "))}
}

func (outs *outputs) close() error {
	var errs []error
	for _, f := range outs.files {
		errs = append(errs, f.Close())
	}
	return errors.Join(errs...)
}

// lateFile is a file that is opened early, so that it is known to be writable, and emptied late, when there is something to
// write: a session that ends before that has not lost what was in it.
type lateFile struct {
	*os.File
	emptied bool
}

func openLate(path string) (*lateFile, error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE, 0o666)
	if err != nil {
		return nil, fmt.Errorf("open the output: %w", err)
	}
	return &lateFile{File: f}, nil
}

func (f *lateFile) Write(p []byte) (int, error) {
	if !f.emptied {
		f.emptied = true
		if info, err := f.Stat(); err == nil && info.Mode().IsRegular() {
			if err := f.Truncate(0); err != nil {
				return 0, fmt.Errorf("empty %s: %w", f.Name(), err)
			}
		}
	}
	return f.File.Write(p)
}

// adviser adds to the results what stands out in them, before the other writers see the end.
type adviser struct{}

func (adviser) Begin(*report.Record) error    { return nil }
func (adviser) Run(*report.Record, int) error { return nil }

func (adviser) End(rec *report.Record) error {
	report.Advise(rec)
	return nil
}
