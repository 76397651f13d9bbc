package suite

import (
	"errors"
	"sync"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"bpfbench/internal/kernel"
)

// rhash is BPF_MAP_TYPE_RHASH of <linux/bpf.h>: a hash table that grows and shrinks. The library has no name for it.
const rhash ebpf.MapType = 35

// hasRHash probes whether there are maps of that type, by making one.
var hasRHash = sync.OnceValue(func() error {
	const what = "maps of type RHASH"
	m, err := ebpf.NewMap(&ebpf.MapSpec{Type: rhash, KeySize: 4, ValueSize: 8, MaxEntries: 1, Flags: unix.BPF_F_NO_PREALLOC})
	if errors.Is(err, unix.EINVAL) { // of a type that is not known, as all else is in order
		return &kernel.Error{Feature: what, Outcome: kernel.Missing, Needs: "Linux 7.2", Err: err}
	}
	if err != nil {
		return kernel.Explain(err, "make "+what, kernel.CapBPF)
	}
	return m.Close()
})
