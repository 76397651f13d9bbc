package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"bpfbench/internal/vm"
)

// booting readies the tier to boot the newest kernel with packages' tests, or skips the test.
func booting(t *testing.T, packages ...string) (*tier, *strings.Builder, *vm.Kernel) {
	t.Helper()
	builds(t)
	if os.Getenv("BENCH_KERNELS") == "" {
		t.Setenv("BENCH_KERNELS", "../../.cache/kernels")
	}
	kernels, err := vm.CachedKernels()
	if err == nil {
		err = haveQEMU()
	}
	if err != nil {
		t.Skip(err)
	}
	k := kernels[len(kernels)-1]
	t.Cleanup(func() { closeKernels(kernels) })
	var out strings.Builder
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	if k.File, err = filepath.Abs(k.File); err != nil {
		t.Fatal(err)
	}
	tr := &tier{stages: []string{"guests"}, packages: packages, root: root, limit: time.Minute, out: &report{w: &out}}
	if err := tr.prepare(); err != nil {
		t.Fatal(err)
	}
	return tr, &out, k
}

// TestGuest: what hangs in a guest is ended, and the others still count. A guest that dies fails what has not ended, and what
// has not begun. A hook that is not there is named.
func TestGuest(t *testing.T) {
	impatient(t)
	data := "./internal/tier/testdata/"
	tr, out, k := booting(t, data+"good", data+"hangs", data+"stuck", data+"empty", data+"crashes", data+"fails")
	tr.limit = 5 * time.Second
	g := guest{
		kernel: k, cpus: 1, env: []string{"TIER_TEST_CRASH=1"},
		demand: []demand{{"bpfbench/internal/tier/testdata/good", "TestHooks/impossible", "6.1"}},
	}
	tr.boot(t.Context(), g, tr.out.place(g.name()), inOrder(tr.bins, "good", "hangs", "stuck", "empty", "crashes", "fails"))
	if tr.out.finish() {
		t.Error("all is well")
	}
	wants(t, out.String(), hung...)
	wants(t, out.String(),
		`^ok  \tbpfbench/internal/tier/testdata/good\t`+regexp.QuoteMeta(k.Release)+`\t`,
		`testdata/empty: no test ran, although it has some$`,
		`guest stopped before its task was done: Kernel panic - not syncing: sysrq triggered crash`,
		`^about to crash$`,
		`testdata/crashes: the guest ended in the midst of it$`, `^--- FAIL: TestCrashes: it has not come to its end$`,
		`testdata/fails: the guest ended before this began$`,
		`^FAIL\t\S+: bpfbench/internal/tier/testdata/good TestHooks/impossible did not run, but must pass on this kernel$`,
		`: 7 passed, 7 failed, 2 skipped$`)
}

// inOrder sorts binaries by the last parts of their packages.
func inOrder(bins []binary, names ...string) []binary {
	var sorted []binary
	for _, name := range names {
		for _, b := range bins {
			if filepath.Base(b.rel) == name {
				sorted = append(sorted, b)
			}
		}
	}
	return sorted
}

// TestGuestWithoutBTF hides what user space sees of the kernel's BTF, as if it had been built without.
func TestGuestWithoutBTF(t *testing.T) {
	tr, out, k := booting(t, "./internal/kernel")
	g := guest{kernel: k, cpus: 1, hide: []string{"/sys/kernel/btf"}, tests: []string{"TestHooks"}, demand: demands}
	tr.boot(t.Context(), g, tr.out.place(g.name()), tr.bins)
	if tr.out.finish() {
		t.Error("all is well")
	}
	wants(t, out.String(),
		`fentry: not in this kernel: needs Linux 5.5 with CONFIG_DEBUG_INFO_BTF=y.*but this kernel is new enough`,
		`^    failed: bpfbench/internal/kernel: TestHooks, TestHooks/fentry$`,
		`passed, 2 failed, 0 skipped$`)
}

// TestGuestKernels: a name that stands for no kernel is an error.
func TestGuestKernels(t *testing.T) {
	if _, err := kernelsOf([]string{t.TempDir()}); err == nil {
		t.Error("there are kernels in an empty folder")
	}
}
