#include "textflag.h"

// The functions that uprobes are put on. Each begins on a cache line of its own.

// leafNop only returns, behind an instruction that the kernel emulates.
TEXT leafNop<>(SB), NOSPLIT|NOFRAME, $0-0
	PCALIGN $64
	NOOP
	RET

// leafPush begins as functions do that call others.
TEXT leafPush<>(SB), NOSPLIT|NOFRAME, $0-0
	PCALIGN $64
	STP.W (R29, R30), -16(RSP)
	LDP.P 16(RSP), (R29, R30)
	RET

// leafRet only returns.
TEXT leafRet<>(SB), NOSPLIT|NOFRAME, $0-0
	PCALIGN $64
	RET

// In the order of the constants; those that there are no functions of are 0.
DATA sites<>+0(SB)/8, $leafNop<>(SB)
DATA sites<>+8(SB)/8, $leafPush<>(SB)
DATA sites<>+16(SB)/8, $leafRet<>(SB)
GLOBL sites<>(SB), NOPTR, $48

// func siteAddress(s Site) unsafe.Pointer
TEXT ·siteAddress(SB), NOSPLIT, $0-16
	MOVD s+0(FP), R0
	MOVD $sites<>(SB), R1
	MOVD (R1)(R0<<3), R0
	MOVD R0, ret+8(FP)
	RET

// func callSite(s Site, calls, a uint64, b **uint32, c *byte)
//
// The arguments are where C passes its first three.
TEXT ·callSite(SB), NOSPLIT, $16-40
	MOVD s+0(FP), R0
	MOVD $sites<>(SB), R1
	MOVD (R1)(R0<<3), R10
	MOVD calls+8(FP), R9
	MOVD a+16(FP), R0
	MOVD b+24(FP), R1
	MOVD c+32(FP), R2

loop:
	CALL (R10)
	SUBS $1, R9, R9
	BNE  loop
	RET
