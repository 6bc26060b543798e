package program

import (
	"math"

	"gdb/compute/backend"
	"gdb/compute/kernel"
)

// Operations that make weights of the entries of lists.

var (
	// opScores is x of the entry's row + y of its list, and leaky ReLU.
	opScores = define("scores", func(o *backend.Operands) bool {
		return o.Out.Rows == o.Lists.Entries && o.In[1].Rows == o.Lists.Lists &&
			o.In[0].Cols == o.In[1].Cols
	}, func(h *backend.Plain) {
		h.Entries(func(list, entry, row int) {
			for k, x := range h.From[0].Row(row) {
				h.To.Row(entry)[k] = leaky(x+h.From[1].Row(list)[k], h.Scalar)
			}
		})
	}, Kind{lists: ownLists, grad: scoresRule})
	// opScoresGrad is leaky ReLU's gradient: x where the score y is positive.
	opScoresGrad = define("scores-grad", likeSecond, opLeakyReLUGrad.Ref, Kind{lists: ownLists})
	// opEntryToList is the sum of the entries x of each list, and opEntryToRow that of those of
	// each row.
	opEntryToList = define("entries-to-lists", func(o *backend.Operands) bool {
		return o.Out.Rows == o.Lists.Lists && o.In[0].Rows == o.Lists.Entries
	}, func(h *backend.Plain) {
		h.Begin()
		h.Entries(func(list, entry, _ int) {
			addTo(h.To.Row(list), h.From[0].Row(entry), 1)
		})
	}, Kind{lists: ownLists})
	opEntryToRow = define("entries-to-rows", entriesFit, func(h *backend.Plain) {
		h.Begin()
		h.Entries(func(_, entry, row int) { addTo(h.To.Row(row), h.From[0].Row(entry), 1) })
	}, Kind{lists: transposedEntries, accumulates: true})
)

// Scores are src of the entry's row + dst of its list, and then LeakyReLU: (entries, heads).
func (b *Builder) Scores(src, dst Value, l List, slope float32) Value {
	b.check(b.p.of(src).rows == Nodes(l.Hop) && b.p.of(dst).rows == Nodes(l.Hop+1), "Scores", src,
		dst)
	o := simple(opScores, src, dst)
	o.list, o.heads, o.scalar = l, b.Cols(src), slope
	return b.p.add(o, Entries(l), b.Cols(src))
}

func scoresRule(t *tape, o *op, dy Value) {
	v := *t.p.of(o.out)
	ds := t.p.add(inPlace(opScoresGrad, dy, o.out).overEntries(o), v.rows, v.cols)
	t.give(o.in[0], simple(opEntryToRow, ds).overEntries(o))
	t.give(o.in[1], simple(opEntryToList, ds).overEntries(o))
}

var (
	// opScores2 computes the scores of GATv2: z · leaky(x of the row + y of the list).
	opScores2 = define("scores2", func(o *backend.Operands) bool {
		return o.Out.Rows == o.Lists.Entries && o.In[1].Rows == o.Lists.Lists &&
			o.In[2].Len() == o.In[1].Cols
	}, weighed(func(h *backend.Plain, e entryHead) {
		src, dst := e.part(h.From[0], e.row), e.part(h.From[1], e.list)
		sum := float32(0)
		for k, a := range e.part(h.From[2], 0) {
			sum += a * leaky(src[k]+dst[k], h.Scalar)
		}
		h.To.Row(e.entry)[e.head] = sum
	}), Kind{lists: ownLists, grad: scores2Rule})
	opScores2GradList = define("scores2-to-lists", func(o *backend.Operands) bool {
		return o.In[0].Rows == o.Lists.Entries && o.Out.Rows == o.Lists.Lists &&
			o.Extra[0].Len() == o.In[3].Len()
	}, scores2Ref(func(e entryHead) int { return e.list }), Kind{lists: ownLists,
		taken: func(z sized, _ int) backend.Taken {
			return backend.Taken{Once: kernel.AttentionWords(z.outCols())}
		}})
	opScores2GradRow = define("scores2-to-rows", func(o *backend.Operands) bool {
		return entriesFit(o) && o.In[2].Rows == o.Lists.Lists
	}, scores2Ref(func(e entryHead) int { return e.row }),
		Kind{lists: transposedEntries, accumulates: true,
			taken: func(z sized, _ int) backend.Taken {
				return backend.Taken{List: kernel.EdgeGradWords(z.o.heads, z.outCols()/z.o.heads)}
			}})
)

// Scores2 are att · LeakyReLU(src of the entry's row + dst of its list), for each head.
func (b *Builder) Scores2(src, dst, att Value, l List, heads int, slope float32) Value {
	o := simple(opScores2, src, dst, att)
	o.list, o.heads, o.scalar = l, heads, slope
	return b.p.add(o, Entries(l), heads)
}

