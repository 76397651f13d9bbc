#include "textflag.h"

// func clone(flags uintptr, tid *uint32, sleep *unix.Timespec) uintptr
//
// The child uses registers only, never the stack, which may be its parent's.
TEXT ·clone(SB), NOSPLIT, $0-32
	MOVQ flags+0(FP), DI
	MOVQ sleep+16(FP), R12
	XORL SI, SI             // the parent's stack pointer
	MOVQ tid+8(FP), DX
	MOVQ tid+8(FP), R10
	XORL R8, R8
	MOVL $56, AX            // clone
	SYSCALL
	TESTQ AX, AX
	JEQ  child
	MOVQ AX, ret+24(FP)
	RET

child:
	TESTQ R12, R12
	JEQ  exit
	MOVL $157, AX           // prctl
	MOVL $1, DI             // PR_SET_PDEATHSIG
	MOVL $9, SI             // SIGKILL
	SYSCALL

loop:
	MOVL $35, AX            // nanosleep
	MOVQ R12, DI
	XORL SI, SI
	SYSCALL
	MOVL $121, AX           // getpgid
	XORL DI, DI
	SYSCALL
	JMP  loop

exit:
	MOVL $60, AX            // exit
	XORL DI, DI
	SYSCALL
	INT  $3
