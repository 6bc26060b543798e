package kernel

// EdgeScores is s[e,h] = leaky(src[idx[e],h] + dst[i,h]) for every entry e of every list i, where
// leaky(v) is v if v > 0 and else slope·v: the scores of GAT (Veličković and others). src is
// (·,heads), dst is (M,heads) and s is edge values.
func EdgeScores(p *Pool, s, src, dst []float32, of Lists, slope float32) {
	of.Cols = 1
	if of.empty() {
		return
	}
	s, dst = s[:of.entries()*of.Heads], dst[:of.count()*of.Heads]
	edgeScores := level().edgeScores
	of.span(p, len(src)/of.Heads, func(l Lists, first, entry int) {
		edgeScores(s[entry*of.Heads:], src, dst[first*of.Heads:], &l, slope)
	})
}

// EdgeScoresGrad is the gradient of EdgeScores in the sums that leaky takes, in place: ds is
// multiplied by 1 where the score s is positive, and else by slope, which is not negative.
// EdgeToDst and EdgeToSrc sum it to the gradients in dst and src.
func EdgeScoresGrad(p *Pool, ds, s []float32, slope float32) { LeakyReLUGrad(p, ds, s, slope) }

// EdgeSoftmax is the softmax of the edge values a(E,heads) over each list and for each head, in
// place.
func EdgeSoftmax(p *Pool, a []float32, off []uint32, heads int) {
	o := level()
	edgeSpan(p, a, nil, off, heads, func(a, _ []float32, off []uint32) {
		o.subtractMax(a, off, heads)
		o.expSum(a, a, 0)
		o.divideSum(a, off, heads)
	})
}

// EdgeSoftmaxGrad is the gradient of EdgeSoftmax in its input, in place, given its output
// a(E,heads): da[e,h] = a[e,h]·(da[e,h] - the sum of a·da over the entries of the list).
func EdgeSoftmaxGrad(p *Pool, da, a []float32, off []uint32, heads int) {
	edgeSpan(p, da, a, off, heads, func(da, a []float32, off []uint32) {
		refSoftmaxGrad(da, a, off, heads)
	})
}

// edgeSpan calls fn for parts of the lists, with their edge values of two arrays, of which the
// second may be nil.
func edgeSpan(p *Pool, a, b []float32, off []uint32, heads int,
	fn func(a, b []float32, off []uint32)) {
	if len(off) < 2 || heads == 0 {
		return
	}
	checkOffsets(off)
	p.Span(len(off)-1, SegmentsPart(off, heads), func(lo, hi int) {
		begin, end := int(off[lo]-off[0])*heads, int(off[hi]-off[0])*heads
		if b == nil {
			fn(a[begin:end], nil, off[lo:hi+1])
		} else {
			fn(a[begin:end], b[begin:end], off[lo:hi+1])
		}
	})
}

// EdgeToDst is out[i,h] = the sum of the edge values s[e,h] of the entries e of list i.
func EdgeToDst(p *Pool, out, s []float32, off []uint32, heads int) {
	out = out[:max(0, len(off)-1)*heads]
	if len(out) == 0 {
		return
	}
	toDst := level().edgeToDst
	p.Span(len(off)-1, SegmentsPart(off, heads), func(lo, hi int) {
		begin := int(off[lo]-off[0]) * heads
		toDst(out[lo*heads:hi*heads], s[begin:], off[lo:hi+1], heads)
	})
}

// EdgeToSrc is out[r,h] (+)= the sum of the edge values s[e,h] of the entries e that name row r, in
// the order of the lists. The first fresh rows of out(·,heads) are overwritten, the others added
// to. t is of BuildEntries.
func (t *Transposed) EdgeToSrc(p *Pool, out, s []float32, heads, fresh int) {
	out, s = out[:t.rows()*heads], s[:len(t.idx)*heads]
	toSrc := level().edgeToSrc
	t.each(p, out, heads, fresh, func(lo, hi int, accumulate bool) {
		t.mustHaveEntries()
		for r := lo; r < hi; r++ {
			sum := rowOf(out, r, heads)
			if !accumulate {
				clear(sum)
			}
			toSrc(sum, s, t.entry[t.off[r]:t.off[r+1]])
		}
	})
}

