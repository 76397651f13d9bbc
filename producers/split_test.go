package producers

import (
	"errors"
	"testing"
	"time"
)

// machine counts how often each operation of a pass was done, at a speed of its own.
type machine struct {
	t     *testing.T
	nsPer float64
	did   []int // by number in the pass, where it is small enough to be counted
	whole bool
	cpu   func(call int) int
	calls int
	long  uint64 // the longest call in ns
}

func (m *machine) call(first, count, passes uint32) (Done, error) {
	m.t.Helper()
	if count == 0 || passes == 0 || count > MaxLoop || passes > MaxLoop {
		m.t.Fatalf("a call of %d operations, %d times", count, passes)
	}
	if m.whole && first != 0 {
		m.t.Fatalf("a call starts at %d", first)
	}
	for i := first; m.did != nil && i < first+count; i++ {
		m.did[i] += int(passes)
	}
	ops := uint64(count) * uint64(passes)
	d := Done{Ops: ops, Elapsed: uint64(float64(ops) * m.nsPer)}
	if m.cpu != nil {
		d.CPU = m.cpu(m.calls)
	}
	m.calls++
	m.long = max(m.long, d.Elapsed)
	return d, nil
}

func never() bool { return false }

// Cases 1 and 2: a batch is a whole number of passes, counted exactly, whatever the calls are that it is split into.
func TestSplitExact(t *testing.T) {
	for _, tt := range []struct {
		pass, passes uint64
		nsPer        float64
		whole        bool
	}{
		{1, 1, 40, true}, {1, 1e9, 40, true}, {500, 2000, 40, true}, {4096, 244, 37, true}, {65536, 15, 37, true}, {65536, 1, 900, true},
		{65537, 15, 37, false}, {700000, 1, 40, false}, {2000000, 1, 60, false}, {20e6, 1, 90, false}, {20e6, 3, 90, false},
		{9000000, 2, 0.5, false}, {3, 1e7, 0, true}, {1 << 24, 2, 0, false},
	} {
		m := &machine{t: t, nsPer: tt.nsPer, whole: tt.whole}
		if tt.pass <= 1<<20 {
			m.did = make([]int, tt.pass)
		}
		s := Split{Pass: tt.pass, Passes: tt.passes, Whole: tt.whole, Call: m.call, Aborted: never}
		for batch := range 3 {
			got, err := s.Batch()
			if err != nil {
				t.Fatal(err)
			}
			if want := tt.pass * tt.passes; got.Ops != want {
				t.Errorf("%d passes of %d: %d operations, want %d", tt.passes, tt.pass, got.Ops, want)
			}
			for i, n := range m.did {
				if want := int(tt.passes) * (batch + 1); n != want {
					t.Fatalf("%d passes of %d: operation %d was done %d times, want %d", tt.passes, tt.pass, i, n, want)
				}
			}
		}
		if limit := uint64(100 * time.Millisecond); m.long > limit {
			t.Errorf("%d passes of %d at %v ns: a call of %v", tt.passes, tt.pass, tt.nsPer, time.Duration(m.long))
		}
	}
}

// Calls come near the target, and are not many more than are needed for that.
func TestSplitLength(t *testing.T) {
	m := &machine{t: t, nsPer: 40}
	s := Split{Pass: 1000, Passes: 1000, Whole: true, Call: m.call, Aborted: never} // 40 ms a batch
	if _, err := s.Batch(); err != nil {
		t.Fatal(err)
	}
	m.calls = 0
	if _, err := s.Batch(); err != nil || m.calls != 2 {
		t.Errorf("a batch of 40 ms took %d calls, want 2 (%v)", m.calls, err)
	}
}

// Calls can be bound in number, too.
func TestSplitMost(t *testing.T) {
	m := &machine{t: t, nsPer: 1}
	s := Split{Pass: 1, Passes: 1e6, Whole: true, Most: 1000, Call: m.call, Aborted: never}
	got, err := s.Batch()
	if err != nil || got.Ops != 1e6 || m.long > 1500 {
		t.Errorf("%d operations, a call of %d, %v; want 1000000 and at most 1500", got.Ops, m.long, err)
	}
}

// A sample belongs to one CPU; what ran after a move is not lost.
func TestSplitMove(t *testing.T) {
	m := &machine{t: t, nsPer: 40, cpu: func(call int) int { return call / 3 % 2 }}
	s := Split{Pass: 1000, Passes: 5000, Whole: true, Call: m.call, Aborted: never}
	ops := make(map[int]uint64)
	for range 40 {
		got, err := s.Batch()
		if err != nil {
			t.Fatal(err)
		}
		ops[got.CPU] += got.Ops
	}
	var done uint64
	if done = ops[0] + ops[1] + s.carry.Ops; done%1000 != 0 || ops[0] == 0 || ops[1] == 0 {
		t.Errorf("%v operations by CPU", ops)
	}
	m = &machine{t: t, nsPer: 40, cpu: func(call int) int { return call % 2 }, did: make([]int, 1000)}
	s = Split{Pass: 1000, Passes: 5000, Whole: true, Call: m.call, Aborted: never}
	if n, err := s.All(); err != nil || n != 5e6 || m.did[0] != 5000 || m.did[999] != 5000 {
		t.Errorf("All did %d operations (%v), want 5000000", n, err)
	}
}

func TestSplitAbort(t *testing.T) {
	stop := false
	m := &machine{t: t, nsPer: 40, cpu: func(call int) int { stop = call == 2; return 0 }}
	s := Split{Pass: 20e6, Passes: 1, Call: m.call, Aborted: func() bool { return stop }}
	got, err := s.Batch()
	if err != nil || m.calls != 3 || got.Ops == 0 || got.Ops >= 20e6 {
		t.Errorf("%d operations in %d calls, %v; want what three calls did", got.Ops, m.calls, err)
	}
	boom := errors.New("boom")
	s = Split{Pass: 1, Passes: 1, Aborted: never, Call: func(uint32, uint32, uint32) (Done, error) { return Done{}, boom }}
	if _, err := s.Batch(); !errors.Is(err, boom) {
		t.Errorf("error %v, want %v", err, boom)
	}
	if _, err := s.All(); !errors.Is(err, boom) {
		t.Errorf("error %v, want %v", err, boom)
	}
}

func FuzzSplit(f *testing.F) {
	f.Add(uint64(4096), uint64(244), 37.0, true)
	f.Add(uint64(2000000), uint64(1), 60.0, false)
	f.Fuzz(func(t *testing.T, pass, passes uint64, nsPer float64, whole bool) {
		pass, passes = pass%(1<<32)+1, passes%1000+1
		if whole {
			pass = min(pass, 1<<16)
		}
		if !(nsPer > 0.01 && nsPer < 1e6) || float64(pass)*float64(passes)*nsPer > 1e13 {
			t.Skip()
		}
		m := &machine{t: t, nsPer: nsPer, whole: whole}
		s := Split{Pass: pass, Passes: passes, Whole: whole, Call: m.call, Aborted: never}
		if got, err := s.Batch(); err != nil || got.Ops != pass*passes {
			t.Errorf("%d operations, %v; want %d", got.Ops, err, pass*passes)
		}
	})
}
