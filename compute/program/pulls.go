package program

import "gdb/compute/backend"

// Reductions of the rows that lists name, and their gradients, which sum up over transposed lists.

// Reduce is how a list's rows become one.
type Reduce uint8

// The reductions. The mean, the sum and the largest of an empty list are zero.
const (
	Mean Reduce = iota
	Sum
	Max
)

var (
	opPullMean = &Kind{name: "pull-mean", lists: ownLists, reduces: true, reduce: Mean,
		linear: true, takes: allHalf, writesHalf: unlessAdded, flops: pullFlops,
		grad: pullRule(opPullMeanGrad),
		run: func(m *Machine, o *op, t *operands) {
			m.be.SegmentMean(t.out, t.in[0], m.segments(o.list))
		}}
	opPullMeanGrad = &Kind{name: "push-mean", lists: transposedLists, accumulates: true,
		takes: allHalf, flops: pullFlops,
		run: func(m *Machine, o *op, t *operands) {
			m.be.SegmentMeanGrad(t.out, t.in[0], m.segments(o.list), t.fresh())
		}}
	// opPullMeanDropped is opPullMean of rows that are dropped out as they are read.
	opPullMeanDropped = &Kind{name: "pull-mean-dropped", lists: ownLists, takes: allHalf,
		writesHalf: unlessAdded, flops: pullFlops,
		taken: func(z sized, longest int) backend.Taken {
			return backend.TakenBySegmentMeanDropout(longest, z.outCols())
		},
		takenHalf: func(z sized, longest int) backend.Taken {
			return backend.TakenByHalfDropped(longest, z.lists(), z.entries(), z.outCols())
		},
		run: func(m *Machine, o *op, t *operands) {
			m.be.SegmentMeanDropout(t.out, t.in[0], m.segments(o.list), o.scalar, m.key(o.site))
		}}
	opPullSum = &Kind{name: "pull-sum", lists: ownLists, reduces: true, reduce: Sum,
		linear: true, takes: allHalf, writesHalf: unlessAdded, flops: pullFlops,
		grad: pullRule(opPullSumGrad),
		run: func(m *Machine, o *op, t *operands) {
			m.be.SegmentSum(t.out, t.in[0], m.segments(o.list))
		}}
	opPullSumGrad = &Kind{name: "push-sum", lists: transposedLists, accumulates: true,
		takes: allHalf, flops: pullFlops,
		taken: func(z sized, _ int) backend.Taken {
			return backend.TakenBySegmentSumGrad(z.lists())
		},
		run: func(m *Machine, o *op, t *operands) {
			m.be.SegmentSumGrad(t.out, t.in[0], m.segments(o.list), t.fresh())
		}}
	opPullMax = &Kind{name: "pull-max", lists: ownLists, reduces: true, reduce: Max,
		takes: allHalf, writesHalf: unlessAdded,
		grad: func(t *tape, o *op, dy Value) {
			g := simple(opPullMaxGrad, dy, o.extra[0])
			g.list = o.list
			t.give(o.in[0], g)
		},
		run: func(m *Machine, o *op, t *operands) {
			m.be.SegmentMax(t.out, t.in[0], t.extra[0], m.segments(o.list))
		}}
	opPullMaxGrad = &Kind{name: "push-max", lists: transposedLists, accumulates: true,
		run: func(m *Machine, o *op, t *operands) {
			m.be.SegmentMaxGrad(t.out, t.in[0], t.in[1], m.segments(o.list), t.fresh())
		}}
)

// Pull reduces the rows of x in each list to one.
func (b *Builder) Pull(x Value, l List, r Reduce) Value {
	vx := b.p.of(x)
	b.check(vx.rows == Nodes(l.Hop), "Pull", x)
	o := simple([]*Kind{Mean: opPullMean, Sum: opPullSum, Max: opPullMax}[r], x)
	o.list = l
	if r == Max {
		o.extra = []Value{b.p.new(value{rows: Nodes(l.Hop + 1), cols: vx.cols})}
	}
	return b.p.add(o, Nodes(l.Hop+1), vx.cols)
}

func pullRule(kind *Kind) rule {
	return func(t *tape, o *op, dy Value) {
		g := simple(kind, dy)
		g.list = o.list
		t.give(o.in[0], g)
	}
}

func pullFlops(z sized) float64 {
	return gatherFlops * float64(z.entries()) * float64(z.cols(0))
}

var (
	// opPullWeighted is the sum of the rows of x times the entries' weights y, by head.
	opPullWeighted = &Kind{name: "pull-weighted", lists: ownLists, reduces: true, reduce: Sum,
		linear: true, takes: firstHalf, writesHalf: unlessAdded,
		flops: func(z sized) float64 { return weighedFlops(z, z.cols(0), z.o.shared) },
		grad:  pullWeightedRule,
		run: func(m *Machine, o *op, t *operands) {
			m.be.WeightedSum(t.out, t.in[0], t.in[1], m.segments(o.list), o.heads, o.shared, t.acc)
		}}
	// opPullWeightedGradX has x, the gradient of the output, and weights y.
	opPullWeightedGradX = &Kind{name: "push-weighted", lists: transposedEntries, accumulates: true,
		takes: firstHalf,
		flops: func(z sized) float64 { return weighedFlops(z, z.cols(0), false) },
		taken: func(z sized, _ int) backend.Taken {
			return backend.TakenByEntryGrad(z.o.heads, z.cols(0)/z.o.heads)
		},
		run: func(m *Machine, o *op, t *operands) {
			m.be.WeightedSumGrad(t.out, t.in[0], t.in[1], m.segments(o.list), o.heads, o.shared,
				t.fresh())
		}}
	// opEntryDot has from x (lists) and y (rows) their products for each entry and head.
	opEntryDot = &Kind{name: "entry-dot", lists: ownLists, takes: allHalf,
		flops: func(z sized) float64 { return weighedFlops(z, z.cols(1), z.o.shared) },
		run: func(m *Machine, o *op, t *operands) {
			m.be.EntryDot(t.out, t.in[0], t.in[1], m.segments(o.list), o.heads, o.shared)
		}}
)

// PullWeighted sums the rows of x in each list, times the weights w (entries, heads) of the
// entries: head h of the result is the sum of head h of x. With shared, each head sums the whole
// row.
func (b *Builder) PullWeighted(x, w Value, l List, heads int, shared bool) Value {
	vx := b.p.of(x)
	b.check(vx.rows == Nodes(l.Hop) && b.p.of(w).rows == Entries(l) && b.p.of(w).cols == heads,
		"PullWeighted", x, w)
	o := simple(opPullWeighted, x, w)
	o.list, o.heads, o.shared = l, heads, shared
	cols := vx.cols
	if shared {
		cols *= heads
	}
	return b.p.add(o, Nodes(l.Hop+1), cols)
}

func pullWeightedRule(t *tape, o *op, dy Value) {
	x, w := o.in[0], o.in[1]
	t.give(w, simple(opEntryDot, dy, x).overEntries(o))
	t.give(x, simple(opPullWeightedGradX, dy, w).overEntries(o))
}

// weighedFlops is what an operation costs that reads a row of so many columns for each entry: the
// row is read once, and if it is shared used for each head.
func weighedFlops(z sized, cols int, shared bool) float64 {
	read := float64(cols)
	used := read
	if shared {
		used *= float64(z.o.heads)
	}
	const usedFlops = 16 // a value that is in the first cache
	return float64(z.entries()) * (gatherFlops*read + usedFlops*(used-read))
}
