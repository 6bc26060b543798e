package kernel

// segmentPart is how many values a part of a segment kernel reads, about: a segment is never cut.
const segmentPart = 64 << 10

// SegmentMean writes to row i of out(M,d) the mean of the rows of x(·,d) whose numbers are
// idx[off[i]:off[i+1]], and zeros if there are none. off has M+1 ascending entries.
func SegmentMean(p *Pool, out, x []float32, off, idx []uint32, d int) {
	segmentSum(p, out, x, off, idx, d, true)
}

// SegmentSum writes the sums of the same rows.
func SegmentSum(p *Pool, out, x []float32, off, idx []uint32, d int) {
	segmentSum(p, out, x, off, idx, d, false)
}

func segmentSum(p *Pool, out, x []float32, off, idx []uint32, d int, mean bool) {
	segments := len(off) - 1
	out = out[:max(0, segments)*d]
	if len(out) == 0 {
		return
	}
	sum, rows := level().segmentSum, len(x)/d
	p.span(segments, segmentsPart(off, d), func(lo, hi int) {
		checkSegments(off[lo:hi+1], idx, rows)
		sum(out[lo*d:hi*d], x, off[lo:hi+1], idx, d, mean)
	})
}

// segmentsPart is how many segments make a part, by their mean length.
func segmentsPart(off []uint32, d int) int {
	segments := len(off) - 1
	length := int(off[segments]-off[0])/segments + 1
	return max(1, segmentPart/(length*d))
}

// checkSegments panics unless the segments ascend, lie in idx and name rows of x: assembly reads
// what they say. It costs under a hundredth of reading the rows.
func checkSegments(off, idx []uint32, rows int) {
	for i, o := range off[1:] {
		if o < off[i] {
			panic("BUG: segment offsets descend")
		}
	}
	for _, r := range idx[off[0]:off[len(off)-1]] {
		if int(r) >= rows {
			panic("BUG: a segment names a row that is not there")
		}
	}
}

// SegmentMeanGrad adds to dx(·,d) the gradient of SegmentMean in its input, given the gradient
// dout(M,d) of its output: dx[r] += dout[i]/length(i) for each r of each segment i. It transposes
// the segments first; who can do that off the critical path, or needs it twice, calls
// Transposed.Build and Transposed.MeanGrad.
func SegmentMeanGrad(p *Pool, dx, dout []float32, off, idx []uint32, d int) {
	if d == 0 || len(off) < 2 {
		return
	}
	rows := len(dx) / d
	t := Transposed{off: p.takeWords(rows + 1), idx: p.takeWords(len(idx)),
		weight: p.takeFloats(len(off) - 1)}
	t.Build(off, idx, rows)
	t.MeanGrad(p, dx, dout, d)
	p.giveFloats(t.weight)
	p.giveWords(t.idx)
	p.giveWords(t.off)
}

// Transposed lists, for each row, the segments that it is in: with it the gradient of a mean is a
// sum over segments too, and rows are independent of each other. The zero value is ready for
// Build, which uses the memory again; it takes 4 B for each row, entry and segment. It is read-only
// between calls of Build.
type Transposed struct {
	off    []uint32  // rows+1
	idx    []uint32  // the segments of row r are idx[off[r]:off[r+1]], ascending
	weight []float32 // 1/length of each segment
}

// Build transposes segments over rows rows, by counting: about 3 ns for each entry of idx.
func (t *Transposed) Build(off, idx []uint32, rows int) {
	segments := max(0, len(off)-1)
	t.off, t.weight = resize(t.off, rows+1), resize(t.weight, segments)
	clear(t.off)
	if segments == 0 {
		t.idx = t.idx[:0]
		return
	}
	checkSegments(off, idx, rows)
	entries := idx[off[0]:off[segments]]
	t.idx = resize(t.idx, len(entries))
	// One place further than it belongs: filling the lists moves each count to its start.
	ends := t.off[1:]
	for _, r := range entries {
		ends[r]++
	}
	sum := uint32(0)
	for r, count := range ends {
		ends[r] = sum
		sum += count
	}
	for i := range segments {
		list := idx[off[i]:off[i+1]]
		t.weight[i] = 1 / float32(max(1, len(list)))
		for _, r := range list {
			t.idx[ends[r]] = uint32(i)
			ends[r]++
		}
	}
}

// MeanGrad adds the gradient of SegmentMean to dx, as SegmentMeanGrad does for the segments that
// Build was given.
func (t *Transposed) MeanGrad(p *Pool, dx, dout []float32, d int) {
	rows, segments := len(t.off)-1, len(t.weight)
	dx, dout = dx[:rows*d], dout[:segments*d]
	if len(dx) == 0 || segments == 0 {
		return
	}
	sum := level().weightedSum
	p.span(rows, segmentsPart(t.off, d), func(lo, hi int) {
		sum(dx[lo*d:hi*d], dout, t.weight, t.off[lo:hi+1], t.idx, d)
	})
}

// resize returns x with length n, and any values, in the same memory if it is large enough.
func resize[T any](x []T, n int) []T {
	if cap(x) < n {
		return make([]T, n)
	}
	return x[:n]
}
