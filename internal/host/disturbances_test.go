package host

import (
	"slices"
	"strings"
	"testing"

	"bpfbench/report"
)

func TestDisturbances(t *testing.T) {
	amd := fake("testdata/amd", utsname{"6.12.9", "#1 SMP", "x86_64"}, "")
	found := amd.disturbances()
	for _, want := range []string{"the JIT is off", "the frequency governor is performance,schedutil", "a load of 3.2 on 3", "took 5 % of the time"} {
		if !slices.ContainsFunc(found, func(w report.Warning) bool { return strings.Contains(w.What, want) && w.Remedy != "" }) {
			t.Errorf("nothing is said of %q: %v", want, found)
		}
	}
	if found := fake(t.TempDir(), utsname{"6.1", "", "riscv64"}, "").disturbances(); len(found) != 0 {
		t.Errorf("of a machine of which nothing is known: %v", found)
	}
	for _, w := range Disturbances() {
		if w.What == "" || w.Remedy == "" {
			t.Errorf("a warning of this machine is not complete: %+v", w)
		}
	}
}
