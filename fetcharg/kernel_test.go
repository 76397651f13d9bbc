package fetcharg

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"bpfbench/internal/testutils"
	"bpfbench/internal/tracefs"
	"bpfbench/internal/vm"

	"golang.org/x/sys/unix"
)

// guestVar is set in the guests that the tier boots: there, a kind of probe that its kernel's version has must be there.
const guestVar = "BPFBENCH_TEST_GUEST"

func TestMain(m *testing.M) {
	vm.Init()
	vm.Guest() // a command that is not asked would leave the record socket to its children
	os.Exit(m.Run())
}

// tracing is the tracefs of the running kernel, with a group of our own.
type tracing struct {
	t       *testing.T
	dir     string
	group   string
	version Version
}

// runningVersion is the version of the running kernel.
func runningVersion(t testing.TB) Version {
	t.Helper()
	var uts unix.Utsname
	if err := unix.Uname(&uts); err != nil {
		t.Fatal(err)
	}
	version, err := ParseVersion(unix.ByteSliceToString(uts.Release[:]))
	if err != nil {
		t.Fatal(err)
	}
	return version
}

const tracingDir = "/sys/kernel/tracing"

// newTracing skips the test where dynamic events cannot be defined.
func newTracing(t *testing.T) *tracing {
	t.Helper()
	if err := tracefs.Mount(); err != nil {
		t.Skip(err)
	}
	testutils.Exclusive(t)
	tr := &tracing{t, tracingDir, fmt.Sprintf("fetcharg_%d", os.Getpid()), runningVersion(t)}
	if err := unix.Access(filepath.Join(tr.dir, "dynamic_events"), unix.W_OK); err != nil {
		t.Skipf("write dynamic_events: %v", err)
	}
	t.Cleanup(func() { // what a test has left that failed in between; it fails if there is none
		_ = tr.write("dynamic_events", "-:"+tr.group+"/")
	})
	return tr
}

// on returns tr for a subtest.
func (tr tracing) on(t *testing.T) *tracing {
	tr.t = t
	return &tr
}

