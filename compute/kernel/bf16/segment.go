package bf16

import (
	"gdb/compute/kernel"
	"gdb/internal/mem"
)

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

// SegmentMax writes to row i of out(M,d) the largest value of each column in the rows of x(·,d)
// whose numbers are idx[off[i]:off[i+1]], and to arg(M,d), unless it is nil, the number of the row
// that has it: of equal ones that which is named first. If there are no rows, it writes zeros, and
// kernel.NoRow as their numbers. A NaN counts as larger than any number.
func SegmentMax[T Value](p *kernel.Pool, out []T, x []Number, arg []uint32, of kernel.Lists) {
	keep := arg != nil
	if keep {
		arg = arg[:max(0, len(of.Off)-1)*of.Cols]
	}
	o := level()
	segments(p, o, out, x, of, func(sums []float32, lo, hi int) {
		if keep {
			o.sums.max(sums, x, arg[lo*of.Cols:hi*of.Cols], of.Off[lo:hi+1], of.Idx, of.Cols)
			return
		}
		scratch := p.TakeWords(of.Cols)
		o.sums.max(sums, x, scratch, of.Off[lo:hi+1], of.Idx, of.Cols)
		p.GiveWords(scratch)
	})
}

// SegmentMeanDropout writes the means of rows that went through Dropout, and were rounded then,
// where x stays as it is: the row of list entry e is row idx[e] of x, and counts as row at[e] of
// the matrix that was dropped out.
func SegmentMeanDropout[T Value](p *kernel.Pool, out []T, x []Number, of kernel.Lists,
	drop kernel.Drop) {
	o := level()
	of.At = of.At[:len(of.Idx)]
	segments(p, o, out, x, of, func(sums []float32, lo, hi int) {
		for next := lo; lo < hi; lo = next {
			first := of.Off[lo]
			for next = lo + 1; next < hi && int(of.Off[next+1]-first)*of.Cols <= elementsPart; {
				next++
			}
			n, part := int(of.Off[next]-first), of.Off[lo:next+1]
			words := p.TakeWords((n*of.Cols+1)/2 + n + len(part))
			rows := mem.View[Number](mem.BytesOf(words[:(n*of.Cols+1)/2]))[:n*of.Cols]
			count, ends := words[(n*of.Cols+1)/2:][:n], words[(n*of.Cols+1)/2+n:]
			o.drop(p, rows, x, kernel.Lists{Idx: of.Idx[first:], At: of.At[first:], Cols: of.Cols},
				drop)
			for k := range count {
				count[k] = uint32(k)
			}
			for i, end := range part {
				ends[i] = end - first
			}
			o.sums.sum(sums, rows, ends, count, of.Cols, true)
			sums = sums[(next-lo)*of.Cols:]
			p.GiveWords(words)
		}
	})
}

// drop writes rows of x, dropped out, to rows.
func (o *ops) drop(p *kernel.Pool, rows, x []Number, of kernel.Lists, drop kernel.Drop) {
	values := p.TakeFloats(of.Cols)
	for k := 0; len(rows) > 0; k, rows = k+1, rows[of.Cols:] {
		o.widen(values, x[int(of.Idx[k])*of.Cols:][:of.Cols])
		kernel.Dropout(nil, values, int(of.At[k])*of.Cols, drop.Rate, drop.Key)
		o.narrow(rows[:of.Cols], values)
	}
	p.GiveFloats(values)
}
