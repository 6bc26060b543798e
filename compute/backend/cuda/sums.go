//go:build cuda && cgo && linux

package cuda

import "gdb/compute/backend"

// pulls reduce the rows of lists. Rows, and results that are not gradients, may be of bfloat16.
var pulls = map[string]deviceKernel{
	"pull-mean":         func(g *gpu, o *backend.Operands) { g.pull(o, true) },
	"pull-sum":          func(g *gpu, o *backend.Operands) { g.pull(o, false) },
	"pull-mean-dropped": pullDropped,
	"pull-max": func(g *gpu, o *backend.Operands) {
		out, x, s := o.Out, o.In[0], o.Lists
		if out.Len() == 0 {
			return
		}
		l := g.forward(s, x.Rows)
		g.launchHalf("segment_max", summed{s.Lists, x.Cols, 0, l.longs, 2}, x.Half, out.Half,
			out, o.Extra[0], x, l.off, l.idx, s.Lists, l.longs, x.Cols)
	},
	"push-mean": func(g *gpu, o *backend.Operands) { g.push(o, true) },
	"push-sum":  func(g *gpu, o *backend.Operands) { g.push(o, false) },
	"push-max": func(g *gpu, o *backend.Operands) {
		dx := o.Out
		if g.untouched(o) {
			return
		}
		l := g.back(o.Lists)
		g.launchSums("segment_max_grad", summed{dx.Rows, dx.Cols, 0, l.longs, 1}, dx, o.In[0],
			o.In[1], l.off, l.idx, dx.Rows, l.longs, dx.Cols, o.Fresh)
	},
	"pull-weighted": pullWeighted,
	"push-weighted": pushWeighted,
	"entry-dot": func(g *gpu, o *backend.Operands) {
		dw, grad, x, s := o.Out, o.In[0], o.In[1], o.Lists
		l, name := g.forward(s, x.Rows), "entry_dot"
		if x.Half {
			name = "entry_dot_half"
		}
		cols := o.HeadCols(grad)
		wide := g.wide(cols, grad, x)
		lanes := headLanes(cols, wide)
		g.launch(name, dw.Len()*lanes, dw, grad, x, g.entryLists(s, l.off), l.idx, s.Entries,
			o.Heads, cols, lanes, o.Shared, wide)
	},
}

// launchHalf is launchSums of a kernel that has one beside it whose rows are of bfloat16, which is
// asked for with half, and told whether another operand is too.
func (g *gpu) launchHalf(name string, s summed, half, other bool, args ...any) {
	if half {
		name, args = name+"_half", append(args, other)
	} else if other {
		panic("BUG: " + name + " makes bfloat16 of float32")
	}
	g.launchSums(name, s, args...)
}

// pull sums rows of lists, or takes their mean.
func (g *gpu) pull(o *backend.Operands, mean bool) {
	out, x, s := o.Out, o.In[0], o.Lists
	if out.Len() == 0 {
		return
	}
	l, wide := g.forward(s, x.Rows), g.wide(x.Cols, x, out)
	g.launchHalf("segment_sum", summed{s.Lists, x.Cols, wide, l.longs, 1}, x.Half, out.Half,
		out, x, l.off, l.idx, s.Lists, l.longs, x.Cols, mean, wide)
}

// pullDropped averages rows that are dropped out.
func pullDropped(g *gpu, o *backend.Operands) {
	out, x, s, d := o.Out, o.In[0], o.Lists, o.Drop
	if out.Len() == 0 {
		return
	}
	l, wide := g.forward(s, x.Rows), g.wide(x.Cols, x, out)
	g.launchHalf("segment_mean_dropout", summed{s.Lists, x.Cols, wide, l.longs, 1}, x.Half,
		out.Half, out, x, l.off, l.idx, g.places(s), s.Lists, l.longs, x.Cols, g.number(d.Key),
		dropThreshold(d.Rate), 1/(1-d.Rate), wide)
}

// push sums rows over transposed lists, with the weights of lists or without.
func (g *gpu) push(o *backend.Operands, weighted bool) {
	if g.untouched(o) {
		return
	}
	dx, dout := o.Out, o.In[0]
	l, wide := g.back(o.Lists), g.wide(dx.Cols, dout, dx)
	weight := uint64(0)
	if weighted {
		weight = l.weight
	}
	name := "segment_grad"
	if dout.Half {
		name = "segment_grad_half"
	}
	g.launchSums(name, summed{dx.Rows, dx.Cols, wide, l.longs, 1}, dx, dout, weight, l.off, l.idx,
		dx.Rows, l.longs, dx.Cols, o.Fresh, wide)
}

// untouched reports whether a gradient of rows has nothing to add: then the fresh rows are zeros.
func (g *gpu) untouched(o *backend.Operands) bool {
	if s := o.Lists; s.Lists > 0 && s.Entries > 0 && o.Out.Len() > 0 {
		g.on(s)
		return g.err != nil
	}
	g.zero(o.Out.Slice(0, o.Fresh))
	return true
}

// pullWeighted sums rows times weights of entries.
func pullWeighted(g *gpu, o *backend.Operands) {
	out, x, s := o.Out, o.In[0], o.Lists
	if out.Len() == 0 {
		return
	}
	cols := o.HeadCols(out)
	l, wide := g.forward(s, x.Rows), g.wide(cols, x, out)
	g.launchHalf("weighted_sum", summed{s.Lists, out.Cols, wide, l.longs, 1}, x.Half, out.Half, out,
		x, o.In[1], l.off, l.idx, s.Lists, l.longs, o.Heads, cols, o.Shared, o.Acc, wide)
}

