package program

import (
	"fmt"
)

// Builder appends the operations of a model to a program.
type Builder struct {
	p *Program
	// Train is whether values are dropped out.
	Train bool
	// hop numbers the hop whose layer is built.
	hop int
	// Exact says that the lists are whole lists of the graph, not drawn neighbors.
	Exact bool
}

// Cols returns the width of a value.
func (b *Builder) Cols(v Value) int { return b.p.of(v).cols }

// Lists returns the lists of the layer under way.
func (b *Builder) Lists() List { return List{Hop: b.hop} }

// Next ends a layer: the next one reads the lists of the next hop.
func (b *Builder) Next() { b.hop++ }

// Param returns a matrix that is learned.
func (b *Builder) Param(name string, rows, cols int, init Init) Value {
	return b.p.new(value{rows: Fixed(rows), cols: cols, role: roleParam, grad: !b.p.explains,
		name:  name,
		index: b.p.params.add(name, rows, cols, init)})
}

// Own returns the rows of x that the next layer has: those of the nodes that have lists.
func (b *Builder) Own(x Value) Value {
	vx := b.p.of(x)
	b.check(vx.rows.kind == nodeRows && vx.rows.n < b.p.layers, "Own", x)
	return b.p.tail(x, Nodes(vx.rows.n+1))
}

// tail returns a view of the last rows of x.
func (p *Program) tail(x Value, rows Rows) Value {
	v := *p.of(x)
	if v.rows == rows {
		return x
	}
	if v.base != 0 {
		return p.tail(v.base, rows)
	}
	for i := range p.values { // one view of each kind, so that its uses are seen together
		if p.values[i].base == x && p.values[i].rows == rows {
			return Value(i)
		}
	}
	v.rows, v.base = rows, x
	return p.new(v)
}

// Degrees returns 1/sqrt(1+in-degree) of the nodes that the layer reads.
func (b *Builder) Degrees() Value { return b.p.property(InvSqrtDegree, Nodes(b.hop)) }

// EdgeWeights returns the weights of the entries of the layer's lists: (entries,1).
func (b *Builder) EdgeWeights() Value { return b.p.property(EdgeWeight, Entries(b.Lists())) }

// EdgeColumns returns the columns of the entries of the layer's lists, of which each has cols; of
// lists with loops these are zeros for a loop. A program has them with loops or without.
func (b *Builder) EdgeColumns(cols int, l List) Value {
	b.p.columns, b.p.looped = cols, l.Loops
	return b.p.property(EdgeColumn, Entries(l))
}

// InvListWeights returns 1/s of the nodes that have lists, s being the sum of the weights of the
// entries that are in the list: sums of weighted rows times it are weighted means.
func (b *Builder) InvListWeights() Value { return b.p.property(InvListWeight, Nodes(b.hop+1)) }

// InvDegrees returns 1/d of the nodes that have lists, d being their in-degree in the whole graph.
func (b *Builder) InvDegrees() Value { return b.p.property(InvDegree, Nodes(b.hop+1)) }

// InvWeightSums returns 1/s of these nodes, s being the sum of the weights of the whole list.
func (b *Builder) InvWeightSums() Value { return b.p.property(InvWeightSum, Nodes(b.hop+1)) }

// WeightDegrees returns 1/sqrt(1+s) of the nodes that the layer reads, s being the sum of the
// weights of the whole list of a node.
func (b *Builder) WeightDegrees() Value { return b.p.property(InvSqrtWeight, Nodes(b.hop)) }

// TypeShares returns 1/n of the entries of the layer's lists, n being how many of the list have the
// type of the entry.
func (b *Builder) TypeShares() Value { return b.p.property(TypeShare, Entries(b.Lists())) }

// ListScale is, for the nodes that have lists, how many neighbors they have in the whole graph for
// each that is in their list: sums times it estimate sums over all.
func (b *Builder) ListScale() Value { return b.p.property(ListScale, Nodes(b.hop+1)) }

func (p *Program) property(k Property, rows Rows) Value {
	first := propertyKinds[k].rows
	if !k.perEntry() && rows.n > first.n {
		return p.tail(p.property(k, first), rows)
	}
	for i := range p.values {
		if v := &p.values[i]; v.role == roleHost && v.index == int(k) && v.rows == rows {
			return Value(i)
		}
	}
	return p.new(value{rows: rows, cols: p.width(k), role: roleHost, index: int(k)})
}

// like appends an operation whose result has the shape of x.
func (b *Builder) like(x Value, o op) Value {
	vx := *b.p.of(x)
	return b.p.add(o, vx.rows, vx.cols)
}

// check panics for operands that do not fit: a model is wrong.
func (b *Builder) check(fits bool, what string, vs ...Value) {
	if fits {
		return
	}
	shapes := ""
	for _, v := range vs {
		shapes += fmt.Sprintf(" (%s,%d)", b.p.of(v).rows, b.p.of(v).cols)
	}
	panic("BUG: " + what + " of shapes" + shapes)
}
