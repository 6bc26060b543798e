package program

import (
	"math"
	"slices"

	"gdb/compute/backend"
	"gdb/compute/kernel"
	"gdb/compute/kernel/bf16"
)

// Reductions of the rows that lists name, and their gradients, which sum up over transposed lists.

var (
	opPullMean = define("pull-mean", pullFits, pullRef(true),
		Kind{lists: ownLists, reduces: true, reduce: Mean, linear: true, takes: allHalf,
			writesHalf: unlessAdded, flops: pullFlops, grad: pullRule(opPullMeanGrad),
			taken: func(z sized, longest int) (t backend.Taken) {
				if z.p.of(z.o.in[0]).role == roleTable {
					t.List = z.p.cutWords(longest, z.outCols())
				}
				return t
			}})
	opPullMeanGrad = define("push-mean", pushFits, pushRef(true),
		Kind{lists: transposedLists, accumulates: true, takes: allHalf, flops: pullFlops})
	// opPullMeanDropped is opPullMean of rows that are dropped out as they are read.
	opPullMeanDropped = define("pull-mean-dropped", pullFits, pullDroppedRef,
		Kind{drops: true, lists: ownLists, takes: allHalf, writesHalf: unlessAdded,
			flops: pullFlops,
			taken: func(z sized, longest int) backend.Taken {
				return backend.Taken{List: max(kernel.DroppedWords(longest, z.outCols()),
					z.p.cutWords(longest, z.outCols()))}
			},
			takenHalf: func(z sized, longest int) backend.Taken {
				return backend.Taken{List: bf16.DroppedWords(longest, z.outCols()) +
					bf16.SegmentWords(z.lists(), z.entries(), z.outCols(), true)}
			}})
	opPullSum = define("pull-sum", pullFits, pullRef(false),
		Kind{lists: ownLists, reduces: true, reduce: Sum, linear: true, takes: allHalf,
			writesHalf: unlessAdded, flops: pullFlops, grad: pullRule(opPullSumGrad)})
	opPullSumGrad = define("push-sum", pushFits, pushRef(false),
		Kind{lists: transposedLists, accumulates: true, takes: allHalf, flops: pullFlops,
			taken: func(z sized, _ int) backend.Taken {
				return backend.Taken{Once: z.lists()}
			}})
	opPullMax = define("pull-max", func(o *backend.Operands) bool {
		return pullFits(o) && o.Extra[0].Len() == o.Out.Len()
	}, pullMaxRef, Kind{lists: ownLists, reduces: true, reduce: Max, takes: allHalf,
		writesHalf: unlessAdded,
		grad: func(t *tape, o *op, dy Value) {
			g := simple(opPullMaxGrad, dy, o.extra[0])
			g.list = o.list
			t.give(o.in[0], g)
		}})
	opPullMaxGrad = define("push-max", func(o *backend.Operands) bool {
		return pushFits(o) && o.In[1].Len() == o.In[0].Len()
	}, pushMaxRef, Kind{lists: transposedLists, accumulates: true})
)

// Pull reduces the rows of x in each list to one.
func (b *Builder) Pull(x Value, l List, r Reduce) Value {
	vx := b.p.of(x)
	b.check(vx.rows == l.reads(), "Pull", x)
	if b.masks(l) {
		return b.pullMasked(x, l, r)
	}
	o := simple([]*Kind{Mean: opPullMean, Sum: opPullSum, Max: opPullMax}[r], x)
	o.list = l
	if r == Max {
		o.extra = []Value{b.p.new(value{rows: l.has(), cols: vx.cols})}
	}
	return b.p.add(o, l.has(), vx.cols)
}

// cutWords returns the scratch of means of rows that a table may have in pieces.
func (p *Program) cutWords(longest, cols int) int {
	if !p.mayCut {
		return 0
	}
	return kernel.CutWords(longest, cols)
}

func pullRule(kind *Kind) rule {
	return func(t *tape, o *op, dy Value) {
		g := simple(kind, dy)
		g.list = o.list
		t.give(o.in[0], g)
	}
}

