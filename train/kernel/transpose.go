package kernel

import "gdb/internal/mem"

// Transposed lists, for each row, the segments that it is in: with it the gradient of a mean is a
// sum over segments too, and rows are independent of each other. The zero value is ready for
// Build, which uses the memory again; it takes 4 B for each row, entry and segment. It is read-only
// between calls of Build.
type Transposed struct {
	off    []uint32  // rows+1
	idx    []uint32  // the segments of row r are idx[off[r]:off[r+1]], ascending
	weight []float32 // 1/length of each segment
}

// TransposedWords is how many values of 4 bytes Build needs for so many rows, entries and segments.
func TransposedWords(rows, entries, segments int) int { return rows + 1 + entries + segments }

// TransposedIn returns a Transposed that uses memory of TransposedWords values.
func TransposedIn(memory []float32, rows, entries, segments int) Transposed {
	words := mem.View[uint32](mem.BytesOf(memory))
	return Transposed{off: words[: 0 : rows+1], idx: words[rows+1:][:0:entries],
		weight: memory[rows+1+entries:][:0:segments]}
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

// MeanGrad adds to dx(·,d) the gradient of SegmentMean in its input, given the gradient dout(M,d)
// of its output: dx[r] += dout[i]/length(i) for each r of each segment i that Build was given. The
// first fresh rows of dx are overwritten instead, so that they need not be zeroed before.
func (t *Transposed) MeanGrad(p *Pool, dx, dout []float32, d, fresh int) {
	rows, segments := len(t.off)-1, len(t.weight)
	dx, dout = dx[:rows*d], dout[:segments*d]
	if segments == 0 {
		clear(dx[:fresh*d])
		return
	}
	if len(dx) == 0 {
		return
	}
	size := segmentsPart(t.off, d)
	sum := func(lo, hi int, accumulate bool) {
		if lo == hi {
			return
		}
		if o := level(); o.sums != nil {
			o.sums.weightedSum(dx[lo*d:hi*d], dout, t.weight, t.off[lo:hi+1], t.idx, d, accumulate)
		} else {
			refWeightedSum(dx[lo*d:hi*d], dout, t.weight, t.off[lo:hi+1], t.idx, d, accumulate)
		}
	}
	p.span(rows, size, func(lo, hi int) {
		at := min(max(fresh, lo), hi)
		sum(lo, at, false)
		sum(at, hi, true)
	})
}

// resize returns x with length n, and any values, in the same memory if it is large enough.
func resize[T any](x []T, n int) []T {
	if cap(x) < n {
		return make([]T, n)
	}
	return x[:n]
}
