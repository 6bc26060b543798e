package program

import (
	"fmt"
)

// Builder appends the operations of a model to a program.
type Builder struct {
	p *Program
	// Train is whether values are dropped out.
	Train bool
	// hop is that of the layer under way.
	hop int
	// Exact says that lists are those of the whole graph, and not what was drawn of them.
	Exact bool
}

// Program is a list of operations. It has no memory.
type Program struct {
	values []value // values[0] is none
	ops    []op
	params *Params
	layers int
	sites  int

	features Value
	own      Value // features of Nodes(1), where the others are read in place
	logits   Value
	seed     Value // gradient of the logits; 0 without a backward pass
	input    Value // gradient of the features; 0 where it is not wanted
	forward  int   // operations of the forward pass
	places   int   // where aggregation and product may change places
	inPlace  bool  // the features but those of Nodes(1) are read where they are kept
	memory   *memoryMap
	lists    []listUse // that it reads
}

func newProgram(params *Params, layers int) *Program {
	return &Program{values: make([]value, 1), params: params, layers: layers}
}

func (p *Program) new(v value) Value {
	p.values = append(p.values, v)
	return Value(len(p.values) - 1)
}

func (p *Program) of(v Value) *value { return &p.values[v] }

// add appends an operation whose result has so many rows and columns.
func (p *Program) add(o op, rows Rows, cols int) Value {
	v := value{rows: rows, cols: cols}
	for _, x := range o.in {
		v.grad = v.grad || p.of(x).grad
	}
	o.out = p.new(v)
	p.ops = append(p.ops, o)
	return o.out
}

// simple makes an operation that writes a new value.
func simple(kind Kind, in ...Value) op { return op{kind: kind, in: in, inPlace: -1} }

// inPlace makes an operation that may write in the place of its first operand.
func inPlace(kind Kind, in ...Value) op { return op{kind: kind, in: in} }

// Layers is the number of layers.
func (b *Builder) Layers() int { return b.p.layers }

// Cols is the width of a value.
func (b *Builder) Cols(v Value) int { return b.p.of(v).cols }

// Lists are the lists of the layer under way.
func (b *Builder) Lists() List { return List{Hop: b.hop} }

// Next ends a layer: the next one reads the lists of the next hop.
func (b *Builder) Next() { b.hop++ }

// Param is a matrix that is learned.
func (b *Builder) Param(name string, rows, cols int, init Init) Value {
	return b.p.new(value{rows: Fixed(rows), cols: cols, role: roleParam, grad: true, name: name,
		index: b.p.params.add(name, rows, cols, init)})
}

// MatMul is x·w.
func (b *Builder) MatMul(x, w Value) Value {
	vx, vw := b.p.of(x), b.p.of(w)
	b.check(vx.cols == vw.rows.n && vw.rows.kind == fixedRows, "MatMul", x, w)
	return b.p.add(simple(opMatMul, x, w), vx.rows, vw.cols)
}

// HeadMul is x·w for each head: x has heads·k columns, w (k, heads·n), and the result heads·n.
func (b *Builder) HeadMul(x, w Value, heads int) Value {
	vx, vw := b.p.of(x), b.p.of(w)
	b.check(vx.cols == heads*vw.rows.n && vw.cols%heads == 0, "HeadMul", x, w)
	o := simple(opHeadMul, x, w)
	o.heads = heads
	return b.p.add(o, vx.rows, vw.cols)
}

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

// Add is x + y.
func (b *Builder) Add(x, y Value) Value {
	vx, vy := b.p.of(x), b.p.of(y)
	b.check(vx.cols == vy.cols && vx.rows == vy.rows, "Add", x, y)
	return b.p.add(inPlace(opAdd, x, y), vx.rows, vx.cols)
}

// Scale is x times a factor.
func (b *Builder) Scale(x Value, factor float32) Value {
	o := inPlace(opScale, x)
	o.scalar = factor
	return b.like(x, o)
}

// Shift is x plus a number.
func (b *Builder) Shift(x Value, number float32) Value {
	o := inPlace(opShift, x)
	o.scalar = number
	return b.like(x, o)
}

// RowScale multiplies each row of x by a value of y (rows,1), which is not learned.
func (b *Builder) RowScale(x, y Value) Value {
	b.check(b.p.of(y).cols == 1 && b.p.of(x).rows == b.p.of(y).rows, "RowScale", x, y)
	return b.like(x, inPlace(opRowScale, x, y))
}

// Bias adds a row vector to each row.
func (b *Builder) Bias(x, bias Value) Value {
	b.check(b.p.of(bias).rows == Fixed(1) && b.p.of(bias).cols == b.p.of(x).cols, "Bias", x, bias)
	return b.like(x, inPlace(opBias, x, bias))
}

// ReLU, ELU, GELU and LeakyReLU are element-wise functions.
func (b *Builder) ReLU(x Value) Value { return b.like(x, inPlace(opReLU, x)) }

// ELU is x above zero, and exp(x)-1 below.
func (b *Builder) ELU(x Value) Value { return b.like(x, inPlace(opELU, x)) }

// GELU is x times the share of the normal distribution below it.
func (b *Builder) GELU(x Value) Value { return b.like(x, simple(opGELU, x)) }

// LeakyReLU is x above zero, and slope times x below.
func (b *Builder) LeakyReLU(x Value, slope float32) Value {
	o := inPlace(opLeakyReLU, x)
	o.scalar = slope
	return b.like(x, o)
}

// Dropout zeroes values with probability rate in training and scales the others by 1/(1-rate).
func (b *Builder) Dropout(x Value, rate float32) Value {
	b.p.sites++
	if !b.Train || rate == 0 {
		return x
	}
	o := inPlace(opDropout, x)
	o.scalar, o.site = rate, b.p.sites-1
	return b.like(x, o)
}

