package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"
)

// binary is a package's tests, built.
type binary struct {
	pkg   string // import path
	dir   string // of the package
	rel   string // the same from the module's root, with slashes
	file  string
	tests int // functions that are tests
}

// name is the file's, as go test calls it.
func (b binary) name() string { return path.Base(b.pkg) + ".test" }

// buildDir is where test binaries go, from the module's root.
const buildDir = ".cache/tests"

// build builds the test binaries of those packages that have tests. root is the module's.
func build(root string, patterns []string) ([]binary, error) {
	bins, err := list(root, patterns)
	if err != nil {
		return nil, err
	}
	var all sync.WaitGroup
	errs := make([]error, len(bins))
	slots := make(chan bool, runtime.NumCPU())
	for i, b := range bins {
		all.Go(func() {
			slots <- true
			errs[i] = compile(b)
			<-slots
		})
	}
	all.Wait()
	return bins, errors.Join(errs...)
}

// compile builds one binary, static, so that it runs in a guest. Symbols stay, as probes may want them.
func compile(b binary) error {
	cmd := exec.Command("go", "test", "-c", "-ldflags=-w", "-o", b.file, ".")
	cmd.Dir = b.dir
	cmd.Env = append(cmd.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build tests of %s: %w\n%s", b.pkg, err, bytes.TrimSpace(out))
	}
	return nil
}

// buildGuest builds this program once more for guests, static, which the one that runs need not be.
func buildGuest(root string) (string, error) {
	file := filepath.Join(root, buildDir, "tier")
	cmd := exec.Command("go", "build", "-o", file, "bpfbench/internal/tier")
	cmd.Dir = root
	cmd.Env = append(cmd.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build the guest's first process: %w\n%s", err, bytes.TrimSpace(out))
	}
	return file, nil
}

// list returns what is to be built.
func list(root string, patterns []string) ([]binary, error) {
	cmd := exec.Command("go", append([]string{"list", "-json=ImportPath,Dir,TestGoFiles,XTestGoFiles"}, patterns...)...)
	cmd.Dir = root
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("list packages: %w", withStderr(err))
	}
	var bins []binary
	for dec := json.NewDecoder(bytes.NewReader(out)); ; {
		var p struct {
			ImportPath, Dir           string
			TestGoFiles, XTestGoFiles []string
		}
		if err := dec.Decode(&p); err == io.EOF {
			return bins, nil
		} else if err != nil {
			return nil, fmt.Errorf("list packages: %w", err)
		}
		files := append(p.TestGoFiles, p.XTestGoFiles...)
		if len(files) == 0 {
			continue
		}
		rel, err := filepath.Rel(root, p.Dir)
		if err != nil {
			return nil, err
		}
		b := binary{pkg: p.ImportPath, dir: p.Dir, rel: filepath.ToSlash(rel)}
		b.file = filepath.Join(root, buildDir, rel, b.name())
		if b.tests, err = countTests(p.Dir, files); err != nil {
			return nil, err
		}
		bins = append(bins, b)
	}
}

// countTests counts the functions that go test takes for tests or fuzz targets, whose seeds it runs.
func countTests(dir string, files []string) (int, error) {
	n := 0
	for _, name := range files {
		f, err := parser.ParseFile(token.NewFileSet(), filepath.Join(dir, name), nil, parser.SkipObjectResolution)
		if err != nil {
			return 0, err
		}
		for _, d := range f.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv == nil && (isTest(fn.Name.Name, "Test") || isTest(fn.Name.Name, "Fuzz")) {
				n++
			}
		}
	}
	return n, nil
}

func isTest(name, prefix string) bool {
	rest, ok := strings.CutPrefix(name, prefix)
	first, _ := utf8.DecodeRuneInString(rest)
	return ok && name != "TestMain" && !unicode.IsLower(first)
}

// pages returns the documents, which tests compare with the code, as files does.
func pages(root string) (map[string]string, error) {
	files := map[string]string{}
	for _, pattern := range []string{"README.md", "docs/*.md"} {
		names, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil {
			return nil, err
		}
		for _, name := range names {
			files[name] = path.Join(path.Dir(pattern), filepath.Base(name))
		}
	}
	return files, nil
}

// files returns what a test binary needs where it runs: itself and its testdata. The keys are paths on this machine, the
// values where they are from the module's root.
func (b binary) files() (map[string]string, error) {
	files := map[string]string{b.file: path.Join(b.rel, b.name())}
	err := filepath.WalkDir(filepath.Join(b.dir, "testdata"), func(name string, _ fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return fs.SkipAll
		}
		if err != nil {
			return err
		}
		info, err := os.Stat(name) // of what a link points to
		if err != nil || !info.Mode().IsRegular() {
			return err
		}
		rel, err := filepath.Rel(b.dir, name)
		files[name] = path.Join(b.rel, filepath.ToSlash(rel))
		return err
	})
	return files, err
}
