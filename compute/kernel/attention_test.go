package kernel

import (
	"math"
	"testing"

	"pgregory.net/rapid"
)

// factor returns the derivative of leaky.
func factor(v, slope float32) float32 {
	if v > 0 {
		return 1
	}
	return slope
}

func TestEdgeScores(t *testing.T) {
	edgeTest(t, 1, func(t *rapid.T, c *edgeCase) {
		slope := rapid.SampledFrom([]float32{0, 0.2, 1}).Draw(t, "slope")
		n := c.entries * c.heads
		src, dst := c.mem.values(c.rows*c.heads), c.mem.values(c.count*c.heads)
		s, want, ds := c.mem.values(n), c.mem.zeros(n), c.mem.values(n)
		grad := c.mem.copyOf(ds)
		toDst := newExact(len(dst))
		out, fresh := c.mem.values(len(src)), rapid.IntRange(0, c.rows).Draw(t, "fresh")
		toSrc := started(out, fresh*c.heads)
		c.each(func(i, e, r int) {
			for h := range c.heads {
				v := src[r*c.heads+h] + dst[i*c.heads+h]
				at := e*c.heads + h
				want[at] = v * factor(v, slope)
				grad[at] *= factor(v, slope)
				toDst.add(i*c.heads+h, ds[at])
				toSrc.add(r*c.heads+h, ds[at])
			}
		})
		EdgeScores(c.p, s, src, dst, Lists{Off: c.off, Idx: c.idx, Heads: c.heads}, slope)
		for i, v := range want {
			if v != s[i] {
				t.Fatalf("score %d is %v, want %v", i, s[i], v)
			}
		}
		sums := c.mem.values(len(dst))
		EdgeToDst(c.p, sums, ds, c.off, c.heads)
		toDst.check(t, "EdgeToDst", sums, 40)
		c.tr.EdgeToSrc(c.p, out, ds, c.heads, fresh)
		toSrc.check(t, "EdgeToSrc", out, c.entries+2)
		EdgeScoresGrad(c.p, ds, s, slope)
		for i, v := range grad {
			if v != ds[i] {
				t.Fatalf("gradient %d is %v, want %v", i, ds[i], v)
			}
		}
	})
}

func TestEdgeSoftmax(t *testing.T) {
	edgeTest(t, 1, func(t *rapid.T, c *edgeCase) {
		n := c.entries * c.heads
		a, da := c.mem.values(n), c.mem.values(n)
		for i := range a {
			a[i] = 5*a[i] + 200 // exp of it is no number
		}
		largest, sums := make([]float64, c.count*c.heads), make([]float64, c.count*c.heads)
		c.each(func(i, e, _ int) {
			for h := range c.heads {
				to := &largest[i*c.heads+h]
				*to = max(*to, float64(a[e*c.heads+h]))
			}
		})
		want, dots := make([]float64, n), make([]float64, c.count*c.heads)
		both := func(fn func(list, at int)) {
			c.each(func(i, e, _ int) {
				for h := range c.heads {
					fn(i*c.heads+h, e*c.heads+h)
				}
			})
		}
		both(func(l, at int) {
			want[at] = math.Exp(float64(a[at]) - largest[l])
			sums[l] += want[at]
		})
		both(func(l, at int) {
			want[at] /= sums[l]
			dots[l] += want[at] * float64(da[at])
		})
		EdgeSoftmax(c.p, a, c.off, c.heads)
		both(func(l, at int) {
			if d := math.Abs(float64(a[at]) - want[at]); !(d < 50*roundOff*want[at]+1e-28) {
				t.Fatalf("softmax %d is %v, want %v", at, a[at], want[at])
			}
		})
		before := c.mem.copyOf(da)
		EdgeSoftmaxGrad(c.p, da, a, c.off, c.heads)
		both(func(l, at int) {
			w := want[at] * (float64(before[at]) - dots[l])
			if d := math.Abs(float64(da[at]) - w); !(d < 500*roundOff*want[at]+1e-28) {
				t.Fatalf("gradient %d is %v, want %v", at, da[at], w)
			}
		})
	})
}

