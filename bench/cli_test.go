package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"bpfbench/report"
)

// TestMain lets the test binary be bench itself, so that its streams and exit statuses can be tested.
func TestMain(m *testing.M) {
	if os.Getenv("BENCH_TEST_MAIN") != "" {
		main()
	}
	os.Exit(m.Run())
}

// command is bench with args, as a process.
func command(args ...string) *exec.Cmd {
	cmd := exec.Command("/proc/self/exe", args...)
	cmd.Env = append(os.Environ(), "BENCH_TEST_MAIN=1")
	return cmd
}

// bench runs bench and returns what it printed and its exit status.
func bench(t *testing.T, args ...string) (stdout, stderr string, status int) {
	t.Helper()
	return output(t, command(args...))
}

// output runs cmd to its end.
func output(t *testing.T, cmd *exec.Cmd) (stdout, stderr string, status int) {
	t.Helper()
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return out.String(), withoutWarnings(errs.String()), cmd.ProcessState.ExitCode()
}

// withoutWarnings leaves out what depends on the machine and on what else it does.
func withoutWarnings(stderr string) string {
	var kept strings.Builder
	for line := range strings.Lines(stderr) {
		if !strings.HasPrefix(line, "bench: warning: ") {
			kept.WriteString(line)
		}
	}
	return kept.String()
}

// quick makes noop take a few milliseconds.
func quick(args ...string) []string {
	return append([]string{"--wait", "-d0.02", "-w0", "--runs=2", "noop", "--nr_loops=1e6"}, args...)
}

func TestNameFirst(t *testing.T) {
	for in, want := range map[string]string{
		"-d2 -a noop":                        "noop -d2 -a",
		"-d 2 -a noop --nr_loops 5":          "noop -d 2 -a --nr_loops 5",
		"--nr_loops 5 noop":                  "noop --nr_loops 5",
		"--nr-loops 5 noop":                  "noop --nr-loops 5",
		"--nr_loops=5 noop -q":               "noop --nr_loops=5 -q",
		"-qd 2 noop":                         "noop -qd 2",
		"-aqd2 noop":                         "noop -aqd2",
		"-o noop noop":                       "noop -o noop",
		"--format text noop":                 "noop --format text",
		"--key_size 4 -a bpf-hashmap-lookup": "bpf-hashmap-lookup --key_size 4 -a",
		"-l":                                 "-l",
		"nonesuch -a":                        "nonesuch -a",
		"--nonesuch 5 noop":                  "noop --nonesuch 5",
		"-- noop":                            "-- noop",
		"__complete -d 2 noop --":            "__complete noop -d 2 --",
	} {
		if got := strings.Join(nameFirst(strings.Fields(in)), " "); got != want {
			t.Errorf("%q becomes %q, want %q", in, got, want)
		}
	}
}

