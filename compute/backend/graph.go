package backend

import (
	"gdb/compute/kernel"
	"gdb/compute/kernel/bf16"
	"gdb/internal/mem"
)

// Graph are the operations over lists. Entries of lists have a row each in matrices of entries, and
// a column for each head.
type Graph interface {
	// SegmentMean writes the mean of the rows of x in list i to row i of out: zeros if it is empty.
	SegmentMean(out, x Tensor, s Segments)
	// SegmentMeanGrad adds the gradient of SegmentMean's input to dx. Its first fresh rows are
	// overwritten instead, whatever they hold; likewise with all gradients of rows.
	SegmentMeanGrad(dx, dout Tensor, s Segments, fresh int)
	// SegmentMeanDropout is SegmentMean of rows that went through Dropout, and leaves x as it is:
	// the row of list entry e has the positions of row Lists.At[e].
	SegmentMeanDropout(out, x Tensor, s Segments, rate float32, key uint64)
	// SegmentSum is the sum, and SegmentMax the largest of each column; arg, of the shape of out,
	// takes the numbers of its rows, which SegmentMaxGrad reads.
	SegmentSum(out, x Tensor, s Segments)
	SegmentSumGrad(dx, dout Tensor, s Segments, fresh int)
	SegmentMax(out, x, arg Tensor, s Segments)
	SegmentMaxGrad(dx, dout, arg Tensor, s Segments, fresh int)
	// WeightedSum sums rows of x times the weights w of their entries: head h of the result sums
	// head h of x; with shared, all of it.
	WeightedSum(out, x, w Tensor, s Segments, heads int, shared, acc bool)
	// WeightedSumGrad is its gradient in x, and EntryDot that in w: for each entry and head the
	// product of its list's row of g and its row of x.
	WeightedSumGrad(dx, dout, w Tensor, s Segments, heads int, shared bool, fresh int)
	EntryDot(dw, g, x Tensor, s Segments, heads int, shared bool)

	// Scores are LeakyReLU(src of the entry's row + dst of its list); ScoresGrad multiplies ds by
	// its slope, given the scores.
	Scores(out, src, dst Tensor, s Segments, slope float32)
	ScoresGrad(ds, scores Tensor, slope float32)
	// EntryToList sums the entries of each list, EntryToRow those of each row.
	EntryToList(out, x Tensor, s Segments)
	EntryToRow(out, x Tensor, s Segments, fresh int)
	// Scores2 are att·LeakyReLU(src of the entry's row + dst of its list) for each head.
	Scores2(out, src, dst, att Tensor, s Segments, heads int, slope float32)
	Scores2GradList(ddst, datt, ds, src, dst, att Tensor, s Segments, heads int, slope float32)
	Scores2GradRow(dsrc, ds, src, dst, att Tensor, s Segments, heads int, slope float32, fresh int)
	// EntryProduct is src (rows,1) of the entry's row times dst (lists,1) of its list.
	EntryProduct(out, src, dst Tensor, s Segments)
	// TypeRows are the rows of table by the types of entries, whose bits types (entries,1) has, and
	// TypeRowsGrad the sums of the rows of dout of each type.
	TypeRows(out, table, types Tensor)
	TypeRowsGrad(dtable, dout, types Tensor)
	// Softmax is over the entries of each list, in place; SoftmaxGrad turns da into its gradient.
	Softmax(a Tensor, s Segments)
	SoftmaxGrad(da, a Tensor, s Segments)
}

// SegmentMean averages rows of x.
func (c *cpu) SegmentMean(out, x Tensor, s Segments) {
	if !c.ready(out.Cols == x.Cols && out.Rows == s.Lists, "SegmentMean", out, x) {
		return
	}
	if c.segmentHalf(out, x, s, true) {
		return
	}
	l := &c.lists[s.ID]
	kernel.SegmentMean(c.pool, c.values(out), c.values(x), l.Off, l.Idx, x.Cols)
}