// EdgeScores2 is s[e,h] = the sum over c of att[h,c]·leaky(xl[idx[e],h,c] + xr[i,h,c]) for every
// entry e of every list i: the scores of GATv2 (Brody, Alon and Yahav). xl is (·,heads*d), xr is
// (M,heads*d) and att (1,heads*d).
func EdgeScores2(p *Pool, s []float32, of Lists, a Scores2) {
	if len(of.Off) < 2 {
		return
	}
	s = s[:of.entries()*of.Heads]
	if of.empty() {
		clear(s)
		return
	}
	n := of.Heads * of.Cols
	a.Dst, a.Att = a.Dst[:of.count()*n], a.Att[:n]
	of.span(p, len(a.Src)/n, func(l Lists, first, entry int) {
		own, to := a.Dst[first*n:], s[entry*of.Heads:]
		if o := level().sums; o != nil {
			o.scores(o.score, own, a.Src, to, a.Att, nil, nil, &l, a.Slope, false, true)
			return
		}
		refEdgeScores2(to, a.Src, own, a.Att, &l, a.Slope)
	})
}

// attParts bounds the partial sums of the gradient in att.
const attParts = 64

// AttentionWords returns the scratch memory of EdgeScores2Grad, in words of 4 bytes, for
// attention(1,n).
func AttentionWords(n int) int { return attParts * n }

// EdgeScores2Grad writes the gradients of EdgeScores2 in xr and att, dxr(M,heads*d) and
// datt(1,heads*d), given the gradient ds(E,heads) of its output.
func EdgeScores2Grad(p *Pool, dxr, datt, ds []float32, of Lists, a Scores2) {
	n := of.Heads * of.Cols
	datt = datt[:n]
	clear(datt)
	if of.empty() {
		return
	}
	dxr, a.Dst, a.Att, ds = dxr[:of.count()*n], a.Dst[:of.count()*n], a.Att[:n],
		ds[:of.entries()*of.Heads]
	size := max(SegmentsPart(of.Off, n), partsOf(of.count(), attParts))
	p.SumParts(of.count(), size, func(sum []float32, lo, hi int) {
		l, entry := of.part(lo, hi, len(a.Src)/n)
		out, own, grad := dxr[lo*n:], a.Dst[lo*n:], ds[entry*of.Heads:]
		if o := level().sums; o != nil {
			o.scores(o.scoreGrad, own, a.Src, grad, a.Att, out, sum, &l, a.Slope, false, false)
			return
		}
		refEdgeScores2Grad(out, sum, grad, &l, Scores2{Src: a.Src, Dst: own, Att: a.Att,
			Slope: a.Slope})
	}, datt)
}

// EdgeScores2SrcGrad adds to dxl(·,heads*d) the gradient of EdgeScores2 in xl. The first fresh rows
// are overwritten instead. t is of BuildEntries.
func (t *Transposed) EdgeScores2SrcGrad(p *Pool, dxl, ds []float32, a Scores2, g RowGrad) {
	n := g.Heads * g.Cols
	dxl, a.Src, a.Att = dxl[:t.rows()*n], a.Src[:t.rows()*n], a.Att[:n]
	a.Dst, ds = a.Dst[:len(t.weight)*n], ds[:len(t.idx)*g.Heads]
	t.each(p, dxl, n, g.Fresh, func(lo, hi int, accumulate bool) {
		t.gather(p, ds, g.Heads, lo, hi, func(off []uint32, grad []float32, row int, more bool) {
			l := Lists{Off: off, Idx: t.idx, Heads: g.Heads, Cols: g.Cols}
			out, own, add := dxl[row*n:(row+l.count())*n], a.Src[row*n:], accumulate || more
			if o := level().sums; o != nil {
				o.scores(o.scoreOwnGrad, own, a.Dst, grad, a.Att, out, nil, &l, a.Slope, add, false)
				return
			}
			refEdgeScores2Src(out, grad, &l, Scores2{Dst: a.Dst, Src: own, Att: a.Att,
				Slope: a.Slope}, add)
		})
	})
}
