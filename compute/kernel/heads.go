package kernel

// The products of this file are of block-diagonal matrices: each of some heads has columns of its
// own in all matrices, those of a head side by side.

// GEMMHeads is C(m,heads*n) (+)= A·B for A(m,heads*k) and B(k,heads*n), head by head.
func GEMMHeads(p *Pool, c, a, b []float32, m, k, n, heads int, accumulate bool) {
	cs, as, bs := heads*n, heads*k, heads*n
	c, a, b = c[:m*cs], a[:m*as], b[:k*bs]
	for h := range heads {
		product(p, columns(c, cs, h*n), columns(a, as, h*k), columns(b, bs, h*n), m, k, n,
			accumulate)
	}
}

// GEMMHeadsTA is C(k,heads*n) (+)= Aᵀ·G for A(m,heads*k) and G(m,heads*n), head by head: the
// gradient of B in GEMMHeads.
func GEMMHeadsTA(p *Pool, c, a, g []float32, m, k, n, heads int, accumulate bool) {
	cs, as, gs := heads*n, heads*k, heads*n
	c, a, g = c[:k*cs], a[:m*as], g[:m*gs]
	for h := range heads {
		productTA(p, columns(c, cs, h*n), columns(a, as, h*k), columns(g, gs, h*n), m, k, n,
			accumulate)
	}
}

// GEMMHeadsTB is C(m,heads*k) (+)= G·Bᵀ for G(m,heads*n) and B(k,heads*n), head by head: the
// gradient of A in GEMMHeads.
func GEMMHeadsTB(p *Pool, c, g, b []float32, m, n, k, heads int, accumulate bool) {
	cs, gs, bs := heads*k, heads*n, heads*n
	c, g, b = c[:m*cs], g[:m*gs], b[:k*bs]
	for h := range heads {
		productTB(p, columns(c, cs, h*k), columns(g, gs, h*n), columns(b, bs, h*n), m, n, k,
			accumulate)
	}
}

// columns is the view of a matrix from a column on; empty matrices have no columns.
func columns(x []float32, stride, column int) view {
	return view{x[min(column, len(x)):], stride}
}
