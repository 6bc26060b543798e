package program

import (
	"math"
	"testing"

	"gdb/internal/mem"
	"gdb/internal/sparse"
)

// sparseWords is the width of the rows of sparseRows.
var sparseWords = sparse.Words(testCols, testCols, true)

// sparseRows returns features as sparse rows.
func sparseRows(x []float32) []float32 {
	var columns []uint32
	for k := range testCols {
		columns = append(columns, uint32(k))
	}
	rows := make([]float32, len(x)/testCols*sparseWords)
	for i := 0; i < len(x)/testCols; i++ {
		to := mem.View[uint32](mem.BytesOf(rows[i*sparseWords : (i+1)*sparseWords]))
		sparse.Row(to).Set(testCols, columns, x[i*testCols:(i+1)*testCols])
	}
	return rows
}

// TestSparseFeatures: programs on sparse rows have the loss and the gradients of the same on dense
// ones, dropouts included, whatever the order of aggregation and product. Those that read features
// otherwise than in products say so.
func TestSparseFeatures(t *testing.T) {
	for name, c := range map[string]struct {
		model Model
		takes bool
	}{"sage": {sageLayers, true}, "attention": {attentionLayers, true},
		"largest": {func(b *Builder, x Value) Value {
			y := testDense(b, b.Pull(x, b.Lists(), Max), "y", 3)
			b.Next()
			return testDense(b, b.Own(y), "z", 2)
		}, false}} {
		want := newBench(t, c.model, Options{})
		loss := want.loss(t, true)
		for _, order := range orders(want.program.Places()) {
			got := newBench(t, c.model, Options{Sparse: sparseWords, Order: order})
			if got.program.Sparse() != c.takes {
				t.Fatalf("%s reads sparse rows: %t", name, !c.takes)
			}
			if l := got.loss(t, true); math.Abs(l-loss) > 1e-4*loss {
				t.Errorf("%s: loss %g, of dense rows %g", name, l, loss)
			}
			grads := got.read(got.params.G)
			for i, g := range want.read(want.params.G) {
				if d := float64(g - grads[i]); math.Abs(d) > 1e-4*(1+math.Abs(float64(g))) {
					t.Fatalf("%s: gradient %d is %g, of dense rows %g", name, i, grads[i], g)
				}
			}
		}
	}
}
