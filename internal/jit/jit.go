// Package jit switches the kernel's BPF JIT, and back.
package jit

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"bpfbench/internal/kernel"
)

// State is whether programs are compiled when they are loaded.
type State string

const (
	Keep State = "keep" // as it is
	On   State = "on"
	Off  State = "off"
)

// files are where the switch is, and where it is noted what it was while it is not that: who is killed in between leaves the
// note, and the next one heeds it.
type files struct{ sysctl, note string }

func here() files {
	dir := "/run"
	if _, err := os.Stat(dir); err != nil {
		dir = os.TempDir()
	}
	return files{"/proc/sys/net/core/bpf_jit_enable", filepath.Join(dir, "bpfbench.jit")}
}

// Switch sets the JIT for the programs that are loaded until undo is called. The error is [errors.ErrUnsupported] where the
// kernel has no choice.
func Switch(s State) (undo func() error, err error) { return here().set(s) }

// Restore sets the JIT to what it was before a session that was killed while it had switched it. restored is that value,
// or empty if there was nothing to do. The caller holds the measuring lock.
func Restore() (restored string, err error) { return here().restore() }

func (f files) set(s State) (undo func() error, err error) {
	nothing := func() error { return nil }
	if s == Keep {
		return nothing, nil
	}
	was, err := f.read()
	if err != nil {
		return nil, kernel.Explain(err, "read the state of the JIT")
	}
	// 2 is on, with a trace of what is compiled: who has set that may keep it.
	if s == Off && was == "0" || s == On && was != "0" {
		return nothing, nil
	}
	if err := os.WriteFile(f.note, []byte(was), 0o600); err != nil {
		return nil, kernel.Explain(err, "note the state of the JIT")
	}
	undo = func() error { return errors.Join(f.write(was), os.Remove(f.note)) }
	value := map[State]string{On: "1", Off: "0"}[s]
	if err := f.write(value); err != nil {
		err = errors.Join(err, os.Remove(f.note))
		if errors.Is(err, unix.EINVAL) {
			return nil, &kernel.Error{Feature: "switching the JIT " + string(s), Outcome: kernel.Missing, Needs: "CONFIG_BPF_JIT_ALWAYS_ON=n", Err: err}
		}
		return nil, kernel.Explain(err, "switch the JIT "+string(s))
	}
	return undo, nil
}

func (f files) restore() (string, error) {
	was, err := os.ReadFile(f.note)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) { // only root switches, and only root can restore
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("read the note on the JIT: %w", err)
	}
	if err := f.write(string(was)); err != nil {
		return "", fmt.Errorf("restore the JIT to %q: %w", was, err)
	}
	return string(was), os.Remove(f.note)
}

func (f files) read() (string, error) {
	value, err := os.ReadFile(f.sysctl)
	return strings.TrimSpace(string(value)), err
}

func (f files) write(value string) error { return os.WriteFile(f.sysctl, []byte(value), 0) }
