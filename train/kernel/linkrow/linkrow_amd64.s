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

// Both kernels below go over all vectors but the last, which may have fewer lanes, and then over
// that one with the mask K1.

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

// step changes the weights in Z0 and the sums in Z1 by the gradient in Z2. Z10 to Z15 are the rate,
// eps, cube, 1e-30, 3 and 1/2, Z16 the bits of a magnitude and Z17 is 2. The gradient of the cubes is
// added to Z2, and its square to Z1. With an estimate y of 1/sqrt(s), y·(3-s·y²)/2 is a better one, and
// so is y·(2-d·y) with one of 1/d; d is sqrt(s)+eps.
#define step \
	VPANDD       Z16, Z0, Z3  \
	VMULPS       Z12, Z3, Z3  \
	VFMADD231PS  Z0, Z3, Z2   \
	VFMADD231PS  Z2, Z2, Z1   \
	VADDPS       Z13, Z1, Z3  \
	VRSQRT14PS   Z3, Z4       \
	VMULPS       Z4, Z3, Z5   \
	VFNMADD213PS Z14, Z4, Z5  \
	VMULPS       Z15, Z4, Z4  \
	VMULPS       Z5, Z4, Z4   \
	VFMADD213PS  Z11, Z1, Z4  \
	VRCP14PS     Z4, Z5       \
	VFNMADD213PS Z17, Z5, Z4  \
	VMULPS       Z5, Z4, Z4   \
	VMULPS       Z10, Z2, Z2  \
	VFNMADD231PS Z2, Z4, Z0

// func adagrad(w, s, grad *float32, rate, eps, cube float32, n int)
TEXT ·adagrad(SB), NOSPLIT, $0-48
	MOVQ         n+40(FP), R12
	lastVector
	MOVQ         w+0(FP), R8
	MOVQ         s+8(FP), R9
	MOVQ         grad+16(FP), R10
	VBROADCASTSS rate+24(FP), Z10
	VBROADCASTSS eps+28(FP), Z11
	VBROADCASTSS cube+32(FP), Z12
	MOVL         $0x0da24260, AX // 1e-30: what has no gradient has no root of 0
	VPBROADCASTD AX, Z13
	MOVL         $0x40400000, AX // 3
	VPBROADCASTD AX, Z14
	MOVL         $0x3f000000, AX // 1/2
	VPBROADCASTD AX, Z15
	MOVL         $0x7fffffff, AX
	VPBROADCASTD AX, Z16
	MOVL         $0x40000000, AX // 2
	VPBROADCASTD AX, Z17
	XORL         AX, AX
	CMPQ         AX, R12
	JGE          adagradLast

adagradVector:
	VMOVUPS (R8)(AX*1), Z0
	VMOVUPS (R9)(AX*1), Z1
	VMOVUPS (R10)(AX*1), Z2
	step
	VMOVUPS Z0, (R8)(AX*1)
	VMOVUPS Z1, (R9)(AX*1)
	ADDQ    $64, AX
	CMPQ    AX, R12
	JLT     adagradVector

adagradLast:
	VMOVUPS.Z (R8)(AX*1), K1, Z0
	VMOVUPS.Z (R9)(AX*1), K1, Z1
	VMOVUPS.Z (R10)(AX*1), K1, Z2
	step
	VMOVUPS   Z0, K1, (R8)(AX*1)
	VMOVUPS   Z1, K1, (R9)(AX*1)
	VZEROUPPER
	RET
