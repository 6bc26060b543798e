//go:build cuda && cgo && linux

package cuda

import "gdb/compute/backend"

// WeightedSum sums weighted rows.
func (g *gpu) WeightedSum(out, x, w backend.Tensor, s backend.Segments, heads int,
	shared, acc bool) {
	width := x.Cols
	if shared {
		width *= heads
	}
	if !g.ready(out.Rows == s.Lists && out.Cols == width && w.Rows == s.Entries && w.Cols == heads,
		"WeightedSum", out, x, w) || out.Len() == 0 {
		return
	}
	cols := width / heads
	l, four := g.forward(s, x.Rows), g.fours(cols, out, x)
	g.launchHalf("weighted_sum", summed{s.Lists, width, four, l.longs, 1}, x.Half, out.Half, out,
		x, w, l.off, l.idx, s.Lists, l.longs, heads, cols, shared, acc, four)
}

// WeightedSumGrad adds the gradient of WeightedSum's rows.
func (g *gpu) WeightedSumGrad(dx, dout, w backend.Tensor, s backend.Segments, heads int,
	shared bool, fresh int) {
	if !g.returns(dx, dout.Rows, s, "WeightedSumGrad") || g.untouched(dx, s, fresh) {
		return
	}
	cols, b := dout.Cols/heads, g.back(s, dx.Rows)
	l, four := b.back, g.fours(cols, dx, dout)
	name := "weighted_sum_grad"
	if dout.Half {
		name = "weighted_sum_grad_half"
	}
	g.launchSums(name, summed{dx.Rows, dx.Cols, four, l.longs, 1}, dx, dout, w,
		l.off, l.idx, b.entries(), dx.Rows, l.longs, heads, cols, shared, fresh, four)
}

// entries are the numbers of the entries that transposed ones come from.
func (l *stepLists) entries() uint64 {
	if !l.Entries {
		panic("BUG: transposed lists without entries")
	}
	return l.entry
}

// EntryDot multiplies rows of lists and of entries.
func (g *gpu) EntryDot(dw, grad, x backend.Tensor, s backend.Segments, heads int, shared bool) {
	if !g.ready(grad.Rows == s.Lists && dw.Rows == s.Entries && dw.Cols == heads &&
		grad.Half == x.Half, "EntryDot", dw, grad, x) {
		return
	}
	l := g.forward(s, x.Rows)
	name := "entry_dot"
	if x.Half {
		name = "entry_dot_half"
	}
	g.launch(name, dw.Len()*warpThreads, dw, grad, x, g.entryLists(s, l.off), l.idx, s.Entries,
		heads, grad.Cols/heads, shared)
}

// Scores adds what rows and lists have, and applies LeakyReLU.
func (g *gpu) Scores(out, src, dst backend.Tensor, s backend.Segments, slope float32) {
	if !g.ready(out.Rows == s.Entries && dst.Rows == s.Lists && src.Cols == dst.Cols, "Scores", out,
		src, dst) {
		return
	}
	l := g.forward(s, src.Rows)
	g.launch("scores", out.Len(), out, src, dst, g.entryLists(s, l.off), l.idx, s.Entries, src.Cols,
		slope)
}

// ScoresGrad multiplies by the slope.
func (g *gpu) ScoresGrad(ds, scores backend.Tensor, slope float32) {
	if g.ready(ds.Len() == scores.Len(), "ScoresGrad", ds, scores) {
		g.LeakyReLUGrad(ds, scores, slope)
	}
}

// EntryToList sums the entries of lists.
func (g *gpu) EntryToList(out, x backend.Tensor, s backend.Segments) {
	if g.ready(out.Rows == s.Lists && x.Rows == s.Entries, "EntryToList", out, x) && out.Len() > 0 {
		l := g.forward(s, int(^uint32(0)))
		g.launchSums("entry_to_list", summed{s.Lists, x.Cols, false, l.longs, 1}, out, x, l.off,
			s.Lists, l.longs, x.Cols)
	}
}

