package kernel

// SegmentMean writes to row i of out(M,d) the mean of the rows of x(·,d) whose numbers are
// idx[off[i]:off[i+1]], and zeros if there are none. off has M+1 ascending entries.
func SegmentMean(p *Pool, out, x []float32, off, idx []uint32, d int) {
	segmentSum(p, out, x, Lists{Off: off, Idx: idx, Heads: 1, Cols: d}, true)
}

// SegmentSum writes the sums of the same rows.
func SegmentSum(p *Pool, out, x []float32, off, idx []uint32, d int) {
	segmentSum(p, out, x, Lists{Off: off, Idx: idx, Heads: 1, Cols: d}, false)
}

func segmentSum(p *Pool, out, x []float32, of Lists, mean bool) {
	if of.empty() {
		return
	}
	d := of.Cols
	out = out[:of.count()*d]
	of.span(p, len(x)/d, func(l Lists, first, _ int) {
		sumOf(out[first*d:(first+l.count())*d], x, l.Off, l.Idx, d, mean)
	})
}

// SegmentMax writes to row i of out(M,d) the largest value of each column in the rows of x(·,d)
// whose numbers are idx[off[i]:off[i+1]], and to arg(M,d), unless it is nil, the number of the row
// that has it: of equal ones that which is named first. If there are no rows, it writes zeros, and
// NoRow as their numbers. A NaN counts as larger than any number.
func SegmentMax(p *Pool, out, x []float32, arg []uint32, of Lists) {
	of.Heads = 1
	if of.empty() {
		return
	}
	d, keep := of.Cols, arg != nil
	out = out[:of.count()*d]
	if keep {
		arg = arg[:len(out)]
	}
	of.span(p, len(x)/d, func(l Lists, first, _ int) {
		at, end := first*d, (first+l.count())*d
		if keep {
			segmentMax(out[at:end], x, arg[at:end], l)
			return
		}
		scratch := p.TakeWords(d)
		segmentMax(out[at:end], x, scratch, l)
		p.GiveWords(scratch)
	})
}

// segmentMax computes some segments. arg has a row for each of them, or one for all.
func segmentMax(out, x []float32, arg []uint32, of Lists) {
	d := of.Cols
	step := d
	if len(arg) < len(out) {
		step = 0
	}
	if s := level().sums; s != nil {
		s.segmentMax(out, x, arg, of, step)
		return
	}
	for i := range of.count() {
		refMaxRow(rowOf(out, i, d), x, arg[i*step:i*step+d], of.Idx[of.Off[i]:of.Off[i+1]])
	}
}

// SegmentMaxGrad adds to dx(·,d) the gradient of SegmentMax in its input, given dout(M,d), the
// numbers arg(M,d) that it wrote and its transposed segments: each value of dout goes to the row
// whose value was the largest. The first fresh rows of dx are overwritten instead.
func SegmentMaxGrad(p *Pool, dx, dout []float32, arg []uint32, t *Transposed, g RowGrad) {
	values := len(t.weight) * g.Cols
	dx, dout, arg = dx[:t.rows()*g.Cols], dout[:values], arg[:values]
	t.each(p, dx, g.Cols, g.Fresh, func(lo, hi int, accumulate bool) {
		out, of := dx[lo*g.Cols:hi*g.Cols], Lists{Off: t.off[lo : hi+1], Idx: t.idx, Cols: g.Cols}
		if s := level().sums; s != nil {
			s.segmentMaxGrad(out, dout, arg, of, lo, accumulate)
			return
		}
		refSegmentMaxGrad(out, dout, arg, of, lo, accumulate)
	})
}

// sumOf writes sums, or means, of rows on one goroutine, of what was checked.
func sumOf(out, x []float32, off, idx []uint32, d int, mean bool) {
	if len(off) < 2 {
		return
	}
	if sums := level().sums; sums != nil {
		sums.segmentSum(out, x, off, idx, d, mean)
		return
	}
	refSegmentSum(out, x, off, idx, d, mean)
}

// span calls fn for parts of the lists, with the number of the first list and of its first entry,
// counted from 0. It checks that entries name rows of a matrix of this many.
func (l *Lists) span(p *Pool, rows int, fn func(part Lists, first, entry int)) {
	p.Span(l.count(), SegmentsPart(l.Off, l.Heads*l.Cols), func(lo, hi int) {
		part, entry := l.part(lo, hi, rows)
		fn(part, lo, entry)
	})
}

// part returns lists lo to hi-1 and the number of their first entry, counted from 0. It checks that
// entries name rows of a matrix of this many.
func (l *Lists) part(lo, hi, rows int) (part Lists, entry int) {
	part = *l
	part.Off = l.Off[lo : hi+1]
	CheckSegments(part.Off, l.Idx, rows)
	return part, int(part.Off[0] - l.Off[0])
}
