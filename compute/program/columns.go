package program

import (
	"fmt"
	"math"

	"gdb/compute/backend"
	"gdb/compute/kernel"
)

// Operations that move, join or sum up rows and columns.

var opColumnSum = define("column-sum", func(o *backend.Operands) bool {
	return o.Out.Len() == o.In[0].Cols
}, columnSumRef, Kind{overRows: true,
	takes: func(*Program, *op, int) operand { return takesEither },
	taken: func(z sized, _ int) backend.Taken {
		return backend.Taken{Once: kernel.ColumnWords(z.rows(0), z.cols(0))}
	}})

var opHeadMean = define("head-mean", func(o *backend.Operands) bool {
	return o.Out.Rows == o.In[0].Rows && o.In[0].Cols == o.Heads*o.Out.Cols
}, headMeanRef, Kind{grad: func(t *tape, o *op, dy Value) {
	g := simple(opHeadMeanGr, dy)
	g.heads = o.heads
	t.give(o.in[0], g)
}})

var opHeadMeanGr = define("head-mean-grad", func(o *backend.Operands) bool {
	return o.Out.Rows == o.In[0].Rows && o.Out.Cols == o.Heads*o.In[0].Cols
}, headMeanGradRef, Kind{})

// HeadMean returns the mean of the heads of x.
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

var opColumns = define("columns", func(o *backend.Operands) bool {
	return o.Out.Rows == o.In[0].Rows && o.First+o.Out.Cols <= o.In[0].Cols
}, columnsRef, Kind{follows: true,
	detail: func(o *op) string { return fmt.Sprintf(" from %d", o.first) },
	grad: func(t *tape, o *op, dy Value) {
		g := simple(opColumnsGr, dy)
		g.first = o.first
		t.give(o.in[0], g)
	}, writesHalf: func(p *Program, o *op) bool { return p.of(o.in[0]).half }})

var opColumnsGr = define("columns-grad", func(o *backend.Operands) bool {
	return o.Out.Rows == o.In[0].Rows && o.First+o.In[0].Cols <= o.Out.Cols
}, columnsGradRef, Kind{})

// Columns returns n columns of x, from column first on.
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
var opEmbed = define("embed", func(o *backend.Operands) bool {
	return o.Out.Rows >= o.In[0].Rows && o.Out.Cols == o.In[0].Cols
}, func(h *backend.Plain) {
	first := len(h.To.V) - len(h.From[0].V)
	clear(h.To.V[:first])
	copy(h.To.V[first:], h.From[0].V)
}, Kind{})

// opNarrow is x as bfloat16, and opWiden x as float32.
var (
	opNarrow = define("narrow", sameLen, copyRef, Kind{})
	opWiden  = define("widen", sameLen, copyRef, Kind{})
)

// opTypeRows are the rows of x by the types y of entries or segments, and opTypeRowsGrad sums up
// the rows x of each type y.
var (
	opTypeRows = define("type-rows", func(o *backend.Operands) bool {
		return o.Out.Rows == o.In[1].Len() && o.Out.Cols == o.In[0].Cols
	}, func(h *backend.Plain) {
		for e, t := range h.From[1].V {
			copy(h.To.Row(e), h.From[0].Row(int(math.Float32bits(t))))
		}
	}, Kind{grad: func(t *tape, o *op, dy Value) {
		t.give(o.in[0], simple(opTypeRowsGrad, dy, o.in[1]))
	}})
	opTypeRowsGrad = define("type-rows-grad", func(o *backend.Operands) bool {
		return o.In[0].Rows == o.In[1].Len() && o.Out.Cols == o.In[0].Cols
	}, func(h *backend.Plain) {
		h.Begin()
		for e, t := range h.From[1].V {
			addTo(h.To.Row(int(math.Float32bits(t))), h.From[0].Row(e), 1)
		}
	}, Kind{counts: true,
		taken: func(z sized, _ int) backend.Taken {
			rows, cols := z.out()
			return backend.Taken{Once: kernel.TypeParts(rows*cols) * rows * cols}
		}})
)