// SegmentSum adds up rows of x.
func (c *cpu) SegmentSum(out, x Tensor, s Segments) {
	if !c.ready(out.Cols == x.Cols && out.Rows == s.Lists, "SegmentSum", out, x) {
		return
	}
	if c.segmentHalf(out, x, s, false) {
		return
	}
	l := &c.lists[s.ID]
	kernel.SegmentSum(c.pool, c.values(out), c.values(x), l.Off, l.Idx, x.Cols)
}

// back are the transposed lists of s, for rows rows.
func (c *cpu) back(s Segments, rows, lists int) *kernel.Transposed {
	l := &c.lists[s.ID]
	if l.transposed != nil {
		return l.transposed
	}
	var t kernel.Transposed
	if l.Entries {
		t = kernel.TransposedEntriesIn(l.back, rows, s.Entries, lists)
		t.BuildEntries(l.Off, l.Idx, rows)
	} else {
		t = kernel.TransposedIn(l.back, rows, s.Entries, lists)
		t.Build(l.Off, l.Idx, rows)
	}
	l.transposed = &t
	return l.transposed
}

// returns says whether a gradient of rows can be computed.
func (c *cpu) returns(dx Tensor, lists int, s Segments, op string) bool {
	return c.ready(lists == s.Lists && dx.Rows == c.lists[s.ID].Rows, op+" without memory", dx)
}

// SegmentMeanGrad adds the gradient of SegmentMean's input.
func (c *cpu) SegmentMeanGrad(dx, dout Tensor, s Segments, fresh int) {
	if c.returns(dx, dout.Rows, s, "SegmentMeanGrad") &&
		!c.segmentGradHalf(dx, dout, s, true, fresh) {
		c.back(s, dx.Rows, dout.Rows).MeanGrad(c.pool, c.values(dx), c.values(dout), dx.Cols, fresh)
	}
}

// SegmentSumGrad adds the gradient of SegmentSum's input.
func (c *cpu) SegmentSumGrad(dx, dout Tensor, s Segments, fresh int) {
	if c.returns(dx, dout.Rows, s, "SegmentSumGrad") &&
		!c.segmentGradHalf(dx, dout, s, false, fresh) {
		c.back(s, dx.Rows, dout.Rows).ScaledGrad(c.pool, c.values(dx), c.values(dout), nil, dx.Cols,
			fresh)
	}
}

// SegmentMeanDropout averages masked rows of x.
func (c *cpu) SegmentMeanDropout(out, x Tensor, s Segments, rate float32, key uint64) {
	if !c.ready(out.Cols == x.Cols && out.Rows == s.Lists, "SegmentMeanDropout", out, x) {
		return
	}
	l := &c.lists[s.ID]
	c.ready(len(l.At) == len(l.Idx), "SegmentMeanDropout without places", out, x)
	if c.segmentDropoutHalf(out, x, s, rate, key) {
		return
	}
	kernel.SegmentMeanDropout(c.pool, c.values(out), c.values(x), l.Off, l.Idx, l.At, x.Cols, rate,
		key)
}

// words are the values of a tensor as row numbers.
func (c *cpu) words(t Tensor) []uint32 { return mem.View[uint32](mem.BytesOf(c.values(t))) }

// SegmentMax takes the largest of each column.
func (c *cpu) SegmentMax(out, x, arg Tensor, s Segments) {
	if !c.ready(out.Cols == x.Cols && out.Rows == s.Lists && arg.Len() == out.Len(), "SegmentMax",
		out, x, arg) {
		return
	}
	if c.segmentMaxHalf(out, x, arg, s) {
		return
	}
	l := &c.lists[s.ID]
	kernel.SegmentMax(c.pool, c.values(out), c.values(x), c.words(arg), l.Off, l.Idx, x.Cols)
}