func TestUsage(t *testing.T) {
	for _, tt := range []struct{ args, want string }{
		{"", "name a benchmark"},
		{"-d2", "name a benchmark"},
		{"bpf-hashmap-lokup", `unknown benchmark "bpf-hashmap-lokup"; did you mean bpf-hashmap-lookup`},
		{"zzz", `unknown benchmark "zzz" (bench -l lists all)`},
		{"noop left", `"left" is left over`},
		{"noop noop", `"noop" is left over`},
		{"noop --nonesuch", "nonesuch"},
		{"noop -Z", "Z"},
		{"noop --nr_loops=16x", `"16x" is not a number`},
		{"noop --nr_loops", "nr_loops"},
		{"noop --key_size=4", "key_size"},
		{"noop -d 0", "--duration=0: must be above 0"},
		{"noop -d 1x", `"1x" is not a time`},
		{"noop -d -1", `"-1" is not from 0`},
		{"noop -d NaN", `"NaN" is not from 0`},
		{"noop --runs=0", "--runs=0: must be from 1 to 10000"},
		{"noop -p0", "--producers=0: must be from 1"},
		{"noop -p1e9", "--producers=1000000000: must be from 1"},
		{"noop -c1", "--consumers=1: noop has no consumers"},
		{"noop --runs=0 -d 0 --nr_loops=0", "--duration=0"},
		{"noop --runs=0 -d 0 --nr_loops=0", "--nr_loops=0"},
		{"noop --prod-affinity=8000", "8000"},
		{"noop --prod-affinity=5-2", "5-2"},
		{"noop --prod-affinity=0 -p2", "has 1 CPUs for 2 threads"},
		{"noop --format=xml", "--format=xml: must be one of text, json, jsonl"},
		{"noop --format=json --format=text", "the standard output already has json"},
		{"noop --format=json=", "a file of its own"},
		{"noop --sweep=nr_loops", "must be PARAM=VALUES"},
		{"noop --sweep=nonesuch=1,2", `noop has no parameter "nonesuch"; it has method, nr_loops`},
		{"noop --sweep=nr_loops=1:2", "start:stop:step"},
		{"noop --sweep=nr_loops=1,,2", "a value is empty"},
		{"noop --sweep=nr_loops=1,2 --sweep=nr-loops=1,2", "swept twice"},
		{"noop --sweep=nr_loops=1:1e9:1", "more than 10000 values"},
		{"noop --sweep=nr_loops=0,1", "--nr_loops=0: must be from 1"},
		{"noop --sweep=method=x", "--method=x: must be batch or counter"},
		{"bpf-hashmap-lookup --key_size=1 --nr_entries=300", "--nr_entries=300: key_size 1 allows 256 distinct keys"},
		{"bpf-hashmap-lookup --map_flags=zero_sed", "zero_seed"},
	} {
		stdout, stderr, status := bench(t, strings.Fields(tt.args)...)
		if status != exitUsage || !strings.Contains(stderr, tt.want) || stdout != "" {
			t.Errorf("bench %s: exit status %d, %q on the standard output, %q on the standard error; want 2 and %q", tt.args, status, stdout, stderr, tt.want)
		}
		for _, line := range strings.Split(strings.TrimSpace(stderr), "\n") {
			if tt.args != "" && tt.args != "-d2" && !strings.HasPrefix(line, "bench: ") {
				t.Errorf("bench %s: a message does not say that it is bench's: %q", tt.args, line)
			}
		}
	}
}

func TestHelp(t *testing.T) {
	for args, want := range map[string]string{
		"-l":               "\n- bpf-hashmap-lookup\n- ",
		"--version":        "bench ",
		"-h":               "bench -a bpf-hashmap-lookup --key_size=4",
		"noop -h":          "Not timed",
		"-d2 noop --help":  "Flags of noop",
		"help noop":        "Flags of noop",
		"noop --nr_loops=": "",
	} {
		if want == "" {
			continue
		}
		stdout, stderr, status := bench(t, strings.Fields(args)...)
		if status != exitDone || !strings.Contains(stdout, want) || stderr != "" {
			t.Errorf("bench %s: exit status %d, %q, %q; want %q", args, status, stdout, stderr, want)
		}
		for _, line := range strings.Split(stdout, "\n") {
			if len([]rune(line)) > width {
				t.Errorf("bench %s: a line is wider than %d columns: %q", args, width, line)
			}
		}
	}
}

func TestCompletion(t *testing.T) {
	for args, want := range map[string]string{
		"__complete bpf-":                             "bpf-hashmap-lookup",
		"__complete bpf-hashmap-lookup --trigger ":    "test_run",
		"__complete -a bpf-hashmap-lookup --map":      "--map_flags",
		"__complete -a bpf-hashmap-lookup --sweep nr": "nr_entries=",
		"__complete noop --format ":                   "jsonl",
	} {
		if stdout, stderr, status := bench(t, strings.Split(args, " ")...); status != exitDone || !strings.Contains(stdout, want) {
			t.Errorf("bench %s: exit status %d, %q, %q; want %q", args, status, stdout, stderr, want)
		}
	}
}

