package fetcharg

import (
	"errors"
	"fmt"
	"sync"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/btf"
	"github.com/cilium/ebpf/features"
)

// Loads says how a program reads the kernel's memory by plain loads, which costs a tenth of a call of bpf_probe_read_kernel:
// an address that went through the kernel's function bpf_rdonly_cast may be read as a structure, whatever it points to. The
// JIT guards such a load: where it faults, or the address is the process's, it gives zero.
type Loads struct {
	cast      btf.TypeID // of the function, in the kernel's BTF
	structure btf.TypeID // of a structure that begins with an integer of 8 bytes
}

// loadsStructure is that structure: it has the same shape on all architectures.
const loadsStructure = "timespec64"

// KernelLoads returns how programs for the running kernel read by loads, with the JIT as it is switched now: programs that
// are not compiled cannot call functions of the kernel. The error is [errors.ErrUnsupported] where the kernel cannot do it.
func KernelLoads() (*Loads, error) {
	loads, err := loadsOfBTF()
	if err != nil {
		return nil, err
	}
	insns := append(asm.Instructions{asm.Mov.Imm(asm.R1, 0)}, loads.read(asm.R0, 8)...)
	prog, err := ebpf.NewProgram(&ebpf.ProgramSpec{Type: ebpf.Kprobe, License: "Dual MIT/GPL", Instructions: append(insns, asm.Return())})
	var refused *ebpf.VerifierError
	switch {
	case err == nil:
		return loads, prog.Close()
	case errors.As(err, &refused), errors.Is(err, ebpf.ErrNotSupported):
		return nil, fmt.Errorf("call bpf_rdonly_cast: %w: %w", errors.ErrUnsupported, err)
	}
	return nil, fmt.Errorf("call bpf_rdonly_cast: %w", err)
}

// loadsOfBTF finds out what the running kernel has, once.
var loadsOfBTF = sync.OnceValues(func() (*Loads, error) {
	// Before 6.10 the JIT did not guard loads from the vsyscall page, nor on arm64 those from memory of the process. No test
	// can ask for that, as a kernel that fails it crashes.
	const guarded = 6<<16 | 10<<8
	code, err := features.LinuxVersionCode()
	if err != nil {
		return nil, fmt.Errorf("read the kernel's version: %w", err)
	}
	if code < guarded {
		return nil, fmt.Errorf("read by loads: the kernel guards them from Linux 6.10 on: %w", errors.ErrUnsupported)
	}
	spec, err := btf.LoadKernelSpec()
	if err != nil {
		return nil, fmt.Errorf("load the kernel's BTF: %w", err)
	}
	cast, ok := find[*btf.Func](spec, "bpf_rdonly_cast")
	if !ok {
		return nil, fmt.Errorf("BTF has no function bpf_rdonly_cast: %w", errors.ErrUnsupported)
	}
	structure, ok := find[*btf.Struct](spec, loadsStructure)
	if !ok {
		return nil, fmt.Errorf("BTF has no struct %s: %w", loadsStructure, errors.ErrUnsupported)
	}
	castID, err := spec.TypeID(cast)
	if err != nil {
		return nil, fmt.Errorf("find bpf_rdonly_cast in BTF: %w", err)
	}
	structureID, err := spec.TypeID(structure)
	if err != nil {
		return nil, fmt.Errorf("find struct %s in BTF: %w", loadsStructure, err)
	}
	return &Loads{castID, structureID}, nil
})

// read loads so many bytes, 1, 2, 4 or 8, from the address in R1 into a register. Registers R0 to R5 are lost.
func (l *Loads) read(dst asm.Register, size int) asm.Instructions {
	return asm.Instructions{
		asm.Mov.Imm(asm.R2, int32(l.structure)),
		{OpCode: asm.OpCode(asm.JumpClass).SetJumpOp(asm.Call), Src: asm.PseudoKfuncCall, Constant: int64(l.cast)},
		asm.LoadMem(dst, asm.R0, 0, sizeOf(size)),
	}
}
