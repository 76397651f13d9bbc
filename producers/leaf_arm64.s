#include "textflag.h"

// leaf is what uprobes are put on: a function that only returns, behind an instruction that the kernel emulates.
TEXT leaf<>(SB), NOSPLIT|NOFRAME, $0-0
	NOOP
	RET

// func leafAddress() uintptr
TEXT ·leafAddress(SB), NOSPLIT, $0-8
	MOVD $leaf<>(SB), R0
	MOVD R0, ret+0(FP)
	RET

// func callLeaf(calls uint64, a uint64, b **uint32, c *byte)
//
// The arguments are where C passes its first three.
TEXT ·callLeaf(SB), NOSPLIT, $16-32
	MOVD calls+0(FP), R9
	MOVD a+8(FP), R0
	MOVD b+16(FP), R1
	MOVD c+24(FP), R2

loop:
	CALL leaf<>(SB)
	SUBS $1, R9, R9
	BNE  loop
	RET
