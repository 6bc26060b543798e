package bf16

import "gdb/compute/kernel"

// sumFunc sums rows of x: row i of out is the sum, or the mean, of the rows idx[off[i]:off[i+1]].
// Rows are stride bytes apart in x and outStride in out; the function's name says how many vectors
// are read of each; lanes counts the values of the last. There is at least one segment.
type sumFunc func(out *float32, x *uint16, off, idx *uint32, segments int,
	stride, outStride uintptr, lanes int, mean uint64)

// maxFunc writes the largest values of rows of x, and to arg the numbers of the rows that have
// them. Rows of arg are argStride bytes apart.
type maxFunc func(out *float32, x *uint16, arg, off, idx *uint32, segments int,
	stride, outStride, argStride uintptr, lanes int)

// sumSet is the sums of rows of one level, each by the number of vectors less one; none: plain.
type sumSet struct {
	lanes  int
	whole  bool // it takes whole vectors only: the other columns are left to the specification
	sums   []sumFunc
	maxima []maxFunc
	weight weightedSet
	dots   dotFunc
}

// chunks cuts n columns into as few and as even chunks as the kernels' registers allow, of no more
// vectors than most, and calls fn with the first column, the number of vectors less one and the
// lanes of the last. It returns the first column that is left.
func (s *sumSet) chunks(n, most int, fn func(col, vectors, lanes int)) int {
	if most == 0 {
		return 0
	}
	if s.whole {
		n = n / s.lanes * s.lanes
	}
	vectors := partsOf(n, s.lanes)
	width := partsOf(vectors, max(1, partsOf(vectors, most))) * s.lanes
	for col := 0; col < n; col += width {
		w := min(width, n-col)
		v := partsOf(w, s.lanes)
		fn(col, v-1, w-(v-1)*s.lanes)
	}
	return n
}

// from returns a pointer to the values from one on, or nil: kernels read nothing of what is empty.
func from[T any](x []T, at int) *T {
	if at >= len(x) {
		return nil
	}
	return &x[at]
}

// rowsFrom is from of Numbers, as assembly takes them.
func rowsFrom(x []Number, col int) *uint16 { return (*uint16)(from(x, col)) }

// flag returns a truth value as assembly tests it.
func flag(b bool) uint64 {
	if b {
		return 1
	}
	return 0
}

func (s *sumSet) sum(out []float32, x []Number, off, idx []uint32, d int, mean bool) {
	left := s.chunks(d, len(s.sums), func(col, vectors, lanes int) {
		s.sums[vectors](&out[col], rowsFrom(x, col), &off[0], from(idx, 0), len(off)-1,
			uintptr(d)*2, uintptr(d)*4, lanes, flag(mean))
	})
	refSum(out, x, kernel.Lists{Off: off, Idx: idx, Cols: d}, left, mean)
}

// max finds largest values. arg has a row for each segment, or one for all.
func (s *sumSet) max(out []float32, x []Number, arg, off, idx []uint32, d int) {
	step := d
	if len(arg) < len(out) {
		step = 0
	}
	left := s.chunks(d, len(s.maxima), func(col, vectors, lanes int) {
		s.maxima[vectors](&out[col], rowsFrom(x, col), &arg[col], &off[0], from(idx, 0),
			len(off)-1, uintptr(d)*2, uintptr(d)*4, uintptr(step)*4, lanes)
	})
	for i := range len(off) - 1 {
		refMaxRow(out[i*d:i*d+d], x, arg[i*step:i*step+d], idx[off[i]:off[i+1]], left)
	}
}
