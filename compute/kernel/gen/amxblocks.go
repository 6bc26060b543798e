//go:build avogen

package main

// Tiles: four of C, and two rows and two columns of them at a step.
const (
	c00, c01, c10, c11 = 0, 1, 2, 3
	a0, a1             = 4, 5
	b0, b1             = 6, 7
)

// blocks writes multiplyBlocks: see amx.Blocks. Its registers are:
//
//	SI, DI   the tiles of A of this step      R8   bytes between rows of a tile of A
//	BX       the tiles of B of this step      R9   bytes from a tile of A to that of the next step
//	DX       the block of C                   R10  128, the bytes between rows of a tile of B
//	CX       steps that are left              R11  bytes between rows of C
//	R12      columns of blocks that are left  R13  what memory is asked for
func blocks(w *writer) {
	w.put("")
	w.put("// func multiplyBlocks(rows, cols, steps int, a *uint16, aRow, aStep, aTile uintptr, " +
		"b *uint32, c *float32, cRow uintptr, mode uint64, buffer *float32, next, nextStep " +
		"uintptr, config *[64]byte)")
	w.put("TEXT ·multiplyBlocks(SB), NOSPLIT, $0-120")
	w.op("MOVQ config+112(FP), %v", ax)
	w.ldtilecfg(ax)
	w.op("MOVQ aRow+32(FP), %v", r8)
	w.op("MOVQ aStep+40(FP), %v", r9)
	w.op("MOVL $128, %v", r10)
	w.op("MOVQ cRow+72(FP), %v", r11)
	w.op("MOVQ next+96(FP), %v", r13)

	w.label("rows")
	w.op("MOVQ b+56(FP), %v", bx)
	w.op("MOVQ c+64(FP), %v", dx)
	w.op("MOVQ cols+8(FP), %v", r12)

	w.label("cols")
	w.op("MOVQ a+24(FP), %v", si)
	w.op("MOVQ aTile+48(FP), %v", di)
	w.op("ADDQ %v, %v", si, di)
	w.op("MOVQ steps+16(FP), %v", cx)
	w.op("TESTQ $%d, mode+80(FP)", modeAccumulate)
	w.op("JZ zero")
	w.lowerRows()
	w.eachOfC(func(tile byte, disp int8, base register) { w.tileloadd(disp, base, r11, tile) })
	w.op("JMP step")
	w.label("zero")
	for tile := range byte(4) {
		w.tilezero(c00 + tile)
	}

	w.label("step")
	w.step()
	w.op("JNZ step")

	w.op("TESTQ $%d, mode+80(FP)", modeStream)
	w.op("JNZ stream")
	w.lowerRows()
	w.eachOfC(func(tile byte, disp int8, base register) { w.tilestored(tile, disp, base, r11) })
	w.op("JMP stored")
	w.label("stream")
	w.stream()
	w.label("stored")
	w.op("ADDQ $128, %v", dx)
	w.op("DECQ %v", r12)
	w.op("JNZ cols")

	w.op("MOVQ %v, %v", r11, ax)
	w.op("SHLQ $5, %v", ax)
	w.op("ADDQ %v, c+64(FP)", ax)
	w.op("MOVQ aTile+48(FP), %v", ax)
	w.op("ADDQ %v, %v", ax, ax)
	w.op("ADDQ %v, a+24(FP)", ax)
	w.op("DECQ rows+0(FP)")
	w.op("JNZ rows")
	w.tilerelease()
	w.op("SFENCE") // after what was written past the caches
	w.op("VZEROUPPER")
	w.op("RET")
}

// lowerRows sets AX to row 16 of the block of C.
func (w *writer) lowerRows() {
	w.op("LEAQ (%v)(%v*8), %v", dx, r11, ax)
	w.op("LEAQ (%v)(%v*8), %v", ax, r11, ax)
}

func (w *writer) eachOfC(fn func(tile byte, disp int8, base register)) {
	fn(c00, 0, dx)
	fn(c01, 64, dx)
	fn(c10, 0, ax)
	fn(c11, 64, ax)
}

// step adds the products of 32 values of each row of A, and asks memory for four lines.
func (w *writer) step() {
	w.tileloadd(0, si, r8, a0)
	w.tileloadd(0, bx, r10, b0)
	w.tdpbf16ps(b0, a0, c00)
	w.tileloadd(64, bx, r10, b1)
	w.tdpbf16ps(b1, a0, c01)
	w.tileloadd(0, di, r8, a1)
	w.tdpbf16ps(b0, a1, c10)
	w.tdpbf16ps(b1, a1, c11)
	for line := range 4 {
		w.op("PREFETCHT1 %d(%v)", 64*line, r13)
	}
	w.op("ADDQ nextStep+104(FP), %v", r13)
	w.op("ADDQ %v, %v", r9, si)
	w.op("ADDQ %v, %v", r9, di)
	w.op("ADDQ $2048, %v", bx)
	w.op("DECQ %v", cx)
}

// stream writes the block to the buffer, and from there past the caches to C: stores of tiles would
// read each line first.
func (w *writer) stream() {
	w.op("MOVQ buffer+88(FP), %v", si)
	w.op("LEAQ 2048(%v), %v", si, di)
	w.tilestored(c00, 0, si, r10)
	w.tilestored(c01, 64, si, r10)
	w.tilestored(c10, 0, di, r10)
	w.tilestored(c11, 64, di, r10)
	w.op("MOVQ %v, %v", dx, ax)
	w.op("MOVL $32, %v", cx)
	w.label("line")
	w.op("VMOVUPS (%v), Z0", si)
	w.op("VMOVUPS 64(%v), Z1", si)
	w.op("VMOVNTPS Z0, (%v)", ax)
	w.op("VMOVNTPS Z1, 64(%v)", ax)
	w.op("ADDQ $128, %v", si)
	w.op("ADDQ %v, %v", r11, ax)
	w.op("DECQ %v", cx)
	w.op("JNZ line")
}
