#include "textflag.h"
#include "go_asm.h"

// address takes the place of a number of a row in memory, and sets a register to where the row begins:
// R14 is the table, and R13 the bytes of a row.
#define address(place, row) \
	MOVL  place, row      \
	IMULQ R13, row        \
	ADDQ  R14, row

// func pairScores(a *pairsArgs)
//
// Z0 to Z3 sum up the scores of q with the answer and with the negative, and those of p.
TEXT ·pairScores(SB), NOSPLIT, $0-8
	MOVQ a+0(FP), R15
	MOVQ pairsArgs_dim(R15), R13
	SHLQ $2, R13
	MOVQ pairsArgs_table(R15), R14
	MOVQ pairsArgs_r(R15), R10
	MOVQ pairsArgs_s(R15), R11

	// R12 is the bytes of all vectors but the last, and K1 the lanes of that.
	MOVQ  pairsArgs_dim(R15), R12
	DECQ  R12
	MOVQ  R12, CX
	ANDQ  $15, CX
	ANDQ  $-16, R12
	SHLQ  $2, R12
	MOVL  $2, BX
	SHLL  CX, BX
	DECL  BX
	KMOVW BX, K1
	XORL  BX, BX                         // the number of the edge

scoresEdge:
	MOVQ    pairsArgs_heads(R15), AX
	address((AX)(BX*4), SI)
	MOVQ    pairsArgs_tails(R15), AX
	address((AX)(BX*4), DI)
	MOVQ    BX, CX
	IMULQ   pairsArgs_noStep(R15), CX
	MOVQ    pairsArgs_noTails(R15), AX
	address((AX)(CX*1), R8)
	MOVQ    pairsArgs_noHeads(R15), AX
	address((AX)(CX*1), R9)
	VPXORD  X0, X0, X0
	VPXORD  X1, X1, X1
	VPXORD  X2, X2, X2
	VPXORD  X3, X3, X3
	XORL    AX, AX
	CMPQ    AX, R12
	JGE     scoresLast

scoresVector:
	VMOVUPS     (SI)(AX*1), Z4
	VMOVUPS     (DI)(AX*1), Z5
	VMULPS      (R10)(AX*1), Z4, Z6
	VMULPS      (R11)(AX*1), Z5, Z7
	VFMADD231PS Z5, Z6, Z0
	VFMADD231PS (R8)(AX*1), Z6, Z1
	VFMADD231PS Z4, Z7, Z2
	VFMADD231PS (R9)(AX*1), Z7, Z3
	ADDQ        $64, AX
	CMPQ        AX, R12
	JLT         scoresVector

scoresLast:
	VMOVUPS.Z   (SI)(AX*1), K1, Z4
	VMOVUPS.Z   (DI)(AX*1), K1, Z5
	VMOVUPS.Z   (R10)(AX*1), K1, Z6
	VMOVUPS.Z   (R11)(AX*1), K1, Z7
	VMOVUPS.Z   (R8)(AX*1), K1, Z8
	VMOVUPS.Z   (R9)(AX*1), K1, Z9
	VMULPS      Z6, Z4, Z6
	VMULPS      Z7, Z5, Z7
	VFMADD231PS Z5, Z6, Z0
	VFMADD231PS Z8, Z6, Z1
	VFMADD231PS Z4, Z7, Z2
	VFMADD231PS Z9, Z7, Z3

	VEXTRACTF64X4 $1, Z0, Y4
	VEXTRACTF64X4 $1, Z1, Y5
	VEXTRACTF64X4 $1, Z2, Y6
	VEXTRACTF64X4 $1, Z3, Y7
	VADDPS        Y4, Y0, Y0
	VADDPS        Y5, Y1, Y1
	VADDPS        Y6, Y2, Y2
	VADDPS        Y7, Y3, Y3
	VHADDPS       Y1, Y0, Y0
	VHADDPS       Y3, Y2, Y2
	VHADDPS       Y2, Y0, Y0             // four sums of each half
	VEXTRACTF128  $1, Y0, X1
	VADDPS        X1, X0, X0
	MOVQ          pairsArgs_forTails(R15), AX
	VMOVLPS       X0, (AX)(BX*8)
	MOVQ          pairsArgs_forHeads(R15), AX
	VMOVHPS       X0, (AX)(BX*8)
	INCQ          BX
	CMPQ          BX, pairsArgs_count(R15)
	JLT           scoresEdge
	VZEROUPPER
	RET

// Both kernels below go over 16 columns at a time of all edges: of these, what the edges share is in
// registers. Z0 and Z1 are r and s, Z2 and Z3 the negatives of an edge; Z4 to Z7 sum up the gradients
// of these. K1 has the lanes, and AX the place of the columns.

#define begin \
	MOVQ a+0(FP), R15            \
	MOVQ pairsArgs_dim(R15), R13 \
	MOVQ R13, R12                \ // columns that remain
	SHLQ $2, R13                 \
	MOVQ pairsArgs_table(R15), R14 \
	XORL AX, AX

// lanes sets K1 for R12 columns, 16 at most.
#define lanes \
	MOVQ    R12, CX \
	MOVL    $16, BX \
	CMPQ    CX, BX  \
	CMOVQGT BX, CX  \
	MOVL    $1, BX  \
	SHLL    CX, BX  \
	DECL    BX      \
	KMOVW   BX, K1

