package producers

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"time"
	"unsafe"

	"github.com/prometheus/procfs"
)

// Site is an instruction that uprobes can be put on: the first of a function of this binary, in assembly, that calls nothing.
type Site int

const (
	Nop      Site = iota // a nop of one instruction's least length
	Push                 // a push of the frame pointer; on arm64, a store of two registers below the stack pointer
	Ret                  // the return itself
	Nop5                 // a nop of 5 bytes, on amd64 alone
	Nop10                // one of 10 bytes with a CS prefix, on amd64 alone
	NopNop10             // a nop with one of 10 bytes behind it, on amd64 alone: what USDT probes are compiled to for kernels that rewrite the latter
)

// siteAddress is where the site's function begins, nil where the architecture has none.
func siteAddress(s Site) unsafe.Pointer
func callSite(s Site, calls, a uint64, b **uint32, c *byte)

// Exists reports whether the site is of this architecture.
func (s Site) Exists() bool { return siteAddress(s) != nil }

// Location is where the site is for a uprobe: a file, and the offset in it. It is found by what is mapped, so that it is
// right in a stripped binary and in one that was loaded elsewhere than it was linked for. (The symbol of the function in
// the file's table may be that of a wrapper: a probe on it is never hit.)
func (s Site) Location() (file string, offset uint64, err error) {
	address := uintptr(siteAddress(s))
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

// Code is what is in memory there just now, up to the end of the longest instruction that a site has: a uprobe changes it.
func (s Site) Code() [11]byte { return *(*[11]byte)(siteAddress(s)) }

// LeafLocation is the location of [Nop].
func LeafLocation() (file string, offset uint64, err error) { return Nop.Location() }

// Leaf calls a site's function: A, a number; B, a pointer to a pointer to a number; C, a pointer to text, are in the registers
// of C's first three arguments.
type Leaf struct {
	Site Site
	A    uint64
	B    **uint32
	C    *byte
}

// Call calls the function so often and returns how long that took. It is not interrupted by Go's scheduler, so it is not for
// long.
func (l *Leaf) Call(calls uint64) time.Duration {
	if calls == 0 {
		return 0
	}
	start := time.Now()
	callSite(l.Site, calls, l.A, l.B, l.C)
	took := time.Since(start)
	runtime.KeepAlive(l)
	return took
}
