package suite

import (
	"errors"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"bpfbench/internal/testutils"
	"bpfbench/report"
)

// Updates of a full map are refused, each of them, from whatever number of producers.
func TestFullUpdate(t *testing.T) {
	testutils.NeedsBPF(t)
	testutils.NoLeaks(t)
	for _, name := range []string{"bpf-hashmap-full-update", "bpf-rhashmap-full-update"} {
		t.Run(name, func(t *testing.T) {
			for _, settings := range []string{"--nr_loops=1000", "--nr_loops=1 --max_entries=1", "--max_entries=100000 --trigger=tp"} {
				res := measure(t, 2, name, strings.Fields(settings)...)
				if res.Status == report.Skipped {
					t.Skip(res.Reason)
				} else if res.Status != report.OK {
					t.Errorf("%s: %s", res.Status, res.Reason)
				}
			}
		})
	}
	if _, _, err := config(t, "bpf-hashmap-full-update", "--max_entries=0", "--nr_loops=0", "--trigger=x"); err == nil ||
		!strings.Contains(err.Error(), "max_entries=0") || !strings.Contains(err.Error(), "nr_loops=0") || !strings.Contains(err.Error(), "trigger=x") {
		t.Errorf("error %v", err)
	}
}

// An update that is not refused is an error: in the check of the set-up, and later.
func TestFullUpdateSucceeds(t *testing.T) {
	testutils.NeedsBPF(t)
	testutils.NoLeaks(t)
	testutils.Exclusive(t)
	_, cfg, err := config(t, "bpf-hashmap-full-update")
	if err != nil {
		t.Fatal(err)
	}
	r, err := cfg.(*fullUpdate).full(t.Context(), 2)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.m.Delete(uint32(7)); err != nil {
		t.Fatal(err)
	}
	var failed *opError
	if _, err := r.ready(t, 1).Batch(); !errors.As(err, &failed) || failed.at != 1001 || failed.errno != unix.EEXIST || failed.after != 0 {
		t.Errorf("error %v, want EEXIST at entry 1001", err)
	}
	if err := r.m.Delete(uint32(1001)); err != nil {
		t.Fatal(err)
	}
	if err := r.refuses(); !errors.Is(err, unix.EEXIST) {
		t.Errorf("error %v, want EEXIST", err)
	}
	if err := r.close(); err != nil {
		t.Error(err)
	}
}
