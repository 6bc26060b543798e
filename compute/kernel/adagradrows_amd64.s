#include "textflag.h"
#include "go_asm.h"

// rowsAhead is how many rows of the table, and placesAhead how many gradients, are asked for before
// they are used.
#define rowsAhead 4
#define placesAhead 8

// prefetchw asks for the line at SI, to be written.
#define prefetchw BYTE $0x0f; BYTE $0x0d; BYTE $0x0e

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

// func adagradRows(a *adagradRowsArgs)
TEXT ·adagradRows(SB), NOSPLIT, $0-8
	MOVQ         a+0(FP), R15
	MOVQ         adagradRowsArgs_dim(R15), R13
	SHLQ         $2, R13                 // the bytes of a row
	MOVQ         adagradRowsArgs_gradients(R15), R14
	VBROADCASTSS adagradRowsArgs_rate(R15), Z10
	VBROADCASTSS adagradRowsArgs_eps(R15), Z11
	VPXORD       X12, X12, X12
	MOVL         $0x0da24260, AX         // 1e-30: what has no gradient has no root of 0
	VPBROADCASTD AX, Z13
	MOVL         $0x40400000, AX         // 3
	VPBROADCASTD AX, Z14
	MOVL         $0x3f000000, AX         // 1/2
	VPBROADCASTD AX, Z15
	MOVL         $0x7fffffff, AX
	VPBROADCASTD AX, Z16
	MOVL         $0x40000000, AX         // 2
	VPBROADCASTD AX, Z17

	// R12 is the bytes of all vectors but the last, K3 the lanes of that, and K2 has all.
	MOVQ  adagradRowsArgs_dim(R15), R12
	DECQ  R12
	MOVQ  R12, CX
	ANDQ  $15, CX
	ANDQ  $-16, R12
	SHLQ  $2, R12
	MOVL  $2, BX
	SHLL  CX, BX
	DECL  BX
	KMOVW BX, K3
	MOVL  $0xffff, BX
	KMOVW BX, K2
	XORL  BX, BX                         // the number of the row
	MOVQ  adagradRowsArgs_off(R15), AX
	MOVL  (AX), R9

row:
	// The row to come.
	LEAQ  rowsAhead(BX), AX
	CMPQ  AX, adagradRowsArgs_count(R15)
	JGE   gradients
	MOVQ  adagradRowsArgs_at(R15), SI
	MOVL  (SI)(AX*4), DI
	IMULQ R13, DI
	MOVQ  adagradRowsArgs_weights(R15), SI
	ADDQ  DI, SI
	LEAQ  -1(SI)(R13*1), AX              // the last byte
	ANDQ  $-64, SI

weightsLine:
	prefetchw
	ADDQ $64, SI
	CMPQ SI, AX
	JBE  weightsLine
	MOVQ adagradRowsArgs_squares(R15), SI
	ADDQ DI, SI
	LEAQ -1(SI)(R13*1), AX
	ANDQ $-64, SI

squaresLine:
	prefetchw
	ADDQ $64, SI
	CMPQ SI, AX
	JBE  squaresLine

gradients:
	MOVQ adagradRowsArgs_off(R15), AX
	MOVL R9, R8                          // the first place
	MOVL 4(AX)(BX*4), R9                 // and the end
	MOVQ adagradRowsArgs_places(R15), R10
	MOVQ R8, CX

ahead:
	CMPQ  CX, R9
	JGE   begin
	LEAQ  placesAhead(CX), AX
	INCQ  CX
	CMPQ  AX, adagradRowsArgs_placesEnd(R15)
	JGE   begin
	MOVL  (R10)(AX*4), SI
	IMULQ R13, SI
	ADDQ  R14, SI
	LEAQ  -1(SI)(R13*1), AX
	ANDQ  $-64, SI

aheadLine:
	PREFETCHT0 (SI)
	ADDQ       $64, SI
	CMPQ       SI, AX
	JBE        aheadLine
	JMP        ahead

begin:
	MOVQ         adagradRowsArgs_cubes(R15), AX
	TESTQ        AX, AX
	JZ           table
	VBROADCASTSS (AX)(BX*4), Z12

table:
	MOVQ  adagradRowsArgs_at(R15), AX
	MOVL  (AX)(BX*4), DI
	IMULQ R13, DI
	MOVQ  adagradRowsArgs_squares(R15), R11
	ADDQ  DI, R11
	ADDQ  adagradRowsArgs_weights(R15), DI
	MOVQ  adagradRowsArgs_values(R15), DX
	XORL  AX, AX
	KMOVW K2, K1

column:
	CMPQ   AX, R12
	JNE    sum
	KMOVW  K3, K1

sum:
	VPXORD X2, X2, X2
	MOVQ   R8, CX
	CMPQ   CX, R9
	JGE    change
	TESTQ  DX, DX
	JNZ    value

one:
	MOVL      (R10)(CX*4), SI
	IMULQ     R13, SI
	ADDQ      R14, SI
	VADDPS    (SI)(AX*1), Z2, K1, Z2
	INCQ      CX
	CMPQ      CX, R9
	JLT       one
	JMP       change

value:
	MOVL         (R10)(CX*4), SI
	IMULQ        R13, SI
	ADDQ         R14, SI
	VBROADCASTSS (DX)(CX*4), Z3
	VFMADD231PS  (SI)(AX*1), Z3, K1, Z2
	INCQ         CX
	CMPQ         CX, R9
	JLT          value

change:
	VMOVUPS.Z (DI)(AX*1), K1, Z0
	VMOVUPS.Z (R11)(AX*1), K1, Z1
	step
	VMOVUPS   Z0, K1, (DI)(AX*1)
	VMOVUPS   Z1, K1, (R11)(AX*1)
	ADDQ      $64, AX
	CMPQ      AX, R12
	JLE       column

	INCQ BX
	CMPQ BX, adagradRowsArgs_count(R15)
	JLT  row
	VZEROUPPER
	RET
