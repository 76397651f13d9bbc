package suite

import (
	"fmt"
	"os"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"
)

// caller makes a program run once.
type caller interface{ Run() error }

// mapSlots maps the values of an array into memory, until unix.Munmap. The library's Map.Memory is unmapped when the garbage
// collector finds it, and the map lives until then.
func mapSlots(m *ebpf.Map) ([]byte, error) {
	page := os.Getpagesize()
	size := (int(m.ValueSize())*int(m.MaxEntries()) + page - 1) / page * page
	slots, err := unix.Mmap(m.FD(), 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("map the producers' slots into memory: %w", err)
	}
	return slots, nil
}

// exchange is memory that a program shares with one producer: a request is written, the program is run, the answer is read.
// The system call between the two orders them.
type exchange struct {
	memory  []byte // the producer's slot
	run     caller
	slot    []byte // the slot, as this process has it
	request int    // how many of its bytes are the request
}

func (x *exchange) do() error {
	copy(x.memory, x.slot[:x.request])
	if err := x.run.Run(); err != nil {
		return err
	}
	copy(x.slot, x.memory)
	return nil
}
