package kernel

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// TestRows: what a step does to rows of a table is what the optimizers do to each row alone, at any
// number of workers, and all other rows and their state stay as they are, to the bit.
func TestRows(t *testing.T) {
	eachLevel(t, func(t *testing.T) {
		pools := []*Pool{nil, NewPool(3)}
		defer pools[1].Close()
		rapid.Check(t, func(t *rapid.T) {
			mem := newMemory(t)
			defer mem.free()
			cols, extra := rapid.IntRange(1, 37).Draw(t, "cols"), rapid.IntRange(0, 5).Draw(t, "x")
			n := rapid.IntRange(1, 2*tableRowsPart).Draw(t, "rows")
			at := rapid.SliceOfNDistinct(rapid.Uint32Range(0, uint32(n-1)), 0, n,
				rapid.ID).Draw(t, "at")
			stride := cols + extra
			tables := [][]float32{mem.values(n * cols), mem.values(n * cols), mem.values(n * cols)}
			for i, v := range tables[2] { // a second moment, or a sum of squares
				tables[2][i] = v * v
			}
			grad := mem.values(len(at) * stride)
			for _, kind := range []string{"adam", "sgd", "adagrad"} {
				want := rowsAlone(kind, tables, grad, at, cols, stride)
				for _, p := range pools {
					got := [][]float32{mem.copyOf(tables[0]), mem.copyOf(tables[1]),
						mem.copyOf(tables[2])}
					r := Rows{Cols: cols, At: at, X: mem.copyOf(grad), Stride: stride}
					stepRows(kind, &r, p, got)
					for i := range got {
						equal(t, kind, got[i], want[i])
					}
				}
			}
		})
	})
}

func stepRows(kind string, r *Rows, p *Pool, t [][]float32) {
	switch kind {
	case "sgd":
		r.SGD(p, t[0], 0.1)
	case "adagrad":
		r.Adagrad(p, t[0], t[2], 0.1, 1e-10)
	default:
		r.Adam(p, t[0], t[1], t[2], AdamStep{Step: 3, Rate: 0.1, Beta1: 0.9, Beta2: 0.999,
			Eps: 1e-8})
	}
}

// rowsAlone steps each row by itself.
func rowsAlone(kind string, tables [][]float32, grad []float32, at []uint32,
	cols, stride int) [][]float32 {
	out := [][]float32{slices.Clone(tables[0]), slices.Clone(tables[1]), slices.Clone(tables[2])}
	for i, v := range at {
		row := func(t []float32) []float32 { return t[int(v)*cols : (int(v)+1)*cols] }
		g := grad[(i+1)*stride-cols : (i+1)*stride]
		switch kind {
		case "sgd":
			SGD(nil, row(out[0]), g, 0.1, 0)
		case "adagrad":
			Adagrad(nil, row(out[0]), g, row(out[2]), AdamStep{Rate: 0.1, Eps: 1e-10})
		default:
			Adam(nil, row(out[0]), g, row(out[1]), row(out[2]), AdamStep{Step: 3, Rate: 0.1,
				Beta1: 0.9, Beta2: 0.999, Eps: 1e-8})
		}
	}
	return out
}

// TestRowsClip: rows and parameters together have the norm that is clipped.
func TestRowsClip(t *testing.T) {
	r := Rows{Cols: 2, At: []uint32{4, 1}, X: []float32{9, 3, 4, 9, 0, 12}, Stride: 3}
	g := []float32{0, 84}
	factor := ClipNorm(nil, g, 17, r.Squares(nil)) // 3² + 4² + 12² + 84² is 85²
	r.Scale(nil, factor)
	if math.Abs(float64(factor)-0.2) > 1e-7 || math.Abs(float64(g[1])-16.8) > 1e-5 {
		t.Fatalf("factor %g, gradient %v", factor, g)
	}
	for i, want := range []float32{9, 0.6, 0.8, 9, 0, 2.4} {
		if math.Abs(float64(r.X[i]-want)) > 1e-6 {
			t.Fatalf("rows %v", r.X)
		}
	}
	table := []float32{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}
	r.Gather(nil, table)
	if !slices.Equal(r.X, []float32{9, 8, 9, 9, 2, 3}) {
		t.Fatalf("gathered %v", r.X)
	}
}
