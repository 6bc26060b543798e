package kernel

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"gdb/internal/mem"
)

// edgeBench is lists of 10 entries over random rows: a layer of a batch.
type edgeBench struct {
	off, idx       []uint32
	tr             Transposed
	x, out, dx, w  []float32
	heads, d, cols int
	shared         bool
}

const benchLists, benchEntries, benchRows = 34_000, 340_000, 150_000

func newEdgeBench(t testing.TB, heads, d int, shared bool) *edgeBench {
	b := &edgeBench{heads: heads, d: d, cols: heads * d, shared: shared}
	if shared {
		b.cols = d
	}
	draw := rand.New(rand.NewPCG(1, 2))
	for i := range benchLists + 1 {
		b.off = append(b.off, uint32(i*benchEntries/benchLists))
	}
	for range benchEntries {
		b.idx = append(b.idx, uint32(draw.IntN(benchRows)))
	}
	b.tr.BuildEntries(b.off, b.idx, benchRows)
	values := func(n int) []float32 {
		// Huge pages, as training has: random rows miss the translation of small ones.
		arena, err := mem.NewArena(nil, "edges", int64(max(4*n, 1<<22)))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = arena.Free() })
		x := mem.View[float32](arena.Bytes())[:n]
		for i := range x {
			x[i] = draw.Float32() - 0.5
		}
		return x
	}
	b.x, b.dx = values(benchRows*b.cols), values(benchRows*b.cols)
	b.out, b.w = values(benchLists*heads*d), values(benchEntries*heads)
	return b
}

// run measures a kernel that reads this number of values of rows.
func (e *edgeBench) run(b *testing.B, name string, values int, fn func(p *Pool)) {
	for _, workers := range []int{1, 2} {
		b.Run(fmt.Sprintf("kernel=%s/heads=%d/d=%d/workers=%d", name, e.heads, e.d, workers),
			func(b *testing.B) {
				p := NewPool(workers)
				defer p.Close()
				b.SetBytes(int64(values) * 4)
				for b.Loop() {
					fn(p)
				}
			})
	}
}

// BenchmarkEdges measures the kernels over edges beside means of rows as wide. MB/s are of the rows
// read.
func BenchmarkEdges(b *testing.B) {
	for _, c := range []struct {
		heads, d int
		shared   bool
	}{{4, 64, false}, {4, 128, true}, {1, 256, false}} {
		e := newEdgeBench(b, c.heads, c.d, c.shared)
		h, d, rows := c.heads, c.d, benchEntries*e.cols
		e.run(b, "SegmentMean", rows, func(p *Pool) {
			SegmentMean(p, e.out, e.x, e.off, e.idx, e.cols)
		})
		e.run(b, "EdgeSum", rows, func(p *Pool) {
			EdgeSum(p, e.out, e.x, e.w, Lists{Off: e.off, Idx: e.idx, Heads: h, Cols: d,
				Shared: c.shared}, false)
		})
		e.run(b, "EdgeDot", rows, func(p *Pool) {
			EdgeDot(p, e.w, e.out, e.x, Lists{Off: e.off, Idx: e.idx, Heads: h, Cols: d,
				Shared: c.shared})
		})
		e.run(b, "MeanGrad", rows, func(p *Pool) {
			e.tr.MeanGrad(p, e.dx, e.out, e.cols, 0)
		})
		e.run(b, "EdgeSumGrad", benchEntries*h*d, func(p *Pool) {
			if c.shared {
				e.tr.EdgeSumSharedGrad(p, e.dx, e.out, e.w, RowGrad{Heads: h, Cols: d})
			} else {
				e.tr.EdgeSumGrad(p, e.dx, e.out, e.w, RowGrad{Heads: h, Cols: d})
			}
		})
	}
}
