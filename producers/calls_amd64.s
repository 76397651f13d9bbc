#include "textflag.h"

// nothing is what is called.
TEXT nothing<>(SB), NOSPLIT|NOFRAME, $0-0
	BYTE $0x90 // nop
	RET

// func callNothing(n uint64)
//
// The loop begins where the CPU fetches: elsewhere it takes a third longer.
TEXT ·callNothing(SB), NOSPLIT, $0-8
	MOVQ n+0(FP), CX
	PCALIGN $32

loop:
	CALL nothing<>(SB)
	DECQ CX
	JNZ  loop
	RET