// LayerNorm scales each row to mean 0 and variance 1, and then by gamma and beta (1,cols).
func (b *Builder) LayerNorm(x, gamma, beta Value) Value {
	vx := b.p.of(x)
	o := simple(opLayerNorm, x, gamma, beta)
	o.extra = []Value{b.p.new(value{rows: vx.rows, cols: 2})}
	return b.like(x, o)
}

// BatchNorm scales each column of x to mean 0 and variance 1 over the batch, and then by gamma and
// beta (1,cols). What the batches' means and variances are like is kept in statistics (2,cols), by
// which columns are scaled where nothing is trained.
func (b *Builder) BatchNorm(x, gamma, beta, statistics Value) Value {
	if !b.Train {
		return b.like(x, simple(opNormApply, x, gamma, beta, statistics))
	}
	o := simple(opBatchNorm, x, gamma, beta, statistics)
	o.extra = []Value{b.p.new(value{rows: Fixed(2), cols: b.Cols(x)})}
	return b.like(x, o)
}

// Own are the rows of x that the next layer has: those of the nodes that have lists.
func (b *Builder) Own(x Value) Value {
	vx := b.p.of(x)
	b.check(vx.rows.kind == nodeRows && vx.rows.n < b.p.layers, "Own", x)
	return b.p.tail(x, Nodes(vx.rows.n+1))
}

// tail is a view of the last rows of x.
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

// Pull reduces the rows of x in each list to one.
func (b *Builder) Pull(x Value, l List, r Reduce) Value {
	vx := b.p.of(x)
	b.check(vx.rows == Nodes(l.Hop), "Pull", x)
	o := simple([]Kind{Mean: opPullMean, Sum: opPullSum, Max: opPullMax}[r], x)
	o.list = l
	if r == Max {
		o.extra = []Value{b.p.new(value{rows: Nodes(l.Hop + 1), cols: vx.cols})}
	}
	return b.p.add(o, Nodes(l.Hop+1), vx.cols)
}

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

// Scores are src of the entry's row + dst of its list, and then LeakyReLU: (entries, heads).
func (b *Builder) Scores(src, dst Value, l List, slope float32) Value {
	b.check(b.p.of(src).rows == Nodes(l.Hop) && b.p.of(dst).rows == Nodes(l.Hop+1), "Scores", src,
		dst)
	o := simple(opScores, src, dst)
	o.list, o.heads, o.scalar = l, b.Cols(src), slope
	return b.p.add(o, Entries(l), b.Cols(src))
}

// Scores2 are att · LeakyReLU(src of the entry's row + dst of its list), for each head.
func (b *Builder) Scores2(src, dst, att Value, l List, heads int, slope float32) Value {
	o := simple(opScores2, src, dst, att)
	o.list, o.heads, o.scalar = l, heads, slope
	return b.p.add(o, Entries(l), heads)
}

// Softmax is over the entries of each list.
func (b *Builder) Softmax(s Value, l List) Value {
	o := inPlace(opSoftmax, s)
	o.list, o.heads = l, b.Cols(s)
	return b.like(s, o)
}

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

// Degrees are 1/sqrt(1+in-degree) of the nodes that the layer reads.
func (b *Builder) Degrees() Value { return b.p.property(InvSqrtDegree, Nodes(b.hop)) }

// EdgeWeights are the weights of the entries of the layer's lists: (entries,1).
func (b *Builder) EdgeWeights() Value { return b.p.property(EdgeWeight, Entries(b.Lists())) }

// InvListWeights are 1/s of the nodes that have lists, s being the sum of the weights of the
// entries that are in the list: sums of weighted rows times it are weighted means.
func (b *Builder) InvListWeights() Value { return b.p.property(InvListWeight, Nodes(b.hop+1)) }

// InvDegrees are 1/d of the nodes that have lists, d being their in-degree in the whole graph.
func (b *Builder) InvDegrees() Value { return b.p.property(InvDegree, Nodes(b.hop+1)) }

// InvWeightSums are 1/s of these nodes, s being the sum of the weights of the whole list.
func (b *Builder) InvWeightSums() Value { return b.p.property(InvWeightSum, Nodes(b.hop+1)) }

// WeightDegrees are 1/sqrt(1+s) of the nodes that the layer reads, s being the sum of the weights
// of the whole list of a node.
func (b *Builder) WeightDegrees() Value { return b.p.property(InvSqrtWeight, Nodes(b.hop)) }

// TypeRows are the rows of a table, which has one for each type of edges, by the types of the
// entries of the layer's lists.
func (b *Builder) TypeRows(table Value) Value {
	entries := Entries(b.Lists())
	o := simple(opTypeRows, table, b.p.property(EdgeType, entries))
	return b.p.add(o, entries, b.Cols(table))
}

// TypeShares are 1/n of the entries of the layer's lists, n being how many of the list have the
// type of the entry.
func (b *Builder) TypeShares() Value { return b.p.property(TypeShare, Entries(b.Lists())) }

// ListScale is, for the nodes that have lists, how many neighbors they have in the whole graph for
// each that is in their list: sums times it estimate sums over all.
func (b *Builder) ListScale() Value { return b.p.property(ListScale, Nodes(b.hop+1)) }

func (p *Program) property(k Property, rows Rows) Value {
	first := Nodes(0) // all nodes, or those that have lists
	if k.ofLists() {
		first = Nodes(1)
	}
	if !k.perEntry() && rows.n > first.n {
		return p.tail(p.property(k, first), rows)
	}
	for i := range p.values {
		if v := &p.values[i]; v.role == roleHost && v.index == int(k) && v.rows == rows {
			return Value(i)
		}
	}
	return p.new(value{rows: rows, cols: 1, role: roleHost, index: int(k)})
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