// SegmentMaxGrad adds the gradient of SegmentMax's input.
func (c *cpu) SegmentMaxGrad(dx, dout, arg Tensor, s Segments, fresh int) {
	if c.returns(dx, dout.Rows, s, "SegmentMaxGrad") {
		kernel.SegmentMaxGrad(c.pool, c.values(dx), c.values(dout), c.words(arg),
			c.back(s, dx.Rows, dout.Rows), dx.Cols, fresh)
	}
}

// WeightedSum sums weighted rows.
func (c *cpu) WeightedSum(out, x, w Tensor, s Segments, heads int, shared, acc bool) {
	width := x.Cols
	if shared {
		width *= heads
	}
	if !c.ready(out.Rows == s.Lists && out.Cols == width && w.Rows == s.Entries && w.Cols == heads,
		"WeightedSum", out, x, w) {
		return
	}
	if c.weightedHalf(out, x, w, s, heads, shared, acc) {
		return
	}
	l := &c.lists[s.ID]
	kernel.EdgeSum(c.pool, c.values(out), c.values(x), c.values(w), l.Off, l.Idx, heads,
		width/heads, shared, acc)
}

// WeightedSumGrad adds the gradient of WeightedSum's rows.
func (c *cpu) WeightedSumGrad(dx, dout, w Tensor, s Segments, heads int, shared bool, fresh int) {
	if !c.returns(dx, dout.Rows, s, "WeightedSumGrad") {
		return
	}
	t, d := c.back(s, dx.Rows, dout.Rows), dout.Cols/heads
	if dout.Half {
		bf16.WeightedHeadsGrad(c.pool, c.values(dx), c.numbers(dout), c.values(w), t, heads, d,
			shared, fresh)
		return
	}
	if shared {
		t.EdgeSumSharedGrad(c.pool, c.values(dx), c.values(dout), c.values(w), heads, d, fresh)
		return
	}
	t.EdgeSumGrad(c.pool, c.values(dx), c.values(dout), c.values(w), heads, d, fresh)
}

// EntryDot multiplies rows of lists and of entries.
func (c *cpu) EntryDot(dw, g, x Tensor, s Segments, heads int, shared bool) {
	if !c.ready(g.Rows == s.Lists && dw.Rows == s.Entries && dw.Cols == heads, "EntryDot", dw, g,
		x) {
		return
	}
	l := &c.lists[s.ID]
	if x.Half {
		bf16.EdgeDot(c.pool, c.values(dw), c.numbers(g), c.numbers(x), l.Off, l.Idx, heads,
			g.Cols/heads, shared)
		return
	}
	kernel.EdgeDot(c.pool, c.values(dw), c.values(g), c.values(x), l.Off, l.Idx, heads,
		g.Cols/heads, shared)
}

// Scores adds what rows and lists have, and applies LeakyReLU.
func (c *cpu) Scores(out, src, dst Tensor, s Segments, slope float32) {
	if !c.ready(out.Rows == s.Entries && dst.Rows == s.Lists && src.Cols == dst.Cols, "Scores", out,
		src, dst) {
		return
	}
	l := &c.lists[s.ID]
	kernel.EdgeScores(c.pool, c.values(out), c.values(src), c.values(dst), l.Off, l.Idx, src.Cols,
		slope)
}

// ScoresGrad multiplies by the slope.
func (c *cpu) ScoresGrad(ds, scores Tensor, slope float32) {
	if c.ready(ds.Len() == scores.Len(), "ScoresGrad", ds, scores) {
		kernel.EdgeScoresGrad(c.pool, c.values(ds), c.values(scores), slope)
	}
}

// EntryToList sums the entries of lists.
func (c *cpu) EntryToList(out, x Tensor, s Segments) {
	if c.ready(out.Rows == s.Lists && x.Rows == s.Entries, "EntryToList", out, x) {
		kernel.EdgeToDst(c.pool, c.values(out), c.values(x), c.lists[s.ID].Off, x.Cols)
	}
}

