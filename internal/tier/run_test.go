package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// builds skips the test where no test binaries can be built, or it would take long.
func builds(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("it builds and runs test binaries, which takes long")
	}
	if _, err := exec.LookPath("go"); err != nil {
		t.Skip("there is no go command here")
	}
	t.Chdir(".") // and back: run goes to the module's root
}

// tierRun runs the tier on packages of testdata and returns what it printed.
func tierRun(t *testing.T, args string) (out string, ok bool) {
	t.Helper()
	var b strings.Builder
	ok, err := run(t.Context(), strings.Fields(args), &b)
	if err != nil {
		t.Fatalf("%s: %v\n%s", args, err, &b)
	}
	return b.String(), ok
}

// wants fails unless all the patterns match.
func wants(t *testing.T, out string, patterns ...string) {
	t.Helper()
	for _, p := range patterns {
		if !regexp.MustCompile("(?m)" + p).MatchString(out) {
			t.Errorf("nothing in the output matches %s", p)
		}
	}
	if t.Failed() {
		t.Log(out)
	}
}

func TestRunGood(t *testing.T) {
	builds(t)
	out, ok := tierRun(t, "-stages host ./internal/tier/testdata/good")
	if !ok {
		t.Error("it failed")
	}
	wants(t, out,
		`^ok  \tbpfbench/internal/tier/testdata/good\thost\t\d\.\d{3}s$`,
		`^    skipped: the moon is full \(TestParts/a, TestParts/b\)$`,
		`^host: 6 passed, 0 failed, 2 skipped$`,
		`\n6 passed, 0 failed, 2 skipped\n\z`)
	if strings.Contains(out, "not the reason") {
		t.Error(out)
	}
}

func TestRunFails(t *testing.T) {
	builds(t)
	out, ok := tierRun(t, "-stages host ./internal/tier/testdata/fails ./internal/tier/testdata/empty")
	if ok {
		t.Error("it did not fail")
	}
	wants(t, out,
		`^printed\n    fails_test.go:\d+: this is wrong$`, `^FAIL\tbpfbench/internal/tier/testdata/fails\thost\t`,
		`unexpected call to os.Exit\(0\) during test`,
		`^    failed: bpfbench/internal/tier/testdata/fails: TestFails, TestFails/badly, TestExits$`,
		`^host: bpfbench/internal/tier/testdata/empty: no test ran, although it has some$`,
		`^FAIL\tbpfbench/internal/tier/testdata/empty\thost\t`,
		`^host: 2 passed, 4 failed, 0 skipped$`)
	if strings.Contains(out, "nobody wants to know") {
		t.Error(out)
	}
	if out, _ := tierRun(t, "-v -stages host -run Passes ./internal/tier/testdata/fails"); !strings.Contains(out, "nobody wants to know") {
		t.Error(out)
	}
	if out, ok := tierRun(t, "-stages host -run None ./internal/tier/testdata/good"); ok || !strings.Contains(out, "no test ran, which is a failure") {
		t.Error(out)
	}
}

// TestRunHangs: what does not end is ended, and takes nothing else with it.
func TestRunHangs(t *testing.T) {
	builds(t)
	impatient(t)
	out, ok := tierRun(t, "-timeout 2s -stages host ./internal/tier/testdata/hangs ./internal/tier/testdata/stuck ./internal/tier/testdata/good")
	if ok {
		t.Error("it did not fail")
	}
	wants(t, out, hung...)
	wants(t, out, `^ok  \tbpfbench/internal/tier/testdata/good\t`, `^host: 7 passed, 2 failed, 2 skipped$`)
}

var hung = []string{
	`^--- FAIL: TestHangs: it has not come to its end$`, `^panic: test timed out after \d+s$`,
	`^FAIL\tbpfbench/internal/tier/testdata/hangs\t`,
	`bpfbench/internal/tier/testdata/stuck: it was killed, as it did not end itself after its time of \d+s$`,
	`^FAIL\tbpfbench/internal/tier/testdata/stuck\t`,
}

// impatient gives what hangs less time.
func impatient(t *testing.T) {
	t.Helper()
	was := grace
	grace = 2 * time.Second
	t.Cleanup(func() { grace = was })
}

func TestRunNobody(t *testing.T) {
	builds(t)
	if os.Geteuid() != 0 {
		t.Skip("only root can run tests as another user")
	}
	out, ok := tierRun(t, "-v -stages nobody ./internal/tier/testdata/good")
	if !ok {
		t.Error("it failed")
	}
	wants(t, out, `uid 65534, go is there: false$`, `^nobody: 6 passed, 0 failed, 2 skipped$`)
	if left, _ := filepath.Glob(fmt.Sprintf("/tmp/bench-tests-%d-*", os.Getpid())); left != nil {
		t.Errorf("left behind: %v", left)
	}
}

// TestRunWithout: without kernels or QEMU, guests are left out; with CI=true that is a failure.
func TestRunWithout(t *testing.T) {
	builds(t)
	t.Setenv("BENCH_KERNELS", t.TempDir())
	for _, ci := range []string{"", "true"} {
		t.Setenv("CI", ci)
		out, ok := tierRun(t, "-stages host,guests ./internal/tier/testdata/good")
		if ok != (ci == "") {
			t.Errorf("CI=%s: all is well: %v", ci, ok)
		}
		wants(t, out, "^guests: left out: find a kernel in .* there is none: fetch some with `make kernels`")
	}
	t.Setenv("PATH", "")
	if err := haveQEMU(); err == nil || !strings.Contains(err.Error(), "make tools") {
		t.Error(err)
	}
	if err := findCompiler(); err == nil {
		t.Error("there is a C compiler")
	}
}
