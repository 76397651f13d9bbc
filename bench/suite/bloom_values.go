package suite

import (
	"context"
	"encoding/binary"
	"math/rand/v2"
)

// bloomSeed is what all values depend on. The filter and the hash map have seeds of the kernel's own, for each run.
const bloomSeed = 1

// bloomValues makes values of a size in bytes, by number. They look random; values of different numbers below 1<<bits
// differ.
type bloomValues struct{ size int }

// bits is how many bits of a number a value has room for.
func (v bloomValues) bits() int { return min(8*v.size, 64) }

// stride is how far apart an array keeps values in bytes.
func (v bloomValues) stride() int { return (v.size + 7) &^ 7 }

// put writes value n, and what is behind it up to the stride.
func (v bloomValues) put(into []byte, n uint64) {
	bits := v.bits()
	x := n
	// Each step can be undone modulo 1<<bits, so distinct numbers stay distinct.
	for _, odd := range [...]uint64{0xbf58476d1ce4e5b9, 0x94d049bb133111eb, 0x9e3779b97f4a7c15} {
		x = (x + bloomSeed) * odd & (^uint64(0) >> (64 - bits))
		x ^= x >> (bits/2 - 1)
	}
	for at := 0; at < v.size; at += 8 {
		binary.LittleEndian.PutUint64(into[at:], x)
		x = (x ^ x>>29) * 0xbf58476d1ce4e5b9
	}
}

// fill writes the values of numbers 0 to n-1, or as many until ctx is done.
func (v bloomValues) fill(ctx context.Context, memory []byte, n uint64) {
	for i := range n {
		if i%(1<<16) == 0 && ctx.Err() != nil {
			return
		}
		v.put(memory[i*uint64(v.stride()):], i)
	}
}

// draw fills memory with random values of numbers from low on, drawn with replacement. before[i] is how many of the first
// i have a number below members.
func (v bloomValues) draw(memory []byte, low, members uint64) (before []uint32) {
	numbers := rand.New(rand.NewPCG(bloomSeed, 0))
	before = make([]uint32, 1, len(memory)/v.stride()+1)
	for ; len(memory) > 0; memory = memory[v.stride():] {
		number := numbers.Uint64()
		if span := uint64(1)<<v.bits() - low; span > 0 { // 0 is 1<<64
			number = low + numbers.Uint64N(span)
		}
		v.put(memory, number)
		there := before[len(before)-1]
		if number < members {
			there++
		}
		before = append(before, there)
	}
	return before
}
