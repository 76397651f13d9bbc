package suite

import (
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"testing"

	"bpfbench/bench/harness"
	"bpfbench/internal/testutils"
)

// renamed sets up a rename benchmark, or skips.
func renamed(t *testing.T, k *renameKind) *renameRun {
	t.Helper()
	testutils.Exclusive(t)
	for _, needs := range k.describe().Requires {
		testutils.Needs(t, needs())
	}
	r := &renameRun{kind: k, calls: make(tally, 1), file: -1}
	if k.program != "" {
		if err := r.load(); err != nil {
			t.Fatal(err, r.close())
		}
	}
	return r
}

// The program sees each of our renames and nobody else's, none once it is detached, and the name is given back.
func TestRename(t *testing.T) {
	for i := range renameKinds {
		k := &renameKinds[i]
		t.Run(k.name, func(t *testing.T) {
			testutils.NoLeaks(t)
			r := renamed(t, k)
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			before := commOf(t)
			p, err := r.producer(new(harness.Worker))
			if err != nil {
				t.Fatal(err, r.close())
			}
			s, err := p.Batch()
			if err != nil || s.Ops != renameBatch || s.Elapsed == 0 {
				t.Errorf("sample %+v, %v; want %d renames", s, err, renameBatch)
			}
			if got := commOf(t); got != strings.TrimRight(newName, "\x00") {
				t.Errorf("the thread's name is %q, want %q", got, newName)
			}
			if p.Twin != nil {
				if s, err := p.Twin(); err != nil || s.Ops != renameBatch {
					t.Errorf("twin %+v, %v; want %d renames", s, err, renameBatch)
				}
			}
			if err := r.check(nil); err != nil {
				t.Error(err)
			}
			if r.probe != nil {
				r.calls[0].ops.Add(1)
				if err := r.check(nil); err == nil || !strings.Contains(err.Error(), "counted 5000 hits in 5001 calls") {
					t.Errorf("a rename that was not seen: %v", err)
				}
			}
			if err := r.close(); err != nil {
				t.Error(err)
			}
			if after := commOf(t); after != before {
				t.Errorf("the thread's name is %q afterwards, was %q", after, before)
			}
		})
	}
}

// commOf is the name of the thread.
func commOf(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("/proc/thread-self/comm")
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(text))
}

// What others rename meanwhile is not counted.
func TestRenameOfOthers(t *testing.T) {
	testutils.NoLeaks(t)
	r := renamed(t, &renameKinds[slices.IndexFunc(renameKinds, func(k renameKind) bool { return k.name == "rawtp" })])
	defer func() {
		if err := r.close(); err != nil {
			t.Error(err)
		}
	}()
	// A process is renamed when it executes a file.
	if out, err := exec.Command("/proc/self/exe", "-test.run=^$").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if err := r.check(nil); err != nil {
		t.Error(err)
	}
}
