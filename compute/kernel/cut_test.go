package kernel

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// TestSegmentMeanCut: means of rows in pieces have the bits of those of whole rows, dropped out or
// not, at every level.
func TestSegmentMeanCut(t *testing.T) {
	eachLevel(t, func(t *testing.T) {
		p := NewPool(3)
		defer p.Close()
		rapid.Check(t, func(t *rapid.T) {
			mem := newMemory(t)
			defer mem.free()
			d, rows := 1+rapid.OneOf(size(40), size(400)).Draw(t, "d"), 1+size(60).Draw(t, "rows")
			dim := rapid.IntRange((d+15)/16, d).Draw(t, "dim")
			count, longest := size(300).Draw(t, "segments"), size(70).Draw(t, "longest")
			off, idx := mem.segments(count, longest, rows)
			cut, table, matrix := cutRows(mem, rows, d, dim, rapid.Bool().Draw(t, "mixed"))
			rate, key := float32(0), rapid.Uint64().Draw(t, "key")
			if rapid.Bool().Draw(t, "dropped") {
				rate = rapid.Float32Range(0, 0.9).Draw(t, "rate")
			}
			kept := mem.copyOf(table)
			want, got := mem.values(count*d), mem.values(count*d)
			SegmentMeanCut(p, got, table, Lists{Off: off, Idx: idx, Cols: d}, cut,
				Drop{Rate: rate, Key: key})
			Dropout(p, matrix, 0, rate, key)
			SegmentMean(p, want, matrix, off, idx, d)
			if !slices.EqualFunc(got, want, sameBits) || !slices.Equal(table, kept) {
				t.Fatal("other means, or the table was changed")
			}
		})
	})
}

func sameBits(a, b float32) bool { return math.Float32bits(a) == math.Float32bits(b) }

// cutRows returns rows of d values in a table of pieces, in an order of its own, and whole.
func cutRows(mem *memory, rows, d, dim int, mixed bool) (cut Cut, table, matrix []float32) {
	cut.Dim = dim
	most, all := (d+dim-1)/dim, mem.rng.IntN((d+dim-1)/dim+1)
	matrix, cut.Off = mem.zeros(rows*d), []uint32{0}
	for range rows {
		if mixed {
			all = mem.rng.IntN(most + 1)
		}
		cut.Off = append(cut.Off, cut.Off[len(cut.Off)-1]+uint32(all))
	}
	n := int(cut.Off[rows])
	table = mem.zeros((n + 1) * dim) // one is of nobody
	for _, at := range mem.rng.Perm(n + 1)[:n] {
		cut.At = append(cut.At, uint32(at))
	}
	for r := range rows {
		row := matrix[r*d : (r+1)*d]
		for j, at := range cut.At[cut.Off[r]:cut.Off[r+1]] {
			part := row[j*dim : min(d, (j+1)*dim)]
			copy(part, mem.values(len(part)))
			copy(table[int(at)*dim:], part)
		}
	}
	return cut, table, matrix
}

func TestSegmentMeanCutChecks(t *testing.T) {
	for _, cut := range []Cut{{Off: []uint32{0, 1}, At: []uint32{3}, Dim: 2},
		{Off: []uint32{1, 0}, At: []uint32{0}, Dim: 2}} {
		if !panics(func() {
			SegmentMeanCut(nil, make([]float32, 4), make([]float32, 6),
				Lists{Off: []uint32{0, 1}, Idx: []uint32{0}, Cols: 4}, cut, Drop{})
		}) {
			t.Errorf("%v: no panic", cut)
		}
	}
}
