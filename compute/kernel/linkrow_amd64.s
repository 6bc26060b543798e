#include "textflag.h"

// func prefetchRows(table *float32, rows *uint32, count int, bytes uintptr)
TEXT ·prefetchRows(SB), NOSPLIT, $0-32
	MOVQ table+0(FP), AX
	MOVQ rows+8(FP), BX
	MOVQ count+16(FP), CX
	MOVQ bytes+24(FP), DX

row:
	MOVL  (BX), SI
	IMULQ DX, SI
	ADDQ  AX, SI
	LEAQ  -1(SI)(DX*1), DI // the last byte
	ANDQ  $-64, SI

line:
	PREFETCHT0 (SI)
	ADDQ       $64, SI
	CMPQ       SI, DI
	JBE        line

	ADDQ $4, BX
	DECQ CX
	JNZ  row
	RET

// lastVector takes a number of values in R12, and sets R12 to the bytes of the vectors before the last
// one, and K1 to the lanes of the last.
#define lastVector \
	DECQ   R12          \
	MOVQ   R12, CX      \
	ANDQ   $15, CX      \
	ANDQ   $-16, R12    \
	SHLQ   $2, R12      \
	MOVL   $2, R13      \
	SHLL   CX, R13      \
	DECL   R13          \
	KMOVW  R13, K1

// func productGrad(dx, dAnswer, dr, dq, q, x, r *float32, grad float32, add uint64, n int)
TEXT ·productGrad(SB), NOSPLIT, $0-80
	MOVQ         n+72(FP), R12
	lastVector
	MOVQ         dx+0(FP), R8
	MOVQ         dAnswer+8(FP), R9
	MOVQ         dr+16(FP), R10
	MOVQ         dq+24(FP), R11
	MOVQ         q+32(FP), SI
	MOVQ         x+40(FP), DI
	MOVQ         r+48(FP), BX
	VBROADCASTSS grad+56(FP), Z9
	MOVQ         add+64(FP), DX
	KMOVW        DX, K2
	XORL         AX, AX
	CMPQ         AX, R12
	JGE          gradLast

gradVector:
	VMOVUPS     (R11)(AX*1), Z0
	VMOVUPS.Z   (R8)(AX*1), K2, Z1
	VMOVUPS.Z   (R9)(AX*1), K2, Z2
	VMOVUPS     (R10)(AX*1), Z3
	VFMADD231PS (BX)(AX*1), Z0, Z1
	VFMADD231PS (SI)(AX*1), Z9, Z2
	VFMADD231PS (DI)(AX*1), Z0, Z3
	VMOVUPS     Z1, (R8)(AX*1)
	VMOVUPS     Z2, (R9)(AX*1)
	VMOVUPS     Z3, (R10)(AX*1)
	ADDQ        $64, AX
	CMPQ        AX, R12
	JLT         gradVector

gradLast:
	KANDW       K1, K2, K2
	VMOVUPS.Z   (R11)(AX*1), K1, Z0
	VMOVUPS.Z   (R8)(AX*1), K2, Z1
	VMOVUPS.Z   (R9)(AX*1), K2, Z2
	VMOVUPS.Z   (R10)(AX*1), K1, Z3
	VMOVUPS.Z   (BX)(AX*1), K1, Z4
	VMOVUPS.Z   (SI)(AX*1), K1, Z5
	VMOVUPS.Z   (DI)(AX*1), K1, Z6
	VFMADD231PS Z4, Z0, Z1
	VFMADD231PS Z5, Z9, Z2
	VFMADD231PS Z6, Z0, Z3
	VMOVUPS     Z1, K1, (R8)(AX*1)
	VMOVUPS     Z2, K1, (R9)(AX*1)
	VMOVUPS     Z3, K1, (R10)(AX*1)
	VZEROUPPER
	RET
