package bf16

// The functions of this file say what kernels take of a pool's scratch memory, in words of 4 bytes:
// once, and for each worker.

// GEMMWords is for GEMM with B(k,heads·n); GEMMTB is that for B(n,k). toHalf says that results are
// Numbers.
func GEMMWords(k, n, heads int, toHalf bool) (once, worker int) {
	r := product{ops: level(), k: k, n: n, heads: heads}
	if toHalf {
		worker = chunkRows * n * heads
	}
	return max(1, r.parts()*r.words()) * heads, worker + r.blockWords()
}

// GEMMTAWords is for GEMMTA. Several heads take a C more.
func GEMMTAWords(m, k, n int) (once, worker int) {
	if m*k*n == 0 {
		return 0, 0
	}
	r := reduction{ops: level(), m: m, k: k, n: n, lda: k, ldb: n}
	r.plan(1)
	if r.blocks != nil {
		return r.slabs * k * n, r.partWords(n) + whole(k)*whole(n)
	}
	wide := partsOf(k, r.tiles.wide()) * r.tiles.wide()
	cols := partsOf(min(n, r.groupCols), r.tiles.width()) * r.tiles.step()
	return r.slabs * k * n, blockRows / 2 * (wide + cols)
}

// WidenedWords is for GEMMWidened and GEMMTAWidened of A(m,heads·k).
func WidenedWords(m, k, n, heads int) (once, worker int) {
	return partsOf(m, widenedSlab) * k * n * heads,
		(widenedRows(heads*k)+4*n)*heads*k + widenedRows(heads*k)*heads*n
}

// SegmentWords is for sums of rows of d values over lists, with the entries of all lists given;
// toHalf says that results are Numbers.
func SegmentWords(lists, entries, d int, toHalf bool) (worker int) {
	if !toHalf {
		return 0
	}
	const part = 64 << 10 // see kernel.SegmentsPart
	return max(d, part/(entries/max(1, lists)+1))
}

// DroppedWords is for SegmentMeanDropout, given the entries of the longest list.
func DroppedWords(longest, d int) (worker int) {
	rows := max(1, elementsPart/d, longest)
	return rows*d/2 + 2*rows + d + 4
}

// ElementWords is for Elements, ReLUGrad and ColumnSum of rows of n values.
func ElementWords(n int) (worker int) { return 2*elementsPart + 2*n }
