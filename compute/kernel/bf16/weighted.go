package bf16

import "gdb/compute/kernel"

// weightedFunc writes to row i of out, or adds there, the sum over the entries of list i of the
// rows of x that they name, each times a weight of the entry. Weights are weightRow bytes apart,
// and those of an entry follow one another: they are in the order of the entries, those of
// idx[off[0]] first, or if entry is not nil the entry has them whose number entry has where idx has
// its row. Rows of x are xRow bytes apart, rows of out outRow, and the last vector of a head has
// lanes values. There is at least one list.
//
// Of its name, All adds the rows of all heads, xHead bytes apart, to the same sums; Pair writes the
// sums of two heads, outHead bytes apart, that read the same; and Heads those of as many as the
// name says first, side by side, whose vectors are whole.
type weightedFunc func(out *float32, x *uint16, weight *float32, off, idx, entry *uint32,
	lists, heads int, weightRow, xRow, xHead, outRow, outHead uintptr, lanes int,
	accumulate uint64)

// weightedSet is the kernels of a level, of which rows and pairs are by the number of vectors less
// one; none: plain.
type weightedSet struct {
	rows, pairs []weightedFunc
	heads       []headsFunc // the widest first
}

// headsFunc is a kernel for a number of heads of a number of vectors each.
type headsFunc struct {
	heads, vectors int
	fn             weightedFunc
}

// weights are what the entries of lists have for each of some heads, of d columns. Row idx[e] of x
// has xRow values, those of a head xHead behind those of the one before; a row of results likewise.
// Either is 0 where all heads have the same columns.
type weights struct {
	w               []float32 // of entry e and head h: w[e*heads+h]
	off, idx        []uint32
	entry           []uint32 // the numbers of the entries, or nil for their order from 0 on
	heads, d        int
	xRow, xHead     int
	outRow, outHead int
}

// weightsOf are weights whose rows have their heads side by side, or share all columns.
func weightsOf(w []float32, off, idx, entry []uint32, heads, d int) weights {
	return weights{w: w, off: off, idx: idx, entry: entry, heads: heads, d: d,
		xRow: heads * d, xHead: d, outRow: heads * d, outHead: d}
}

// weighted writes the sums of rows times weights to out, or adds them.
func (s *sumSet) weighted(out []float32, x []Number, w *weights, add bool) {
	if len(w.off) < 2 || w.d == 0 || w.heads == 0 {
		return
	}
	left := 0
	switch {
	case s.weight.rows == nil:
	case w.outHead == 0 || w.heads == 1:
		left = s.all(out, x, w, 0, w.heads, add)
	case w.xHead == 0:
		left = s.pairs(out, x, w, add)
	default:
		left = s.sideBySide(out, x, w, add)
	}
	refEntrySums(out, x, w, left, add)
}

// all has a kernel add some heads, from one on, to the same sums.
func (s *sumSet) all(out []float32, x []Number, w *weights, h, heads int, add bool) int {
	return s.chunks(w.d, len(s.weight.rows), func(col, vectors, lanes int) {
		w.call(s.weight.rows[vectors], out, x, h, heads, col, lanes, add)
	})
}

// pairs has kernels sum heads that read the same, two at a time.
func (s *sumSet) pairs(out []float32, x []Number, w *weights, add bool) (left int) {
	h := 0
	for ; h+1 < w.heads; h += 2 {
		left = s.chunks(w.d, len(s.weight.pairs), func(col, vectors, lanes int) {
			w.call(s.weight.pairs[vectors], out, x, h, 2, col, lanes, add)
		})
	}
	if h < w.heads {
		left = s.all(out, x, w, h, 1, add)
	}
	return left
}

// sideBySide has kernels sum as many heads at a time as they have registers for, so that rows are
// read as they lie in memory.
func (s *sumSet) sideBySide(out []float32, x []Number, w *weights, add bool) (left int) {
	h := 0
	for h < w.heads {
		now := 1
		for _, f := range s.weight.heads {
			if f.vectors*s.lanes == w.d && f.heads <= w.heads-h {
				now, left = f.heads, w.d
				w.call(f.fn, out, x, h, now, 0, s.lanes, add)
				break
			}
		}
		if now == 1 {
			left = s.all(out, x, w, h, 1, add)
		}
		h += now
	}
	return left
}

// call calls a kernel for some heads from one on, and the columns from one on.
//
//lint:parameters called for each list and head, with all in registers
func (w *weights) call(fn weightedFunc, out []float32, x []Number, h, heads, col, lanes int,
	add bool) {
	fn(&out[h*w.outHead+col], rowsFrom(x, h*w.xHead+col), from(w.w, h), &w.off[0], from(w.idx, 0),
		from(w.entry, 0), len(w.off)-1, heads, uintptr(w.heads)*4, uintptr(w.xRow)*2,
		uintptr(w.xHead)*2, uintptr(w.outRow)*4, uintptr(w.outHead)*4, lanes, flag(add))
}

// The kernels that follow take lists whose entries have a weight for each of some heads, as
// kernel.EdgeSum does: a row has the columns of a head side by side, or if it is shared, is read
// whole by each head.

// WeightedHeads is out[i,h] (+)= the sum over the entries e of list i of w[e,h]·x[idx[e],h]: see
// kernel.EdgeSum.
func WeightedHeads[T Value](p *kernel.Pool, out []T, x []Number, w []float32, of kernel.Lists,
	accumulate bool) {
	count, wide, read := max(0, len(of.Off)-1), of.Heads*of.Cols, of.Heads*of.Cols
	if of.Shared {
		read = of.Cols
	}
	if count*wide == 0 {
		return
	}
	c, o, rows := resultOf(out[:count*wide]), level(), len(x)/read
	p.Span(count, kernel.SegmentsPart(of.Off, wide), func(lo, hi int) {
		kernel.CheckSegments(of.Off[lo:hi+1], of.Idx, rows)
		own := weightsOf(w[int(of.Off[lo]-of.Off[0])*of.Heads:int(of.Off[hi]-of.Off[0])*of.Heads],
			of.Off[lo:hi+1],
			of.Idx, nil, of.Heads, of.Cols)
		if of.Shared {
			own.xRow, own.xHead = of.Cols, 0
		}
		c.part(lo*wide, hi*wide).compute(p, o, accumulate, func(sums []float32) {
			o.sums.weighted(sums, x, &own, accumulate)
		})
	})
}

// WeightedHeadsGrad adds to dx the gradient of WeightedHeads in x, given that of its output, and
// its lists transposed: see kernel.Transposed.EdgeSumGrad and EdgeSumSharedGrad. The first fresh
// rows of dx are overwritten instead.
func WeightedHeadsGrad[T Value](p *kernel.Pool, dx []T, dout []Number, w []float32,
	t *kernel.Transposed, g kernel.RowGrad) {
	off, idx, entry, lengths := t.Lists()
	if len(entry) != len(idx) {
		panic("BUG: Transposed without entries: it is not of BuildEntries")
	}
	wide := g.Heads * g.Cols
	w, dout = w[:len(idx)*g.Heads], dout[:len(lengths)*wide]
	if g.Shared {
		wide = g.Cols
	}
	o := level()
	scatter(p, o, dx, off, kernel.RowGrad{Cols: wide, Fresh: g.Fresh}, func(sums []float32, lo,
		hi int, add bool) {
		own := weightsOf(w, off[lo:hi+1], idx, entry, g.Heads, g.Cols)
		if g.Shared {
			own.outRow, own.outHead = g.Cols, 0
		}
		o.sums.weighted(sums, dout, &own, add)
	})
}
