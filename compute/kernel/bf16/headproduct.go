package bf16

import "gdb/compute/kernel"

// The products of this file are of the columns of each of some heads, which lie beside each other
// in a row: see kernel.GEMM.

// gemmHeads is C(m,heads·n) (+)= A(m,heads·k)·B(k,heads·n) for the columns of each head.
func gemmHeads[T Value](p *kernel.Pool, c []T, a, b []Number, s kernel.Shape) {
	r := headed(c, a, s.M, s.K, s.N, s.Heads)
	r.multiplyHeads(p, s.M, s.Heads, s.Add, func(panel []uint32, h, lo, width int) {
		r.tiles.packRows(panel, b[h*s.N+lo:], s.K, width, s.Heads*s.N, 0)
	})
}

// gemmHeadsTB is C(m,heads·k) (+)= A(m,heads·n)·Bᵀ for B(k,heads·n), for the columns of each head.
func gemmHeadsTB[T Value](p *kernel.Pool, c []T, a, b []Number, s kernel.Shape) {
	r := headed(c, a, s.M, s.N, s.K, s.Heads)
	r.multiplyHeads(p, s.M, s.Heads, s.Add, func(panel []uint32, h, lo, width int) {
		r.tiles.packTransposed(panel, b[lo*s.Heads*s.N+h*s.N:], s.N, width, s.Heads*s.N)
	})
}

// headed is the product of m rows by heads, each of k steps and n columns.
func headed[T Value](c []T, a []Number, m, k, n, heads int) *product {
	return &product{ops: level(), c: resultOf(c[:m*heads*n]), a: a[:m*heads*k], k: k, n: n,
		lda: heads * k, ldc: heads * n}
}

// multiplyHeads computes m rows of all heads, some rows at a time, where pack writes width columns
// of B of head h, from lo on, to a panel.
func (r *product) multiplyHeads(p *kernel.Pool, m, heads int, accumulate bool,
	pack func(panel []uint32, h, lo, width int)) {
	if m*heads*r.n == 0 {
		return
	}
	w, words := r.tiles.width(), r.words()
	own := partsOf(r.n, w) * words
	panels := p.TakeWords(max(1, heads*own))
	if r.k > 0 {
		p.Run(heads, func(h int) {
			for lo := 0; lo < r.n; lo += w {
				panel := panels[h*own+lo/w*words:][:words]
				pack(panel, h, lo, min(w, r.n-lo))
				r.tiles.pad(panel, r.k)
			}
		})
	}
	p.Span(m, partRows(r.k*r.n*heads), func(lo, hi int) {
		for i := lo; i < hi; i += chunkRows {
			end := min(i+chunkRows, hi)
			r.c.part(i*r.ldc, end*r.ldc).compute(p, r.ops, accumulate, func(sums []float32) {
				for h := range heads {
					of := *r
					of.a, of.panels = r.a[min(h*r.k, len(r.a)):], panels[h*own:]
					of.rows(p, sums[h*r.n:], i, end-i, accumulate)
				}
			})
		}
	})
	p.GiveWords(panels)
}

// gemmHeadsTA is C(k,heads·n) (+)= Aᵀ·B for A(m,heads·k) and B(m,heads·n), for the columns of each
// head.
func gemmHeadsTA(p *kernel.Pool, c []float32, a, b []Number, s kernel.Shape) {
	if c = c[:s.K*s.Heads*s.N]; s.M == 0 && !s.Add {
		clear(c)
	}
	if s.M*len(c) == 0 {
		return
	}
	own := p.TakeFloats(s.K * s.N)
	for h := range s.Heads {
		r := reduction{ops: level(), c: own, a: a[h*s.K:], b: b[h*s.N:], m: s.M, k: s.K, n: s.N,
			lda: s.Heads * s.K, ldb: s.Heads * s.N}
		r.compute(p)
		for i := range s.K {
			row := c[(i*s.Heads+h)*s.N:][:s.N]
			if !s.Add {
				clear(row)
			}
			kernel.Add(nil, row, own[i*s.N:(i+1)*s.N])
		}
	}
	p.GiveFloats(own)
}
