package producers

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"time"

	"github.com/prometheus/procfs"
)

func leafAddress() uintptr
func callLeaf(calls, a uint64, b **uint32, c *byte)

// Leaf is a function of this binary that uprobes can be put on, and what it is called with: A, a number; B, a pointer to a
// pointer to a number; C, a pointer to text. They are in the registers of C's first three arguments.
type Leaf struct {
	A uint64
	B **uint32
	C *byte
}

// Call calls the function so often and returns how long that took. It is not interrupted by Go's scheduler, so it is not for
// long.
func (l *Leaf) Call(calls uint64) time.Duration {
	if calls == 0 {
		return 0
	}
	start := time.Now()
	callLeaf(calls, l.A, l.B, l.C)
	took := time.Since(start)
	runtime.KeepAlive(l)
	return took
}

// LeafLocation is where the function is for a uprobe: a file, and the offset in it. It is found by what is mapped, so that it
// is right in a stripped binary and in one that was loaded elsewhere than it was linked for. (The symbol of the function in
// the file's table may be that of a wrapper: a probe on it is never hit.)
func LeafLocation() (file string, offset uint64, err error) {
	address := leafAddress()
	self, err := procfs.Self()
	if err != nil {
		return "", 0, fmt.Errorf("find the probed function: %w", err)
	}
	maps, err := self.ProcMaps()
	if err != nil {
		return "", 0, fmt.Errorf("find the probed function: %w", err)
	}
	for _, m := range maps {
		if m.StartAddr <= address && address < m.EndAddr {
			if _, err := os.Stat(m.Pathname); err != nil {
				return "", 0, fmt.Errorf("find the probed function: the binary has been removed or replaced: start it again: %w", err)
			}
			return m.Pathname, uint64(address-m.StartAddr) + uint64(m.Offset), nil
		}
	}
	return "", 0, errors.New("find the probed function: it is in no mapped file")
}