func TestText(t *testing.T) {
	stdout, stderr, status := bench(t, quick()...)
	if status != exitDone || stderr != "" || !strings.Contains(stdout, "prod00: noop ") || !strings.Contains(stdout, "Benchmark 'noop' started.") {
		t.Errorf("exit status %d, %q, %q", status, stdout, stderr)
	}
	stdout, _, _ = bench(t, quick("-a", "-q")...)
	if n := strings.Count(stdout, "\n"); n != 1 || strings.Trim(stdout, "0123456789.\n") != "" {
		t.Errorf("-a -q printed %q, want a number", stdout)
	}
	stdout, _, status = bench(t, quick("--sweep", "nr_loops=1e6,2e6", "--sweep=method=batch,counter")...)
	for _, want := range []string{"1000000 ", "2000000 ", "batch", "counter"} {
		if status != exitDone || !strings.Contains(stdout, want) {
			t.Errorf("a sweep printed %q with exit status %d, want %q in it", stdout, status, want)
		}
	}
}

func TestFormats(t *testing.T) {
	dir := t.TempDir()
	asJSON, asLines := filepath.Join(dir, "a.json"), filepath.Join(dir, "a.jsonl")
	if err := os.WriteFile(asJSON, bytes.Repeat([]byte("old "), 10000), 0o666); err != nil {
		t.Fatal(err)
	}
	stdout, stderr, status := bench(t, quick("--format", "json="+asJSON, "-o", asLines, "--sweep=nr_loops=1e6,2e6")...)
	if status != exitDone || stderr != "" || !strings.Contains(stdout, "nr_loops") {
		t.Fatalf("exit status %d, %q, %q", status, stdout, stderr)
	}
	var recs []*report.Record
	for _, path := range []string{asJSON, asLines} {
		f, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		rec, err := report.Read(f)
		f.Close()
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		recs = append(recs, rec)
	}
	a, _ := json.Marshal(recs[0])
	b, _ := json.Marshal(recs[1])
	if !bytes.Equal(a, b) {
		t.Errorf("json has %s\njsonl has %s", a, b)
	}
	rec := recs[0]
	if len(rec.Results) != 2 || len(rec.Results[0].Runs) != 2 || rec.Session.Unit != report.Nanoseconds || !slices.Contains(rec.Session.Args, "noop") || rec.Session.Hosts[0].Kernel == "" {
		t.Errorf("the record is %s", a)
	}
	stdout, _, _ = bench(t, quick("--format=json")...)
	if !json.Valid([]byte(stdout)) {
		t.Errorf("--format=json printed %q", stdout)
	}
}

func TestOutputErrors(t *testing.T) {
	dir := t.TempDir()
	kept := filepath.Join(dir, "kept")
	if err := os.WriteFile(kept, []byte("old"), 0o666); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name, path, want string
		results          bool // are printed all the same
	}{
		{"folder", dir, "is a directory", false},
		{"nowhere", filepath.Join(dir, "no", "file"), "no such file", false},
		{"full", "/dev/full", "no space left", false},
	} {
		stdout, stderr, status := bench(t, quick("-o", tt.path)...)
		if status != exitFailed || !strings.Contains(stderr, tt.want) {
			t.Errorf("%s: exit status %d, %q, %q; want 1 and %q", tt.name, status, stdout, stderr, tt.want)
		}
	}
	stdout, stderr, status := bench(t, quick("--format", "json=/dev/full")...)
	if status != exitFailed || !strings.Contains(stderr, "no space left") || !strings.Contains(stdout, "prod00: noop") {
		t.Errorf("a full disk at the end: exit status %d, %q, %q; want the numbers and an error", status, stdout, stderr)
	}
	if _, _, status := bench(t, quick("-o", kept, "--nr_loops=0")...); status != exitUsage {
		t.Errorf("exit status %d", status)
	}
	if got, err := os.ReadFile(kept); string(got) != "old" {
		t.Errorf("a session that did not start emptied the file: %q, %v", got, err)
	}
}

