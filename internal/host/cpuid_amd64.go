package host

import (
	"encoding/binary"
	"strings"
)

// cpuid executes the instruction of that name.
//
//go:noescape
func cpuid(leaf, subleaf uint32) (eax, ebx, ecx, edx uint32)

// hypervisorVendor returns the signature of the hypervisor, such as "KVMKVMKVM". It is only defined where the CPU flag
// "hypervisor" is set. KVM moves its own by 0x100 when it shows Hyper-V's (arch/x86/kernel/kvm.c looks for it there).
func hypervisorVendor() string {
	const leaf = 0x40000000
	if moved := signature(leaf + 0x100); hypervisors[moved] == "kvm" {
		return moved
	}
	return signature(leaf)
}

func signature(leaf uint32) string {
	_, b, c, d := cpuid(leaf, 0)
	text := binary.LittleEndian.AppendUint32(nil, b)
	text = binary.LittleEndian.AppendUint32(text, c)
	text = binary.LittleEndian.AppendUint32(text, d)
	return strings.Trim(string(text), "\x00 ")
}
