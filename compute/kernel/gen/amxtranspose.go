//go:build avogen

package main

// transpose writes transposeTiles, which cuts 32 rows into tiles of 16 columns: see amx.Transpose.
// Z0 to Z15 have a word for each of the 16 columns: the values of two rows. The 16 words of a
// column come together in steps, of pairs, of fours, and of all.
func transpose(w *writer) {
	w.put("")
	w.put("// func transposeTiles(to *uint16, from *uint16, tiles int, fromRow, toTile uintptr, " +
		"lastMask uint64)")
	w.put("TEXT ·transposeTiles(SB), NOSPLIT, $0-48")
	w.op("MOVQ to+0(FP), %v", di)
	w.op("MOVQ from+8(FP), %v", si)
	w.op("MOVQ tiles+16(FP), %v", cx)
	w.op("MOVQ fromRow+24(FP), %v", r8)
	w.op("MOVQ toTile+32(FP), %v", r9)
	w.op("MOVL $0xffff, %v", ax)
	w.op("KMOVW %v, K1", ax)

	w.label("tile")
	w.op("CMPQ %v, $1", cx)
	w.op("JNE rows")
	w.op("MOVQ lastMask+40(FP), %v", ax)
	w.op("KMOVW %v, K1", ax)
	w.label("rows")
	w.op("MOVQ %v, %v", si, dx)
	for pair := range 16 {
		w.op("VPMOVZXWD.Z (%v), K1, Z%d", dx, pair)
		w.op("VPMOVZXWD.Z (%v)(%v*1), K1, Z16", dx, r8)
		w.op("VPSLLD $16, Z16, Z16")
		w.op("VPORD Z16, Z%d, Z%d", pair, pair)
		w.op("LEAQ (%v)(%v*2), %v", dx, r8, dx)
	}
	for i := 0; i < 16; i += 2 {
		w.op("VPUNPCKLDQ Z%d, Z%d, Z%d", i+1, i, 16+i)
		w.op("VPUNPCKHDQ Z%d, Z%d, Z%d", i+1, i, 17+i)
	}
	for i := 0; i < 16; i += 4 {
		w.op("VPUNPCKLQDQ Z%d, Z%d, Z%d", 18+i, 16+i, i)
		w.op("VPUNPCKHQDQ Z%d, Z%d, Z%d", 18+i, 16+i, i+1)
		w.op("VPUNPCKLQDQ Z%d, Z%d, Z%d", 19+i, 17+i, i+2)
		w.op("VPUNPCKHQDQ Z%d, Z%d, Z%d", 19+i, 17+i, i+3)
	}
	for column := range 4 {
		w.fours(column)
	}
	w.op("ADDQ $32, %v", si)
	w.op("ADDQ %v, %v", r9, di)
	w.op("DECQ %v", cx)
	w.op("JNZ tile")
	w.op("VZEROUPPER")
	w.op("RET")
}

// fours writes four columns, from one on and four apart. Z(column), and three more that are four
// registers apart, have four words of each of the four columns, one column in each 128 bits.
func (w *writer) fours(column int) {
	const even, odd = 0x88, 0xdd // 128 bits 0 and 2 of both, 1 and 3
	shuffle := func(which, second, first, to int) {
		w.op("VSHUFI32X4 $%#x, Z%d, Z%d, Z%d", which, second, first, to)
	}
	shuffle(even, column+4, column, 16)
	shuffle(odd, column+4, column, 17)
	shuffle(even, column+12, column+8, 18)
	shuffle(odd, column+12, column+8, 19)
	shuffle(even, 18, 16, 20)
	shuffle(even, 19, 17, 21)
	shuffle(odd, 18, 16, 22)
	shuffle(odd, 19, 17, 23)
	for i := range 4 {
		w.op("VMOVDQU32 Z%d, %d(%v)", 20+i, 64*(4*i+column), di)
	}
}
