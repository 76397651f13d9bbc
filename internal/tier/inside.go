package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"bpfbench/internal/vm"
)

// plan is what a guest is to do, in its only argument.
type plan struct {
	Jobs  []job         `json:"jobs"`
	Limit time.Duration `json:"limit"` // of each
	Grace time.Duration `json:"grace"`
	Hide  []string      `json:"hide"` // folders that are to be empty
}

// note is a record line from a guest: output of a job, or its end.
type note struct {
	Job    int     `json:"job"` // its index
	Output []byte  `json:"output,omitempty"`
	End    *ending `json:"end,omitempty"`
}

// inside is the life of the command in a guest. Its result is the exit status.
func inside(task vm.Task, records io.Writer) int {
	if err := work(task, records); err != nil {
		fmt.Fprintln(os.Stderr, "tier:", err)
		return 1
	}
	return 0
}

func work(task vm.Task, records io.Writer) error {
	var p plan
	if len(task.Args) != 1 {
		return fmt.Errorf("read plan: %d arguments instead of one", len(task.Args))
	}
	if err := json.Unmarshal([]byte(task.Args[0]), &p); err != nil {
		return fmt.Errorf("read plan: %w", err)
	}
	grace = p.Grace
	for _, dir := range p.Hide {
		if err := unix.Mount("none", dir, "tmpfs", 0, ""); err != nil {
			return fmt.Errorf("hide %s: %w", dir, err)
		}
	}
	for i, j := range p.Jobs {
		end := j.run(context.Background(), p.Limit, &noteWriter{i, records})
		if err := send(records, note{Job: i, End: &end}); err != nil {
			return err
		}
	}
	return nil
}

// noteWriter sends what a job writes.
type noteWriter struct {
	job     int
	records io.Writer
}

func (w *noteWriter) Write(p []byte) (int, error) {
	return len(p), send(w.records, note{Job: w.job, Output: p})
}

func send(records io.Writer, n note) error {
	line, err := json.Marshal(n)
	if err != nil {
		return err
	}
	_, err = records.Write(append(line, '\n'))
	return err
}
