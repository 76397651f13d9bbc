package suite

import (
	"fmt"

	"github.com/cilium/ebpf"
)

// caller makes a program run once.
type caller interface{ Run() error }

// exchange is memory that a program shares with one producer: a request is written, the program is run, the answer is read.
type exchange struct {
	memory  *ebpf.Memory
	offset  int64 // of the producer's slot in it
	run     caller
	slot    []byte // the bytes of the slot, as this process has it
	request int    // how many of them are the request
}

func (x *exchange) do() error {
	if _, err := x.memory.WriteAt(x.slot[:x.request], x.offset); err != nil {
		return fmt.Errorf("write a slot: %w", err)
	}
	if err := x.run.Run(); err != nil {
		return err
	}
	if _, err := x.memory.ReadAt(x.slot, x.offset); err != nil {
		return fmt.Errorf("read a slot: %w", err)
	}
	return nil
}