func TestEdgeScores2(t *testing.T) {
	edgeTest(t, 300, func(t *rapid.T, c *edgeCase) {
		slope := rapid.SampledFrom([]float32{0, 0.2, 1}).Draw(t, "slope")
		n := c.heads * c.d
		xl, xr := c.mem.values(c.rows*n), c.mem.values(c.count*n)
		att, ds := c.mem.values(n), c.mem.values(c.entries*c.heads)
		s, want := c.mem.values(len(ds)), newExact(len(ds))
		dxr, datt, dxl := c.mem.values(len(xr)), c.mem.values(n), c.mem.values(len(xl))
		right, weight := newExact(len(xr)), newExact(n)
		fresh := rapid.IntRange(0, c.rows).Draw(t, "fresh")
		left := started(dxl, fresh*n)
		specials(c.mem, dxl[:fresh*n])
		c.each(func(i, e, r int) {
			for j := range n {
				v := xl[r*n+j] + xr[i*n+j]
				f, at := factor(v, slope), e*c.heads+j/c.d
				want.add(at, att[j], f, v)
				right.add(i*n+j, ds[at], f, att[j])
				left.add(r*n+j, ds[at], f, att[j])
				weight.add(j, ds[at], f, v)
			}
		})
		EdgeScores2(c.p, s, Lists{Off: c.off, Idx: c.idx, Heads: c.heads, Cols: c.d},
			Scores2{Src: xl, Dst: xr, Att: att, Slope: slope})
		want.check(t, "EdgeScores2", s, c.d+5)
		EdgeScores2Grad(c.p, dxr, datt, ds, Lists{Off: c.off, Idx: c.idx, Heads: c.heads,
			Cols: c.d}, Scores2{Src: xl, Dst: xr, Att: att, Slope: slope})
		right.check(t, "gradient of EdgeScores2 in xr", dxr, 45)
		weight.check(t, "gradient of EdgeScores2 in att", datt, c.entries+5)
		c.tr.EdgeScores2SrcGrad(c.p, dxl, ds, Scores2{Src: xl, Dst: xr, Att: att, Slope: slope},
			RowGrad{Heads: c.heads, Cols: c.d, Fresh: fresh})
		left.check(t, "gradient of EdgeScores2 in xl", dxl, c.entries+5)
	})
}

func TestHeads(t *testing.T) {
	eachLevel(t, func(t *testing.T) {
		p := NewPool(3)
		defer p.Close()
		rapid.Check(t, func(t *rapid.T) { checkHeads(t, p) })
	})
}

// checkHeads draws a shape of products of heads.
func checkHeads(t *rapid.T, p *Pool) {
	m := size(130).Draw(t, "m")
	if rapid.IntRange(0, 9).Draw(t, "long") == 0 {
		m += 2 * slabRowsMin
	}
	if m > 1000 && level().tiles == nil {
		return
	}
	k, n := size(70).Draw(t, "k"), size(70).Draw(t, "n")
	heads := rapid.IntRange(1, 4).Draw(t, "heads")
	compareHeads(t, p, m, k, n, heads, rapid.Bool().Draw(t, "accumulate"))
}

// compareHeads compares products of heads with products of copies of each head's columns.
func compareHeads(t *rapid.T, p *Pool, m, k, n, heads int, add bool) {
	mem := newMemory(t)
	defer mem.free()
	for i, f := range products(m, k, n) {
		a, b := mem.values(f.ra*f.ca*heads), mem.values(f.rb*f.cb*heads)
		c := mem.values(f.rc * f.cc * heads)
		want, bound := mem.copyOf(c), absolute(c)
		refHeads(want, a, b, f, heads, add)
		refHeads(bound, absolute(a), absolute(b), f, heads, add)
		switch i {
		case 0:
			GEMM(p, c, a, b, Shape{M: m, K: k, N: n, Heads: heads, Add: add})
		case 1:
			GEMMTA(p, c, a, b, Shape{M: m, K: k, N: n, Heads: heads, Add: add})
		case 2:
			GEMMTB(p, c, a, b, Shape{M: m, N: n, K: k, Heads: heads, Add: add})
		}
		within(t, f.name+" of heads", c, want, bound, 2*float64(f.steps+8))
	}
}

// refHeads computes each head from copies of its columns.
func refHeads(c, a, b []float32, f productForm, heads int, add bool) {
	for h := range heads {
		own := headOf(c, f.rc, f.cc, h, heads)
		f.ref(own, headOf(a, f.ra, f.ca, h, heads), headOf(b, f.rb, f.cb, h, heads), add)
		for r := range f.rc {
			copy(c[(r*heads+h)*f.cc:][:f.cc], own[r*f.cc:])
		}
	}
}

// headOf copies the columns of one head.
func headOf(x []float32, rows, cols, h, heads int) []float32 {
	out := make([]float32, rows*cols)
	for r := range rows {
		copy(out[r*cols:r*cols+cols], x[(r*heads+h)*cols:])
	}
	return out
}