func scores2Rule(t *tape, o *op, dy Value) {
	src, dst, att := o.in[0], o.in[1], o.in[2]
	g := simple(opScores2GradList, dy, src, dst, att).overEntries(o)
	a := *t.p.of(att)
	g.extra = []Value{t.p.new(value{rows: a.rows, cols: a.cols, grad: true})}
	v := *t.p.of(dst)
	ddst := t.p.add(g, v.rows, v.cols)
	t.hold(att, g.extra[0])
	t.hold(dst, ddst)
	t.give(src, simple(opScores2GradRow, dy, src, dst, att).overEntries(o))
}

var (
	// opSoftmax is over the entries of each list, in place.
	opSoftmax = define("softmax", func(o *backend.Operands) bool {
		return o.Out.Rows == o.Lists.Entries
	}, softmaxRef, Kind{lists: ownLists,
		grad: func(t *tape, o *op, dy Value) {
			t.give(o.in[0], inPlace(opSoftmaxGrad, dy, o.out).overEntries(o))
		}, taken: func(z sized, _ int) backend.Taken { return backend.Taken{List: z.o.heads} }})
	opSoftmaxGrad = define("softmax-grad", likeSecond, softmaxGradRef, Kind{lists: ownLists})
)

// Softmax is over the entries of each list.
func (b *Builder) Softmax(s Value, l List) Value {
	o := inPlace(opSoftmax, s)
	o.list, o.heads = l, b.Cols(s)
	return b.like(s, o)
}

// opProduct is x of the entry's row times y of its list, which are not learned.
var opProduct = define("product", func(o *backend.Operands) bool {
	return o.Out.Len() == o.Lists.Entries && o.In[1].Len() == o.Lists.Lists && o.In[0].Cols == 1
}, func(h *backend.Plain) {
	h.Entries(func(list, entry, row int) {
		h.To.V[entry] = h.From[0].V[row] * h.From[1].V[list]
	})
}, Kind{lists: ownLists})

// Product is src of the entry's row times dst of its list, which have one column and are not
// learned.
func (b *Builder) Product(src, dst Value, l List) Value {
	vs, vd := b.p.of(src), b.p.of(dst)
	b.check(vs.rows == Nodes(l.Hop) && vd.rows == Nodes(l.Hop+1) && vs.cols == 1 && vd.cols == 1,
		"Product", src, dst)
	o := simple(opProduct, src, dst)
	o.list = l
	return b.p.add(o, Entries(l), 1)
}

// entriesFit says that a sum over the entries of rows can be computed.
func entriesFit(o *backend.Operands) bool {
	return o.In[0].Rows == o.Lists.Entries && o.Out.Rows == o.Lists.Rows
}

// scores2Ref is the gradient of Scores2 in what an entry's list or its row has, by to, and in att.
func scores2Ref(to func(e entryHead) int) func(h *backend.Plain) {
	add := weighed(func(h *backend.Plain, e entryHead) {
		src, dst := e.part(h.From[1], e.row), e.part(h.From[2], e.list)
		ds := h.From[0].Row(e.entry)[e.head]
		for k, a := range e.part(h.From[3], 0) {
			x := leaky(src[k]+dst[k], h.Scalar)
			e.part(h.To, to(e))[k] += ds * a * leakySlope(x, h.Scalar)
			if h.More[0].Rows > 0 {
				e.part(h.More[0], 0)[k] += ds * x
			}
		}
	})
	return func(h *backend.Plain) {
		clear(h.More[0].V)
		add(h)
	}
}

// softmaxes calls f with the values of each list and head, of several matrices of entries.
func softmaxes(h *backend.Plain, f func(at []int)) {
	for i := range max(0, len(h.Lists.Off)-1) {
		for head := range h.To.Cols {
			var at []int
			for e := h.Lists.Off[i]; e < h.Lists.Off[i+1]; e++ {
				at = append(at, int(e)*h.To.Cols+head)
			}
			f(at)
		}
	}
}

func softmaxRef(h *backend.Plain) {
	x := h.From[0].V
	softmaxes(h, func(at []int) {
		most, sum := math.Inf(-1), 0.0
		for _, i := range at {
			most = max(most, float64(x[i]))
		}
		for _, i := range at {
			sum += math.Exp(float64(x[i]) - most)
		}
		for _, i := range at {
			h.To.V[i] = float32(math.Exp(float64(x[i])-most) / sum)
		}
	})
}

func softmaxGradRef(h *backend.Plain) {
	da, a := h.From[0].V, h.From[1].V
	softmaxes(h, func(at []int) {
		sum := float32(0)
		for _, i := range at {
			sum += da[i] * a[i]
		}
		for _, i := range at {
			h.To.V[i] = a[i] * (da[i] - sum)
		}
	})
}
