package bf16

import "gdb/compute/kernel"

// The kernels of this file are of lists whose entries have a weight for each of some heads, as
// those of kernel.EdgeSum: a row has the columns of a head side by side, or if it is shared, is
// read whole by each head.

// WeightedHeads is out[i,h] (+)= the sum over the entries e of list i of w[e,h]·x[idx[e],h]: see
// kernel.EdgeSum.
func WeightedHeads[T Value](p *kernel.Pool, out []T, x []Number, w []float32, of kernel.Lists,
	accumulate bool) {
	count, wide, read := max(0, len(of.Off)-1), of.Heads*of.Cols, of.Heads*of.Cols
	if of.Shared {
		read = of.Cols
	}
	if count*wide == 0 {
		return
	}
	c, o, rows := resultOf(out[:count*wide]), level(), len(x)/read
	p.Span(count, kernel.SegmentsPart(of.Off, wide), func(lo, hi int) {
		kernel.CheckSegments(of.Off[lo:hi+1], of.Idx, rows)
		own := weightsOf(w[int(of.Off[lo]-of.Off[0])*of.Heads:int(of.Off[hi]-of.Off[0])*of.Heads],
			of.Off[lo:hi+1],
			of.Idx, nil, of.Heads, of.Cols)
		if of.Shared {
			own.xRow, own.xHead = of.Cols, 0
		}
		c.part(lo*wide, hi*wide).compute(p, o, accumulate, func(sums []float32) {
			o.sums.weighted(sums, x, &own, accumulate)
		})
	})
}

// WeightedHeadsGrad adds to dx the gradient of WeightedHeads in x, given that of its output, and
// its lists transposed: see kernel.Transposed.EdgeSumGrad and EdgeSumSharedGrad. The first fresh
// rows of dx are overwritten instead.
func WeightedHeadsGrad[T Value](p *kernel.Pool, dx []T, dout []Number, w []float32,
	t *kernel.Transposed, g kernel.RowGrad) {
	off, idx, entry, lengths := t.Lists()
	if len(entry) != len(idx) {
		panic("BUG: Transposed without entries: it is not of BuildEntries")
	}
	wide := g.Heads * g.Cols
	w, dout = w[:len(idx)*g.Heads], dout[:len(lengths)*wide]
	if g.Shared {
		wide = g.Cols
	}
	o := level()
	scatter(p, o, dx, off, kernel.RowGrad{Cols: wide, Fresh: g.Fresh}, func(sums []float32, lo,
		hi int, add bool) {
		own := weightsOf(w, off[lo:hi+1], idx, entry, g.Heads, g.Cols)
		if g.Shared {
			own.outRow, own.outHead = g.Cols, 0
		}
		o.sums.weighted(sums, dout, &own, add)
	})
}
