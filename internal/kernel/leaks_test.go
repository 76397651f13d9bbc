package kernel_test

import (
	"testing"

	"bpfbench/internal/kernel"
	"bpfbench/internal/testutils"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
)

// TestProbesLeaveNothing: a probe closes what it opens, where it can and where it cannot have what it asks for.
func TestProbesLeaveNothing(t *testing.T) {
	testutils.NoLeaks(t)
	_ = kernel.ProbeRawTracepoint()
	_ = kernel.Helper(ebpf.RawTracepoint, asm.FnStrncmp)
	_ = kernel.Helper(ebpf.Syscall, asm.FnGetStackid)
	spec := &ebpf.MapSpec{Type: ebpf.Hash, KeySize: 4, ValueSize: 8, MaxEntries: 1, Flags: 1 << 31}
	_, err := ebpf.NewMap(spec)
	if err == nil {
		t.Fatal("the kernel takes a flag that there is not")
	}
	_ = kernel.ExplainMap(err, spec)
}