// shared loads r and s, and clears the sums of their gradients.
#define shared \
	MOVQ      pairsArgs_r(R15), SI     \
	MOVQ      pairsArgs_s(R15), DI     \
	VMOVUPS.Z (SI)(AX*1), K1, Z0       \
	VMOVUPS.Z (DI)(AX*1), K1, Z1       \
	VPXORD    X4, X4, X4               \
	VPXORD    X5, X5, X5               \
	MOVQ      pairsArgs_heads(R15), R8 \
	MOVQ      pairsArgs_tails(R15), R9 \
	MOVQ      pairsArgs_forTails(R15), R10 \
	MOVQ      pairsArgs_forHeads(R15), R11 \
	MOVQ      pairsArgs_dHeads(R15), DX \
	ADDQ      AX, DX                   \
	MOVQ      pairsArgs_dTails(R15), CX \
	ADDQ      AX, CX                   \
	XORL      BX, BX

// edge has the gradients of the ends of edge BX in Z14 and Z15, and adds to those of r and s. It
// leaves q in Z10 and p in Z11.
#define edge \
	address((R8)(BX*4), SI)                          \
	address((R9)(BX*4), DI)                          \
	VMOVUPS.Z        (SI)(AX*1), K1, Z8              \ // h
	VMOVUPS.Z        (DI)(AX*1), K1, Z9              \ // t
	VMULPS           Z0, Z8, Z10                     \
	VMULPS           Z1, Z9, Z11                     \
	VMULPS.BCST      (R10)(BX*8), Z9, Z12            \ // the gradient of q
	VFMADD231PS.BCST 4(R10)(BX*8), Z2, Z12           \
	VMULPS.BCST      (R11)(BX*8), Z8, Z13            \ // that of p
	VFMADD231PS.BCST 4(R11)(BX*8), Z3, Z13           \
	VMULPS           Z12, Z0, Z14                    \
	VFMADD231PS.BCST (R11)(BX*8), Z11, Z14           \
	VMULPS           Z13, Z1, Z15                    \
	VFMADD231PS.BCST (R10)(BX*8), Z10, Z15           \
	VFMADD231PS      Z12, Z8, Z4                     \
	VFMADD231PS      Z13, Z9, Z5                     \
	VMOVUPS          Z14, K1, (DX)                   \
	VMOVUPS          Z15, K1, (CX)                   \
	ADDQ             R13, DX                         \
	ADDQ             R13, CX

// addTo adds a register to a gradient.
#define addTo(gradient, sum) \
	MOVQ      gradient(R15), SI      \
	VMOVUPS.Z (SI)(AX*1), K1, Z8     \
	VADDPS    sum, Z8, Z8            \
	VMOVUPS   Z8, K1, (SI)(AX*1)

// func pairGrads(a *pairsArgs)
TEXT ·pairGrads(SB), NOSPLIT, $0-8
	begin

gradsColumns:
	lanes
	MOVQ      pairsArgs_noTails(R15), CX
	address((CX), SI)
	MOVQ      pairsArgs_noHeads(R15), CX
	address((CX), DI)
	VMOVUPS.Z (SI)(AX*1), K1, Z2
	VMOVUPS.Z (DI)(AX*1), K1, Z3
	VPXORD    X6, X6, X6
	VPXORD    X7, X7, X7
	shared

gradsEdge:
	edge
	VFMADD231PS.BCST 4(R10)(BX*8), Z10, Z6
	VFMADD231PS.BCST 4(R11)(BX*8), Z11, Z7
	INCQ             BX
	CMPQ             BX, pairsArgs_count(R15)
	JLT              gradsEdge

	addTo(pairsArgs_dR, Z4)
	addTo(pairsArgs_dS, Z5)
	addTo(pairsArgs_dNoTails, Z6)
	addTo(pairsArgs_dNoHeads, Z7)
	ADDQ $64, AX
	SUBQ $16, R12
	JGT  gradsColumns
	VZEROUPPER
	RET

// func pairGradsOwn(a *pairsArgs)
TEXT ·pairGradsOwn(SB), NOSPLIT, $8-8
	begin

ownColumns:
	lanes
	shared
	MOVQ AX, bytes-8(SP) // from the first gradient of a negative

ownEdge:
	MOVQ             pairsArgs_noTails(R15), SI
	address((SI)(BX*4), SI)
	MOVQ             pairsArgs_noHeads(R15), DI
	address((DI)(BX*4), DI)
	VMOVUPS.Z        (SI)(AX*1), K1, Z2
	VMOVUPS.Z        (DI)(AX*1), K1, Z3
	edge
	VMULPS.BCST      4(R10)(BX*8), Z10, Z6
	VMULPS.BCST      4(R11)(BX*8), Z11, Z7
	MOVQ             bytes-8(SP), SI
	MOVQ             SI, DI
	ADDQ             pairsArgs_dNoTails(R15), SI
	ADDQ             pairsArgs_dNoHeads(R15), DI
	VMOVUPS          Z6, K1, (SI)
	VMOVUPS          Z7, K1, (DI)
	ADDQ             R13, bytes-8(SP)
	INCQ             BX
	CMPQ             BX, pairsArgs_count(R15)
	JLT              ownEdge

	addTo(pairsArgs_dR, Z4)
	addTo(pairsArgs_dS, Z5)
	ADDQ $64, AX
	SUBQ $16, R12
	JGT  ownColumns
	VZEROUPPER
	RET
