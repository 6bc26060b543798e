package kernel

import "testing"

// BenchmarkAttention measures what a layer of GAT does beside sums and products of rows, on one
// worker and on two: the kernels over edge values, and the products that have a column for each
// head. MB/s are of what is read once.
func BenchmarkAttention(b *testing.B) {
	const heads, rows, k = 4, 90_000, 128
	e := newEdgeBench(b, heads, k, true)
	src, dst := e.x[:benchRows*heads], e.out[:benchLists*heads]
	values, grads := e.w, e.dx[:benchEntries*heads]
	edges, matrix := benchEntries*heads, rows*k
	few, weight := e.dx[:rows*heads], make([]float32, k*heads)
	copy(weight, e.out)
	e.run(b, "EdgeScores", edges, func(p *Pool) {
		EdgeScores(p, values, src, dst, Lists{Off: e.off, Idx: e.idx, Heads: heads}, 0.2)
	})
	e.run(b, "EdgeSoftmax", edges, func(p *Pool) { EdgeSoftmax(p, values, e.off, heads) })
	e.run(b, "EdgeSoftmaxGrad", 2*edges, func(p *Pool) {
		EdgeSoftmaxGrad(p, grads, values, e.off, heads)
	})
	e.run(b, "EdgeToSrc", edges, func(p *Pool) {
		e.tr.EdgeToSrc(p, e.dx, values, heads, benchRows)
	})
	e.run(b, "EdgeToDst", edges, func(p *Pool) { EdgeToDst(p, dst, values, e.off, heads) })
	e.run(b, "GEMM", matrix, func(p *Pool) {
		GEMM(p, few, e.x, weight, Shape{M: rows, K: k,
			N: heads})
	})
	e.run(b, "GEMMTA", matrix, func(p *Pool) {
		GEMMTA(p, weight, e.x, few, Shape{M: rows, K: k,
			N: heads})
	})
}

// BenchmarkHeads measures the products of a layer of GAT, whose heads stand beside each other.
func BenchmarkHeads(b *testing.B) {
	const heads, m, k, n = 4, 28_000, 128, 64
	e := newEdgeBench(b, heads, k, true)
	x, dx, y := make([]float32, m*heads*k), make([]float32, m*heads*k), make([]float32, m*heads*n)
	copy(x, e.x)
	copy(y, e.x)
	w, dw := make([]float32, k*heads*n), make([]float32, k*heads*n)
	copy(w, e.x)
	work := m * heads * k * n / 2 // MB/s are of 4 B each: MFLOP/s
	e.run(b, "GEMM of heads", work, func(p *Pool) {
		GEMM(p, y, x, w, Shape{M: m, K: k, N: n,
			Heads: heads})
	})
	e.run(b, "GEMMTA of heads", work, func(p *Pool) {
		GEMMTA(p, dw, x, y, Shape{M: m, K: k, N: n,
			Heads: heads})
	})
	e.run(b, "GEMMTB of heads", work, func(p *Pool) {
		GEMMTB(p, dx, y, w, Shape{M: m, N: n, K: k,
			Heads: heads})
	})
}