// write appends a line to a file of tracefs.
func (tr *tracing) write(file, line string) error {
	f, err := os.OpenFile(filepath.Join(tr.dir, file), os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(line + "\n")
	return errors.Join(err, f.Close())
}

func (tr *tracing) read(file string) string {
	tr.t.Helper()
	data, err := os.ReadFile(filepath.Join(tr.dir, file))
	if err != nil {
		tr.t.Fatal(err)
	}
	return string(data)
}

// format reads the format file of system/event.
func (tr *tracing) format(event string) *Format {
	tr.t.Helper()
	f, err := ParseFormat(strings.NewReader(tr.read(filepath.Join("events", event, "format"))))
	if err != nil {
		tr.t.Fatal(err)
	}
	return f
}

// define defines the event of the line and removes it at once. It returns the kernel's answer.
func (tr *tracing) define(line, name string) error {
	tr.t.Helper()
	if err := tr.write("dynamic_events", line); err != nil {
		return err
	}
	if err := tr.write("dynamic_events", "-:"+tr.group+"/"+name); err != nil {
		tr.t.Fatalf("remove %s: %v", line, err)
	}
	return nil
}

// event returns an event of the kind, without arguments, on something that every kernel has.
func (tr *tracing) event(kind Kind) Event {
	e := Event{Kind: kind, Target: "vfs_read"}
	switch kind {
	case Tprobe:
		e.Target = "sched_switch"
	case Eprobe:
		e.Target = "sched.sched_switch"
	case Uprobe, Uretprobe:
		e = leafEvent(tr.t, kind)
	}
	e.Group, e.Name = tr.group, "x"
	return e
}

func mustDefine(t *testing.T, e Event) string {
	t.Helper()
	line, err := e.Definition()
	if err != nil {
		t.Fatal(err)
	}
	return line
}

// needs skips the test if the kernel has no probes of the kind; in a guest it fails if the kernel's version has them.
func (tr *tracing) needs(kind Kind) {
	t := tr.t
	t.Helper()
	err := tr.define(mustDefine(t, tr.event(kind)), "x")
	if err == nil {
		return
	}
	if os.Getenv(guestVar) != "" && !tr.version.Before(kind.Since()) {
		t.Fatalf("define %v event: %v", kind, err)
	}
	t.Skipf("%v events: %v: the kernel needs %s, and version %v", kind, err, kind.Option(), kind.Since())
}

// TestKernelKinds: what each kind is defined with, and how the kernel lists it.
func TestKernelKinds(t *testing.T) {
	tr := newTracing(t)
	for _, kind := range Kinds {
		t.Run(kind.String(), func(t *testing.T) {
			tr := tr.on(t)
			tr.needs(kind)
			e := tr.event(kind)
			e.Args = mustParse(t, `a=\5 b=\"hi" c=$comm:string`)
			if err := tr.write("dynamic_events", mustDefine(t, e)); err != nil {
				t.Fatal(err)
			}
			list := tr.read("dynamic_events")
			if !strings.Contains(list, e.Group+"/x ") || !strings.Contains(list, " "+Join(e.Args)+"\n") {
				t.Errorf("dynamic_events has %q", list)
			}
			if err := tr.write("dynamic_events", e.Removal()); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestKernelRegisters: the registers of the running architecture are all that the kernel has.
func TestKernelRegisters(t *testing.T) {
	tr := newTracing(t)
	kind := Kprobe
	if tr.define(mustDefine(t, tr.event(kind)), "x") != nil {
		kind = Uprobe // has the same, and is there on more kernels
	}
	tr.needs(kind)
	names := []string{"rax", "eax", "r16", "r0", "x31", "x0", "di", "w0", "ds", "fs", "gs_base", "lr", "pc", "pstate", "sp", "ip", "nr"}
	for _, name := range append(names, Regs(runtime.GOARCH)...) {
		args := []Arg{{Name: "a", Expr: Register{Name: name}}}
		line := mustDefine(t, tr.event(kind)) + " " + Join(args)
		if want, got := Check(args, kind), tr.define(line, "x"); (want == nil) != (got == nil) {
			t.Errorf("%%%s: the kernel says %v, Check %v", name, got, want)
		}
	}
}

// TestKernelNames: groups, names and the length of the line.
func TestKernelNames(t *testing.T) {
	tr := newTracing(t)
	tr.needs(Uprobe)
	for _, c := range []struct{ group, name string }{
		{tr.group, "x"}, {tr.group, strings.Repeat("x", 63)}, {tr.group, strings.Repeat("x", 64)}, {tr.group, "x-a"}, {tr.group, "1x"},
		{tr.group + strings.Repeat("g", 63-len(tr.group)), "x"}, {tr.group + strings.Repeat("g", 64-len(tr.group)), "x"},
		{tr.group + "-a", "x"}, {"1" + tr.group, "x"}, {"-" + tr.group, "x"}, {tr.group + ".a", "x"}, {tr.group, "x/y"}, {tr.group, "é"},
	} {
		e := tr.event(Uprobe)
		e.Group, e.Name = c.group, c.name
		_, want := e.Definition()
		line := fmt.Sprintf("p:%s/%s %s:%d", c.group, c.name, e.Target, e.Offset)
		got := tr.write("dynamic_events", line)
		if got == nil {
			if err := tr.write("dynamic_events", e.Removal()); err != nil {
				t.Errorf("%s: %v", line, err)
			}
		}
		if (want == nil) != (got == nil) {
			t.Errorf("%s: the kernel says %v, Definition %v", line, got, want)
		}
	}
	for _, n := range []int{maxLine, maxLine + 1} {
		line := mustDefine(t, tr.event(Uprobe))
		line += strings.Repeat(" ", n-len(line))
		if err := tr.define(line, "x"); (err == nil) != (n <= maxLine) {
			t.Errorf("line of %d bytes: %v", n, err)
		}
	}
}
