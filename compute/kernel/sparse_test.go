package kernel

import (
	"slices"
	"testing"

	"gdb/internal/sparse"

	"pgregory.net/rapid"
)

// TestSparse compares sparse rows, as they are and after a dropout, with the same rows in products
// of matrices.
func TestSparse(t *testing.T) {
	pool := NewPool(3)
	defer pool.Close()
	rapid.Check(t, func(t *rapid.T) {
		s := SparseShape{Rows: rapid.IntRange(0, 40).Draw(t, "rows"),
			Add: rapid.Bool().Draw(t, "add"),
			Dim: rapid.SampledFrom([]int{1, 5, 70}).Draw(t, "dim"),
			N:   rapid.SampledFrom([]int{1, 4, 31, 64}).Draw(t, "n")}
		if rapid.IntRange(0, 9).Draw(t, "wide") == 0 {
			s.Rows, s.Dim, s.N = min(s.Rows, 3), 1<<16+9, 4
		}
		entries, valued := min(s.Dim, 6), rapid.Bool().Draw(t, "valued")
		s.Words = sparse.Words(entries, s.Dim, valued)
		x, dense := make([]uint32, s.Rows*s.Words), make([]float32, s.Rows*s.Dim)
		for i := range s.Rows {
			columns := rapid.SliceOfNDistinct(rapid.Uint32Range(0, uint32(s.Dim-1)), 0, entries,
				rapid.ID[uint32]).Draw(t, "columns")
			slices.Sort(columns)
			var values []float32
			if valued {
				for range columns {
					values = append(values, rapid.Float32Range(-2, 2).Draw(t, "value"))
				}
			}
			s.row(x, i).Set(s.Dim, columns, values)
		}
		read := func() {
			for i := range s.Rows {
				s.row(x, i).Dense(rowOf(dense, i, s.Dim))
			}
		}
		read()
		first := rapid.SampledFrom([]int{0, 1<<20 - 30}).Draw(t, "first")
		drop := Drop{Rate: 0.4, First: first, Key: 9}
		want := slices.Clone(dense)
		Dropout(pool, want, drop.First, drop.Rate, drop.Key)
		SparseDropout(pool, x, s, drop)
		read()
		within(t, "dropout", dense, want, absolute(want), 2)
		checkSparse(t, pool, s, x, dense)
	})
}

// checkSparse compares products of sparse rows x with those of the same rows with all zeros.
func checkSparse(t *rapid.T, pool *Pool, s SparseShape, x []uint32, dense []float32) {
	mem := newMemory(t)
	defer mem.free()
	w, y := mem.values(s.Dim*s.N), mem.values(s.Rows*s.N)
	got, want := mem.copyOf(y), mem.copyOf(y)
	SparseGEMM(pool, got, x, w, s)
	refGEMM(view{want, s.N}, view{dense, s.Dim}, view{w, s.N},
		Shape{M: s.Rows, K: s.Dim, N: s.N, Add: s.Add})
	within(t, "SparseGEMM", got, want, slices.Repeat([]float32{60}, len(got)), 40)
	back, ref := mem.copyOf(w), mem.copyOf(w)
	SparseGEMMTA(pool, back, x, y, s)
	refGEMMTA(view{ref, s.N}, view{dense, s.Dim}, view{y, s.N},
		Shape{M: s.Rows, N: s.N, Add: s.Add}, 0, s.Dim)
	within(t, "SparseGEMMTA", back, ref, slices.Repeat([]float32{300}, len(back)), 40)
}