// gatherFlops is what reading one float of a random row costs, in floating-point operations of a
// matrix product: a core gathers about 5 GB/s and multiplies at about 100 GFLOP/s.
const gatherFlops = 80

func pullFlops(z sized) float64 {
	return gatherFlops * float64(z.entries()) * float64(z.cols(0))
}

var (
	// opPullWeighted is the sum of the rows of x times the entries' weights y, by head.
	opPullWeighted = define("pull-weighted", func(o *backend.Operands) bool {
		width := o.In[0].Cols
		if o.Shared {
			width *= o.Heads
		}
		return o.Out.Rows == o.Lists.Lists && o.Out.Cols == width &&
			o.In[1].Rows == o.Lists.Entries && o.In[1].Cols == o.Heads
	}, weighed(func(h *backend.Plain, e entryHead) {
		addTo(e.part(h.To, e.list), e.read(h.From[0]), h.From[1].Row(e.entry)[e.head])
	}), Kind{lists: ownLists, reduces: true, reduce: Sum, linear: true, takes: firstHalf,
		writesHalf: unlessAdded, grad: pullWeightedRule,
		flops: func(z sized) float64 { return weighedFlops(z, z.cols(0), z.o.shared) }})
	// opPullWeightedGradX has x, the gradient of the output, and weights y.
	opPullWeightedGradX = define("push-weighted", pushFits, weighed(func(h *backend.Plain,
		e entryHead) {
		addTo(e.read(h.To), e.part(h.From[0], e.list), h.From[1].Row(e.entry)[e.head])
	}), Kind{lists: transposedEntries, accumulates: true, takes: firstHalf,
		flops: func(z sized) float64 { return weighedFlops(z, z.cols(0), false) },
		taken: func(z sized, _ int) backend.Taken {
			return backend.Taken{List: kernel.EdgeGradWords(z.o.heads, z.cols(0)/z.o.heads)}
		}})
	// opEntryDot has from x (lists) and y (rows) their products for each entry and head.
	opEntryDot = define("entry-dot", func(o *backend.Operands) bool {
		return o.In[0].Rows == o.Lists.Lists && o.Out.Rows == o.Lists.Entries &&
			o.Out.Cols == o.Heads && o.In[0].Half == o.In[1].Half
	}, weighed(func(h *backend.Plain, e entryHead) {
		h.To.Row(e.entry)[e.head] = dot(e.part(h.From[0], e.list), e.read(h.From[1]))
	}), Kind{lists: ownLists, takes: allHalf, flops: func(z sized) float64 {
		return weighedFlops(z, z.cols(1), z.o.shared)
	}})
)

// PullWeighted sums the rows of x in each list, times the weights w (entries, heads) of the
// entries: head h of the result is the sum of head h of x. With shared, each head sums the whole
// row.
func (b *Builder) PullWeighted(x, w Value, l List, heads int, shared bool) Value {
	b.check(b.p.of(x).rows == l.reads() && b.p.of(w).rows == Entries(l) &&
		b.p.of(w).cols == heads, "PullWeighted", x, w)
	if b.masks(l) {
		w = b.masked(w, l)
	}
	return b.pullWeighted(x, w, l, weighing{heads, shared})
}

// weighing says how many heads weights have, and whether each sums whole rows.
type weighing struct {
	heads  int
	shared bool
}

func (b *Builder) pullWeighted(x, w Value, l List, by weighing) Value {
	o := simple(opPullWeighted, x, w)
	o.list, o.heads, o.shared = l, by.heads, by.shared
	cols := b.Cols(x)
	if by.shared {
		cols *= by.heads
	}
	return b.p.add(o, l.has(), cols)
}

func pullWeightedRule(t *tape, o *op, dy Value) {
	x, w := o.in[0], o.in[1]
	t.give(w, simple(opEntryDot, dy, x).overEntries(o))
	t.give(x, simple(opPullWeightedGradX, dy, w).overEntries(o))
}

