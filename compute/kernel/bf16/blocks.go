package bf16

import (
	"gdb/compute/kernel"
	"gdb/compute/kernel/amx"
	"gdb/internal/mem"
)

// The functions of this file multiply with the tiles of package amx, which knows whole blocks only:
// what is less, at the edges of a matrix, is computed in padded copies.

// whole rounds n up to whole blocks.
func whole(n int) int { return partsOf(n, amx.Side) * amx.Side }

// bitsOf returns the same array as package amx has it.
func bitsOf(x []Number) []uint16 { return mem.View[uint16](mem.BytesOf(x)) }

// blockRows computes rows of the product, from row i on, to c: whole blocks of them where they are,
// and the rest in a copy.
func (r *product) blockRows(p *kernel.Pool, c []float32, i, rows int, accumulate bool) {
	inBlocks := rows / amx.Side * amx.Side
	r.blockChunk(p, c, i, inBlocks, accumulate)
	if inBlocks < rows {
		r.blockChunk(p, c[inBlocks*r.ldc():], i+inBlocks, rows-inBlocks, accumulate)
	}
}

func (r *product) blockChunk(p *kernel.Pool, c []float32, i, rows int, accumulate bool) {
	if rows == 0 {
		return
	}
	a, lda := r.a[i*r.lda():], r.lda()
	if whole(r.k) != r.k || whole(rows) != rows {
		words := p.TakeWords(whole(rows) * whole(r.k) / 2)
		defer p.GiveWords(words)
		padded := mem.View[Number](mem.BytesOf(words))
		padRows(padded, whole(r.k), a, lda, rows, r.k)
		clear(padded[rows*whole(r.k):])
		a, lda = padded, whole(r.k)
	}
	b := amx.Blocks{Rows: partsOf(rows, amx.Side), Cols: partsOf(r.n, amx.Side),
		Steps: partsOf(r.k, amx.Side), A: bitsOf(a), ARow: lda, AStep: amx.Side, ATile: 16 * lda,
		B: r.panels, C: c, CRow: r.ldc(), Accumulate: accumulate, Stream: r.stream}
	b.Ask(bitsOf(rowsOf(r.a, i+chunkRows, rows, r.lda())))
	onBlocks(p, r.blocks, &b, rows, r.n)
}

// onBlocks multiplies to rows x cols of C: to C itself if these are whole blocks, else to a copy.
func onBlocks(p *kernel.Pool, multiply func(*amx.Blocks), b *amx.Blocks, rows, cols int) {
	tall, wide := b.Rows*amx.Side, b.Cols*amx.Side
	if rows == tall && cols == wide {
		multiply(b)
		return
	}
	own := *b
	own.C, own.CRow, own.Stream = p.TakeFloats(tall*wide), wide, false
	if b.Accumulate {
		padRows(own.C, wide, b.C, b.CRow, rows, cols)
		clear(own.C[rows*wide:])
	}
	multiply(&own)
	for i := range rows {
		copy(b.C[i*b.CRow:][:cols], own.C[i*wide:])
	}
	p.GiveFloats(own.C)
}

// rowsOf returns rows of x from row i on, stride values apart; fewer where x ends.
func rowsOf(x []Number, i, rows, stride int) []Number {
	end := min(len(x), (i+rows)*stride)
	return x[min(i*stride, max(0, end)):max(0, end)]
}

// padRows copies rows of n values, stride apart, to rows of wide values, which end with zeros.
func padRows[T any](to []T, wide int, x []T, stride, rows, n int) {
	for i := range rows {
		row := to[i*wide:][:wide]
		clear(row[copy(row, x[i*stride:][:n]):])
	}
}

// blockWords returns what blockRows takes of scratch memory.
func (r *product) blockWords() int {
	if r.blocks == nil {
		return 0
	}
	return chunkRows * (whole(r.k)/2 + whole(r.n))
}

const (
	// reduceRows is how many rows of A and B are packed for blocks at a time: they stay in the
	// second-level cache, and C is read and written once for all of them.
	reduceRows = 512
	// blockSlabsMax is slabsMax for blocks: adding partial sums takes some percents of the product.
	blockSlabsMax = 8
)

// blockPart computes columns j0 to j1-1 of the partial C of a slab that begins at row i.
func (r *reduction) blockPart(p *kernel.Pool, c []float32, i, j0, j1 int, add bool) {
	tall, cols := whole(r.k), j1-j0
	words := p.TakeWords(r.partWords(cols))
	as, rest := words[:reduceRows/2*tall], words[reduceRows/2*tall:]
	bs, edge := rest[:reduceRows/2*whole(cols)], mem.View[Number](mem.BytesOf(rest))
	edge = edge[2*len(bs):][:amx.Side*r.k]
	for end := min(i+r.slabRows, r.m); i < end; i += reduceRows {
		rows := min(reduceRows, end-i)
		b := amx.Blocks{Rows: tall / amx.Side, Cols: partsOf(cols, amx.Side),
			Steps: partsOf(rows, amx.Side), A: mem.View[uint16](mem.BytesOf(as)), ARow: amx.Side,
			AStep: amx.TileValues, B: bs, C: c[j0:], CRow: r.n, Accumulate: add}
		b.ATile = b.Steps * amx.TileValues
		r.packTiles(&b, edge, i, rows)
		panel := b.Steps * amx.StepWords
		r.tiles.packRows(bs, r.b[i*r.ldb+j0:], rows, cols, r.ldb, panel)
		for q := range b.Cols {
			r.tiles.pad(bs[q*panel:(q+1)*panel], rows)
		}
		b.Ask(bitsOf(rowsOf(r.a, i+reduceRows, min(rows, end-i-reduceRows), r.lda)))
		onBlocks(p, r.blocks, &b, r.k, cols)
		add = true
	}
	p.GiveWords(words)
}

// packTiles cuts the columns of rows of A into tiles whose rows they are. edge has room for a step
// of rows.
func (r *reduction) packTiles(b *amx.Blocks, edge []Number, i, rows int) {
	tiles := partsOf(r.k, amx.Side/2)
	clear(b.A[tiles*b.ATile:][:(2*b.Rows-tiles)*b.ATile])
	for s := range b.Steps {
		from, stride := r.a[(i+s*amx.Side)*r.lda:], r.lda
		if left := rows - s*amx.Side; left < amx.Side {
			padRows(edge, r.k, from, stride, left, r.k)
			clear(edge[left*r.k:])
			from, stride = edge, r.k
		}
		amx.Transpose(b.A[s*b.AStep:], bitsOf(from), r.k, stride, b.ATile)
	}
}

// partWords returns what blockPart takes of scratch memory, but for a C at an edge.
func (r *reduction) partWords(cols int) int {
	return reduceRows/2*(whole(r.k)+whole(cols)) + amx.Side/2*r.k
}
