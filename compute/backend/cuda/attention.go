//go:build cuda && cgo && linux

package cuda

import "gdb/compute/backend"

// attentions are attention over lists in one operation, and its gradient. Rows, and results that
// are not gradients, may be of bfloat16.
var attentions = map[string]deviceKernel{
	"attend":           attend,
	"attend-to-rows":   attendToRows,
	"attend-to-scores": attendToScores,
}

// headLanes returns how many lanes of a warp share a head of cols columns: a power of two.
func headLanes(cols, wide int) int {
	lanes := 1
	for lanes < min(pieces(cols, wide), warpThreads) {
		lanes *= 2
	}
	return lanes
}

// headThreads returns how many threads have a list each of some warps, whose lanes share heads and
// columns. Long lists have a block for each warp.
func headThreads(lists, heads, cols, wide, longs int) int {
	lanes := headLanes(cols, wide)
	atOnce := warpThreads / lanes
	units := (heads + atOnce - 1) / atOnce * ((pieces(cols, wide) + lanes - 1) / lanes)
	return max(lists*units*warpThreads, min(longs*units, longBlocks)*blockThreads)
}

// dropped returns the arguments of the dropout of weights of entries.
func (g *gpu) dropped(o *backend.Operands) (at uint64, threshold int, factor float32) {
	d := o.Drop
	return g.number(d.Key, uint64(d.First)), dropThreshold(d.Rate), 1 / (1 - d.Rate)
}

// quads is 4 where rows of cols values may be read four at a time, and else 0.
func (g *gpu) quads(cols int, ts ...backend.Tensor) int {
	if g.fours(cols, ts...) {
		return 4
	}
	return 0
}

// mustKeep panics where what is kept of softmaxes cannot be read wide values at a time.
func (g *gpu) mustKeep(kept backend.Tensor) {
	if !g.fours(4, kept) && g.err == nil {
		panic("BUG: what is kept of a softmax is not at a multiple of 16 bytes")
	}
}

func attend(g *gpu, o *backend.Operands) {
	out, kept, x, src, s := o.Out, o.Extra[0], o.In[0], o.In[1], o.Lists
	if out.Len() == 0 {
		return
	}
	g.mustKeep(kept)
	cols := o.HeadCols(out)
	l, wide := g.forward(s, x.Rows), g.quads(cols, out, x)
	at, threshold, factor := g.dropped(o)
	longs, name := l.longs, "attend"
	longs.parts = g.takeFloats(longs.mayParts * out.Cols)
	ends := g.takeFloats(longs.mayParts * 2 * o.Heads)
	for _, longs.join = range []bool{false, true} {
		lists, long := s.Lists, longs.mayLong
		if longs.join {
			lists, long = longs.mayHubs, 0
		}
		args := []any{out, kept, x, src, o.In[2], l.off, l.idx, s.Lists, longs, ends, o.Heads, cols,
			headLanes(cols, wide), o.Shared, o.Scalar, at, threshold, factor, wide}
		if x.Half {
			name, args = "attend_half", append(args, out.Half)
		}
		g.launch(name, headThreads(lists, o.Heads, cols, wide, long), args...)
	}
}

func attendToRows(g *gpu, o *backend.Operands) {
	if g.untouched(o) {
		return
	}
	dx, dots, dout, x, kept, l := o.Out, o.Extra[0], o.In[0], o.In[1], o.In[3], g.back(o.Lists)
	g.mustKeep(kept)
	cols := o.HeadCols(dout)
	wide, name := g.quads(cols, dx, dout, x), "attend_grad_rows"
	if dout.Half {
		name = "attend_grad_rows_half"
	}
	at, threshold, factor := g.dropped(o)
	longs := l.longs
	longs.parts = g.takeFloats(longs.mayParts * dx.Cols)
	for _, longs.join = range []bool{false, true} {
		threads := headThreads(dx.Rows, o.Heads, cols, wide, longs.mayLong)
		if longs.join {
			threads = longs.mayHubs * pieces(dx.Cols, wide)
		}
		g.launch(name, threads, dx, dots, dout, x, o.In[2], kept, l.off, l.idx, l.entries(),
			dx.Rows, longs, o.Heads, cols, headLanes(cols, wide), o.Shared, o.Scalar, at, threshold,
			factor, o.Fresh, wide)
	}
}

func attendToScores(g *gpu, o *backend.Operands) {
	src, kept, s := o.In[1], o.In[2], o.Lists
	if o.Extra[0].Len() == 0 {
		return
	}
	g.mustKeep(kept)
	l := g.forward(s, src.Rows)
	at, threshold, factor := g.dropped(o)
	g.launch("attend_grad_scores", sumThreads(s.Lists, o.Heads, 0, l.longs.mayLong*o.Heads),
		o.Out, o.Extra[0], src, kept, l.off, l.idx, s.Lists, l.longs.at, o.Heads, o.Scalar, at,
		threshold, factor)
}
