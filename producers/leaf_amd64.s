#include "textflag.h"

// leaf is what uprobes are put on: a function that only returns, behind an instruction that the kernel emulates.
TEXT leaf<>(SB), NOSPLIT|NOFRAME, $0-0
	BYTE $0x90 // nop
	RET

// func leafAddress() uintptr
TEXT ·leafAddress(SB), NOSPLIT, $0-8
	LEAQ leaf<>(SB), AX
	MOVQ AX, ret+0(FP)
	RET

// func callLeaf(calls uint64, a uint64, b **uint32, c *byte)
//
// The arguments are where C passes its first three.
TEXT ·callLeaf(SB), NOSPLIT, $0-32
	MOVQ calls+0(FP), CX
	MOVQ a+8(FP), DI
	MOVQ b+16(FP), SI
	MOVQ c+24(FP), DX

loop:
	CALL leaf<>(SB)
	DECQ CX
	JNZ  loop
	RET
