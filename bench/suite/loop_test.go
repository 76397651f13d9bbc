package suite

import (
	"slices"
	"strings"
	"testing"

	"bpfbench/bench/harness"
	"bpfbench/internal/testutils"
	"bpfbench/progs"
	"bpfbench/report"
)

// wantOps measures with one producer, and checks that every sample, of the twin, too, has the same operations.
func wantOps(t *testing.T, ops uint64, name string, settings ...string) {
	t.Helper()
	res := measure(t, 1, name, settings...)
	switch res.Status {
	case report.Skipped:
		t.Skip(res.Reason)
	case report.OK:
	default:
		t.Errorf("%s %v: %s: %s", name, settings, res.Status, res.Reason)
	}
	for _, run := range res.Runs {
		for _, s := range slices.Concat(run.Samples, run.Twin) {
			if s.Ops != ops {
				t.Errorf("%s %v: a sample has %d operations, want %d", name, settings, s.Ops, ops)
			}
		}
	}
}

// wantRefused checks that a benchmark refuses settings with each of the problems.
func wantRefused(t *testing.T, name, settings string, problems ...string) {
	t.Helper()
	_, _, err := config(t, name, strings.Fields(settings)...)
	for _, p := range problems {
		if err == nil || !strings.Contains(err.Error(), p) {
			t.Errorf("%s %s: error %v, want %q in it", name, settings, err, p)
		}
	}
}

// A sample is whole loops, each of as many iterations as were asked for, whatever the lengths of the calls.
func TestLoop(t *testing.T) {
	for _, name := range []string{"bpf-loop", "bpf-for"} {
		t.Run(name, func(t *testing.T) {
			for _, length := range []string{"0", "8388609", "4294967295"} {
				wantRefused(t, name, "--nr_loops="+length, "--nr_loops="+length+": must be from 1 to 8388608")
			}
			testutils.NeedsBPF(t)
			testutils.NoLeaks(t)
			wantOps(t, 1<<20, name, "--nr_loops=1")
			wantOps(t, 1<<20/777*777, name, "--nr_loops=777")
			wantOps(t, 1<<21, name, "--nr_loops=2M")
			parts(t, name)
		})
	}
}

// parts does loops that are longer than a call's first guess of what takes too long.
func parts(t *testing.T, name string) {
	t.Helper()
	_, cfg, err := config(t, name, "--nr_loops=100000")
	if err != nil {
		t.Fatal(err)
	}
	k, err := cfg.(*loop).load(1)
	if err != nil {
		t.Skip(err) // the benchmark skipped, too
	}
	for _, mode := range []progs.LoopMode{progs.LoopModeMODE_WORK, progs.LoopModeMODE_TWIN} {
		if ops, err := k.split(new(harness.Worker), uint32(mode), "loop", 100000, 3).All(); ops != 300000 || err != nil {
			t.Errorf("%s: %d operations, %v; want 300000", name, ops, err)
		}
	}
	if err := k.close(); err != nil {
		t.Error(err)
	}
}

func TestNop(t *testing.T) {
	testutils.NeedsBPF(t)
	testutils.NoLeaks(t)
	wantOps(t, nopCalls*nopLoop, "bpf-nop")
}

// A compare that finds anything but a lower string ends the call, which credits nothing.
func TestStrncmp(t *testing.T) {
	for _, name := range []string{"strncmp-no-helper", "strncmp-helper"} {
		wantRefused(t, name, "--cmp-str-len=0", "--cmp-str-len=0: must be from 1 to 4095")
		wantRefused(t, name, "--cmp-str-len=4096", "--cmp-str-len=4096: must be from 1 to 4095")
		t.Run(name, func(t *testing.T) {
			testutils.NeedsBPF(t)
			testutils.NoLeaks(t)
			wantOps(t, 1<<21/32, name, "--cmp-str-len=1")
			wantOps(t, 1<<21/63, name)
			wantOps(t, 1<<21/(4095+31), name, "--cmp-str-len=4095")
		})
	}
}

// Every length differs in its last character alone, and by one.
func TestStrncmpStrings(t *testing.T) {
	for _, length := range []uint64{1, 2, 32, 4095} {
		text, target := (&compare{length: length}).strings()
		at := slices.IndexFunc(text[:], func(c byte) bool { return c == 0 })
		if at != int(length) || string(text[:at-1]) != string(target[:at-1]) || text[at-1]+1 != target[at-1] || target[maxCompare] != 0 {
			t.Errorf("length %d: %q and %q", length, text[:at], target[:at])
		}
	}
}

// Strings that are equal are a failure, not a fast compare.
func TestStrncmpWrong(t *testing.T) {
	testutils.NeedsBPF(t)
	testutils.NoLeaks(t)
	for _, helper := range []bool{false, true} {
		spec, err := progs.LoadStrncmp()
		if err == nil {
			err = setConstants(spec, map[string]any{progs.StrncmpVarHelper: helper})
		}
		if err != nil {
			t.Fatal(err)
		}
		k, err := loadWork(spec, triggerTestRun, 1, nil)
		if err != nil {
			t.Fatal(err)
		}
		s := k.split(new(harness.Worker), uint32(progs.StrncmpModeMODE_COMPARE), "compare", 100, 1)
		if _, err := s.Batch(); err == nil || !strings.Contains(err.Error(), "compare 0: ") {
			t.Errorf("helper %v: error %v, want one at compare 0", helper, err)
		}
		if err := k.close(); err != nil {
			t.Error(err)
		}
	}
}

// wantSuite checks that what a suite asks for is accepted, and that it is least lines, or more where there are CPUs for more producers.
func wantSuite(t *testing.T, name string, least int) {
	t.Helper()
	i := slices.IndexFunc(harness.Suites(), func(s *harness.Suite) bool { return s.Name == name })
	if i < 0 {
		t.Fatalf("there is no suite %s", name)
	}
	some, whole := harness.Suites()[i].Lines(false), harness.Suites()[i].Lines(true)
	if len(whole) < least || len(some) > len(whole) {
		t.Errorf("suite %s: %d lines of %d, and %d or more are wanted", name, len(some), len(whole), least)
	}
	for _, line := range slices.Concat(some, whole) {
		settings := slices.DeleteFunc(slices.Clone(line[1:]), func(s string) bool { return s == "-a" })
		if i := slices.Index(settings, "-p"); i >= 0 {
			settings = slices.Delete(settings, i, i+2)
		}
		if _, _, err := config(t, line[0], settings...); err != nil {
			t.Errorf("suite %s: %v: %v", name, line, err)
		}
	}
}

func TestLoopSuites(t *testing.T) {
	wantSuite(t, "loop", 10)
	wantSuite(t, "for", 10)
	wantSuite(t, "strncmp", 12)
}
