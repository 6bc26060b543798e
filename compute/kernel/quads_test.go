package kernel

import (
	"testing"

	"pgregory.net/rapid"
)

// TestQuads compares the functions for four heads at a time with the specification, bit by bit.
func TestQuads(t *testing.T) {
	edgeTest(t, 1, func(t *rapid.T, c *edgeCase) {
		heads := c.heads
		src, dst := c.mem.values(c.rows*heads), c.mem.values(c.count*heads)
		values := c.mem.values(c.entries * heads)
		l := Lists{Off: c.off, Idx: c.idx, Heads: heads, Cols: 1}
		check := func(what string, x []float32, fast, ref func(x []float32)) {
			got, want := c.mem.copyOf(x), c.mem.copyOf(x)
			fast(got)
			ref(want)
			equal(t, what, got, want)
		}
		check("scores", values, func(x []float32) { quadEdgeScores(x, src, dst, &l, 0.2) },
			func(x []float32) { refEdgeScores(x, src, dst, &l, 0.2) })
		check("values less the largest", values,
			func(x []float32) { quadSubtractMax(x, c.off, heads) },
			func(x []float32) { refSubtractMax(x, c.off, heads) })
		check("values by their sum", values, func(x []float32) { quadDivideSum(x, c.off, heads) },
			func(x []float32) { refDivideSum(x, c.off, heads) })
		check("sums of lists", dst, func(x []float32) { quadEdgeToDst(x, values, c.off, heads) },
			func(x []float32) { refEdgeToDst(x, values, c.off, heads) })
		check("sum of entries", c.mem.values(heads),
			func(x []float32) { quadEdgeToSrc(x, values, c.tr.entry) },
			func(x []float32) { refEdgeToSrc(x, values, c.tr.entry) })
	})
}
