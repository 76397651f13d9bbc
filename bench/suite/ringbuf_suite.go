package suite

import (
	"fmt"
	"slices"

	"bpfbench/bench/harness"
)

func init() {
	harness.RegisterSuite(&harness.Suite{
		Name:    "ringbufs",
		Summary: "Ring and perf buffers by reader: notified of each record or of many, back to back, on one CPU, by several producers.",
		Lines:   bufferLines,
	})
}

// bufferLines leaves out what differs from another line in its words only.
func bufferLines(whole bool) (lines [][]string) {
	rates, producers := []int{1, 50, 3000}, []int{1, 2}
	if whole {
		rates = []int{1, 5, 10, 25, 50, 100, 250, 1000, 2000, 3000}
		producers = []int{1, 2, 3, 4}
		for n := 8; n <= 52; n += 4 {
			producers = append(producers, n)
		}
	}
	all := []string{"rb-lib", "rb-custom", "pb-lib", "pb-custom"}
	each := func(names []string, flags ...string) {
		for _, name := range names {
			lines = append(lines, slices.Concat([]string{name}, flags))
		}
	}
	each(all)
	each(all, "--rb-sampled")
	each(all, "--rb-b2b")
	each(all, "--rb-b2b", "--rb-sampled")
	for _, n := range rates {
		each([]string{"rb-custom", "pb-custom"}, "--rb-b2b", "--rb-sampled", fmt.Sprintf("--rb-batch-cnt=%d", n), fmt.Sprintf("--rb-sample-rate=%d", n))
	}
	each([]string{"rb-custom"}, "--rb-use-output", "--rb-b2b")
	each([]string{"rb-custom"}, "--rb-use-output", "--rb-sampled")
	each(all, "--rb-batch-cnt=1", "--prod-affinity=0", "--cons-affinity=0")
	for _, n := range producers {
		p := fmt.Sprintf("-p%d", n)
		each([]string{"rb-lib", "pb-lib"}, p, "--rb-batch-cnt=50")
		each([]string{"rb-lib"}, p, "--rb-batch-cnt=50", "--rb-overwrite", "--rb-bench-producer")
	}
	return lines
}
