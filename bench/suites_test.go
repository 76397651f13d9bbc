package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"

	"bpfbench/bench/harness"
	"bpfbench/report"
)

func init() {
	harness.RegisterSuite(&harness.Suite{
		Name:    "test-table",
		Summary: "Does nothing in several ways, which takes a few milliseconds each and has a sentence of some length.",
		Lines: func(whole bool) [][]string {
			lines := [][]string{{"noop", "--nr_loops=2e6"}, {"noop", "--nr-loops=1e6", "-p", "2"}}
			if whole {
				lines = append(lines, []string{"noop", "--method=counter", "--prod-affinity=0"})
			}
			return lines
		},
	})
	harness.RegisterSuite(&harness.Suite{
		Name:    "test-ladder",
		Summary: "Does nothing, and hits a probe where there is one.",
		Ladder:  true,
		Lines:   func(bool) [][]string { return [][]string{{"fetcharg-kprobe"}, {"noop"}} },
	})
}

// workersOf are the workers of the jobs that a command line comes to: producers, and the CPUs that they are bound to.
func workersOf(t *testing.T, args ...string) (workers []string) {
	t.Helper()
	root := newRoot(func(_ context.Context, req request) error {
		req.opts.usable = func() ([]int, error) { return []int{0, 1, 2}, nil }
		rec, jobs, err := prepare(req)
		if err != nil {
			return err
		}
		for i, job := range jobs {
			workers = append(workers, fmt.Sprintf("%v p=%d %v", rec.Results[i].Params[1].Value, job.Producers, job.ProdCPUs))
		}
		return nil
	})
	root.SetArgs(nameFirst(args))
	if err := root.ExecuteContext(t.Context()); err != nil {
		t.Fatalf("%v: %v", args, err)
	}
	return workers
}

// The command's flags on workers hold for the lines that have none of their own.
func TestSuiteWorkers(t *testing.T) {
	for args, want := range map[string][]string{
		"suite test-table":                     {"2000000 p=1 []", "1000000 p=2 []"},
		"suite test-table -p3 -a":              {"2000000 p=3 [0 1 2]", "1000000 p=2 [0 1]"},
		"--prod-affinity=1,2 suite test-table": {"2000000 p=1 [1]", "1000000 p=2 [1 2]"},
		"suite test-table --all --affinity":    {"2000000 p=1 [0]", "1000000 p=2 [0 1]", "1000000 p=1 [0]"},
	} {
		if diff := cmp.Diff(want, workersOf(t, strings.Fields(args)...)); diff != "" {
			t.Errorf("bench %s: -want +got:\n%s", args, diff)
		}
	}
}

// Whatever suites there are, their lines are command lines, on a machine of one CPU, too, and each is measured once.
func TestSuiteLines(t *testing.T) {
	for _, s := range harness.Suites() {
		if !strings.HasSuffix(s.Summary, ".") {
			t.Errorf("%s: its summary is no sentence", s.Name)
		}
		for _, all := range []bool{true, false} {
			lines := s.Lines(all)
			if len(lines) == 0 {
				t.Errorf("%s: nothing is measured", s.Name)
			}
			seen := make(map[string]bool)
			for _, line := range lines {
				words := strings.Join(line, " ")
				opts, flags := &options{usable: func() ([]int, error) { return []int{0}, nil }}, pflag.NewFlagSet("", pflag.ContinueOnError)
				opts.bind(flags)
				e, err := lineEntry(line, opts, flags)
				if err == nil {
					_, _, err = e.opts.workers(e.benchmark, e.config, e.flags)
				}
				if err != nil {
					t.Errorf("%s: %s: %v", s.Name, words, err)
				}
				if seen[words] {
					t.Errorf("%s: %s: is there twice", s.Name, words)
				}
				seen[words] = true
			}
		}
	}
}

