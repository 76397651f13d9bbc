package main

import (
	"encoding/json"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"bpfbench/bench/harness"
)

func TestList(t *testing.T) {
	stdout, stderr, status := bench(t, "list")
	if status != exitDone || stderr != "" || !regexp.MustCompile(`(?m)^noop +yes +Does `).MatchString(stdout) {
		t.Errorf("exit status %d, %q, %q; want noop, which runs everywhere", status, stdout, stderr)
	}
	for _, line := range strings.Split(stdout, "\n") {
		if utf8.RuneCountInString(line) > width || strings.HasSuffix(line, " ") {
			t.Errorf("a line is wider than %d columns, or ends in a space: %q", width, line)
		}
	}
	for _, b := range harness.All() {
		if !strings.Contains(stdout, "\n"+b.Name+" ") {
			t.Errorf("%s is not listed", b.Name)
		}
	}
	stdout, stderr, status = bench(t, "list", "--format=json")
	var listed struct{ Benchmarks []described }
	if err := json.Unmarshal([]byte(stdout), &listed); err != nil || status != exitDone || stderr != "" {
		t.Fatalf("exit status %d, %q, %q: %v", status, stdout, stderr, err)
	}
	if len(listed.Benchmarks) != len(harness.All()) {
		t.Errorf("%d benchmarks, want %d", len(listed.Benchmarks), len(harness.All()))
	}
	for _, b := range listed.Benchmarks {
		if b.Name != "noop" {
			continue
		}
		want := []flag{
			{"method", "string", "batch", "how the core measures: batch (timed batches) or counter (read at ticks)"},
			{"nr_loops", "number", "1000000", "iterations in a batch, or between two updates of the counter"},
		}
		if diff := cmp.Diff(want, b.Flags); diff != "" || b.Outcome != "there" || b.Op != "noop" || b.Producers.Min != 1 {
			t.Errorf("noop is %+v\n-want +got:\n%s", b, diff)
		}
	}
}

func TestListUsage(t *testing.T) {
	for args, want := range map[string]string{
		"list noop":         `list: "noop" is left over`,
		"list --format=xml": "list: --format=xml: must be one of text, json, markdown",
		"list --nonesuch":   "nonesuch",
	} {
		stdout, stderr, status := bench(t, strings.Fields(args)...)
		if status != exitUsage || !strings.Contains(stderr, want) || stdout != "" {
			t.Errorf("bench %s: exit status %d, %q, %q; want 2 and %q", args, status, stdout, stderr, want)
		}
	}
	cmd := command("list")
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	read.Close()
	cmd.Stdout = write
	var stderr strings.Builder
	cmd.Stderr = &stderr
	err = cmd.Run()
	write.Close()
	if cmd.ProcessState.ExitCode() != exitFailed || !strings.Contains(stderr.String(), "broken pipe") {
		t.Errorf("a closed pipe: %v, %q; want exit status 1 and a broken pipe", err, &stderr)
	}
}

// The page of reference is what its writer writes.
func TestPageIsUpToDate(t *testing.T) {
	page, err := os.ReadFile("../docs/benchmarks.md")
	if err != nil {
		t.Fatal(err)
	}
	var want strings.Builder
	if err := listMarkdown(&want, harness.All()); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want.String(), string(page)); diff != "" {
		t.Errorf("docs/benchmarks.md is not what the benchmarks say of themselves: run `go generate ./bench`; -want +got:\n%s", diff)
	}
}

// Benchmarks of a family that are alike share a paragraph and a table; others have their own.
func TestPageFamilies(t *testing.T) {
	noop := *harness.All()[slices.IndexFunc(harness.All(), func(b *harness.Benchmark) bool { return b.Name == "noop" })]
	a, b, c := noop, noop, noop
	a.Name, b.Name, c.Name = "map-get", "map-put", "other"
	b.Timing = "Timed: a <b> of $x | y."
	var page strings.Builder
	if err := listMarkdown(&page, []*harness.Benchmark{&a, &b, &c}); err != nil {
		t.Fatal(err)
	}
	for want, n := range map[string]int{
		"## map-…\n": 1, "## other\n": 1, "| `--method` |": 2, "Of `map-get`: ": 1, "Of `map-put`: Timed: a &lt;b> of \\$x | y.\n": 1, "Flags of": 0,
	} {
		if got := strings.Count(page.String(), want); got != n {
			t.Errorf("%q is there %d times, want %d:\n%s", want, got, n, &page)
		}
	}
}
