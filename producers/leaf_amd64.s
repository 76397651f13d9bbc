#include "textflag.h"

// The functions that uprobes are put on. Each begins on a cache line of its own.

// leafNop only returns, behind an instruction that the kernel need not execute.
TEXT leafNop<>(SB), NOSPLIT|NOFRAME, $0-0
	PCALIGN $64
	BYTE $0x90 // nop
	RET

// leafPush begins as functions do that keep a frame pointer. The kernel emulates that instruction.
TEXT leafPush<>(SB), NOSPLIT|NOFRAME, $0-0
	PCALIGN $64
	PUSHQ BP
	POPQ  BP
	RET

// leafRet begins with what the kernel has the CPU execute elsewhere, step by step.
TEXT leafRet<>(SB), NOSPLIT|NOFRAME, $0-0
	PCALIGN $64
	RET

#define NOP10 BYTE $0x66; BYTE $0x2e; BYTE $0x0f; BYTE $0x1f; BYTE $0x84; BYTE $0; BYTE $0; BYTE $0; BYTE $0; BYTE $0

// leafNop5 and leafNop10 begin with what some kernels rewrite into a call: 6.18 does the former, 7.3 the latter.
TEXT leafNop5<>(SB), NOSPLIT|NOFRAME, $0-0
	PCALIGN $64
	BYTE $0x0f; BYTE $0x1f; BYTE $0x44; BYTE $0; BYTE $0
	RET

TEXT leafNop10<>(SB), NOSPLIT|NOFRAME, $0-0
	PCALIGN $64
	NOP10
	RET

// leafNopNop10 has both, for kernels that refuse a probe on the second.
TEXT leafNopNop10<>(SB), NOSPLIT|NOFRAME, $0-0
	PCALIGN $64
	BYTE $0x90 // nop
	NOP10
	RET

// In the order of the constants.
DATA sites<>+0(SB)/8, $leafNop<>(SB)
DATA sites<>+8(SB)/8, $leafPush<>(SB)
DATA sites<>+16(SB)/8, $leafRet<>(SB)
DATA sites<>+24(SB)/8, $leafNop5<>(SB)
DATA sites<>+32(SB)/8, $leafNop10<>(SB)
DATA sites<>+40(SB)/8, $leafNopNop10<>(SB)
GLOBL sites<>(SB), NOPTR, $48

// func siteAddress(s Site) unsafe.Pointer
TEXT ·siteAddress(SB), NOSPLIT, $0-16
	MOVQ s+0(FP), AX
	LEAQ sites<>(SB), CX
	MOVQ (CX)(AX*8), AX
	MOVQ AX, ret+8(FP)
	RET

// func callSite(s Site, calls, a uint64, b **uint32, c *byte)
//
// The arguments are where C passes its first three.
TEXT ·callSite(SB), NOSPLIT, $0-40
	MOVQ s+0(FP), AX
	LEAQ sites<>(SB), CX
	MOVQ (CX)(AX*8), AX
	MOVQ calls+8(FP), CX
	MOVQ a+16(FP), DI
	MOVQ b+24(FP), SI
	MOVQ c+32(FP), DX
	PCALIGN $64

loop:
	CALL AX
	DECQ CX
	JNZ  loop
	RET