func TestLineErrors(t *testing.T) {
	opts, flags := new(options), pflag.NewFlagSet("", pflag.ContinueOnError)
	opts.bind(flags)
	for line, want := range map[string]string{
		"nop":                     `unknown benchmark "nop"; did you mean noop?`,
		"noop left":               `noop: "left" is left over`,
		"noop --nr_loops=0":       "noop: --nr_loops=0: must be from 1",
		"noop -d2":                "noop: unknown shorthand flag: 'd'",
		"noop --sweep=nr_loops=1": "noop: unknown flag: --sweep",
	} {
		if _, err := lineEntry(strings.Fields(line), opts, flags); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %q", line, err, want)
		}
	}
}

func TestSuiteUsage(t *testing.T) {
	for args, want := range map[string]string{
		"suite test-tabel":                `unknown suite "test-tabel"; did you mean test-table? (bench suite lists all)`,
		"suite zzzzzzzz":                  `unknown suite "zzzzzzzz" (bench suite lists all)`,
		"suite test-table noop":           `suite: "noop" is left over`,
		"suite test-table --sweep=a=1":    "suite: --sweep",
		"suite test-table -p0":            "--producers=0: must be from 1",
		"suite test-table --runs=0 -d0":   "--duration=0: must be above 0",
		"suite test-table --nr_loops=1":   "unknown flag: --nr_loops",
		"vm suite test-tabel":             "did you mean test-table?",
		"vm -- suite test-table --runs=0": "--runs=0",
	} {
		stdout, stderr, status := bench(t, strings.Fields(args)...)
		if status != exitUsage || !strings.Contains(stderr, want) || stdout != "" {
			t.Errorf("bench %s: exit status %d, %q, %q; want 2 and %q", args, status, stdout, stderr, want)
		}
	}
	if stdout, stderr, status := bench(t, "__complete", "suite", "test-l"); status != exitDone || !strings.Contains(stdout, "test-ladder\n") {
		t.Errorf("completion: exit status %d, %q, %q", status, stdout, stderr)
	}
}

func TestListSuites(t *testing.T) {
	var out strings.Builder
	suites := slices.DeleteFunc(harness.Suites(), func(s *harness.Suite) bool { return !strings.HasPrefix(s.Name, "test-") })
	if err := listSuites(&out, suites, time.Minute); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"test-ladder  2 in 2m0s  2 in 2m0s", "test-table   2 in 2m0s  3 in 3m0s"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, &out)
		}
	}
	for line := range strings.Lines(out.String()) {
		if len(strings.TrimSuffix(line, "\n")) > width {
			t.Errorf("a line is wider than %d columns: %q", width, line)
		}
	}
	if stdout, stderr, status := bench(t, "suite", "-d0.8"); status != exitDone || !strings.Contains(stdout, "2 in 2s") || stderr != "" {
		t.Errorf("exit status %d, %q, %q", status, stdout, stderr)
	}
}

// A suite is one session and one table, and what cannot run here is in it, too. Its record is shown again as it was.
func TestSuite(t *testing.T) {
	file := t.TempDir() + "/out.jsonl"
	stdout, stderr, status := bench(t, "suite", "test-table", "--wait", "-d0.02", "-w0", "--runs=2", "-o", file)
	if status != exitDone || strings.Count(stdout, "started.") != 1 || !strings.Contains(stdout, "producers") || !strings.Contains(stdout, "2000000 ") {
		t.Errorf("exit status %d, %q, %q", status, stdout, stderr)
	}
	stdout, stderr, _ = bench(t, "suite", "test-ladder", "--wait", "-d0.02", "-w0", "--runs=1", "-o", file)
	for _, want := range []string{"\nnoop ", "fetcharg-kprobe", "±: one standard deviation.\n"} {
		if !strings.Contains(stdout, want) {
			t.Errorf("no %q in %q, %q", want, stdout, stderr)
		}
	}
	if again, _, _ := bench(t, "report", file); again != stdout {
		t.Errorf("report shows\n%s\nwant\n%s", again, stdout)
	}
	rec, err := readRecord(file)
	if err != nil || len(rec.Results) != 2 || rec.Results[0].Benchmark != "fetcharg-kprobe" || rec.Results[1].Status != report.OK {
		t.Errorf("the record is %+v, %v", rec, err)
	}
}
