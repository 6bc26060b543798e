package bf16

import "gdb/train/kernel"

// The products of this file are of the columns of each of some heads, which lie beside each other
// in a row: see kernel.GEMMHeads.

// GEMMHeads is C(m,heads·n) (+)= A(m,heads·k)·B(k,heads·n) for the columns of each head.
func GEMMHeads(p *kernel.Pool, c []float32, a, b []Number, m, k, n, heads int, accumulate bool) {
	if empty(c[:m*heads*n], k, accumulate) {
		return
	}
	for h := range heads {
		r := product{ops: level(), c: resultOf(c[h*n : (m-1)*heads*n+(h+1)*n]),
			a: a[h*k : (m-1)*heads*k+(h+1)*k], k: k, n: n, lda: heads * k, ldc: heads * n}
		r.multiply(p, m, accumulate, func(panel []uint32, lo, width int) {
			r.tiles.packRows(panel, b[h*n+lo:], k, width, heads*n, 0)
		})
	}
}

// GEMMHeadsTB is C(m,heads·k) (+)= A(m,heads·n)·Bᵀ for B(k,heads·n), for the columns of each head.
func GEMMHeadsTB(p *kernel.Pool, c []float32, a, b []Number, m, n, k, heads int,
	accumulate bool) {
	if empty(c[:m*heads*k], n, accumulate) {
		return
	}
	for h := range heads {
		r := product{ops: level(), c: resultOf(c[h*k : (m-1)*heads*k+(h+1)*k]),
			a: a[h*n : (m-1)*heads*n+(h+1)*n], k: n, n: k, lda: heads * n, ldc: heads * k}
		r.multiply(p, m, accumulate, func(panel []uint32, lo, width int) {
			r.tiles.packTransposed(panel, b[lo*heads*n+h*n:], n, width, heads*n)
		})
	}
}

// GEMMHeadsTA is C(k,heads·n) (+)= Aᵀ·B for A(m,heads·k) and B(m,heads·n), for the columns of each
// head.
func GEMMHeadsTA(p *kernel.Pool, c []float32, a, b []Number, m, k, n, heads int,
	accumulate bool) {
	if empty(c[:k*heads*n], m, accumulate) {
		return
	}
	own := p.TakeFloats(k * n)
	for h := range heads {
		r := reduction{t: level().tiles, c: own, a: a[h*k:], b: b[h*n:], m: m, k: k, n: n,
			lda: heads * k, ldb: heads * n}
		r.compute(p)
		for i := range k {
			row := c[(i*heads+h)*n:][:n]
			if !accumulate {
				clear(row)
			}
			kernel.Add(nil, row, own[i*n:(i+1)*n])
		}
	}
	p.GiveFloats(own)
}

// empty computes a product of no values, or of no steps, and tells whether it was one.
func empty(c []float32, steps int, accumulate bool) bool {
	if steps == 0 && !accumulate {
		clear(c)
	}
	return steps == 0 || len(c) == 0
}