// weighedFlops returns the cost of an operation that reads a row of cols columns for each entry:
// the row is read once, and used for each head if heads share it.
func weighedFlops(z sized, cols int, shared bool) float64 {
	read := float64(cols)
	used := read
	if shared {
		used *= float64(z.o.heads)
	}
	const usedFlops = 16 // a value that is in the first cache
	return float64(z.entries()) * (gatherFlops*read + usedFlops*(used-read))
}

// opDots has from x (lists) and y (rows) their products for each entry and head.
var opDots = define("dots", opEntryDot.Fits, opEntryDot.Ref, Kind{lists: ownLists,
	grad: func(t *tape, o *op, dy Value) {
		t.give(o.in[0], simple(opPullWeighted, o.in[1], dy).overEntries(o))
		t.give(o.in[1], simple(opPullWeightedGradX, o.in[0], dy).overEntries(o))
	}})

// Dots returns the product of x of each list and y of the row of each entry, by head. With shared,
// each head of x is multiplied with the whole row.
func (b *Builder) Dots(x, y Value, l List, heads int, shared bool) Value {
	cols := b.Cols(y)
	if shared {
		cols *= heads
	}
	b.check(b.p.of(x).rows == l.has() && b.p.of(y).rows == l.reads() && b.Cols(x) == cols, "Dots",
		x, y)
	o := simple(opDots, x, y)
	o.list, o.heads, o.shared = l, heads, shared
	return b.p.add(o, Entries(l), heads)
}

func pullFits(o *backend.Operands) bool {
	return (o.Out.Cols == o.In[0].Cols || o.Lists.Cut) && o.Out.Rows == o.Lists.Lists
}

// pushFits says that a gradient of rows can be computed: the backend was asked for transposed
// lists.
func pushFits(o *backend.Operands) bool {
	return o.In[0].Rows == o.Lists.Lists && o.Out.Rows == o.Lists.Rows
}

// pullRef sums rows of lists up, or takes their mean.
func pullRef(mean bool) func(h *backend.Plain) {
	return func(h *backend.Plain) {
		h.Begin()
		h.Entries(func(list, _, row int) {
			addTo(h.To.Row(list), h.From[0].Row(row), share(h, mean, list))
		})
	}
}

// pushRef is the gradient of either.
func pushRef(mean bool) func(h *backend.Plain) {
	return func(h *backend.Plain) {
		h.Begin()
		h.Entries(func(list, _, row int) {
			addTo(h.To.Row(row), h.From[0].Row(list), share(h, mean, list))
		})
	}
}

// share returns the weight of an entry of a list: 1/length for means, 1 for sums.
func share(h *backend.Plain, mean bool, list int) float32 {
	if mean {
		return 1 / float32(h.Length(list))
	}
	return 1
}

func pullDroppedRef(h *backend.Plain) {
	h.Begin()
	h.Entries(func(list, entry, row int) {
		x := slices.Clone(h.From[0].Row(row))
		kernel.Dropout(nil, x, int(h.Lists.At[entry])*len(x), h.Drop.Rate, h.Drop.Key)
		addTo(h.To.Row(list), x, share(h, true, list))
	})
}

// pullMaxRef takes the first of equal values. A NaN is larger than any number.
func pullMaxRef(h *backend.Plain) {
	h.Begin()
	for i := range h.More[0].V {
		h.More[0].V[i] = math.Float32frombits(kernel.NoRow)
	}
	h.Entries(func(list, _, row int) {
		rows, most := h.More[0].Row(list), h.To.Row(list)
		for j, v := range h.From[0].Row(row) {
			first := math.Float32bits(rows[j]) == kernel.NoRow
			if first || v > most[j] || v != v && most[j] == most[j] {
				rows[j], most[j] = math.Float32frombits(uint32(row)), v
			}
		}
	})
}

func pushMaxRef(h *backend.Plain) {
	h.Begin()
	for i := range h.From[0].Rows {
		for j, row := range h.From[1].Row(i) {
			if at := math.Float32bits(row); at != kernel.NoRow {
				h.To.Row(int(at))[j] += h.From[0].Row(i)[j]
			}
		}
	}
}
