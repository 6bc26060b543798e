package kernel

// The kernels of this file and of attention.go work on lists as segments are: list i has the
// entries e from off[i] to off[i+1]-1, and entry e names row idx[e]. Edge values are values of the
// entries for each of some heads: that of entry e and head h is at (e-off[0])*heads+h of an array
// of shape (E,heads), E = off[M]-off[0]. Rows of width heads*d have the values of a head side by
// side: head h has the columns h*d to h*d+d-1.

// EdgeSum is out[i,h] (+)= the sum over the entries e of list i of w[e,h]·x[idx[e],h], for out(M,
// heads*d), edge values w(E,heads) and x(·,heads*d); h stands for the columns of head h. If shared
// is set, x is (·,d) and every head reads whole rows. out is added to if accumulate is set, and
// else overwritten.
func EdgeSum(p *Pool, out, x, w []float32, of Lists, accumulate bool) {
	if of.empty() {
		return
	}
	n := of.Heads * of.Cols
	out, w = out[:of.count()*n], w[:of.entries()*of.Heads]
	of.span(p, len(x)/of.width(), func(l Lists, first, entry int) {
		edgeSum(out[first*n:(first+l.count())*n], x, w[entry*of.Heads:], &l, accumulate)
	})
}

// edgeSum computes some lists, of which w has the first entry's values first.
func edgeSum(out, x, w []float32, l *Lists, accumulate bool) {
	if s := level().sums; s != nil {
		s.edges(s.edgeSum, out, x, w, l, accumulate, false)
		return
	}
	refEdgeSum(out, x, w, l, accumulate)
}

// EdgeDot is dw[e,h] = g[i,h]·x[idx[e],h] for every entry e of every list i: the gradient of
// EdgeSum in w, given the gradient g(M,heads*d) of its output.
func EdgeDot(p *Pool, dw, g, x []float32, of Lists) {
	if len(of.Off) < 2 {
		return
	}
	dw = dw[:of.entries()*of.Heads]
	if of.empty() {
		clear(dw)
		return
	}
	n := of.Heads * of.Cols
	g = g[:of.count()*n]
	of.span(p, len(x)/of.width(), func(l Lists, first, entry int) {
		edgeDot(dw[entry*of.Heads:][:l.entries()*of.Heads], g[first*n:], x, &l)
	})
}

// edgeDot computes some lists, of which dw and g have the first values first.
func edgeDot(dw, g, x []float32, l *Lists) {
	if s := level().sums; s != nil {
		s.edges(s.edgeDot, g, x, dw, l, false, true)
		return
	}
	refEdgeDot(dw, g, x, l)
}

// EdgeSumGrad adds to dx(·,heads*d) the gradient of EdgeSum in x, given the gradient
// dout(M,heads*d) of its output: dx[r,h] += w[e,h]·dout[i,h] for every entry e of a list i that
// names row r. The first fresh rows of dx are overwritten instead. t is of BuildEntries.
func (t *Transposed) EdgeSumGrad(p *Pool, dx, dout, w []float32, g RowGrad) {
	n := g.Heads * g.Cols
	dx, dout, w = dx[:t.rows()*n], dout[:len(t.weight)*n], w[:len(t.idx)*g.Heads]
	t.each(p, dx, n, g.Fresh, func(lo, hi int, accumulate bool) {
		t.gather(p, w, g.Heads, lo, hi, func(off []uint32, own []float32, row int, more bool) {
			l := Lists{Off: off, Idx: t.idx, Heads: g.Heads, Cols: g.Cols}
			edgeSum(dx[row*n:(row+l.count())*n], dout, own, &l, accumulate || more)
		})
	})
}

