package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"

	"bpfbench/internal/vm"
	"bpfbench/report"
)

func TestDivide(t *testing.T) {
	flags := pflag.NewFlagSet("vm", pflag.ContinueOnError)
	new(guestOptions).bind(flags)
	for args, want := range map[string]string{
		"--exact --kernel K -- -a noop":          "--exact --kernel K | -a noop",
		"--exact noop -a --kernel=K":             "--exact --kernel=K | noop -a",
		"noop -d 2 --smp 2 --nr_loops 5":         "--smp 2 | noop -d 2 --nr_loops 5",
		"-d 2 noop -- --exact":                   " | -d 2 noop --exact",
		"--kernel A --kernel B -p2 noop -o file": "--kernel A --kernel B | -p2 noop -o file",
		"-h":                                     " | -h",
		"--kernel":                               "--kernel | ",
	} {
		own, inner := divide(strings.Fields(args), flags)
		if got := strings.Join(own, " ") + " | " + strings.Join(inner, " "); got != want {
			t.Errorf("%q is parted into %q, want %q", args, got, want)
		}
	}
}

func TestGuestUsage(t *testing.T) {
	none := filepath.Join(t.TempDir(), "none")
	if err := os.WriteFile(none, []byte("no kernel"), 0o666); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		args   string
		status int
		want   string
	}{
		{"vm", exitUsage, "name a benchmark: bench vm -- bpf-hashmap-lookup"},
		{"vm --exact", exitUsage, "name a benchmark"},
		{"vm nonesuch", exitUsage, `unknown benchmark "nonesuch"`},
		{"vm --exact --smp=2 noop", exitUsage, "--smp=2: --exact has one CPU"},
		{"vm --exact --accel=kvm noop", exitUsage, "--exact needs emulation"},
		{"vm --accel=xen noop", exitUsage, "--accel=xen: must be auto, kvm or tcg"},
		{"vm --smp=0 noop", exitUsage, "--smp=0: must be from 1"},
		{"vm --memory=1M noop", exitUsage, "--memory=1048576: must be from"},
		{"vm --memory=1x noop", exitUsage, `"1x" is not a number`},
		{"vm noop --nr_loops=0", exitUsage, "--nr_loops=0"},
		{"vm --smp=2 noop --prod-affinity=2", exitUsage, "--prod-affinity=2"},
		{"vm --kernel=" + none + " noop", exitFailed, "--kernel="},
		{"vm --kernel=/nonesuch noop", exitFailed, "no such file"},
	} {
		stdout, stderr, status := bench(t, strings.Fields(tt.args)...)
		if status != tt.status || !strings.Contains(stderr, tt.want) || stdout != "" {
			t.Errorf("bench %s: exit status %d, %q, %q; want %d and %q", tt.args, status, stdout, stderr, tt.status, tt.want)
		}
	}
	if stdout, _, status := bench(t, "vm", "--help"); status != exitDone || !strings.Contains(stdout, "--exact") || strings.Contains(stdout, "--sweep") {
		t.Errorf("vm --help: exit status %d, %q", status, stdout)
	}
	if stdout, _, status := bench(t, "vm", "noop", "--help"); status != exitDone || !strings.Contains(stdout, "Flags of noop") {
		t.Errorf("vm noop --help: exit status %d, %q", status, stdout)
	}
}

// noted is a writer that notes what it is told.
type noted struct{ calls []string }

func (n *noted) Begin(rec *report.Record) error {
	n.calls = append(n.calls, "begin on "+rec.Session.Hosts[0].Kernel)
	return nil
}

func (n *noted) Run(rec *report.Record, i int) error {
	r := rec.Results[i]
	n.calls = append(n.calls, "run of "+rec.Session.Hosts[r.Host].Kernel+" "+r.Benchmark)
	return nil
}

func (n *noted) End(rec *report.Record) error {
	var states []string
	for _, r := range rec.Results {
		states = append(states, string(r.Status))
	}
	n.calls = append(n.calls, "end "+strings.Join(states, " "))
	return nil
}

