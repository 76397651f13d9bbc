#include "textflag.h"

// func repeat(nr, a, b, c, want uintptr, n uint64) (left uint64, got uintptr)
//
// The kernel leaves all registers as they are but AX, CX and R11.
TEXT ·repeat(SB), NOSPLIT, $0-64
	MOVQ nr+0(FP), BX
	MOVQ a+8(FP), DI
	MOVQ b+16(FP), SI
	MOVQ c+24(FP), DX
	MOVQ want+32(FP), R12
	MOVQ n+40(FP), R13

loop:
	MOVQ BX, AX
	SYSCALL
	CMPQ AX, R12
	JNE  out
	DECQ R13
	JNZ  loop

out:
	MOVQ R13, left+48(FP)
	MOVQ AX, got+56(FP)
	RET
