package kernel

// segmentFunc sums rows of x: row i of out is the sum, or the mean, of the rows
// idx[off[i]:off[i+1]]. Rows are stride bytes apart in both; the function's name says how many
// vectors are read of each, of which the last has so many lanes. There is at least one segment.
type segmentFunc func(out, x *float32, off, idx *uint32, segments int, stride uintptr, lanes int,
	mean uint64)

// weightedFunc adds to row i of out, or writes there, the rows of x of the same numbers, each times
// its weight.
type weightedFunc func(out, x, weight *float32, off, idx *uint32, segments int, stride uintptr,
	lanes int, accumulate uint64)

// columnFunc writes the sum of rows that follow one another, at least one, to out.
type columnFunc func(out, x *float32, rows int, stride uintptr, lanes int)

// sumSet is the sums of one level, each by the number of vectors less one.
type sumSet struct {
	lanes    int
	segment  []segmentFunc
	weighted []weightedFunc
	column   []columnFunc
}

// chunks cuts n columns into as few and as even chunks as the kernels' registers allow, and calls
// fn with the first column, the number of vectors less one and the lanes of the last.
func (s *sumSet) chunks(n int, fn func(col, vectors, lanes int)) {
	vectors := partsOf(n, s.lanes)
	width := partsOf(vectors, partsOf(vectors, len(s.segment))) * s.lanes
	for col := 0; col < n; col += width {
		w := min(width, n-col)
		v := partsOf(w, s.lanes)
		fn(col, v-1, w-(v-1)*s.lanes)
	}
}

// firstOf is a pointer to the first value, or nil: kernels read nothing of what is empty.
func firstOf[T any](x []T) *T {
	if len(x) == 0 {
		return nil
	}
	return &x[0]
}

// word is a truth value as assembly tests it.
func word(b bool) uint64 {
	if b {
		return 1
	}
	return 0
}

func (s *sumSet) segmentSum(out, x []float32, off, idx []uint32, d int, mean bool) {
	asMean := word(mean)
	s.chunks(d, func(col, vectors, lanes int) {
		s.segment[vectors](&out[col], firstOf(x[min(col, len(x)):]), &off[0], firstOf(idx),
			len(off)-1, uintptr(d)*4, lanes, asMean)
	})
}

func (s *sumSet) weightedSum(out, x, weight []float32, off, idx []uint32, d int,
	accumulate bool) {
	add := word(accumulate)
	s.chunks(d, func(col, vectors, lanes int) {
		s.weighted[vectors](&out[col], &x[col], &weight[0], &off[0], firstOf(idx), len(off)-1,
			uintptr(d)*4, lanes, add)
	})
}

func (s *sumSet) columnSum(out, x []float32, rows, n int) {
	s.chunks(n, func(col, vectors, lanes int) {
		s.column[vectors](&out[col], &x[col], rows, uintptr(n)*4, lanes)
	})
}
