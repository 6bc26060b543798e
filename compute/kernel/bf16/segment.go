package bf16

import "gdb/compute/kernel"

// SegmentMean writes to row i of out(M,d) the mean of the rows of x(·,d) whose numbers are
// idx[off[i]:off[i+1]], and zeros if there are none. off has M+1 ascending entries.
func SegmentMean[T Value](p *kernel.Pool, out []T, x []Number, off, idx []uint32, d int) {
	SegmentReduce(p, out, x, off, idx, d, true)
}

// SegmentSum writes the sums of the same rows.
func SegmentSum[T Value](p *kernel.Pool, out []T, x []Number, off, idx []uint32, d int) {
	SegmentReduce(p, out, x, off, idx, d, false)
}

// SegmentReduce is SegmentMean, or SegmentSum.
func SegmentReduce[T Value](p *kernel.Pool, out []T, x []Number, off, idx []uint32, d int,
	mean bool) {
	o := level()
	segments(p, o, out, x, off, idx, d, func(sums []float32, lo, hi int) {
		o.sums.sum(sums, x, off[lo:hi+1], idx, d, mean)
	})
}

// SegmentWeighted writes the sums of the same rows, each times the weight of its entry: weight has
// that of entry off[0] first.
func SegmentWeighted[T Value](p *kernel.Pool, out []T, x []Number, weight []float32,
	off, idx []uint32, d int) {
	o := level()
	segments(p, o, out, x, off, idx, d, func(sums []float32, lo, hi int) {
		own := weightsOf(weight[off[lo]-off[0]:off[hi]-off[0]], off[lo:hi+1], idx, nil, 1, d)
		o.sums.weighted(sums, x, &own, false)
	})
}

// segments calls sum for parts of the segments, lo to hi-1, with rows of floats to write to.
func segments[T Value](p *kernel.Pool, o *ops, out []T, x []Number, off, idx []uint32, d int,
	sum func(sums []float32, lo, hi int)) {
	count := max(0, len(off)-1)
	out = out[:count*d]
	if len(out) == 0 {
		return
	}
	c, rows := resultOf(out), len(x)/d
	p.Span(count, kernel.SegmentsPart(off, d), func(lo, hi int) {
		kernel.CheckSegments(off[lo:hi+1], idx, rows)
		c.rows(p, o, lo, hi, d, false, func(sums []float32) { sum(sums, lo, hi) })
	})
}

// rows has fn compute rows lo to hi-1, of n values each, as floats: those that are there, with
// accumulate, or any values. Sums that become Numbers are in memory of their own until they are
// whole.
func (c result) rows(p *kernel.Pool, o *ops, lo, hi, n int, accumulate bool,
	fn func(sums []float32)) {
	if c.floats != nil {
		fn(c.floats[lo*n : min(hi*n, len(c.floats))])
		return
	}
	out := c.numbers[lo*n : hi*n]
	sums := p.TakeFloats(len(out))
	if accumulate {
		o.widen(sums, out)
	}
	fn(sums)
	o.narrow(out, sums)
	p.GiveFloats(sums)
}

// SegmentMeanGrad adds to dx(·,d) the gradient of SegmentMean in its input, given the gradient
// dout(M,d) of its output and its segments transposed: dx[r] += dout[i]/length(i) for each r of
// each segment i. The first fresh rows of dx are overwritten instead.
func SegmentMeanGrad[T Value](p *kernel.Pool, dx []T, dout []Number, t *kernel.Transposed,
	d, fresh int) {
	_, _, _, weight := t.Lists()
	SegmentScaledGrad(p, dx, dout, weight, t, d, fresh)
}

// SegmentScaledGrad is SegmentMeanGrad with scale[i] in the place of 1/length(i).
func SegmentScaledGrad[T Value](p *kernel.Pool, dx []T, dout []Number, scale []float32,
	t *kernel.Transposed, d, fresh int) {
	off, idx, _, weight := t.Lists()
	scale, dout = scale[:len(weight)], dout[:len(weight)*d]
	o := level()
	scatter(p, o, dx, off, d, fresh, func(sums []float32, lo, hi int, add bool) {
		own := weightsOf(scale, off[lo:hi+1], idx, idx, 1, d) // that of a row
		o.sums.weighted(sums, dout, &own, add)
	})
}

// SegmentWeightedGrad is SegmentMeanGrad for SegmentWeighted, whose weights it is given; t is of
// BuildEntries.
func SegmentWeightedGrad[T Value](p *kernel.Pool, dx []T, dout []Number, weight []float32,
	t *kernel.Transposed, d, fresh int) {
	off, idx, entry, lengths := t.Lists()
	if len(entry) != len(idx) {
		panic("BUG: Transposed without entries: it is not of BuildEntries")
	}
	weight, dout = weight[:len(idx)], dout[:len(lengths)*d]
	o := level()
	scatter(p, o, dx, off, d, fresh, func(sums []float32, lo, hi int, add bool) {
		own := weightsOf(weight, off[lo:hi+1], idx, entry, 1, d)
		o.sums.weighted(sums, dout, &own, add)
	})
}

// scatter calls sum for parts of the rows of dx: the first fresh rows are overwritten, the others
// accumulate. off has the lists of the rows.
func scatter[T Value](p *kernel.Pool, o *ops, dx []T, off []uint32, d, fresh int,
	sum func(sums []float32, lo, hi int, accumulate bool)) {
	count := max(0, len(off)-1)
	dx = dx[:count*d]
	if len(dx) == 0 {
		return
	}
	c := resultOf(dx)
	p.Span(count, kernel.SegmentsPart(off, d), func(lo, hi int) {
		at := min(max(fresh, lo), hi)
		for _, part := range [][2]int{{lo, at}, {at, hi}} {
			if lo, hi := part[0], part[1]; lo < hi {
				add := lo >= fresh
				c.rows(p, o, lo, hi, d, add, func(sums []float32) { sum(sums, lo, hi, add) })
			}
		}
	})
}
