package suite

import (
	"strconv"

	"bpfbench/bench/harness"
)

func init() {
	harness.RegisterSuite(&harness.Suite{
		Name: "bloom",
		Summary: "Bloom filters by the size and number of values, hash functions and producers, and what they save where they are " +
			"asked before a hash map.",
		Lines: bloomLines,
	})
}

// bloomLines leaves out what has more values than there are of their size.
func bloomLines(whole bool) (lines [][]string) {
	sizes, producers, functions, entries, compared := []int{8, 40}, []int{1}, []int{3, 10}, []int{10000, 1000000}, 1
	if whole {
		sizes, producers, functions = []int{2, 4, 8, 16, 40}, []int{1, 4, 8, 12, 16}, []int{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}
		entries = []int{10000, 50000, 75000, 100000, 250000, 500000, 750000, 1000000, 2500000, 5000000}
		compared = 8
	}
	add := func(producers int, names ...string) {
		for _, size := range sizes {
			for _, function := range functions {
				for _, n := range entries {
					if size == 2 && n > 1<<16 {
						continue
					}
					for _, name := range names {
						lines = append(lines, []string{name, "-p", strconv.Itoa(producers), "--value_size", strconv.Itoa(size),
							"--nr_hash_funcs", strconv.Itoa(function), "--nr_entries", strconv.Itoa(n)})
					}
				}
			}
		}
	}
	for _, p := range producers {
		add(p, "bloom-lookup", "bloom-update", "bloom-false-positive")
	}
	add(compared, "hashmap-without-bloom", "hashmap-with-bloom")
	return lines
}
