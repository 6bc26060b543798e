package bf16

import "gdb/compute/kernel"

// The kernels of this file are of lists whose entries have a weight for each of some heads, as
// those of kernel.EdgeSum: a row has the columns of a head side by side, or if it is shared, is
// read whole by each head.

// WeightedHeads is out[i,h] (+)= the sum over the entries e of list i of w[e,h]·x[idx[e],h]: see
// kernel.EdgeSum.
func WeightedHeads[T Value](p *kernel.Pool, out []T, x []Number, w []float32, off, idx []uint32,
	heads, d int, shared, accumulate bool) {
	count, wide, read := max(0, len(off)-1), heads*d, heads*d
	if shared {
		read = d
	}
	if count*wide == 0 {
		return
	}
	c, o, rows := resultOf(out[:count*wide]), level(), len(x)/read
	p.Span(count, kernel.SegmentsPart(off, wide), func(lo, hi int) {
		kernel.CheckSegments(off[lo:hi+1], idx, rows)
		own := weightsOf(w[int(off[lo]-off[0])*heads:int(off[hi]-off[0])*heads], off[lo:hi+1],
			idx, nil, heads, d)
		if shared {
			own.xRow, own.xHead = d, 0
		}
		c.rows(p, o, lo, hi, wide, accumulate, func(sums []float32) {
			o.sums.weighted(sums, x, &own, accumulate)
		})
	})
}

// WeightedHeadsGrad adds to dx the gradient of WeightedHeads in x, given that of its output, and
// its lists transposed: see kernel.Transposed.EdgeSumGrad and EdgeSumSharedGrad. The first fresh
// rows of dx are overwritten instead.
func WeightedHeadsGrad[T Value](p *kernel.Pool, dx []T, dout []Number, w []float32,
	t *kernel.Transposed, heads, d int, shared bool, fresh int) {
	off, idx, entry, lengths := t.Lists()
	if len(entry) != len(idx) {
		panic("BUG: Transposed without entries: it is not of BuildEntries")
	}
	wide := heads * d
	w, dout = w[:len(idx)*heads], dout[:len(lengths)*wide]
	if shared {
		wide = d
	}
	o := level()
	scatter(p, o, dx, off, wide, fresh, func(sums []float32, lo, hi int, add bool) {
		own := weightsOf(w, off[lo:hi+1], idx, entry, heads, d)
		if shared {
			own.outRow, own.outHead = d, 0
		}
		o.sums.weighted(sums, dout, &own, add)
	})
}
