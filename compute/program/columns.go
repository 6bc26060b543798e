package program

import (
	"fmt"

	"gdb/compute/backend"
)

// Operations that move, join or sum up rows and columns.

var opColumnSum = &Kind{name: "column-sum", overRows: true,
	takes: func(*Program, *op, int) operand { return takesEither },
	taken: func(z sized, _ int) backend.Taken {
		return backend.TakenByColumnSum(z.rows(0), z.cols(0))
	},
	run: func(m *Machine, _ *op, t *operands) { m.be.ColumnSum(t.out, t.in[0]) }}

var opHeadMean = &Kind{name: "head-mean",
	grad: func(t *tape, o *op, dy Value) {
		g := simple(opHeadMeanGr, dy)
		g.heads = o.heads
		t.give(o.in[0], g)
	},
	run: func(m *Machine, o *op, t *operands) { m.be.HeadMean(t.out, t.in[0], o.heads) }}

var opHeadMeanGr = &Kind{name: "head-mean-grad",
	run: func(m *Machine, o *op, t *operands) { m.be.HeadMeanGrad(t.out, t.in[0], o.heads) }}

// HeadMean is the mean of the heads of x.
func (b *Builder) HeadMean(x Value, heads int) Value {
	vx := b.p.of(x)
	b.check(vx.cols%heads == 0, "HeadMean", x)
	if heads == 1 {
		return x
	}
	o := simple(opHeadMean, x)
	o.heads = heads
	return b.p.add(o, vx.rows, vx.cols/heads)
}

var opColumns = &Kind{name: "columns", follows: true,
	detail: func(o *op) string { return fmt.Sprintf(" from %d", o.first) },
	grad: func(t *tape, o *op, dy Value) {
		g := simple(opColumnsGr, dy)
		g.first = o.first
		t.give(o.in[0], g)
	},
	writesHalf: func(p *Program, o *op) bool { return p.of(o.in[0]).half },
	run:        func(m *Machine, o *op, t *operands) { m.be.Columns(t.out, t.in[0], o.first) }}

var opColumnsGr = &Kind{name: "columns-grad",
	run: func(m *Machine, o *op, t *operands) { m.be.ColumnsGrad(t.out, t.in[0], o.first) }}

// Columns are n columns of x, from column first on.
func (b *Builder) Columns(x Value, first, n int) Value {
	vx := b.p.of(x)
	b.check(first >= 0 && n > 0 && first+n <= vx.cols, "Columns", x)
	if n == vx.cols {
		return x
	}
	o := simple(opColumns, x)
	o.first = first
	return b.p.add(o, vx.rows, n)
}

// opEmbed is zeros, and then the rows of x.
var opEmbed = &Kind{name: "embed",
	run: func(m *Machine, _ *op, t *operands) {
		m.be.Zero(t.out.Slice(0, t.out.Rows-t.in[0].Rows))
		m.be.Copy(lastRows(t.out, t.in[0].Rows), t.in[0])
	}}

// opNarrow is x as bfloat16, and opWiden x as float32.
var (
	opNarrow = &Kind{name: "narrow",
		run: func(m *Machine, _ *op, t *operands) { m.halves().Narrow(t.out, t.in[0]) }}
	opWiden = &Kind{name: "widen",
		run: func(m *Machine, _ *op, t *operands) { m.halves().Widen(t.out, t.in[0]) }}
)

// opTypeRows are the rows of x by the types y of entries, and opTypeRowsGrad the sums of the rows x
// of entries of each type y.
var (
	opTypeRows = &Kind{name: "type-rows",
		grad: func(t *tape, o *op, dy Value) {
			t.give(o.in[0], simple(opTypeRowsGrad, dy, o.in[1]))
		},
		run: func(m *Machine, _ *op, t *operands) { m.be.TypeRows(t.out, t.in[0], t.in[1]) }}
	opTypeRowsGrad = &Kind{name: "type-rows-grad", counts: true,
		taken: func(z sized, _ int) backend.Taken {
			rows, cols := z.out()
			return backend.TakenByTypeRowsGrad(rows * cols)
		},
		run: func(m *Machine, _ *op, t *operands) { m.be.TypeRowsGrad(t.out, t.in[0], t.in[1]) }}
)

// TypeRows are the rows of a table, which has one for each type of edges, by the types of the
// entries of the layer's lists.
func (b *Builder) TypeRows(table Value) Value {
	entries := Entries(b.Lists())
	o := simple(opTypeRows, table, b.p.property(EdgeType, entries))
	return b.p.add(o, entries, b.Cols(table))
}
