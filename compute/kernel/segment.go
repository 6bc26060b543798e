package kernel

// segmentPart is how many values a part of a segment kernel reads, about: a segment is never cut.
const segmentPart = 64 << 10

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

// SegmentsPart returns how many segments make a part, by their mean length.
func SegmentsPart(off []uint32, d int) int {
	segments := len(off) - 1
	length := int(off[segments]-off[0])/segments + 1
	return max(1, segmentPart/max(1, length*d))
}

// CheckSegments panics unless the segments ascend, lie in idx and name rows of x: assembly reads
// what they say. It costs under a hundredth of reading the rows.
func CheckSegments(off, idx []uint32, rows int) {
	checkOffsets(off)
	for _, r := range idx[off[0]:off[len(off)-1]] {
		if int(r) >= rows {
			panic("BUG: a segment names a row that is not there")
		}
	}
}

// checkOffsets panics unless off ascends.
func checkOffsets(off []uint32) {
	for i, o := range off[1:] {
		if o < off[i] {
			panic("BUG: segment offsets descend")
		}
	}
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