// pushWeighted adds the gradient of the rows.
func pushWeighted(g *gpu, o *backend.Operands) {
	if g.untouched(o) {
		return
	}
	dx, dout, l := o.Out, o.In[0], g.back(o.Lists)
	cols := o.HeadCols(dout)
	wide := g.wide(cols, dout, dx)
	name := "weighted_sum_grad"
	if dout.Half {
		name = "weighted_sum_grad_half"
	}
	g.launchSums(name, summed{dx.Rows, dx.Cols, wide, l.longs, 1}, dx, dout, o.In[1],
		l.off, l.idx, l.entries(), dx.Rows, l.longs, o.Heads, cols, o.Shared, o.Fresh, wide)
}

// entries returns the numbers of the entries that transposed ones come from.
func (l *transposedLists) entries() uint64 {
	if l.entry == 0 {
		panic("BUG: transposed lists without entries")
	}
	return l.entry
}

// anyRows is a bound of rows for lists whose rows nothing reads.
const anyRows = int(^uint32(0))

// entries make weights of the entries of lists, and their gradients.
var entries = map[string]deviceKernel{
	"scores": func(g *gpu, o *backend.Operands) {
		src, s := o.In[0], o.Lists
		l := g.forward(s, src.Rows)
		g.launch("scores", o.Out.Len(), o.Out, src, o.In[1], g.entryLists(s, l.off), l.idx,
			s.Entries, src.Cols, o.Scalar)
	},
	"scores-grad": leakyGrad,
	"entries-to-lists": func(g *gpu, o *backend.Operands) {
		if o.Out.Len() == 0 {
			return
		}
		x, s := o.In[0], o.Lists
		l := g.forward(s, anyRows)
		g.launchSums("entry_to_list", summed{s.Lists, x.Cols, 0, l.longs, 1}, o.Out, x, l.off,
			s.Lists, l.longs, x.Cols)
	},
	"entries-to-rows": func(g *gpu, o *backend.Operands) {
		if g.untouched(o) {
			return
		}
		out, x, l := o.Out, o.In[0], g.back(o.Lists)
		g.launchSums("entry_to_row", summed{out.Rows, x.Cols, 0, l.longs, 1}, out, x, l.off,
			l.entries(), out.Rows, l.longs, x.Cols, o.Fresh)
	},
	"scores2": func(g *gpu, o *backend.Operands) {
		src, dst, s := o.In[0], o.In[1], o.Lists
		l := g.forward(s, src.Rows)
		g.launch("scores2", o.Out.Len()*warpThreads, o.Out, src, dst, o.In[2],
			g.entryLists(s, l.off), l.idx, s.Entries, o.Heads, o.HeadCols(dst), o.Scalar)
	},
	"scores2-to-lists": scores2ToLists,
	"scores2-to-rows": func(g *gpu, o *backend.Operands) {
		if g.untouched(o) {
			return
		}
		dsrc, dst, l := o.Out, o.In[2], g.back(o.Lists)
		g.launchSums("scores2_grad_row", summed{dsrc.Rows, dst.Cols, 0, l.longs, 1}, dsrc,
			o.In[0], o.In[1], dst, o.In[3], l.off, l.idx, l.entries(), dsrc.Rows, l.longs, o.Heads,
			o.HeadCols(dst), o.Scalar, o.Fresh)
	},
	"product": func(g *gpu, o *backend.Operands) {
		src, s := o.In[0], o.Lists
		l := g.forward(s, src.Rows)
		g.launch("entry_product", s.Entries, o.Out, src, o.In[1], g.entryLists(s, l.off), l.idx,
			s.Entries)
	},
	"softmax": func(g *gpu, o *backend.Operands) {
		if a, s := o.Out, o.Lists; a.Len() > 0 {
			l := g.forward(s, anyRows)
			g.launch("softmax", sumThreads(s.Lists, a.Cols, 0, l.longs.mayLong*a.Cols), a,
				l.off, s.Lists, l.longs.at, a.Cols)
		}
	},
	"softmax-grad": func(g *gpu, o *backend.Operands) {
		if a, s := o.In[1], o.Lists; a.Len() > 0 {
			l := g.forward(s, anyRows)
			g.launch("softmax_grad", sumThreads(s.Lists, a.Cols, 0, l.longs.mayLong*a.Cols),
				o.Out, a, l.off, s.Lists, l.longs.at, a.Cols)
		}
	},
}

// scores2ToLists is the gradient in what lists have, and in att.
func scores2ToLists(g *gpu, o *backend.Operands) {
	ddst, datt, ds, src, dst, s := o.Out, o.Extra[0], o.In[0], o.In[1], o.In[2], o.Lists
	if ddst.Len() == 0 {
		g.zero(datt)
		return
	}
	l, cols := g.forward(s, src.Rows), o.HeadCols(dst)
	share := g.takeFloats(ddst.Len())
	sum := summed{s.Lists, dst.Cols, 0, l.longs, 1}
	g.launchSums("scores2_grad_list", sum, ddst, ds, src, dst, o.In[3], l.off, l.idx, s.Lists,
		l.longs, o.Heads, cols, o.Scalar)
	g.launchSums("scores2_grad_share", sum, share, ds, src, dst, l.off, l.idx, s.Lists, l.longs,
		o.Heads, cols, o.Scalar)
	g.columnSum(g.at(datt), share, s.Lists, dst.Cols, 1)
}
