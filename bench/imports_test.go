package main

import (
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"strings"
	"testing"
)

// allowed is the tree of imports of docs/design.md: what a package, or all below a folder, may import of this module.
var allowedImports = map[string][]string{
	"bench":         {"bench/suite", "bench/harness", "report", "report/plot", "internal"},
	"bench/suite":   {"bench/harness", "report", "internal", "producers", "progs", "consumers", "fetcharg"},
	"bench/harness": {"report", "internal/cpuset"},
	"report":        {"report/stats"},
	"report/stats":  {},
	"report/plot":   {"report", "report/stats"},
	"progs":         {},
	"producers":     {"report", "internal"},
	"consumers":     {"report", "internal"},
	"fetcharg":      {},
	"internal":      {"report", "internal"},
}

func TestImports(t *testing.T) {
	list := exec.Command("go", "list", "-json=ImportPath,Imports", "./...")
	list.Dir = ".."
	out, err := list.Output()
	if errors.Is(err, exec.ErrNotFound) {
		t.Skip("there is no go command here")
	}
	if err != nil {
		t.Fatal(err)
	}
	const module = "bpfbench/"
	for dec := json.NewDecoder(strings.NewReader(string(out))); ; {
		var pkg struct {
			ImportPath string
			Imports    []string
		}
		if err := dec.Decode(&pkg); err == io.EOF {
			return
		} else if err != nil {
			t.Fatal(err)
		}
		name := strings.TrimPrefix(pkg.ImportPath, module)
		allowed, ok := allowedImports[name]
		if folder, _, below := strings.Cut(name, "/"); !ok && below {
			allowed, ok = allowedImports[folder]
		}
		if !ok {
			t.Errorf("%s is not in the tree of docs/design.md", name)
		}
		for _, path := range pkg.Imports {
			imported, ours := strings.CutPrefix(path, module)
			fits := func() bool {
				for _, a := range allowed {
					if imported == a || strings.HasPrefix(imported, a+"/") && a == "internal" {
						return true
					}
				}
				return false
			}
			if ours && !fits() {
				t.Errorf("%s imports %s: only %s may be", name, imported, strings.Join(allowed, ", "))
			}
		}
	}
}
