package bf16

import "gdb/train/kernel"

// The kernels of this file are of lists whose entries have a weight for each of some heads, as
// those of kernel.EdgeSum: a row has the columns of a head side by side, or if it is shared, is
// read whole by each head.

// WeightedHeads is out[i,h] (+)= the sum over the entries e of list i of w[e,h]·x[idx[e],h]: see
// kernel.EdgeSum.
func WeightedHeads[T Value](p *kernel.Pool, out []T, x []Number, w []float32, off, idx []uint32,
	heads, d int, shared, accumulate bool) {
	count, wide, read := max(0, len(off)-1), heads*d, heads*d
	if shared {
		read = d
	}
	if count*wide == 0 {
		return
	}
	c, o, rows := resultOf(out[:count*wide]), level(), len(x)/read
	p.Span(count, kernel.SegmentsPart(off, wide), func(lo, hi int) {
		kernel.CheckSegments(off[lo:hi+1], idx, rows)
		first, n := int(off[lo]-off[0]), int(off[hi]-off[lo])
		own := p.TakeFloats(n * heads)
		byHead(own, w[first*heads:][:n*heads], n, heads)
		c.rows(p, o, lo, hi, wide, accumulate, func(sums []float32) {
			for h := range heads {
				from := h * d
				if shared {
					from = 0
				}
				o.sums.weightedPart(sums, x, own[h*n:(h+1)*n], off[lo:hi+1], idx,
					columns{d: d, read: from, row: read, write: h * d, wide: wide}, accumulate)
			}
		})
		p.GiveFloats(own)
	})
}

// byHead writes values of n entries and some heads head by head.
func byHead(own, w []float32, n, heads int) {
	for e := range n {
		for h := range heads {
			own[h*n+e] = w[e*heads+h]
		}
	}
}

// WeightedHeadsGrad adds to dx the gradient of WeightedHeads in x, given that of its output, and
// its lists transposed: see kernel.Transposed.EdgeSumGrad and EdgeSumSharedGrad. The first fresh
// rows of dx are overwritten instead.
func WeightedHeadsGrad[T Value](p *kernel.Pool, dx []T, dout []Number, w []float32,
	t *kernel.Transposed, heads, d int, shared bool, fresh int) {
	off, idx, entry, lengths := t.Lists()
	if len(entry) != len(idx) {
		panic("BUG: Transposed without entries: it is not of BuildEntries")
	}
	read, wide := heads*d, heads*d
	if shared {
		wide = d
	}
	w, dout = w[:len(idx)*heads], dout[:len(lengths)*read]
	o := level()
	scatter(p, o, dx, off, wide, fresh, func(sums []float32, lo, hi int, add bool) {
		n := int(off[hi] - off[lo])
		own := p.TakeFloats(n * heads)
		for i, e := range entry[off[lo]:off[hi]] {
			for h := range heads {
				own[h*n+i] = w[int(e)*heads+h]
			}
		}
		for h := range heads {
			at := columns{d: d, read: h * d, row: read, write: h * d, wide: wide}
			if shared {
				at.write = 0
			}
			o.sums.weightedPart(sums, dout, own[h*n:(h+1)*n], off[lo:hi+1], idx, at,
				add || shared && h > 0)
		}
		p.GiveFloats(own)
	})
}

// columns are the d columns of a head: those from read on of rows of row values, and from write on
// of rows of wide values.
type columns struct{ d, read, row, write, wide int }

// weightedPart adds sums of weighted rows to the columns of a head, or writes them there. The first
// weight is that of entry off[0].
func (s *sumSet) weightedPart(out []float32, x []Number, weight []float32, off, idx []uint32,
	at columns, accumulate bool) {
	left := s.chunks(at.d, len(s.weighteds), func(col, vectors, lanes int) {
		s.weighteds[vectors](&out[at.write+col], rowsFrom(x, at.read+col), from(weight, 0),
			&off[0], from(idx, 0), len(off)-1, uintptr(at.row)*2, uintptr(at.wide)*4, lanes,
			from(idx, int(off[0])), flag(accumulate))
	})
	refWeightedPart(out, x, weight, off, idx, at, left, accumulate)
}

// EdgeDot is dw[e,h] = g[i,h]·x[idx[e],h] for every entry e of every list i: see kernel.EdgeDot.
// Rows are widened some at a time.
func EdgeDot(p *kernel.Pool, dw []float32, g, x []Number, off, idx []uint32, heads, d int,
	shared bool) {
	count, wide, read := max(0, len(off)-1), heads*d, heads*d
	if shared {
		read = d
	}
	if count == 0 || wide == 0 {
		clear(dw)
		return
	}
	o, rows := level(), len(x)/read
	g = g[:count*wide]
	p.Span(count, kernel.SegmentsPart(off, wide), func(lo, hi int) {
		kernel.CheckSegments(off[lo:hi+1], idx, rows)
		o.dots(p, dw[int(off[lo]-off[0])*heads:], g[lo*wide:hi*wide], x, off[lo:hi+1], idx,
			heads, d, shared)
	})
}

// dots computes some lists, a few at a time.
func (o *ops) dots(p *kernel.Pool, dw []float32, g, x []Number, off, idx []uint32, heads, d int,
	shared bool) {
	wide, read := heads*d, heads*d
	if shared {
		read = d
	}
	for lo := 0; lo < len(off)-1; {
		hi := lo + 1
		for hi < len(off)-1 && int(off[hi+1]-off[lo])*read <= elementsPart {
			hi++
		}
		n := int(off[hi] - off[lo])
		values, own := p.TakeFloats(n*read), p.TakeFloats((hi-lo)*wide)
		at := p.TakeWords(n + hi - lo + 1)
		for i, r := range idx[off[lo]:off[hi]] {
			at[i] = uint32(i)
			o.widen(values[i*read:(i+1)*read], x[int(r)*read:int(r+1)*read])
		}
		for i := range hi - lo + 1 {
			at[n+i] = off[lo+i] - off[lo]
		}
		o.widen(own, g[lo*wide:hi*wide])
		kernel.EdgeDot(nil, dw[int(off[lo]-off[0])*heads:], own, values, at[n:], at[:n], heads, d,
			shared)
		p.GiveFloats(values)
		p.GiveFloats(own)
		p.GiveWords(at)
		lo = hi
	}
}

// SegmentMeanDropout is SegmentMean of rows that went through Dropout, as floats, where x stays as
// it is: see kernel.SegmentMeanDropout.
func SegmentMeanDropout[T Value](p *kernel.Pool, out []T, x []Number, off, idx, at []uint32,
	d int, rate float32, key uint64) {
	o := level()
	at = at[:len(idx)]
	segments(p, o, out, x, off, idx, d, func(sums []float32, lo, hi int) {
		for i := lo; i < hi; i++ {
			n := int(off[i+1] - off[i])
			values, own := p.TakeFloats(n*d), p.TakeWords(n+2)
			for k := range n {
				row := values[k*d : (k+1)*d]
				e := int(off[i]) + k
				o.widen(row, x[int(idx[e])*d:][:d])
				kernel.Dropout(nil, row, int(at[e])*d, rate, key)
				own[2+k] = uint32(k)
			}
			own[0], own[1] = 0, uint32(n)
			kernel.SegmentMean(nil, sums[(i-lo)*d:][:d], values, own[:2], own[2:], d)
			p.GiveFloats(values)
			p.GiveWords(own)
		}
	})
}