// What guests of several kernels tell becomes one record: the results of the first kernel, then those of the next.
func TestGuestRecord(t *testing.T) {
	n := &noted{}
	s := &guestSession{g: &guestOptions{}, configs: 2, kernels: []*vm.Kernel{{}, {}}, writers: []report.Writer{n}, rec: &report.Record{Session: report.Session{
		Plan: report.Plan{Runs: 1}, Hosts: make([]report.Host, 2)}}}
	for i := range s.kernels {
		for _, name := range []string{"a", "b"} {
			s.rec.Results = append(s.rec.Results, &report.Result{Benchmark: name, Host: i})
		}
	}
	guest := func(kernel string, run bool) *report.Record {
		rec := &report.Record{Session: report.Session{Hosts: []report.Host{{Kernel: kernel}}}, Results: []*report.Result{{}, {}}}
		if run {
			rec.Results[1].Runs = []*report.Run{{}}
		}
		return rec
	}
	for _, err := range []error{
		s.take(0, guest("6.1", false), -1), s.take(0, guest("6.1", true), 1), s.take(1, guest("7.3", false), -1), s.take(1, guest("7.3", true), 1),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	s.fail(1, os.ErrDeadlineExceeded)
	if s.failed(0) || !s.failed(1) {
		t.Error("the second kernel has failed, and it alone")
	}
	if err := s.end(t.Context()); err != nil {
		t.Fatal(err)
	}
	want := []string{"begin on 6.1", "run of 6.1 b", "run of 7.3 b", "end interrupted  failed failed"}
	if diff := cmp.Diff(want, n.calls); diff != "" {
		t.Errorf("the writers were told -want +got:\n%s", diff)
	}
	if err := s.take(0, &report.Record{}, -1); err == nil {
		t.Error("a guest that measures something else is accepted")
	}
}

// What set-ups find out is of the kernel that they ran on, though the guests begin with the same facts.
func TestGuestFacts(t *testing.T) {
	facts := append(make([]report.Param, 0, 8), report.Param{Name: "full", Value: 6, Unit: "%"})
	s := &guestSession{g: &guestOptions{}, kernels: []*vm.Kernel{{Release: "6.1"}, {Release: "7.3"}}, configs: 1, rec: &report.Record{
		Session: report.Session{Plan: report.Plan{Runs: 1}}, Results: []*report.Result{{Benchmark: "a", Facts: facts}}}}
	s.layOut()
	for i, trigger := range []string{"tracepoint", "fentry"} {
		guest := &report.Record{Session: report.Session{Hosts: []report.Host{{}}}, Results: []*report.Result{{
			Facts: []report.Param{{Name: "full", Value: json.Number("6"), Unit: "%"}, {Name: "triggered_by", Value: trigger}}, Runs: []*report.Run{{}}}}}
		if err := s.take(i, guest, 0); err != nil {
			t.Fatal(err)
		}
	}
	for i, want := range []string{"tracepoint", "fentry"} {
		if f := s.rec.Results[i].Facts; len(f) != 2 || f[1].Value != want {
			t.Errorf("kernel %d: %v, want %s", i, f, want)
		}
	}
}

// In exact mode, what a benchmark takes for time is instructions.
func TestCounted(t *testing.T) {
	rec := &report.Record{Results: []*report.Result{{Runs: []*report.Run{{Gauges: []report.Gauge{{Unit: "ns"}, {Unit: "ns/op"}, {Unit: "B"}, {Unit: "nsx"}}}}}}}
	if err := (counted{}).Run(rec, 0); err != nil {
		t.Fatal(err)
	}
	var units []string
	for _, g := range rec.Results[0].Runs[0].Gauges {
		units = append(units, g.Unit)
	}
	if got := strings.Join(units, " "); got != "insn insn/op B nsx" {
		t.Error(got)
	}
}

// needsGuest returns a function that runs a static bench, and skips the test where that, or a guest, cannot be had.
func needsGuest(t *testing.T) (binary string) {
	t.Helper()
	if testing.Short() {
		t.Skip("it boots guests")
	}
	if _, err := exec.LookPath("qemu-system-x86_64"); err != nil {
		t.Skip("it boots guests:", err)
	}
	k, err := vm.CachedKernel("../.cache/kernels")
	if err != nil {
		t.Skip("it boots guests:", err)
	}
	t.Setenv("BENCH_KERNELS", filepath.Dir(k.File))
	binary = filepath.Join(t.TempDir(), "bench")
	build := exec.Command("go", "build", "-o", binary, ".")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); errors.Is(err, exec.ErrNotFound) {
		t.Skip("it builds bench:", err)
	} else if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return binary
}