// opTypeBias adds to each row of x the row of a table y that its type z has, and opTypeBiasReLU is
// zero besides where that is below zero.
var (
	opTypeBias = define("type-bias", biasedByType, biasByTypeRef,
		Kind{counts: true, grad: typeBiasRule})
	opTypeBiasReLU = define("type-bias-relu", biasedByType, func(h *backend.Plain) {
		biasByTypeRef(h)
		for i, x := range h.To.V {
			h.To.V[i] = max(0, x)
		}
	}, Kind{counts: true, masks: true, grad: func(t *tape, o *op, dy Value) {
		typeBiasRule(t, o, t.reluGrad(o, dy))
	}})
)

// BiasByType adds to each row of x the row of a table, which has one for each type, by types.
func (b *Builder) BiasByType(x, table, types Value) Value {
	b.check(b.Cols(table) == b.Cols(x) && b.p.of(types).rows == b.p.of(x).rows, "BiasByType", x,
		table, types)
	return b.like(x, inPlace(opTypeBias, x, table, types))
}

func typeBiasRule(t *tape, o *op, dy Value) {
	t.give(o.in[1], simple(opTypeRowsGrad, dy, o.in[2]))
	t.hold(o.in[0], dy)
}

func biasedByType(o *backend.Operands) bool {
	return sameLen(o) && o.In[1].Cols == o.Out.Cols && o.In[2].Len() == o.Out.Rows
}

func biasByTypeRef(h *backend.Plain) {
	copyRef(h)
	for i, t := range h.From[2].V {
		addTo(h.To.Row(i), h.From[1].Row(int(math.Float32bits(t))), 1)
	}
}

// TypeRows returns the rows of a table, which has one for each type of edges, by the types of the
// entries of the layer's lists.
func (b *Builder) TypeRows(table Value) Value {
	types := b.p.property(EdgeType, Entries(b.Lists()))
	return b.p.add(simple(opTypeRows, table, types), b.p.of(types).rows, b.Cols(table))
}

// SegmentRows returns the rows of such a table by the types of the segments of the layer's lists.
func (b *Builder) SegmentRows(table Value) Value {
	types := b.SegmentTypes()
	return b.p.add(simple(opTypeRows, table, types), b.p.of(types).rows, b.Cols(table))
}

// opTypeShares has a column for each type: in that of the type x of an entry its value y, and else
// zeros.
var opTypeShares = define("type-shares", func(o *backend.Operands) bool {
	return o.Out.Rows == o.In[0].Len() && o.Out.Rows == o.In[1].Len()
}, func(h *backend.Plain) {
	h.Begin()
	for e, t := range h.From[0].V {
		h.To.Row(e)[math.Float32bits(t)] = h.From[1].V[e]
	}
}, Kind{})

// SharesByType returns, for each entry of the layer's lists, 1/n in the column of its type, n being
// how many of the list have that type, and zeros in those of the other types. The sum of rows with
// these weights, each head reading whole rows, is their mean by type.
func (b *Builder) SharesByType(types int) Value {
	entries := Entries(b.Lists())
	o := simple(opTypeShares, b.p.property(EdgeType, entries), b.TypeShares())
	return b.p.add(o, entries, types)
}

func columnSumRef(h *backend.Plain) {
	h.Begin()
	for i := range h.From[0].Rows {
		addTo(h.To.V, h.From[0].Row(i), 1)
	}
}

func headMeanRef(h *backend.Plain) {
	h.Begin()
	d := h.To.Cols
	for i := range h.To.Rows {
		for head := range h.Heads {
			addTo(h.To.Row(i), h.From[0].Row(i)[head*d:][:d], 1/float32(h.Heads))
		}
	}
}

func headMeanGradRef(h *backend.Plain) {
	h.Begin()
	d := h.From[0].Cols
	for i := range h.To.Rows {
		for head := range h.Heads {
			addTo(h.To.Row(i)[head*d:][:d], h.From[0].Row(i), 1/float32(h.Heads))
		}
	}
}

func columnsRef(h *backend.Plain) {
	for i := range h.To.Rows {
		copy(h.To.Row(i), h.From[0].Row(i)[h.First:])
	}
}

func columnsGradRef(h *backend.Plain) {
	h.Begin()
	for i := range h.To.Rows {
		copy(h.To.Row(i)[h.First:], h.From[0].Row(i))
	}
}
