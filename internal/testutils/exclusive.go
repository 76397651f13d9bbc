package testutils

import (
	"sync"
	"testing"

	"bpfbench/internal/lock"
)

// held is the measuring lock while tests of this process need it.
var held struct {
	sync.Mutex
	by   int // tests
	lock *lock.Lock
}

// Exclusive holds the measuring lock until the test has ended: what it does to tracefs or to the JIT would disturb the tests
// of another package, or be taken for what a dead session left. It waits for others. Tests of one process share it.
func Exclusive(t testing.TB) {
	t.Helper()
	held.Lock()
	defer held.Unlock()
	if held.by == 0 {
		l, err := lock.Acquire(t.Context(), lock.Options{Wait: true, What: "tests"})
		if err != nil {
			t.Fatal(err)
		}
		held.lock = l
	}
	held.by++
	t.Cleanup(func() {
		held.Lock()
		defer held.Unlock()
		if held.by--; held.by > 0 {
			return
		}
		if err := held.lock.Release(); err != nil {
			t.Error(err)
		}
	})
}