// Exact mode: the same command gives the same record to the byte, in instructions and not in time.
func TestGuestExact(t *testing.T) {
	binary := needsGuest(t)
	args := strings.Fields("vm --exact --format=json -d0.02 -w0.001 --runs=2 --nr_loops=10000 bpf-hashmap-lookup")
	first, stderr, status := output(t, exec.Command(binary, args...))
	if status != exitDone || stderr != "" {
		t.Fatalf("exit status %d, %q", status, stderr)
	}
	if again, _, _ := output(t, exec.Command(binary, args...)); again != first {
		t.Errorf("two boots give different records:\n%s\n%s", first, again)
	}
	rec, err := report.Read(strings.NewReader(first))
	if err != nil {
		t.Fatal(err)
	}
	if rec.Session.Unit != report.Instructions || rec.Session.Hosts[0].Accel != "tcg" || !rec.Session.Start.IsZero() || len(rec.Results[0].Runs) != 2 {
		t.Errorf("the record is %s", first)
	}
	if cost, ok := rec.Results[0].Runs[0].Cost(); !ok || cost < 50 || cost > 500 {
		t.Errorf("a lookup takes %v instructions", cost)
	}
	text, stderr, status := output(t, exec.Command(binary, strings.Fields("vm --exact -d0.02 -w0.001 --runs=1 -a bpf-hashmap-lookup --nr_loops=10000")...))
	if status != exitDone || !strings.Contains(text, "events per 1e9 insn") || strings.Contains(text, "/sec") || strings.Contains(text, "ns/op") {
		t.Errorf("exit status %d, %q, %q", status, text, stderr)
	}
}

// Several kernels are one session: a boot of each kernel a round, a row each in the end. A guest's failure is the command's.
func TestGuests(t *testing.T) {
	binary := needsGuest(t)
	kernel := os.Getenv("BENCH_KERNELS")
	file := filepath.Join(t.TempDir(), "out.jsonl")
	stdout, stderr, status := output(t, exec.Command(binary, "vm", "--kernel", kernel, "--kernel", kernel, "-o", file, "--", "-d0.02", "-w0", "--runs=2", "noop"))
	if status != exitDone || strings.Count(stdout, "-amd64") < 4 || !strings.Contains(stdout, "not those of hardware") || !strings.Contains(stdout, " inconclusive.") {
		t.Errorf("exit status %d, %q, %q", status, stdout, stderr)
	}
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	rec, err := report.Read(bytes.NewReader(data))
	if err != nil || len(rec.Results) != 2 || len(rec.Results[1].Runs) != 2 || rec.Session.Hosts[1].CPUs != 1 {
		dump, _ := json.Marshal(rec)
		t.Errorf("the record is %s, %v", dump, err)
	}
	_, stderr, status = output(t, exec.Command(binary, "vm", "--append=nonsense", "bpf-hashmap-lookup", "--map_flags=0x80000000", "-d0.02"))
	if status != exitFailed || !strings.Contains(stderr, "0x80000000") {
		t.Errorf("a map that cannot be: exit status %d, %q", status, stderr)
	}
	_, stderr, status = output(t, exec.Command(binary, "vm", "--append=init=/nonesuch rdinit=/nonesuch", "noop", "-d0.02"))
	if status != exitFailed || !strings.Contains(stderr, "bench: noop: failed") {
		t.Errorf("a guest that dies: exit status %d, %q", status, stderr)
	}
}

// ^C ends the guest, keeps what it has told, and leaves no QEMU.
func TestGuestInterrupted(t *testing.T) {
	binary := needsGuest(t)
	file := filepath.Join(t.TempDir(), "out.jsonl")
	cmd := exec.Command(binary, "vm", "--accel=tcg", "-d60", "-w0", "--runs=30", "noop", "-o", file)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for start := time.Now(); ; time.Sleep(50 * time.Millisecond) {
		if data, _ := os.ReadFile(file); bytes.Count(data, []byte("\n")) > 1 {
			break
		}
		if time.Since(start) > 2*time.Minute {
			_ = cmd.Process.Kill()
			t.Fatalf("no run in two minutes: %q, %q", &stdout, &stderr)
		}
	}
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	if got := cmd.ProcessState.ExitCode(); got != exitInterrupted || !strings.Contains(stdout.String(), "interrupted after") {
		t.Errorf("exit status %d, %q, %q", got, &stdout, &stderr)
	}
	if err := syscall.Kill(-cmd.Process.Pid, 0); err == nil {
		t.Error("a process of its group is left")
	}
}
