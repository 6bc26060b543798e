package program

import "gdb/compute/backend"

// Operations that make weights of the entries of lists.

var (
	// opScores is x of the entry's row + y of its list, and leaky ReLU.
	opScores = &Kind{name: "scores", lists: ownLists, grad: scoresRule,
		run: func(m *Machine, o *op, t *operands) {
			m.be.Scores(t.out, t.in[0], t.in[1], m.segments(o.list), o.scalar)
		}}
	// opScoresGrad is leaky ReLU's gradient: x where the score y is positive.
	opScoresGrad = &Kind{name: "scores-grad", lists: ownLists,
		run: func(m *Machine, o *op, t *operands) { m.be.ScoresGrad(t.out, t.in[1], o.scalar) }}
	// opEntryToList is the sum of the entries x of each list, and opEntryToRow that of those of
	// each row.
	opEntryToList = &Kind{name: "entries-to-lists", lists: ownLists,
		run: func(m *Machine, o *op, t *operands) {
			m.be.EntryToList(t.out, t.in[0], m.segments(o.list))
		}}
	opEntryToRow = &Kind{name: "entries-to-rows", lists: transposedEntries, accumulates: true,
		run: func(m *Machine, o *op, t *operands) {
			m.be.EntryToRow(t.out, t.in[0], m.segments(o.list), t.fresh())
		}}
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
	// opScores2 is that of GATv2: z · leaky(x of the row + y of the list).
	opScores2 = &Kind{name: "scores2", lists: ownLists, grad: scores2Rule,
		run: func(m *Machine, o *op, t *operands) {
			m.be.Scores2(t.out, t.in[0], t.in[1], t.in[2], m.segments(o.list), o.heads, o.scalar)
		}}
	opScores2GradList = &Kind{name: "scores2-to-lists", lists: ownLists,
		taken: func(z sized, _ int) backend.Taken {
			return backend.TakenByScores2GradList(z.outCols())
		},
		run: func(m *Machine, o *op, t *operands) {
			m.be.Scores2GradList(t.out, t.extra[0], t.in[0], t.in[1], t.in[2], t.in[3],
				m.segments(o.list), o.heads, o.scalar)
		}}
	opScores2GradRow = &Kind{name: "scores2-to-rows", lists: transposedEntries, accumulates: true,
		taken: func(z sized, _ int) backend.Taken {
			return backend.TakenByEntryGrad(z.o.heads, z.outCols()/z.o.heads)
		},
		run: func(m *Machine, o *op, t *operands) {
			m.be.Scores2GradRow(t.out, t.in[0], t.in[1], t.in[2], t.in[3], m.segments(o.list),
				o.heads, o.scalar, t.fresh())
		}}
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
	opSoftmax = &Kind{name: "softmax", lists: ownLists,
		grad: func(t *tape, o *op, dy Value) {
			t.give(o.in[0], inPlace(opSoftmaxGrad, dy, o.out).overEntries(o))
		},
		taken: func(z sized, _ int) backend.Taken { return backend.TakenBySoftmax(z.o.heads) },
		run:   func(m *Machine, o *op, t *operands) { m.be.Softmax(t.out, m.segments(o.list)) }}
	opSoftmaxGrad = &Kind{name: "softmax-grad", lists: ownLists,
		run: func(m *Machine, o *op, t *operands) {
			m.be.SoftmaxGrad(t.out, t.in[1], m.segments(o.list))
		}}
)

// Softmax is over the entries of each list.
func (b *Builder) Softmax(s Value, l List) Value {
	o := inPlace(opSoftmax, s)
	o.list, o.heads = l, b.Cols(s)
	return b.like(s, o)
}

// opProduct is x of the entry's row times y of its list, which are not learned.
var opProduct = &Kind{name: "product", lists: ownLists,
	run: func(m *Machine, o *op, t *operands) {
		m.be.EntryProduct(t.out, t.in[0], t.in[1], m.segments(o.list))
	}}

// Product is src of the entry's row times dst of its list, which have one column and are not
// learned.
func (b *Builder) Product(src, dst Value, l List) Value {
	vs, vd := b.p.of(src), b.p.of(dst)
	b.check(vs.rows == Nodes(l.Hop) && vd.rows == Nodes(l.Hop+1) && vs.cols == 1 && vd.cols == 1,
		"Product", src, dst)
	o := simple(opProduct, src, dst)
	o.list, o.heads = l, 1
	return b.p.add(o, Entries(l), 1)
}