// EntryToRow sums the entries of rows.
func (g *gpu) EntryToRow(out, x backend.Tensor, s backend.Segments, fresh int) {
	if !g.returns(out, s.Lists, s, "EntryToRow") || g.untouched(out, s, fresh) {
		return
	}
	b := g.back(s, out.Rows)
	l := b.back
	g.launchSums("entry_to_row", summed{out.Rows, x.Cols, false, l.longs, 1}, out, x, l.off,
		b.entries(), out.Rows, l.longs, x.Cols, fresh)
}

// Scores2 are those of GATv2.
func (g *gpu) Scores2(out, src, dst, att backend.Tensor, s backend.Segments, heads int,
	slope float32) {
	if !g.ready(out.Rows == s.Entries && dst.Rows == s.Lists && att.Len() == dst.Cols, "Scores2",
		out, src, dst, att) {
		return
	}
	l := g.forward(s, src.Rows)
	g.launch("scores2", out.Len()*warpThreads, out, src, dst, att, g.entryLists(s, l.off), l.idx,
		s.Entries, heads, dst.Cols/heads, slope)
}

// Scores2GradList is the gradient in dst and in att.
func (g *gpu) Scores2GradList(ddst, datt, ds, src, dst, att backend.Tensor, s backend.Segments,
	heads int, slope float32) {
	if !g.ready(ds.Rows == s.Entries && ddst.Rows == s.Lists, "Scores2GradList", ddst, ds) {
		return
	}
	if ddst.Len() == 0 {
		g.Zero(datt)
		return
	}
	l := g.forward(s, src.Rows)
	share := g.takeFloats(ddst.Len())
	sum := summed{s.Lists, dst.Cols, false, l.longs, 1}
	g.launchSums("scores2_grad_list", sum, ddst, ds, src, dst, att, l.off, l.idx, s.Lists, l.longs,
		heads, dst.Cols/heads, slope)
	g.launchSums("scores2_grad_share", sum, share, ds, src, dst, l.off, l.idx, s.Lists, l.longs,
		heads, dst.Cols/heads, slope)
	g.columnSum(g.at(datt), share, s.Lists, dst.Cols, 1)
}

// Scores2GradRow is the gradient in src.
func (g *gpu) Scores2GradRow(dsrc, ds, src, dst, att backend.Tensor, s backend.Segments, heads int,
	slope float32, fresh int) {
	if !g.returns(dsrc, dst.Rows, s, "Scores2GradRow") || g.untouched(dsrc, s, fresh) {
		return
	}
	b := g.back(s, dsrc.Rows)
	l := b.back
	g.launchSums("scores2_grad_row", summed{dsrc.Rows, dst.Cols, false, l.longs, 1}, dsrc, ds, src,
		dst, att, l.off, l.idx, b.entries(), dsrc.Rows, l.longs, heads,
		dst.Cols/heads, slope, fresh)
}

// EntryProduct multiplies what rows and lists have.
func (g *gpu) EntryProduct(out, src, dst backend.Tensor, s backend.Segments) {
	if !g.ready(out.Len() == s.Entries && dst.Len() == s.Lists && src.Cols == 1, "EntryProduct",
		out, src, dst) {
		return
	}
	l := g.forward(s, src.Rows)
	g.launch("entry_product", s.Entries, out, src, dst, g.entryLists(s, l.off), l.idx, s.Entries)
}

// Softmax is over the entries of lists.
func (g *gpu) Softmax(a backend.Tensor, s backend.Segments) {
	if g.ready(a.Rows == s.Entries, "Softmax", a) && a.Len() > 0 {
		l := g.forward(s, int(^uint32(0)))
		g.launch("softmax", sumThreads(s.Lists, a.Cols, false, l.longs.mayLong*a.Cols), a,
			l.off, s.Lists, l.longs.at, a.Cols)
	}
}

// SoftmaxGrad turns da into the gradient of Softmax's input.
func (g *gpu) SoftmaxGrad(da, a backend.Tensor, s backend.Segments) {
	if g.ready(a.Rows == s.Entries && da.Len() == a.Len(), "SoftmaxGrad", da, a) && a.Len() > 0 {
		l := g.forward(s, int(^uint32(0)))
		g.launch("softmax_grad", sumThreads(s.Lists, a.Cols, false, l.longs.mayLong*a.Cols), da,
			a, l.off, s.Lists, l.longs.at, a.Cols)
	}
}
