package suite

import (
	"testing"

	"bpfbench/report"
)

// Counters and additions agree, whoever shares a counter, and a counter that lost one fails the run.
func TestCount(t *testing.T) {
	for _, name := range []string{"count-global", "count-local"} {
		res := measure(t, 3, name)
		if res.Status != report.OK {
			t.Fatalf("%s: %s: %s", name, res.Status, res.Reason)
		}
		for _, run := range res.Runs {
			for _, s := range run.Samples {
				if s.Ops == 0 || s.Elapsed == 0 {
					t.Errorf("%s: sample %+v", name, s)
				}
			}
		}
	}
	counters, added := make(tally, 2), make(tally, 2)
	counters[0].ops.Store(5)
	added[1].ops.Store(5)
	if err := checkCount(counters, added); err != nil {
		t.Error(err)
	}
	added[0].ops.Store(1)
	if err := checkCount(counters, added); err == nil {
		t.Error("a lost addition is not an error")
	}
}
