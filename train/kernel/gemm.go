package kernel

// GEMM is C(m,n) (+)= A(m,k)·B(k,n): C is added to if accumulate is set, and else overwritten.
func GEMM(p *Pool, c, a, b []float32, m, k, n int, accumulate bool) {
	c, a, b = c[:m*n], a[:m*k], b[:k*n]
	plainRows(p, m, k*n, func(lo, hi int) {
		refGEMM(c[lo*n:hi*n], a[lo*k:hi*k], b, hi-lo, k, n, accumulate)
	})
}

// GEMMTA is C(k,n) (+)= Aᵀ·B for A(m,k) and B(m,n): the gradient of a weight.
func GEMMTA(p *Pool, c, a, b []float32, m, k, n int, accumulate bool) {
	c, a, b = c[:k*n], a[:m*k], b[:m*n]
	plainRows(p, k, m*n, func(lo, hi int) { refGEMMTA(c, a, b, m, k, n, lo, hi, accumulate) })
}

// GEMMTB is C(m,k) (+)= A(m,n)·Bᵀ for B(k,n): the gradient of an input.
func GEMMTB(p *Pool, c, a, b []float32, m, n, k int, accumulate bool) {
	c, a, b = c[:m*k], a[:m*n], b[:k*n]
	plainRows(p, m, k*n, func(lo, hi int) {
		refGEMMTB(c[lo*k:hi*k], a[lo*n:hi*n], b, hi-lo, n, k, accumulate)
	})
}

// plainRows cuts the rows of a product without vectors into parts of about a million
// multiplications.
func plainRows(p *Pool, rows, perRow int, fn func(lo, hi int)) {
	p.span(rows, max(1, 1<<20/max(1, perRow)), fn)
}
