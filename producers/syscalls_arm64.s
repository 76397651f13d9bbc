#include "textflag.h"

// func repeat(nr, a, b, c, want uintptr, n uint64) (left uint64, got uintptr)
//
// The kernel leaves all registers as they are but R0.
TEXT ·repeat(SB), NOSPLIT, $0-64
	MOVD nr+0(FP), R8
	MOVD a+8(FP), R9
	MOVD b+16(FP), R1
	MOVD c+24(FP), R2
	MOVD want+32(FP), R10
	MOVD n+40(FP), R11

loop:
	MOVD R9, R0
	SVC
	CMP  R10, R0
	BNE  out
	SUBS $1, R11, R11
	BNE  loop

out:
	MOVD R11, left+48(FP)
	MOVD R0, got+56(FP)
	RET
