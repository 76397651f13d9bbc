package fetcharg

import "fmt"

// arch is how an architecture's struct pt_regs is laid out, and where functions have their parameters.
type arch struct {
	regs      map[string]int16 // offsets in struct pt_regs, bytes
	params    []string         // the registers of the first parameters
	retval    string
	onStack   bool // further parameters are on the stack, from the word above the return address on
	threadBit int  // log2 of the size of a kernel stack
}

var arches = map[string]*arch{
	// arch/x86/include/asm/ptrace.h; regs_get_kernel_argument; THREAD_SIZE in page_64_types.h, without KASAN
	"amd64": {
		regs: offsets("r15", "r14", "r13", "r12", "bp", "bx", "r11", "r10", "r9", "r8", "ax", "cx", "dx", "si", "di",
			"orig_ax", "ip", "cs", "flags", "sp", "ss"),
		params: []string{"di", "si", "dx", "cx", "r8", "r9"}, retval: "ax", onStack: true, threadBit: 14,
	},
	// arch/arm64/include/asm/ptrace.h; memory.h, with pages of 4 KiB
	"arm64": {
		regs:   armOffsets(),
		params: []string{"x0", "x1", "x2", "x3", "x4", "x5", "x6", "x7"}, retval: "x0", threadBit: 14,
	},
}

func offsets(names ...string) map[string]int16 {
	regs := map[string]int16{}
	for i, name := range names {
		regs[name] = int16(8 * i)
	}
	return regs
}

func armOffsets() map[string]int16 {
	names := make([]string, 31, 34)
	for i := range names {
		names[i] = fmt.Sprintf("x%d", i)
	}
	regs := offsets(append(names, "sp", "pc", "pstate")...)
	regs["lr"] = regs["x30"]
	return regs
}
