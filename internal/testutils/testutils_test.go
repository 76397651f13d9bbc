package testutils

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"bpfbench/internal/kernel"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/link"
)

// The test binary, run with this variable set, makes a program with a map, closes the map, and keeps the program.
const holdVar = "BPFBENCH_TEST_HOLD"

func TestMain(m *testing.M) {
	if os.Getenv(holdVar) == "" {
		os.Exit(m.Run())
	}
	held, err := programWithMap()
	fmt.Println("held", err)
	time.Sleep(time.Minute)
	fmt.Println(held)
}

// programWithMap returns a program that alone holds a map.
func programWithMap() (*ebpf.Program, error) {
	m, err := ebpf.NewMap(&ebpf.MapSpec{Name: "held", Type: ebpf.Array, KeySize: 4, ValueSize: 8, MaxEntries: 1})
	if err != nil {
		return nil, err
	}
	defer func() { _ = m.Close() }()
	return ebpf.NewProgram(&ebpf.ProgramSpec{
		Name: "holder", Type: ebpf.RawTracepoint, License: "Dual MIT/GPL",
		Instructions: asm.Instructions{asm.LoadMapPtr(asm.R1, m.FD()), asm.Mov.Imm(asm.R0, 0), asm.Return()},
	})
}

// recorder stands in for a test and keeps what is said to it.
type recorder struct {
	testing.TB
	cleanups []func()
	errors   []string
	skipped  string
	fatal    string
}

func (r *recorder) Helper()          {}
func (r *recorder) Cleanup(f func()) { r.cleanups = append(r.cleanups, f) }
func (r *recorder) Errorf(format string, args ...any) {
	r.errors = append(r.errors, fmt.Sprintf(format, args...))
}
func (r *recorder) Skip(args ...any)  { r.skipped = fmt.Sprint(args...) }
func (r *recorder) Fatal(args ...any) { r.fatal = fmt.Sprint(args...) }

// leaks runs a test that leaves things behind, and returns what it is told.
func leaks(t *testing.T, test func()) []string {
	t.Helper()
	r := &recorder{TB: t}
	noLeaks(r, 200*time.Millisecond)
	test()
	for _, f := range r.cleanups {
		f()
	}
	return r.errors
}

// oneLeak fails unless there is one message, with all of parts in it.
func oneLeak(t *testing.T, got []string, parts ...string) {
	t.Helper()
	if len(got) != 1 {
		t.Fatalf("left behind: %q, want one thing", got)
	}
	for _, part := range parts {
		if !strings.Contains(got[0], part) {
			t.Errorf("%q: want %q in it", got[0], part)
		}
	}
}

func TestNoLeaks(t *testing.T) {
	NoLeaks(t)
	NeedsBPF(t)
	prog, err := programWithMap()
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan bool)
	go func() {
		time.Sleep(poll) // not done when the test is
		close(done)
	}()
	t.Cleanup(func() { _ = prog.Close() })
}

func TestFileLeak(t *testing.T) {
	NoLeaks(t)
	var file *os.File
	got := leaks(t, func() {
		var err error
		if file, err = os.Open(os.DevNull); err != nil {
			t.Fatal(err)
		}
	})
	oneLeak(t, got, "open file", os.DevNull)
	if err := file.Close(); err != nil {
		t.Error(err)
	}
}

func TestGoroutineLeak(t *testing.T) {
	NoLeaks(t)
	stop := make(chan bool)
	oneLeak(t, leaks(t, func() { go func() { <-stop }() }), "goroutine", "TestGoroutineLeak", "testutils_test.go")
	close(stop)
}

func TestMapLeak(t *testing.T) {
	NoLeaks(t)
	NeedsBPF(t)
	var m *ebpf.Map
	got := leaks(t, func() {
		var err error
		spec := ebpf.MapSpec{Name: "lost", Type: ebpf.Array, KeySize: 4, ValueSize: 8, MaxEntries: 1}
		if m, err = ebpf.NewMap(&spec); err != nil {
			t.Fatal(err)
		}
	})
	all := strings.Join(got, "\n")
	if _, err := ebpf.MapGetNextID(0); err != nil {
		oneLeak(t, got, "open file", "bpf-map", "(map ")
	} else if len(got) != 2 || !strings.Contains(all, `(Array "lost")`) || !strings.Contains(all, "(map ") {
		t.Errorf("left behind: %q, want a file and a map", got)
	}
	_ = m.Close()
}

// TestObjectsWithoutFiles: what no file holds is found by its id.
func TestObjectsWithoutFiles(t *testing.T) {
	NoLeaks(t)
	NeedsBPF(t)
	if _, err := ebpf.MapGetNextID(0); err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Skip(err)
	}
	var prog *ebpf.Program
	got := leaks(t, func() {
		var err error
		if prog, err = programWithMap(); err != nil {
			t.Fatal(err)
		}
	})
	_ = prog.Close()
	all := strings.Join(got, "\n")
	if len(got) != 3 || !strings.Contains(all, `(Array "held")`) || !strings.Contains(all, `(RawTracepoint "holder")`) {
		t.Errorf("left behind: %q, want a file, a program and its map", got)
	}
}

func TestLinkLeak(t *testing.T) {
	NoLeaks(t)
	NeedsBPF(t)
	prog, err := programWithMap()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = prog.Close() }()
	var l link.Link
	got := leaks(t, func() {
		if l, err = link.AttachRawTracepoint(link.RawTracepointOptions{Name: "sys_enter", Program: prog}); err != nil {
			t.Skip(err)
		}
	})
	all := strings.Join(got, "\n")
	if len(got) != 2 || !strings.Contains(all, "BPF link ") || !strings.Contains(all, "(link ") {
		t.Errorf("left behind: %q, want a file and a link", got)
	}
	_ = l.Close()
}

// TestForeignObjects: what another process makes is not this one's leak.
func TestForeignObjects(t *testing.T) {
	NoLeaks(t)
	NeedsBPF(t)
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cmd := exec.CommandContext(ctx, exe)
	cmd.Env = append(os.Environ(), holdVar+"=1")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		cancel()
		_ = cmd.Wait()
	}()
	var line string
	got := leaks(t, func() {
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		line, _ = bufio.NewReader(out).ReadString('\n')
	})
	if line != "held <nil>\n" {
		t.Fatalf("the other process says %q", line)
	}
	for _, what := range got {
		if strings.Contains(what, "BPF") {
			t.Error(what)
		}
	}
}

func TestNeeds(t *testing.T) {
	for _, c := range []struct {
		err          error
		skips, fails bool
	}{
		{nil, false, false},
		{&kernel.PrivilegeError{Feature: "x", Missing: []string{"CAP_BPF"}}, true, false},
		{fmt.Errorf("y: %w", &kernel.Error{Feature: "x", Outcome: kernel.Refused}), true, false},
		{&kernel.Error{Feature: "x", Outcome: kernel.Missing}, true, false},
		{errors.New("x"), false, true},
	} {
		r := &recorder{TB: t}
		Needs(r, c.err)
		if (r.skipped != "") != c.skips || (r.fatal != "") != c.fails {
			t.Errorf("%v: skipped %q, failed %q", c.err, r.skipped, r.fatal)
		}
	}
}
