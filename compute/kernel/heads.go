package kernel

// The products of this file are of block-diagonal matrices: each of some heads has columns of its
// own in all matrices, those of a head side by side.

// GEMMHeads is C(m,heads*n) (+)= A·B for A(m,heads*k) and B(k,heads*n), head by head.
func GEMMHeads(p *Pool, c, a, b []float32, s Shape) {
	cs, as, bs := s.Heads*s.N, s.Heads*s.K, s.Heads*s.N
	c, a, b = c[:s.M*cs], a[:s.M*as], b[:s.K*bs]
	for h := range s.Heads {
		product(p, columns(c, cs, h*s.N), columns(a, as, h*s.K), columns(b, bs, h*s.N), s)
	}
}

// GEMMHeadsTA is C(k,heads*n) (+)= Aᵀ·G for A(m,heads*k) and G(m,heads*n), head by head: the
// gradient of B in GEMMHeads.
func GEMMHeadsTA(p *Pool, c, a, g []float32, s Shape) {
	cs, as, gs := s.Heads*s.N, s.Heads*s.K, s.Heads*s.N
	c, a, g = c[:s.K*cs], a[:s.M*as], g[:s.M*gs]
	for h := range s.Heads {
		productTA(p, columns(c, cs, h*s.N), columns(a, as, h*s.K), columns(g, gs, h*s.N), s)
	}
}

// GEMMHeadsTB is C(m,heads*k) (+)= G·Bᵀ for G(m,heads*n) and B(k,heads*n), head by head: the
// gradient of A in GEMMHeads.
func GEMMHeadsTB(p *Pool, c, g, b []float32, s Shape) {
	cs, gs, bs := s.Heads*s.K, s.Heads*s.N, s.Heads*s.N
	c, g, b = c[:s.M*cs], g[:s.M*gs], b[:s.K*bs]
	for h := range s.Heads {
		productTB(p, columns(c, cs, h*s.K), columns(g, gs, h*s.N), columns(b, bs, h*s.N), s)
	}
}

// columns is the view of a matrix from a column on; empty matrices have no columns.
func columns(x []float32, stride, column int) view {
	return view{x[min(column, len(x)):], stride}
}
