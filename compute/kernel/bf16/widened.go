package bf16

import "gdb/compute/kernel"

// The products of this file have few columns, such as one for each head of attention: reading A is
// what they cost. Its rows are widened some at a time, and multiplied as floats.

// widenedPart is how many values of A are widened at a time: they stay in the second-level cache.
const widenedPart = 32 << 10

// widenedRows returns how many rows of k values are widened at a time.
func widenedRows(k int) int { return max(1, widenedPart/max(1, k)) }

// GEMMWidened is C(m,n) (+)= A(m,k)·B(k,n) for a B of floats, for each of some heads: A has
// heads·k columns, and C and B heads·n.
func GEMMWidened(p *kernel.Pool, c []float32, a []Number, b []float32, s kernel.Shape) {
	s.Heads = max(1, s.Heads)
	wide, o := s.Heads*s.K, level()
	c, a, rows := c[:s.M*s.Heads*s.N], a[:s.M*wide], widenedRows(wide)
	p.Span(s.M, 8*rows, func(lo, hi int) {
		own, all := kernel.NewPool(1), p.TakeFloats(rows*wide)
		for i := lo; i < hi; i += rows {
			now := min(rows, hi-i)
			values, out := all[:now*wide], c[i*s.Heads*s.N:(i+now)*s.Heads*s.N]
			o.widen(values, a[i*wide:(i+now)*wide])
			kernel.GEMM(own, out, values, b, kernel.Shape{M: now, K: s.K, N: s.N,
				Heads: s.Heads, Add: s.Add})
		}
		p.GiveFloats(all)
	})
}

// widenedSlab is how many rows of A(m,·) are reduced to one partial C at least.
const widenedSlab = 4096

// GEMMTAWidened is C(k,n) (+)= Aᵀ·B for A(m,k) and a B(m,n) of floats, for each of some heads: A
// has heads·k columns, and C and B heads·n.
func GEMMTAWidened(p *kernel.Pool, c []float32, a []Number, b []float32, s kernel.Shape) {
	s.Heads = max(1, s.Heads)
	wide, cols, o := s.Heads*s.K, s.Heads*s.N, level()
	c, a, b, rows := c[:s.K*cols], a[:s.M*wide], b[:s.M*cols], widenedRows(wide)
	if !s.Add {
		clear(c)
	}
	p.SumParts(s.M, widenedSlab, func(sum []float32, lo, hi int) {
		values, own := p.TakeFloats(rows*wide), kernel.NewPool(1)
		for i := lo; i < hi; i += rows {
			now := min(rows, hi-i)
			o.widen(values[:now*wide], a[i*wide:(i+now)*wide])
			kernel.GEMMTA(own, sum, values, b[i*cols:], kernel.Shape{M: now, K: s.K,
				N: s.N, Heads: s.Heads, Add: i > lo})
		}
		p.GiveFloats(values)
	}, c)
}
