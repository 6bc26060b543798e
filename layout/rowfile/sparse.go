package rowfile

import (
	"gdb/internal/mem"
	"gdb/internal/sparse"
)

// KeepSparse makes reads as float32 of sparse rows leave them as they are: words, as package sparse
// describes them, in the place of values; Meta().Dim counts these. Otherwise such rows are read
// with all their zeros. Rows that are divided by their sum still are; columns must not be scaled.
// It must be called before the first read that counts.
func (r *Reader) KeepSparse() {
	if r.shape.DType != Sparse || r.packed || r.scaled && !r.toOne {
		panic("BUG: rowfile: rows that are not sparse, or are scaled by columns, are kept sparse")
	}
	words := r.shape.RowBytes / 4
	r.sparse = true
	r.decode = func(out []float32, rows []byte) {
		all := mem.BytesOf(out)
		copy(all, rows)
		for ; r.toOne && len(all) >= 4*words; all = all[4*words:] {
			row := sparse.Row(mem.View[uint32](all[:4*words]))
			if sum := row.Sum(); sum != 0 {
				row.Scale(float32(1 / sum))
			}
		}
	}
}

// Sparse reports whether rows stay sparse.
func (r *Reader) Sparse() bool { return r.sparse }

// densify writes sparse rows with all their zeros.
func (r *Reader) densify(out []float32, rows []byte) {
	dim, words := r.shape.Dim, r.shape.RowBytes/4
	row := make(sparse.Row, words)
	for ; len(out) >= dim; out, rows = out[dim:], rows[4*words:] {
		copy(mem.BytesOf(row), rows)
		row.Dense(out[:dim])
	}
}