// A reader that goes away ends the session, which says so and undoes what it has set up.
func TestClosedPipe(t *testing.T) {
	cmd := command(quick("--format=jsonl", "-d30")...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	pipe, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	pipe.Close()
	err = cmd.Wait()
	if cmd.ProcessState.ExitCode() != exitFailed || !strings.Contains(stderr.String(), "broken pipe") {
		t.Errorf("%v, %q; want exit status 1 and a broken pipe", err, &stderr)
	}
}

func TestSignals(t *testing.T) {
	for _, sig := range []os.Signal{os.Interrupt, syscall.SIGTERM} {
		file := filepath.Join(t.TempDir(), "out.jsonl")
		cmd := command("--wait", "-d60", "-w0", "noop", "-o", file)
		var stdout, stderr bytes.Buffer
		cmd.Stdout, cmd.Stderr = &stdout, &stderr
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		for started := false; !started; time.Sleep(10 * time.Millisecond) {
			data, _ := os.ReadFile(file)
			started = len(data) > 0 // the session's line: it measures
		}
		time.Sleep(300 * time.Millisecond)
		if err := cmd.Process.Signal(sig); err != nil {
			t.Fatal(err)
		}
		_ = cmd.Wait()
		if got := cmd.ProcessState.ExitCode(); got != exitInterrupted {
			t.Errorf("%v: exit status %d, want %d", sig, got, exitInterrupted)
		}
		if !strings.Contains(stdout.String(), "prod00: noop") || !strings.Contains(stdout.String(), "interrupted after") || !strings.Contains(stderr.String(), "interrupted") {
			t.Errorf("%v: %q, %q; want what was measured, marked", sig, &stdout, &stderr)
		}
		f, err := os.Open(file)
		if err != nil {
			t.Fatal(err)
		}
		rec, err := report.Read(f)
		f.Close()
		if err != nil || !rec.Session.Interrupted || rec.Results[0].Status != report.Interrupted || len(rec.Results[0].Runs) != 1 {
			t.Errorf("%v: the record is %+v, %v", sig, rec, err)
		}
	}
}

// Two sessions do not measure at once: the second says who does, or waits.
func TestTwoSessions(t *testing.T) {
	file := filepath.Join(t.TempDir(), "out.jsonl")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	first := exec.CommandContext(ctx, "/proc/self/exe", "--wait", "-d60", "-w0", "noop", "-o", file)
	first.Env = append(os.Environ(), "BENCH_TEST_MAIN=1")
	if err := first.Start(); err != nil {
		t.Fatal(err)
	}
	for started := false; !started; time.Sleep(10 * time.Millisecond) {
		data, _ := os.ReadFile(file)
		started = len(data) > 0
	}
	_, stderr, status := bench(t, "-d0.02", "-w0", "noop")
	if status != exitFailed || !strings.Contains(stderr, "--wait") {
		t.Errorf("the second: exit status %d, %q; want 1 and the flag --wait", status, stderr)
	}
	waiting := command(quick()...)
	if err := waiting.Start(); err != nil {
		t.Fatal(err)
	}
	time.Sleep(300 * time.Millisecond)
	cancel() // kills the first: the lock goes with it
	_ = first.Wait()
	if err := waiting.Wait(); err != nil {
		t.Errorf("the one that waits: %v", err)
	}
}

// Why there are no numbers is a message, and no result.
func TestFailed(t *testing.T) {
	stdout, stderr, status := bench(t, "--wait", "bpf-hashmap-lookup", "--max_entries=4e9")
	if status != exitFailed || strings.Contains(stdout, "failed") || !strings.HasPrefix(stderr, "bench: bpf-hashmap-lookup: ") {
		t.Errorf("exit status %d, %q, %q; want 1 and the reason as a message", status, stdout, stderr)
	}
}
