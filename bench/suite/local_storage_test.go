package suite

import (
	"strings"
	"testing"

	"bpfbench/internal/testutils"
	"bpfbench/report"
)

func init() {
	smaller["local-storage-cache-seq-get"] = []string{"--nr_maps=20"}
	smaller["local-storage-cache-int-get"] = []string{"--nr_maps=20"}
	smaller["local-storage-cache-hashmap-control"] = []string{"--max_entries=10000"}
	smaller["local-storage-tasks-trace"] = []string{"--nr_procs=50"}
}

// The first map has its share of the accesses, wherever a round ends.
func TestLocalStorageShares(t *testing.T) {
	testutils.NeedsBPF(t)
	testutils.NoLeaks(t)
	for _, c := range []struct {
		kind, maps string
		share      float64
	}{{"seq-get", "1", 1}, {"seq-get", "17", 1. / 17}, {"int-get", "1", 1}, {"int-get", "2", 2. / 3}, {"int-get", "3", 2. / 4}, {"int-get", "4", 3. / 6}, {"int-get", "50", 18. / 67}} {
		res := measure(t, 1, "local-storage-cache-"+c.kind, "--nr_maps="+c.maps, "--nr_loops=20000")
		if res.Status == report.Skipped {
			t.Skip(res.Reason)
		}
		if res.Status != report.OK {
			t.Fatalf("%s %s: %s: %s", c.kind, c.maps, res.Status, res.Reason)
		}
		for _, run := range res.Runs {
			var ops uint64
			for _, s := range run.Samples {
				ops += s.Ops
			}
			want := report.Gauge{Name: "important_hits", Value: float64(ops) * c.share}
			if len(run.Gauges) != 1 || run.Gauges[0].Name != want.Name || relative(run.Gauges[0].Value, want.Value) > 1e-6 {
				t.Errorf("%s of %s maps: %+v of %d accesses, want %+v", c.kind, c.maps, run.Gauges, ops, want)
			}
		}
	}
}

func relative(a, b float64) float64 { return max(a-b, b-a) / b }

func TestLocalStorageCreate(t *testing.T) {
	testutils.NeedsBPF(t)
	testutils.NoLeaks(t)
	for _, kind := range []string{storageOfSocket, storageOfTask} {
		t.Run(kind, func(t *testing.T) {
			res := measure(t, 2, "local-storage-create", "--batch-size=7", "--storage-type="+kind)
			if res.Status == report.Skipped {
				t.Skip(res.Reason)
			}
			if res.Status != report.OK {
				t.Fatalf("%s: %s", res.Status, res.Reason)
			}
			for _, run := range res.Runs {
				for _, s := range run.Samples {
					if s.Ops == 0 || (s.Ops+s.Drops)%7 != 0 {
						t.Errorf("sample %+v, want batches of 7 operations", s)
					}
				}
			}
		})
	}
}

func TestLocalStorageRefused(t *testing.T) {
	for _, c := range []struct{ name, setting, part string }{
		{"local-storage-cache-seq-get", "--nr_maps=0", "nr_maps=0"},
		{"local-storage-cache-int-get", "--nr_maps=1001", "1000"},
		{"local-storage-cache-hashmap-control", "--hashmap_nr_keys_used=4194305", "max_entries=4194304"},
		{"local-storage-cache-seq-get", "--nr_loops=0", "nr_loops=0"},
		{"local-storage-cache-seq-get", "--trigger=x", "test_run"},
		{"local-storage-create", "--batch-size=0", "batch-size=0"},
		{"local-storage-create", "--storage-type=inode", "socket or task"},
		{"local-storage-tasks-trace", "--nr_procs=150001", "150000"},
		{"local-storage-tasks-trace", "--kthread_pid=5000000", "kthread_pid"},
	} {
		if _, _, err := config(t, c.name, c.setting); err == nil || !strings.Contains(err.Error(), c.part) {
			t.Errorf("%s %s: error %v, want %q in it", c.name, c.setting, err, c.part)
		}
	}
}
