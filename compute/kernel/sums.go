package kernel

// segmentFunc sums rows of x: row i of out is the sum, or the mean, of the rows
// idx[off[i]:off[i+1]]. Rows are stride bytes apart in both; the function's name says how many
// vectors are read of each; lanes counts the values of the last. There is at least one segment.
type segmentFunc func(out, x *float32, off, idx *uint32, segments int, stride uintptr, lanes int,
	mean uint64)

// weightedFunc adds to row i of out, or writes there, the rows of x of the same numbers, each times
// its weight.
type weightedFunc func(out, x, weight *float32, off, idx *uint32, segments int, stride uintptr,
	lanes int, accumulate uint64)

// columnFunc writes the sum of rows that follow one another, at least one, to out.
type columnFunc func(out, x *float32, rows int, stride uintptr, lanes int)

// edgeFunc works on rows of lists: the one that each list has of its own, of heads that lie ownHead
// bytes apart, and the rows of x of its entries, xRow bytes apart, whose heads lie xHead bytes
// apart. Of each head it reads as many vectors as its name says. It writes to own the sum of the
// rows times their edge values, or to the edge values the products of own with the rows; accumulate
// adds to the old values. There are at least one list and one head. values begins with the values
// of the first entry.
type edgeFunc func(own, x, values *float32, off, idx *uint32, lists, heads int,
	xRow, xHead, ownHead uintptr, lanes int, accumulate uint64)

// scoreFunc is an edgeFunc with leaky of the sum of own and a row in the place of the row. It
// writes to the edge values the products of att with that, or to out, which is as own, att times
// the derivative of leaky summed over the entries, each times its edge value. Then, if it is of
// scoreGrad, it adds to sum the gradient in att.
type scoreFunc func(own, x, values *float32, off, idx *uint32, lists, heads int,
	xRow, xHead, ownHead uintptr, lanes int, accumulate uint64, att, out, sum *float32,
	slope float32)

// maxFunc writes the largest values of rows of x, and to arg the numbers of the rows that have
// them, as segmentFunc writes sums. Rows of arg are argStride bytes apart.
type maxFunc func(out, x *float32, arg, off, idx *uint32, segments int,
	stride, argStride uintptr, lanes int)

// maxGradFunc adds to row i of out, or writes there, the rows of x that segment i names, once each,
// in the columns in which the same row of arg is first+i.
type maxGradFunc func(out, x *float32, arg, off, idx *uint32, segments int, stride uintptr,
	lanes int, first uint32, accumulate uint64)

// sumSet is the sums of one level, each by the number of vectors less one.
type sumSet struct {
	lanes    int
	segment  []segmentFunc
	weighted []weightedFunc
	column   []columnFunc
	edgeSum  []edgeFunc
	edgeDot  []edgeFunc

	score        []scoreFunc // see scoreFunc
	scoreGrad    []scoreFunc
	scoreOwnGrad []scoreFunc

	max     []maxFunc
	maxGrad []maxGradFunc
}

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
