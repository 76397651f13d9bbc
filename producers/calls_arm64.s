#include "textflag.h"

// nothing is what is called.
TEXT nothing<>(SB), NOSPLIT|NOFRAME, $0-0
	NOOP
	RET

// func callNothing(n uint64)
//
// The loop begins where the CPU fetches.
TEXT ·callNothing(SB), NOSPLIT, $16-8
	MOVD n+0(FP), R9
	PCALIGN $32

loop:
	CALL nothing<>(SB)
	SUBS $1, R9, R9
	BNE  loop
	RET
