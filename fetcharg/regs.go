package fetcharg

import (
	"fmt"
	"slices"
)

// Regs returns the names of the registers of an architecture (as in GOARCH), without the %; nil if it is not known here.
func Regs(arch string) []string { return slices.Clone(regs[arch]) }

// regs are from the regoffset_table in arch/x86/kernel/ptrace.c and arch/arm64/kernel/ptrace.c.
var regs = map[string][]string{
	"amd64": {"r15", "r14", "r13", "r12", "r11", "r10", "r9", "r8", "bx", "cx", "dx", "si", "di", "bp", "ax",
		"orig_ax", "ip", "cs", "flags", "sp", "ss"},
	"arm64": append(numberedRegs(30), "lr", "sp", "pc", "pstate"),
}

func numberedRegs(last int) []string {
	var names []string
	for i := range last + 1 {
		names = append(names, fmt.Sprintf("x%d", i))
	}
	return names
}
