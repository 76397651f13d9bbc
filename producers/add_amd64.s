#include "textflag.h"

// func add(counter *uint64, n uint64)
TEXT ·add(SB), NOSPLIT, $0-16
	MOVQ counter+0(FP), DI
	MOVQ n+8(FP), CX

loop:
	LOCK
	ADDQ $1, (DI)
	DECQ CX
	JNZ  loop
	RET
