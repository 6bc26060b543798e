package program

import (
	"math"

	"gdb/compute/backend"
	"gdb/compute/kernel"
)

// Attention over lists in one operation: scores of the entries, their softmax, a dropout of it and
// the sum of rows with these weights. None of that is left in memory but a few values of each list
// and head, from which the gradient computes the weights anew: as FlashAttention does for matrices
// (Dao and others, "FlashAttention", section 3.1). It is for a backend that has kernels of it: see
// Options.FuseAttention.

// keptCols is how many values of a list and a head are kept: what its score adds for the list, the
// largest score, 1 over the sum of exponentials, and a zero, since a device reads four at once.
const keptCols = 4

var (
	// opAttend has rows, what scores have of rows and of lists; its second result is what is kept.
	opAttend = define("attend", func(o *backend.Operands) bool {
		width := o.In[0].Cols
		if o.Shared {
			width *= o.Heads
		}
		return o.Out.Rows == o.Lists.Lists && o.Out.Cols == width && o.In[1].Cols == o.Heads &&
			o.In[2].Rows == o.Lists.Lists && o.Extra[0].Len() == keptCols*o.In[2].Len()
	}, attendRef, Kind{lists: ownLists, takes: firstHalf, writesHalf: always, grad: attendRule,
		flops: func(z sized) float64 { return weighedFlops(z, z.cols(0), z.o.shared) }})
	// opAttendGradRows is the gradient in the rows, given that of the result, the rows, what scores
	// have of them, and what is kept. Its second result is what entry-dot computes.
	opAttendGradRows = define("attend-to-rows", func(o *backend.Operands) bool {
		return pushFits(o) && o.In[1].Rows == o.Out.Rows && o.In[0].Half == o.In[1].Half &&
			o.Extra[0].Rows == o.Lists.Entries && o.Extra[0].Cols == o.Heads
	}, attendGradRowsRef, Kind{lists: transposedEntries, accumulates: true,
		takes: func(_ *Program, _ *op, i int) operand {
			if i < 2 {
				return takesHalf
			}
			return takesFloats
		}, flops: func(z sized) float64 { return weighedFlops(z, z.cols(0), false) }})
	// opAttendGradScores is the gradient in the sums of which scores are made, in the place of that
	// in the weights after dropout. Its second result is the sum of each list.
	opAttendGradScores = define("attend-to-scores", func(o *backend.Operands) bool {
		return o.Out.Rows == o.Lists.Entries && o.Out.Cols == o.Heads &&
			o.Extra[0].Rows == o.Lists.Lists && o.In[2].Len() == keptCols*o.Extra[0].Len()
	}, attendGradScoresRef, Kind{lists: ownLists})
)

// fuseAttention makes one operation of sums of rows whose weights are a softmax of scores.
func (p *Program) fuseAttention() {
	uses, from := p.uses(), p.producers()
	only := func(v Value, kind *Kind, l List) *op {
		if j, ok := from[v]; ok && uses[v] == 1 && p.ops[j].kind == kind &&
			(kind.lists == noLists || p.ops[j].list == l) {
			return &p.ops[j]
		}
		return nil
	}
	for i := range p.ops {
		o := &p.ops[i]
		if o.kind != opPullWeighted {
			continue
		}
		weights := o.in[1]
		drop := only(weights, opDropout, o.list)
		if drop != nil {
			weights = drop.in[0]
		}
		softmax := only(weights, opSoftmax, o.list)
		if softmax == nil {
			continue
		}
		scores := only(softmax.in[0], opScores, o.list)
		if scores == nil {
			continue
		}
		o.kind, o.in = opAttend, []Value{o.in[0], scores.in[0], scores.in[1]}
		o.scalar = scores.scalar
		if drop != nil {
			o.rate, o.site, drop.kind = drop.rate, drop.site, nil
		}
		o.extra = []Value{p.new(value{rows: Nodes(o.list.Hop + 1), cols: keptCols * o.heads})}
		scores.kind, softmax.kind = nil, nil
	}
	p.dropNone()
}

func attendRule(t *tape, o *op, dy Value) {
	x, src, dst, kept := o.in[0], o.in[1], o.in[2], o.extra[0]
	dots := simple(opEntryDot, dy, x).overEntries(o)
	var da Value
	if t.p.of(x).grad {
		dots = simple(opAttendGradRows, dy, x, src, kept).overEntries(o)
		dots.rate, dots.site = o.rate, o.site
		da = t.p.new(value{rows: Entries(o.list), cols: o.heads, grad: true})
		dots.extra = []Value{da}
		t.give(x, dots)
	} else {
		da = t.p.add(dots, Entries(o.list), o.heads)
	}
	g := inPlace(opAttendGradScores, da, src, kept).overEntries(o)
	g.rate, g.site = o.rate, o.site
	v := *t.p.of(dst)
	ddst := t.p.new(value{rows: v.rows, cols: v.cols, grad: true})
	g.extra = []Value{ddst}
	ds := t.p.add(g, Entries(o.list), o.heads)
	t.hold(dst, ddst)
	t.give(src, simple(opEntryToRow, ds).overEntries(o))
}