// EntryToRow sums the entries of rows.
func (c *cpu) EntryToRow(out, x Tensor, s Segments, fresh int) {
	if c.returns(out, s.Lists, s, "EntryToRow") {
		c.back(s, out.Rows, s.Lists).EdgeToSrc(c.pool, c.values(out), c.values(x), x.Cols, fresh)
	}
}

// Scores2 are those of GATv2.
func (c *cpu) Scores2(out, src, dst, att Tensor, s Segments, heads int, slope float32) {
	if !c.ready(out.Rows == s.Entries && dst.Rows == s.Lists && att.Len() == dst.Cols, "Scores2",
		out, src, dst, att) {
		return
	}
	l := &c.lists[s.ID]
	kernel.EdgeScores2(c.pool, c.values(out), c.values(src), c.values(dst), c.values(att), l.Off,
		l.Idx, heads, dst.Cols/heads, slope)
}

// Scores2GradList is the gradient in dst and in att.
func (c *cpu) Scores2GradList(ddst, datt, ds, src, dst, att Tensor, s Segments, heads int,
	slope float32) {
	if !c.ready(ds.Rows == s.Entries && ddst.Rows == s.Lists, "Scores2GradList", ddst, ds) {
		return
	}
	l := &c.lists[s.ID]
	kernel.EdgeScores2Grad(c.pool, c.values(ddst), c.values(datt), c.values(ds), c.values(src),
		c.values(dst), c.values(att), l.Off, l.Idx, heads, dst.Cols/heads, slope)
}

// Scores2GradRow is the gradient in src.
func (c *cpu) Scores2GradRow(dsrc, ds, src, dst, att Tensor, s Segments, heads int, slope float32,
	fresh int) {
	if c.returns(dsrc, dst.Rows, s, "Scores2GradRow") {
		c.back(s, dsrc.Rows, dst.Rows).EdgeScores2SrcGrad(c.pool, c.values(dsrc), c.values(ds),
			c.values(src), c.values(dst), c.values(att), heads, dst.Cols/heads, slope, fresh)
	}
}

// EntryProduct multiplies what rows and lists have.
func (c *cpu) EntryProduct(out, src, dst Tensor, s Segments) {
	if !c.ready(out.Len() == s.Entries && dst.Len() == s.Lists && src.Cols == 1, "EntryProduct",
		out, src, dst) {
		return
	}
	l := &c.lists[s.ID]
	kernel.EdgeProduct(c.pool, c.values(out), c.values(src), c.values(dst), l.Off, l.Idx)
}

// TypeRows copies rows.
func (c *cpu) TypeRows(out, table, types Tensor) {
	if c.ready(out.Rows == types.Len() && out.Cols == table.Cols, "TypeRows", out, table, types) {
		kernel.TypeRows(c.pool, c.values(out), c.values(table), c.words(types), out.Cols)
	}
}

// TypeRowsGrad sums rows.
func (c *cpu) TypeRowsGrad(dtable, dout, types Tensor) {
	if c.ready(dout.Rows == types.Len() && dout.Cols == dtable.Cols, "TypeRowsGrad", dtable, dout,
		types) {
		kernel.TypeRowsGrad(c.pool, c.values(dtable), c.values(dout), c.words(types), dout.Cols)
	}
}

// Softmax is over the entries of lists.
func (c *cpu) Softmax(a Tensor, s Segments) {
	if c.ready(a.Rows == s.Entries, "Softmax", a) {
		kernel.EdgeSoftmax(c.pool, c.values(a), c.lists[s.ID].Off, a.Cols)
	}
}

// SoftmaxGrad turns da into the gradient of Softmax's input.
func (c *cpu) SoftmaxGrad(da, a Tensor, s Segments) {
	if c.ready(a.Rows == s.Entries && da.Len() == a.Len(), "SoftmaxGrad", da, a) {
		kernel.EdgeSoftmaxGrad(c.pool, c.values(da), c.values(a), c.lists[s.ID].Off, a.Cols)
	}
}
