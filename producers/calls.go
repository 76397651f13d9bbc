package producers

import "time"

// callNothing calls a function that does nothing, n times, n at least 1.
func callNothing(n uint64)

// Calls calls a function of this binary that does nothing, n times, and returns how long that took. It is not interrupted by
// Go's scheduler, so it is not for long.
func Calls(n uint64) time.Duration {
	if n == 0 {
		return 0
	}
	start := time.Now()
	callNothing(n)
	return time.Since(start)
}
