package kernel

import "gdb/internal/sparse"

// SparseShape is a matrix of Rows rows of Words words each, as package sparse keeps them, of Dim
// columns, and what it is multiplied with: N columns. Add adds to the product.
type SparseShape struct {
	Rows, Words, Dim, N int
	Add                 bool
}

// SparseWords returns the scratch memory of SparseGEMM and SparseGEMMTA, in words of 4 bytes.
func SparseWords(s SparseShape) int {
	entries := s.Rows * sparse.Most(s.Words, s.Dim)
	return s.Rows + 1 + 2*entries + TransposedEntryWords(s.Dim, entries, s.Rows)
}

// sparsePart is how many rows a worker unpacks at a time.
const sparsePart = 1 << 10

// lists returns the entries of rows as lists of columns, and their values, for release.
func (s *SparseShape) lists(p *Pool, a []uint32) (l Lists, values []float32) {
	off := p.TakeWords(s.Rows + 1)
	off[0] = 0
	for i := range s.Rows {
		off[i+1] = off[i] + uint32(s.row(a, i).Len())
	}
	columns, values := p.TakeWords(int(off[s.Rows])), p.TakeFloats(int(off[s.Rows]))
	p.Span(s.Rows, sparsePart, func(lo, hi int) {
		for i := lo; i < hi; i++ {
			at := off[i]
			s.row(a, i).Append(columns[at:at:off[i+1]], values[at:at:off[i+1]])
		}
	})
	return Lists{Off: off, Idx: columns, Heads: 1, Cols: s.N}, values
}

func (l *Lists) release(p *Pool, values []float32) {
	p.GiveFloats(values)
	p.GiveWords(l.Idx)
	p.GiveWords(l.Off)
}

// SparseGEMM is C(rows,n) (+)= A·B for sparse rows A and B(dim,n), in O(entries·n): list sums.
func SparseGEMM(p *Pool, c []float32, a []uint32, b []float32, s SparseShape) {
	l, values := s.lists(p, a)
	EdgeSum(p, c, b[:s.Dim*s.N], values, l, s.Add)
	l.release(p, values)
}

// SparseGEMMTA is C(dim,n) (+)= Aᵀ·B for sparse rows A and B(rows,n), in O(entries·n + dim·n): the
// gradient of the second factor of SparseGEMM.
func SparseGEMMTA(p *Pool, c []float32, a []uint32, b []float32, s SparseShape) {
	l, values := s.lists(p, a)
	memory := p.TakeFloats(TransposedEntryWords(s.Dim, len(values), s.Rows))
	t, fresh := TransposedEntriesIn(memory, s.Dim, len(values), s.Rows), s.Dim
	if s.Add {
		fresh = 0
	}
	t.BuildEntries(l.Off, l.Idx, s.Dim)
	t.EdgeSumGrad(p, c, b, values, RowGrad{Heads: 1, Cols: s.N, Fresh: fresh})
	p.GiveFloats(memory)
	l.release(p, values)
}

// SparseDropout drops out of sparse rows, in place, what Dropout drops of the same rows with all
// their zeros.
func SparseDropout(p *Pool, y []uint32, s SparseShape, d Drop) {
	m := newMask(d.Rate, d.Key)
	p.Span(s.Rows, sparsePart, func(lo, hi int) {
		var plan DropoutPlan
		from, left, at := 0, 0, uint32(0) // the positions that the plan is of
		for i := lo; i < hi; i++ {
			s.row(y, i).Keep(func(column uint32) bool {
				pos := d.First + i*s.Dim + int(column)
				if pos-from >= left {
					from = pos
					at, left = m.plan(pos, &plan)
				}
				return plan.draw(at+uint32(pos-from)) >= plan.threshold
			})
			s.row(y, i).Scale(m.scale)
		}
	})
}

// row returns a row, which must name columns of the matrix only: kernels read what it says.
func (s *SparseShape) row(x []uint32, i int) sparse.Row { return rowOf(x, i, s.Words) }