// entryValues returns a matrix of the entries and heads.
func entryValues(h *backend.Plain) backend.Matrix {
	n := len(h.Lists.Idx)
	return backend.Matrix{Rows: n, Cols: h.Heads, V: make([]float32, n*h.Heads)}
}

// dropWeights drops values of entries out.
func dropWeights(h *backend.Plain, x backend.Matrix) {
	if h.Drop.Rate > 0 {
		kernel.Dropout(nil, x.V, h.Drop.First, h.Drop.Rate, h.Drop.Key)
	}
}

// attention returns the weights of entries and the slopes at their scores, given what scores have
// of rows, and what is kept.
func attention(h *backend.Plain, src, kept backend.Matrix) (a, slopes backend.Matrix) {
	a, slopes = entryValues(h), entryValues(h)
	h.Entries(func(list, entry, row int) {
		for head, x := range src.Row(row) {
			k := kept.Row(list)[keptCols*head:]
			s := leaky(x+k[0], h.Scalar)
			a.Row(entry)[head] = float32(math.Exp(float64(s-k[1]))) * k[2]
			slopes.Row(entry)[head] = leakySlope(s, h.Scalar)
		}
	})
	return a, slopes
}

func attendRef(h *backend.Plain) {
	src, dst, kept := h.From[1], h.From[2], h.More[0]
	clear(kept.V)
	for i := range dst.V {
		kept.V[keptCols*i], kept.V[keptCols*i+1] = dst.V[i], float32(math.Inf(-1))
		if h.Length(i/h.Heads) == 0 {
			kept.V[keptCols*i+1] = 0
		}
	}
	each := func(f func(i int, score float32, k []float32)) {
		h.Entries(func(list, _, row int) {
			for head, x := range src.Row(row) {
				k := kept.Row(list)[keptCols*head:]
				f(list*h.Heads+head, leaky(x+k[0], h.Scalar), k)
			}
		})
	}
	each(func(_ int, score float32, k []float32) { k[1] = max(k[1], score) })
	sums := make([]float64, len(dst.V))
	each(func(i int, score float32, k []float32) {
		sums[i] += math.Exp(float64(score - k[1]))
		k[2] = float32(1 / sums[i])
	})
	a, _ := attention(h, src, kept)
	dropWeights(h, a)
	addWeighed(h, a, func(e entryHead) (to int, x []float32) {
		return e.list*h.Heads + e.head, e.read(h.From[0])
	})
}

func attendGradRowsRef(h *backend.Plain) {
	a, _ := attention(h, h.From[2], h.From[3])
	dropWeights(h, a)
	addWeighed(h, a, func(e entryHead) (to int, x []float32) {
		dy := e.part(h.From[0], e.list)
		h.More[0].Row(e.entry)[e.head] = dot(dy, e.read(h.From[1]))
		if h.Shared {
			return e.row, dy
		}
		return e.row*h.Heads + e.head, dy
	})
}

// addWeighed sums parts of rows times the weights of entries, in double precision: f says of each
// entry and head which part of the result they belong to, and what they are.
func addWeighed(h *backend.Plain, a backend.Matrix,
	f func(e entryHead) (to int, x []float32)) {
	sums := make([]float64, len(h.To.V))
	weighed(func(h *backend.Plain, e entryHead) {
		to, x := f(e)
		for i, v := range x {
			sums[to*len(x)+i] += float64(v) * float64(a.Row(e.entry)[e.head])
		}
	})(h)
	for i, v := range sums {
		h.To.V[i] += float32(v)
	}
}

func attendGradScoresRef(h *backend.Plain) {
	a, slopes := attention(h, h.From[1], h.From[2])
	dropWeights(h, h.From[0])
	grads := h.More[0]
	sums, all := make([]float64, len(grads.V)), make([]float64, len(grads.V))
	each := func(f func(i, at int)) {
		h.Entries(func(list, entry, _ int) {
			for head := range h.Heads {
				f(list*h.Heads+head, entry*h.Heads+head)
			}
		})
	}
	each(func(i, at int) { sums[i] += float64(h.From[0].V[at]) * float64(a.V[at]) })
	each(func(i, at int) {
		h.To.V[at] = a.V[at] * slopes.V[at] * (h.From[0].V[at] - float32(sums[i]))
		all[i] += float64(h.To.V[at])
	})
	for i, v := range all {
		grads.V[i] = float32(v)
	}
}
