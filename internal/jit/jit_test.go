package jit

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"bpfbench/internal/kernel"
)

// fake is a switch in a folder of the test's.
func fake(t *testing.T, value string) files {
	t.Helper()
	dir := t.TempDir()
	f := files{filepath.Join(dir, "sysctl"), filepath.Join(dir, "note")}
	if err := os.WriteFile(f.sysctl, []byte(value+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return f
}

func TestSwitch(t *testing.T) {
	for _, tt := range []struct {
		was, during string
		to          State
	}{{"1", "0", Off}, {"0", "1", On}, {"2", "0", Off}, {"1", "1", On}, {"2", "2", On}, {"0", "0", Off}, {"1", "1", Keep}} {
		f := fake(t, tt.was)
		undo, err := f.set(tt.to)
		if err != nil {
			t.Fatal(err)
		}
		if got, _ := f.read(); got != tt.during {
			t.Errorf("%s switched %s is %s, want %s", tt.was, tt.to, got, tt.during)
		}
		if err := undo(); err != nil {
			t.Error(err)
		}
		if got, _ := f.read(); got != tt.was {
			t.Errorf("%s switched %s and back is %s", tt.was, tt.to, got)
		}
		if restored, err := f.restore(); restored != "" || err != nil {
			t.Errorf("there is something to restore: %q, %v", restored, err)
		}
	}
}

// Who is killed between the two leaves a note, which the next one heeds.
func TestRestore(t *testing.T) {
	f := fake(t, "1")
	if _, err := f.set(Off); err != nil {
		t.Fatal(err)
	}
	if restored, err := f.restore(); restored != "1" || err != nil {
		t.Errorf("restored %q, %v", restored, err)
	}
	if got, _ := f.read(); got != "1" {
		t.Errorf("the JIT is %s", got)
	}
	if restored, err := f.restore(); restored != "" || err != nil {
		t.Errorf("restored again: %q, %v", restored, err)
	}
}

// On the running kernel, switching works or is explained.
func TestSwitchHere(t *testing.T) {
	before, _ := here().read()
	undo, err := Switch(Off)
	var privilege *kernel.PrivilegeError
	switch {
	case errors.Is(err, errors.ErrUnsupported), errors.As(err, &privilege):
		t.Skip(err)
	case err != nil:
		t.Fatal(err)
	}
	if err := undo(); err != nil {
		t.Error(err)
	}
	if after, _ := here().read(); after != before {
		t.Errorf("the JIT was %q and is %q", before, after)
	}
}
