package kernel

// noRow is what SegmentMax writes as the row of a largest value where there is none.
const noRow = ^uint32(0)

// SegmentMax writes to row i of out(M,d) the largest value of each column in the rows of x(·,d)
// whose numbers are idx[off[i]:off[i+1]], and to arg(M,d), unless it is nil, the number of the row
// that has it: of equal ones that which is named first. If there are no rows, it writes zeros, and
// ^uint32(0) as their numbers. A NaN counts as larger than any number.
func SegmentMax(p *Pool, out, x []float32, arg []uint32, of Lists) {
	segments := max(0, len(of.Off)-1)
	out = out[:segments*of.Cols]
	if len(out) == 0 {
		return
	}
	keep := arg != nil
	if keep {
		arg = arg[:segments*of.Cols]
	}
	rows := len(x) / of.Cols
	p.Span(segments, SegmentsPart(of.Off, of.Cols), func(lo, hi int) {
		CheckSegments(of.Off[lo:hi+1], of.Idx, rows)
		if keep {
			segmentMax(out[lo*of.Cols:hi*of.Cols], x, arg[lo*of.Cols:hi*of.Cols], of.Off[lo:hi+1],
				of.Idx, of.Cols)
			return
		}
		scratch := p.TakeWords(of.Cols)
		segmentMax(out[lo*of.Cols:hi*of.Cols], x, scratch, of.Off[lo:hi+1], of.Idx, of.Cols)
		p.GiveWords(scratch)
	})
}

// segmentMax computes some segments. arg has a row for each of them, or one for all.
func segmentMax(out, x []float32, arg, off, idx []uint32, d int) {
	step := d
	if len(arg) < len(out) {
		step = 0
	}
	if s := level().sums; s != nil {
		s.segmentMax(out, x, arg, Lists{Off: off, Idx: idx, Cols: d}, step)
		return
	}
	for i := range len(off) - 1 {
		refMaxRow(out[i*d:i*d+d], x, arg[i*step:i*step+d], idx[off[i]:off[i+1]])
	}
}

// SegmentMaxGrad adds to dx(·,d) the gradient of SegmentMax in its input, given dout(M,d), the
// numbers arg(M,d) that it wrote and its transposed segments: each value of dout goes to the row
// whose value was the largest. The first fresh rows of dx are overwritten instead.
func SegmentMaxGrad(p *Pool, dx, dout []float32, arg []uint32, t *Transposed, g RowGrad) {
	values := len(t.weight) * g.Cols
	dx, dout, arg = dx[:t.rows()*g.Cols], dout[:values], arg[:values]
	t.each(p, dx, g.Cols, g.Fresh, func(lo, hi int, accumulate bool) {
		out, off := dx[lo*g.Cols:hi*g.Cols], t.off[lo:hi+1]
		if s := level().sums; s != nil {
			s.segmentMaxGrad(out, dout, arg, Lists{Off: off, Idx: t.idx, Cols: g.Cols}, lo,
				accumulate)
			return
		}
		refSegmentMaxGrad(out, dout, arg, Lists{Off: off, Idx: t.idx, Cols: g.Cols}, lo, accumulate)
	})
}
