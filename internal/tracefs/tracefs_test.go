package tracefs

import (
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"bpfbench/internal/lock"
)

func TestMount(t *testing.T) {
	if _, err := isTracefs(path); err != nil {
		t.Skip("this kernel has no tracefs:", err)
	}
	for range 2 {
		err := Mount()
		if errors.Is(err, unix.EPERM) {
			t.Skip("mounting needs root:", err)
		}
		if err != nil {
			t.Fatal(err)
		}
		if is, err := isTracefs(path); !is || err != nil {
			t.Errorf("tracefs is mounted: %v, %v", is, err)
		}
	}
	if is, err := isTracefs("/proc"); is || err != nil {
		t.Errorf("/proc is tracefs: %v, %v", is, err)
	}
}

// mounted mounts tracefs for a test.
func mounted(t *testing.T) {
	t.Helper()
	if err := Mount(); err != nil {
		t.Skip(err)
	}
	if err := unix.Access(path, unix.W_OK); err != nil {
		t.Skip("tracefs needs root:", err)
	}
	held, err := lock.Acquire(t.Context(), lock.Options{Wait: true, What: "tests"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = held.Release() })
}

// selfProbe is a uprobe event on this binary, which every kernel with uprobes takes.
const selfProbe = "p:bench_0/x /proc/self/exe:0x1000"

// What a bench left that was killed is found and removed, and nothing else.
func TestCleanUp(t *testing.T) {
	mounted(t)
	i, err := NewInstance("0", 4096)
	if err != nil {
		t.Fatal(err)
	}
	if err := AddEvent(selfProbe); err != nil {
		t.Error(errors.Join(err, i.Remove()))
		t.Skip("no uprobe events here")
	}
	const other = "p:otherbench_0/x /proc/self/exe:0x1000"
	if err := AddEvent(other); err != nil {
		t.Error(err)
	}
	removed, err := CleanUp()
	if err != nil || !slices.Contains(removed, "trace instance bench_0") || !slices.Contains(removed, "event bench_0/x") || slices.Contains(removed, "event otherbench_0/x") {
		t.Errorf("removed %q, %v", removed, err)
	}
	if err := RemoveEvent("otherbench_0", "x"); err != nil {
		t.Error(err)
	}
	if removed, err := CleanUp(); err != nil || slices.Contains(removed, "event bench_0/x") {
		t.Errorf("removed again: %q, %v", removed, err)
	}
}

func TestInstance(t *testing.T) {
	mounted(t)
	i, err := NewInstance("1", 1<<16)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := i.Remove(); err != nil {
			t.Error(err)
		}
	}()
	if _, err := NewInstance("1", 1<<16); !errors.Is(err, os.ErrExist) {
		t.Errorf("making it twice: %v", err)
	}
	if n, err := i.Hits(); n != 0 || err != nil {
		t.Errorf("%d hits at first, %v", n, err)
	}
	if err := i.write("trace_marker", "hello"); err != nil {
		t.Fatal(err)
	}
	if n, err := i.Hits(); n != 1 || err != nil {
		t.Errorf("%d hits after one, %v", n, err)
	}
	if text, err := i.Text(); !strings.Contains(text, "hello") || err != nil {
		t.Errorf("the buffer has %q, %v", text, err)
	}
	if err := i.Clear(); err != nil {
		t.Error(err)
	}
	if n, err := i.Hits(); n != 0 || err != nil {
		t.Errorf("%d hits after clearing, %v", n, err)
	}
	if err := i.Enable("bench_none", "none", true); err == nil {
		t.Error("an event that there is not can be enabled")
	}
}

// A refused definition is explained in the kernel's words.
func TestAddEventRefused(t *testing.T) {
	mounted(t)
	err := AddEvent("p:bench_2/x /proc/self/exe:0x1000 a=%nonesuch")
	if !errors.Is(err, unix.EINVAL) || !strings.Contains(err.Error(), "Invalid register name") && !strings.Contains(err.Error(), "nvalid") {
		t.Errorf("error %v", err)
	}
}

func TestCountHits(t *testing.T) {
	const stats = "entries: 3\noverrun: 1234\ncommit overrun: 0\nbytes: 9\noldest event ts:     1.5\nnow ts:     2.5\ndropped events: 2\nread events: 7\n"
	if n, err := countHits(stats); n != 1239 || err != nil {
		t.Errorf("%d hits, %v; want 1239", n, err)
	}
	for _, bad := range []string{"", "entries: 3\n", strings.Replace(stats, "1234", "many", 1)} {
		if n, err := countHits(bad); err == nil {
			t.Errorf("%q gives %d hits", bad, n)
		}
	}
}

func TestParseErrorLog(t *testing.T) {
	const log = "[  1.0] trace_kprobe: error: Old trouble\n  Command: p:a/b c\n               ^\n" +
		"[  2.0] trace_kprobe: error: Invalid register name\n  Command: p:g/x f a=%q\n                       ^\n"
	for definition, want := range map[string]string{"p:g/x f a=%q": ": Invalid register name", "p:a/b c": "", "": ""} {
		if got := parseErrorLog(log, definition); got != want {
			t.Errorf("of %q the log says %q, want %q", definition, got, want)
		}
	}
	if got := parseErrorLog("", "p:a/b c"); got != "" {
		t.Errorf("an empty log says %q", got)
	}
}

func TestEventName(t *testing.T) {
	for definition, want := range map[string]string{"p:bench_1/kprobe bpf_strncmp a=8": "bench_1 kprobe", "r8:g/x f": "g x", "p f": " ", "": " "} {
		group, name, ok := eventName(definition)
		if got := group + " " + name; got != want || ok != (want != " ") {
			t.Errorf("%q is %q, %v; want %q", definition, got, ok, want)
		}
	}
}
