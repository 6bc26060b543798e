package bf16

import "gdb/compute/kernel"

// SegmentReduce writes to row i of out(M,d) the sum, or the mean, of the rows of x(·,d) whose
// numbers are idx[off[i]:off[i+1]], and zeros if there are none. off has M+1 ascending entries.
func SegmentReduce[T Value](p *kernel.Pool, out []T, x []Number, of kernel.Lists, mean bool) {
	o := level()
	segments(p, o, out, x, of, func(sums []float32, lo, hi int) {
		o.sums.sum(sums, x, of.Off[lo:hi+1], of.Idx, of.Cols, mean)
	})
}

// segments calls sum for parts of the segments, lo to hi-1, with rows of floats to write to.
func segments[T Value](p *kernel.Pool, o *ops, out []T, x []Number, of kernel.Lists,
	sum func(sums []float32, lo, hi int)) {
	count := max(0, len(of.Off)-1)
	out = out[:count*of.Cols]
	if len(out) == 0 {
		return
	}
	c, rows := resultOf(out), len(x)/of.Cols
	p.Span(count, kernel.SegmentsPart(of.Off, of.Cols), func(lo, hi int) {
		kernel.CheckSegments(of.Off[lo:hi+1], of.Idx, rows)
		c.part(lo*of.Cols, hi*of.Cols).compute(p, o, false,
			func(sums []float32) { sum(sums, lo, hi) })
	})
}

// part returns values lo to hi-1 of a result; hi may lie behind the last one.
func (c result) part(lo, hi int) result {
	if c.floats != nil {
		return result{floats: c.floats[lo:min(hi, len(c.floats))]}
	}
	return result{numbers: c.numbers[lo:hi]}
}

// compute has fn compute a result as floats: those that are there, with accumulate, or any values.
// Sums that become Numbers are in memory of their own until they are whole.
func (c result) compute(p *kernel.Pool, o *ops, accumulate bool, fn func(sums []float32)) {
	if c.floats != nil {
		fn(c.floats)
		return
	}
	sums := p.TakeFloats(len(c.numbers))
	if accumulate {
		o.widen(sums, c.numbers)
	}
	fn(sums)
	o.narrow(c.numbers, sums)
	p.GiveFloats(sums)
}

// SegmentMeanGrad adds to dx(·,d) the gradient of the mean in its input, given the gradient
// dout(M,d) of its output and its segments transposed: dx[r] += dout[i]/length(i) for each r of
// each segment i. The first fresh rows of dx are overwritten instead.
func SegmentMeanGrad[T Value](p *kernel.Pool, dx []T, dout []Number, t *kernel.Transposed,
	d, fresh int) {
	_, _, _, weight := t.Lists()
	SegmentScaledGrad(p, dx, dout, weight, t, kernel.RowGrad{Cols: d, Fresh: fresh})
}

// SegmentScaledGrad is SegmentMeanGrad with scale[i] in the place of 1/length(i).
func SegmentScaledGrad[T Value](p *kernel.Pool, dx []T, dout []Number, scale []float32,
	t *kernel.Transposed, g kernel.RowGrad) {
	off, idx, _, weight := t.Lists()
	scale, dout = scale[:len(weight)], dout[:len(weight)*g.Cols]
	o := level()
	scatter(p, o, dx, off, g, func(sums []float32, lo, hi int, add bool) {
		own := weightsOf(scale, off[lo:hi+1], idx, idx, 1, g.Cols) // that of a row
		o.sums.weighted(sums, dout, &own, add)
	})
}

// scatter calls sum for parts of the rows of dx: the first fresh rows are overwritten, the others
// accumulate. off has the lists of the rows.
func scatter[T Value](p *kernel.Pool, o *ops, dx []T, off []uint32, g kernel.RowGrad,
	sum func(sums []float32, lo, hi int, accumulate bool)) {
	count := max(0, len(off)-1)
	dx = dx[:count*g.Cols]
	if len(dx) == 0 {
		return
	}
	c := resultOf(dx)
	p.Span(count, kernel.SegmentsPart(off, g.Cols), func(lo, hi int) {
		at := min(max(g.Fresh, lo), hi)
		for _, part := range [][2]int{{lo, at}, {at, hi}} {
			if lo, hi := part[0], part[1]; lo < hi {
				add := lo >= g.Fresh
				c.part(lo*g.Cols, hi*g.Cols).compute(p, o, add,
					func(sums []float32) { sum(sums, lo, hi, add) })
			}
		}
	})
}
