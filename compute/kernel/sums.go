package kernel

// chunks cuts n columns into as few and as even chunks as the kernels' registers allow, of no more
// vectors than most, and calls fn with the first column, the number of vectors less one and the
// lanes of the last.
func (s *sumSet) chunks(n, most int, fn func(col, vectors, lanes int)) {
	vectors := partsOf(n, s.lanes)
	width := partsOf(vectors, partsOf(vectors, most)) * s.lanes
	for col := 0; col < n; col += width {
		w := min(width, n-col)
		v := partsOf(w, s.lanes)
		fn(col, v-1, w-(v-1)*s.lanes)
	}
}

// firstOf returns a pointer to the first value, or nil: kernels read nothing of what is empty.
func firstOf[T any](x []T) *T {
	if len(x) == 0 {
		return nil
	}
	return &x[0]
}

// word returns a truth value as assembly tests it.
func word(b bool) uint64 {
	if b {
		return 1
	}
	return 0
}

func (s *sumSet) segmentSum(out, x []float32, off, idx []uint32, d int, mean bool) {
	asMean := word(mean)
	s.chunks(d, len(s.segment), func(col, vectors, lanes int) {
		s.segment[vectors](&out[col], firstOf(x[min(col, len(x)):]), &off[0], firstOf(idx),
			len(off)-1, uintptr(d)*4, lanes, asMean)
	})
}

func (s *sumSet) weightedSum(out, x, weight []float32, of Lists, accumulate bool) {
	add := word(accumulate)
	s.chunks(of.Cols, len(s.segment), func(col, vectors, lanes int) {
		s.weighted[vectors](&out[col], &x[col], &weight[0], &of.Off[0], firstOf(of.Idx),
			len(of.Off)-1,
			uintptr(of.Cols)*4, lanes, add)
	})
}

func (s *sumSet) columnSum(out, x []float32, rows, n int) {
	s.chunks(n, len(s.column), func(col, vectors, lanes int) {
		s.column[vectors](&out[col], &x[col], rows, uintptr(n)*4, lanes)
	})
}

// edges runs kernels over some lists, of which own has the first row and values those of the first
// entry. Products of several chunks of columns are added up.
//
//lint:parameters the arrays of two kernels, called for each part of lists
func (s *sumSet) edges(fn []edgeFunc, own, x, values []float32, l *Lists, accumulate, sum bool) {
	xHead := l.Cols
	if l.Shared && l.Heads > 1 {
		xHead = 0
	}
	s.chunks(l.Cols, len(fn), func(col, vectors, lanes int) {
		fn[vectors](&own[col], firstOf(x[min(col, len(x)):]), firstOf(values), &l.Off[0],
			firstOf(l.Idx), l.count(), l.Heads, uintptr(l.width())*4, uintptr(xHead)*4,
			uintptr(l.Cols)*4, lanes, word(accumulate || col > 0 && sum))
	})
}

// scores runs kernels over some lists of rows that are not shared, as edges does. out and sum may
// be nil: each of four kernels leaves some out.
//
//lint:parameters the arrays of four kernels, called for each part of lists
func (s *sumSet) scores(fn []scoreFunc, own, x, values, att, out, sum []float32, l *Lists,
	slope float32, accumulate, add bool) {
	from := func(x []float32, col int) *float32 { return firstOf(x[min(col, len(x)):]) }
	head := uintptr(l.Cols) * 4
	s.chunks(l.Cols, len(fn), func(col, vectors, lanes int) {
		fn[vectors](from(own, col), from(x, col), firstOf(values), &l.Off[0], firstOf(l.Idx),
			l.count(), l.Heads, uintptr(l.width())*4, head, head, lanes,
			word(accumulate || col > 0 && add), from(att, col), from(out, col), from(sum, col),
			slope)
	})
}

// segmentMax writes largest values; arg has rows argStep values apart.
func (s *sumSet) segmentMax(out, x []float32, arg []uint32, of Lists, argStep int) {
	s.chunks(of.Cols, len(s.max), func(col, vectors, lanes int) {
		s.max[vectors](&out[col], firstOf(x[min(col, len(x)):]), &arg[col], &of.Off[0],
			firstOf(of.Idx),
			len(of.Off)-1, uintptr(of.Cols)*4, uintptr(argStep)*4, lanes)
	})
}

// maxGrad adds rows where arg has the number of the row, of which the first is first.
func (s *sumSet) segmentMaxGrad(out, x []float32, arg []uint32, of Lists, first int,
	accumulate bool) {
	s.chunks(of.Cols, len(s.maxGrad), func(col, vectors, lanes int) {
		s.maxGrad[vectors](&out[col], &x[col], &arg[col], &of.Off[0], firstOf(of.Idx),
			len(of.Off)-1,
			uintptr(of.Cols)*4, lanes, uint32(first), word(accumulate))
	})
}
