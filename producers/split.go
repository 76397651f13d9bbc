// Package producers makes the events that benchmarks measure: it calls BPF programs and system calls, in batches.
package producers

import (
	"time"

	"bpfbench/report"
)

const (
	// Target is how long one call into the kernel is to take: it keeps the CPU from everyone else until it ends.
	Target = 20 * time.Millisecond
	// MaxLoop is the most iterations that the helper bpf_loop does (BPF_MAX_LOOPS in <linux/bpf.h> of the kernel).
	MaxLoop = 1 << 23
	// firstCall is how many operations are done before it is known how long one takes.
	firstCall = 4096
	// growth bounds how much longer a call may be than the one before, as the first ones run on cold caches.
	growth = 8
)

// Done is what one call did.
type Done struct {
	CPU     int
	Ops     uint64
	Elapsed uint64 // in the kernel, around the operations only
}

// Split divides batches into calls that each take about [Target], and sums what they did into one sample, exactly. A
// batch is a number of passes over the same operations. It is for one goroutine.
type Split struct {
	Pass   uint64 // operations in a pass, at least 1
	Passes uint64 // passes in a batch, at least 1
	Whole  bool   // a call cannot do a part of a pass
	Most   uint64 // operations of a call, whatever the time; 0 for MaxLoop
	// Call does count operations from number first of a pass on, passes times.
	Call func(first, count, passes uint32) (Done, error)
	// Aborted reports whether the batch is to end at once.
	Aborted func() bool

	limit uint64 // operations that a call may do
	left  uint64 // passes left of the batch
	pos   uint64 // operations done of the pass
	carry Done   // by a call that ran on another CPU than the calls before it
}

// Batch does one batch. A thread that is not bound may move to another CPU between two calls: the sample then ends before
// the move, and the next one goes on from there, so that a sample belongs to one CPU and nothing is lost.
func (s *Split) Batch() (report.Sample, error) {
	if s.left == 0 {
		s.left = s.Passes
	}
	return s.rest()
}

func (s *Split) rest() (report.Sample, error) {
	sum := s.carry
	s.carry = Done{}
	for s.left > 0 && !s.Aborted() {
		done, err := s.call()
		if err != nil {
			return report.Sample{}, err
		}
		if sum.Ops > 0 && done.CPU != sum.CPU {
			s.carry = done
			break
		}
		sum.CPU = done.CPU
		sum.Ops += done.Ops
		sum.Elapsed += done.Elapsed
	}
	return report.Sample{CPU: sum.CPU, Ops: sum.Ops, Elapsed: sum.Elapsed}, nil
}

// All does one batch, wherever its calls run, and returns the operations done: fewer than the batch has when aborted.
func (s *Split) All() (ops uint64, err error) {
	s.left = s.Passes
	for err == nil && !s.Aborted() && (s.left > 0 || s.carry.Ops > 0) {
		var part report.Sample
		part, err = s.rest()
		ops += part.Ops
	}
	return ops, err
}

// call does the next call of the batch.
func (s *Split) call() (Done, error) {
	most := s.Most
	if most == 0 {
		most = MaxLoop
	}
	s.limit = min(max(s.limit, firstCall), most)
	var first, count, passes uint64
	if s.pos > 0 || (!s.Whole && s.Pass > s.limit) {
		first, count, passes = s.pos, even(s.Pass-s.pos, s.limit), 1
	} else {
		count, passes = s.Pass, even(s.left, max(s.limit/s.Pass, 1))
	}
	done, err := s.Call(uint32(first), uint32(count), uint32(passes))
	if err != nil {
		return done, err
	}
	if s.pos += count; s.pos == s.Pass {
		s.pos = 0
		s.left -= passes
	}
	s.learn(done)
	return done, nil
}

// even is the first of the fewest equal parts of total that are not much over limit.
func even(total, limit uint64) uint64 {
	parts := max((total+limit/2)/limit, 1)
	return min((total+parts-1)/parts, MaxLoop)
}

// learn sets the limit of the next call by how long the last one took.
func (s *Split) learn(last Done) {
	if last.Ops == 0 {
		return
	}
	most := last.Ops * growth
	if last.Elapsed > 0 {
		s.limit = uint64(float64(last.Ops) * float64(Target) / float64(last.Elapsed))
	} else {
		s.limit = most
	}
	s.limit = max(min(s.limit, most), 1)
}
