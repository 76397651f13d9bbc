package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"bpfbench/internal/testutils"
)

// TestDocs runs the examples of the documents: the lines that start with $ in their console blocks. Those of make are what
// runs this test.
func TestDocs(t *testing.T) {
	testutils.NeedsBPF(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	runExamples(t, "BENCH_TEST_MAIN=1 exec "+self, func(example string) bool { return !strings.Contains(example, "bench vm ") })
}

// TestGuestDocs runs those that boot guests.
func TestGuestDocs(t *testing.T) {
	binary := needsGuest(t)
	for _, suite := range []string{"bookworm", "trixie", "trixie-backports"} {
		if _, err := os.Stat("../.cache/kernels/" + suite); err != nil {
			t.Skip("an example boots it:", err)
		}
	}
	runExamples(t, "exec "+binary, func(example string) bool { return strings.Contains(example, "bench vm ") })
}

// runExamples runs the examples that are chosen, as if in the root of this repository, with bench as a shell starts it.
// Measuring is cut short by flags behind the example's own.
func runExamples(t *testing.T, bench string, chosen func(example string) bool) {
	t.Helper()
	if _, err := exec.LookPath("bash"); err != nil {
		t.Skip("the examples are for bash:", err)
	}
	docs, err := filepath.Glob("../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	root, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	bin := filepath.Join(dir, "bin")
	for _, err := range []error{
		os.Mkdir(bin, 0o777),
		os.Symlink(filepath.Join(root, "scripts"), filepath.Join(dir, "scripts")),
		os.Symlink(filepath.Join(root, ".cache"), filepath.Join(dir, ".cache")),
		os.WriteFile(filepath.Join(bin, "bench"), []byte("#!/bin/sh\n"+bench+" \"$@\" $(case $1 in report|compare|doctor|list) ;; *) echo --wait -d0.02 -w0 --runs=1;; esac)\n"), 0o777),
		os.WriteFile(filepath.Join(bin, "sudo"), []byte("#!/bin/sh\nexec \"$@\"\n"), 0o777),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	examples := 0
	for _, doc := range append(docs, "../README.md") {
		text, err := os.ReadFile(doc)
		if err != nil {
			t.Fatal(err)
		}
		for _, example := range consoleExamples(string(text)) {
			if !chosen(example) {
				continue
			}
			examples++
			cmd := exec.Command("bash", "-euo", "pipefail", "-c", example)
			cmd.Dir = dir
			cmd.Env = append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"), "BENCH="+filepath.Join(bin, "bench"))
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%s: %s: %v\n%s", doc, example, err, out)
			}
		}
	}
	if examples == 0 {
		t.Error("the documents have no examples")
	}
}

var consoleBlock = regexp.MustCompile("(?s)```console\n(.*?)```")

func consoleExamples(text string) []string {
	var examples []string
	for _, block := range consoleBlock.FindAllStringSubmatch(text, -1) {
		for _, line := range strings.Split(block[1], "\n") {
			if example, ok := strings.CutPrefix(line, "$ "); ok && !strings.HasPrefix(example, "make ") {
				examples = append(examples, example)
			}
		}
	}
	return examples
}
