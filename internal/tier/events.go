package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
)

// event is a line of what `go tool test2json` and `go test -json` write.
type event struct {
	Action      string
	Package     string
	ImportPath  string // of what is built, in place of Package
	Test        string // empty: of the package
	Elapsed     float64
	Output      string
	FailedBuild string // what could not be built, for which the package has failed
}

// findTest2json returns the program that turns a test binary's output into events, and builds it if need be.
func findTest2json() (string, error) {
	out, err := exec.Command("go", "tool", "-n", "test2json").Output()
	if err != nil {
		return "", fmt.Errorf("find test2json: %w", withStderr(err))
	}
	return strings.TrimSpace(string(out)), nil
}

// withStderr adds what a program had to say to the error with which it ended.
func withStderr(err error) error {
	var exit *exec.ExitError
	if errors.As(err, &exit) && len(exit.Stderr) > 0 {
		return fmt.Errorf("%w: %s", err, strings.TrimSpace(string(exit.Stderr)))
	}
	return err
}

// converter turns the output of a test binary, written to it, into events. Close returns when the last has been taken.
type converter struct {
	io.WriteCloser
	done chan error
}

// convert starts test2json, which hands what it makes of a package's output to take, on a goroutine of its own.
func convert(test2json string, take func(event)) (*converter, error) {
	cmd := exec.Command(test2json, "-t")
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start test2json: %w", err)
	}
	c := &converter{in, make(chan error, 1)}
	go func() {
		err := decode(out, take)
		_, _ = io.Copy(io.Discard, out)
		c.done <- errors.Join(err, cmd.Wait())
	}()
	return c, nil
}

func (c *converter) Close() error {
	return errors.Join(c.WriteCloser.Close(), <-c.done)
}

// decode hands on events until the stream ends.
func decode(r io.Reader, take func(event)) error {
	for dec := json.NewDecoder(r); ; {
		var e event
		if err := dec.Decode(&e); err == io.EOF {
			return nil
		} else if err != nil {
			return fmt.Errorf("read test events: %w", err)
		}
		take(e)
	}
}
