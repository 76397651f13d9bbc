package producers

// add is in assembly: Go's own atomic addition also fetches the sum.
func add(counter *uint64, n uint64)
