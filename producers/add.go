package producers

import (
	"sync/atomic"
	"time"
	"unsafe"
)

// Add adds 1 to a counter n times, atomically each time, and returns how long that took. It is not interrupted by Go's
// scheduler, so it is not for long.
func Add(counter *atomic.Uint64, n uint64) time.Duration {
	if n == 0 {
		return 0
	}
	start := time.Now()
	add((*uint64)(unsafe.Pointer(counter)), n)
	return time.Since(start)
}
