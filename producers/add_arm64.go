package producers

import "sync/atomic"

// add is in Go, which chooses the instruction that the CPU has.
func add(counter *uint64, n uint64) {
	for range n {
		atomic.AddUint64(counter, 1)
	}
}