// EdgeSumSharedGrad is EdgeSumGrad of a shared x: dx is (·,d), and all heads are added up.
func (t *Transposed) EdgeSumSharedGrad(p *Pool, dx, dout, w []float32, g RowGrad) {
	n := g.Heads * g.Cols
	dx, dout, w = dx[:t.rows()*g.Cols], dout[:len(t.weight)*n], w[:len(t.idx)*g.Heads]
	if g.Heads == 0 {
		clear(dx[:g.Fresh*g.Cols])
		return
	}
	// The heads of a row of dout are rows of their own: a sum over heads times as many entries.
	t.each(p, dx, g.Cols, g.Fresh, func(lo, hi int, accumulate bool) {
		t.gather(p, w, g.Heads, lo, hi, func(off []uint32, own []float32, row int, more bool) {
			count := len(off) - 1
			words := p.TakeWords(len(own) + len(off))
			l := Lists{Off: words[len(own):], Idx: words[:len(own)], Heads: 1, Cols: g.Cols}
			for k, i := range t.idx[off[0]:off[count]] {
				for h := range g.Heads {
					l.Idx[k*g.Heads+h] = i*uint32(g.Heads) + uint32(h)
				}
			}
			for i, o := range off {
				l.Off[i] = (o - off[0]) * uint32(g.Heads)
			}
			edgeSum(dx[row*g.Cols:(row+count)*g.Cols], dout, own, &l, accumulate || more)
			p.GiveWords(words)
		})
	})
}

// gatherFloats is how many edge values are put in transposed order at a time: they stay in the
// second-level cache.
const gatherFloats = 16 << 10

// EdgeGradWords returns the scratch memory of EdgeSumGrad, EdgeSumSharedGrad and EdgeScores2SrcGrad
// for each worker, in words of 4 bytes, for heads of width d.
func EdgeGradWords(heads, d int) int {
	return 2*max(gatherFloats, heads) + segmentPart/max(1, d) + 4
}

// gather calls fn for pieces of the lists of rows lo to hi-1, in order, with the edge values of a
// piece: those of w in the order of the transposed entries. A piece is some whole lists, the first
// of which belongs to row, or a part of one that is too long; more reports that it is not the first
// part.
func (t *Transposed) gather(p *Pool, w []float32, heads, lo, hi int,
	fn func(off []uint32, own []float32, row int, more bool)) {
	t.mustHaveEntries()
	room := uint32(max(1, gatherFloats/heads))
	own := p.TakeFloats(int(min(room, t.off[hi]-t.off[lo])) * heads)
	piece := func(off []uint32, row int, more bool) {
		entry := t.entry[off[0]:off[len(off)-1]]
		gatherHeads(own, w, entry, heads)
		fn(off, own[:len(entry)*heads], row, more)
	}
	for row := lo; row < hi; {
		end := row
		for end < hi && t.off[end+1]-t.off[row] <= room {
			end++
		}
		if end > row {
			piece(t.off[row:end+1], row, false)
			row = end
			continue
		}
		for at := t.off[row]; at < t.off[row+1]; at += room {
			piece([]uint32{at, min(at+room, t.off[row+1])}, row, at > t.off[row])
		}
		row++
	}
	p.GiveFloats(own)
}

// gatherHeads writes row entry[k] of w(·,heads) to row k of out.
func gatherHeads(out, w []float32, entry []uint32, heads int) {
	if heads == 1 {
		for k, e := range entry {
			out[k] = w[e]
		}
		return
	}
	if heads == 4 {
		for k, e := range entry {
			*(*[4]float32)(out[k*4:]) = *(*[4]float32)(w[int(e)*4:])
		}
		return
	}
	for k, e := range entry {
		copy(rowOf(out, k, heads), w[int(e)*heads:])
	}
}

// EdgeProduct writes to out(E) the value of src at each entry's row times that of dst at its list.
func EdgeProduct(p *Pool, out, src, dst []float32, off, idx []uint32) {
	segments := len(off) - 1
	if segments <= 0 {
		return
	}
	dst = dst[:segments]
	first := off[0]
	p.Span(segments, SegmentsPart(off, 1), func(lo, hi int) {
		CheckSegments(off[lo:hi+1], idx, len(src))
		for i := lo; i < hi; i++ {
			for e := off[i]; e < off[i+1]; e++ {
				out[e-first] = src[idx[e]] * dst[i]
			}
		}
	})
}
