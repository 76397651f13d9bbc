package suite

import (
	"math/rand/v2"

	"bpfbench/progs"
)

const (
	orderLen  = 65536 // ORDER of the program
	orderSeed = 1
)

// ordered reports whether keys are drawn, and not used one after the other.
func (c *mapOp) ordered() bool { return c.order != "" && c.order != orderSequential }

// base is the index of the first of the keys that producer id uses.
func (c *mapOp) base(id int) uint32 {
	switch c.operation {
	case progs.MapOpOperationOP_MISS:
		return uint32(c.nrEntries)
	case progs.MapOpOperationOP_INSERT_DELETE: // no other producer's
		return uint32(c.nrEntries) * uint32(1+id)
	case progs.MapOpOperationOP_REFUSED:
		return uint32(c.nrEntries) + uint32(id)
	}
	return 0
}

// draw returns the indices of producer id's keys in the order in which it uses them, time and again: the same in each run.
func (c *mapOp) draw(id int) []uint32 {
	source := rand.New(rand.NewPCG(orderSeed, uint64(id)))
	next := func() uint64 { return source.Uint64N(c.nrEntries) }
	if c.order == orderZipf {
		next = rand.NewZipf(source, c.exponent, 1, c.nrEntries-1).Uint64
	}
	order := make([]uint32, orderLen)
	for i := range order {
		order[i] = c.base(id) + uint32(next())
	}
	return order
}

// pass is how many operations a pass has: one on each key, or on each that was drawn.
func (c *mapOp) pass() uint64 {
	switch {
	case c.operation == progs.MapOpOperationOP_REFUSED:
		return c.nrLoops
	case c.ordered():
		return orderLen
	case c.iterates() && c.kind.array:
		return c.maxEntries
	}
	return c.nrEntries
}

func (c *mapOp) passes() uint64 { return max(c.nrLoops/c.pass(), 1) }

// iterates reports whether the operation goes through the map, whatever the keys.
func (c *mapOp) iterates() bool { return c.from == fromBatch && c.op == "lookup" }
