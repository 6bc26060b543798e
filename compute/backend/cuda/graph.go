//go:build cuda && cgo && linux

package cuda

import "gdb/compute/backend"

// SegmentMean averages rows of x.
func (g *gpu) SegmentMean(out, x backend.Tensor, s backend.Segments) {
	g.segmentSum("SegmentMean", out, x, s, true)
}

// SegmentSum adds up rows of x.
func (g *gpu) SegmentSum(out, x backend.Tensor, s backend.Segments) {
	g.segmentSum("SegmentSum", out, x, s, false)
}

func (g *gpu) segmentSum(op string, out, x backend.Tensor, s backend.Segments, mean bool) {
	if !g.ready(out.Cols == x.Cols && out.Rows == s.Lists, op, out, x) || out.Len() == 0 {
		return
	}
	l, four := g.forward(s, x.Rows), g.fours(x.Cols, out, x)
	g.launchHalf("segment_sum", summed{s.Lists, x.Cols, four, l.longs, 1}, x.Half, out.Half,
		out, x, l.off, l.idx, s.Lists, l.longs, x.Cols, mean, four)
}

// SegmentMeanDropout averages masked rows of x.
func (g *gpu) SegmentMeanDropout(out, x backend.Tensor, s backend.Segments, rate float32,
	key uint64) {
	if !g.ready(out.Cols == x.Cols && out.Rows == s.Lists, "SegmentMeanDropout", out, x) ||
		out.Len() == 0 {
		return
	}
	g.ready(len(g.lists[s.ID].At) == s.Entries, "SegmentMeanDropout without places", out, x)
	l, four := g.forward(s, x.Rows), g.fours(x.Cols, out, x)
	g.launchHalf("segment_mean_dropout", summed{s.Lists, x.Cols, four, l.longs, 1}, x.Half,
		out.Half, out, x, l.off, l.idx, g.places(s), s.Lists, l.longs, x.Cols, g.number(key),
		dropThreshold(rate), 1/(1-rate), four)
}

// SegmentMeanGrad adds the gradient of SegmentMean's input.
func (g *gpu) SegmentMeanGrad(dx, dout backend.Tensor, s backend.Segments, fresh int) {
	if g.returns(dx, dout.Rows, s, "SegmentMeanGrad") {
		g.segmentGrad(dx, dout, s, g.back(s, dx.Rows).weight, fresh)
	}
}

// SegmentSumGrad adds the gradient of SegmentSum's input.
func (g *gpu) SegmentSumGrad(dx, dout backend.Tensor, s backend.Segments, fresh int) {
	if g.returns(dx, dout.Rows, s, "SegmentSumGrad") {
		g.segmentGrad(dx, dout, s, 0, fresh)
	}
}

// segmentGrad sums rows of dout over transposed lists, with the weights of lists, or without.
func (g *gpu) segmentGrad(dx, dout backend.Tensor, s backend.Segments, weight uint64, fresh int) {
	if g.untouched(dx, s, fresh) {
		return
	}
	l, four := g.back(s, dx.Rows).back, g.fours(dx.Cols, dx, dout)
	name := "segment_grad"
	if dout.Half {
		name = "segment_grad_half"
	}
	g.launchSums(name, summed{dx.Rows, dx.Cols, four, l.longs, 1}, dx, dout, weight, l.off, l.idx,
		dx.Rows, l.longs, dx.Cols, fresh, four)
}

// untouched says whether a gradient of rows has nothing to add: then the fresh rows are zeros.
func (g *gpu) untouched(dx backend.Tensor, s backend.Segments, fresh int) bool {
	if s.Lists > 0 && s.Entries > 0 && dx.Len() > 0 {
		g.back(s, dx.Rows)
		return g.err != nil
	}
	g.Zero(dx.Slice(0, fresh))
	return true
}

// SegmentMax takes the largest of each column.
func (g *gpu) SegmentMax(out, x, arg backend.Tensor, s backend.Segments) {
	if !g.ready(out.Cols == x.Cols && out.Rows == s.Lists && arg.Len() == out.Len(), "SegmentMax",
		out, x, arg) || out.Len() == 0 {
		return
	}
	l := g.forward(s, x.Rows)
	g.launchHalf("segment_max", summed{s.Lists, x.Cols, false, l.longs, 2}, x.Half, out.Half,
		out, arg, x, l.off, l.idx, s.Lists, l.longs, x.Cols)
}

// SegmentMaxGrad adds the gradient of SegmentMax's input.
func (g *gpu) SegmentMaxGrad(dx, dout, arg backend.Tensor, s backend.Segments, fresh int) {
	if !g.returns(dx, dout.Rows, s, "SegmentMaxGrad") || g.untouched(dx, s, fresh) {
		return
	}
	l := g.back(s, dx.Rows).back
	g.launchSums("segment_max_grad", summed{dx.Rows, dx.Cols, false, l.longs, 1}, dx, dout, arg,
		l.off, l.idx, dx.Rows, l.longs, dx.Cols, fresh)
}

// TypeRows copies rows.
func (g *gpu) TypeRows(out, table, types backend.Tensor) {
	if g.ready(out.Rows == types.Len() && out.Cols == table.Cols, "TypeRows", out, table, types) {
		g.launch("type_rows", out.Len(), out, table, types, out.Rows, out.Cols)
	}
}

const (
	// typesPart is how many entries make a part of TypeRowsGrad at least, and typesFloats and
	// typesParts bound the partial sums and their number.
	typesPart, typesFloats, typesParts = 1 << 10, 1 << 20, 256
)

// TypeRowsGrad sums rows.
func (g *gpu) TypeRowsGrad(dtable, dout, types backend.Tensor) {
	if !g.ready(dout.Rows == types.Len() && dout.Cols == dtable.Cols, "TypeRowsGrad", dtable, dout,
		types) || dtable.Len() == 0 {
		return
	}
	values := dtable.Len()
	most := min(typesParts, max(1, typesFloats/values))
	size := max(typesPart, (dout.Rows+most-1)/most)
	parts := (dout.Rows + size - 1) / size
	sums := g.takeFloats(parts * values)
	g.launch("type_rows_grad", parts*dout.Cols, sums, dout, types, dout.Rows, dout.Cols, values,
		size, parts)
	g.columnSum(g.at(dtable), sums, parts, values, 1)
}
