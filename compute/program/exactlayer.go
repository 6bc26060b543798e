package program

import (
	"fmt"
	"slices"

	"gdb/compute/backend"
	"gdb/internal/mem"
)

// ExactLayer is a layer that is computed over whole neighbor lists, for some nodes at a time. It is
// cut into what is done once for each row that lists read (Table, Columns), what is done over
// lists, of which parts may come one after the other (Pulls), and what is done for each node
// (Output).
type ExactLayer struct {
	p      *Program
	list   List
	table  Value // of which lists read rows: the input, or computed from it
	pulls  []Pull
	values []Value // what Columns computes
	// made are the operations that compute values, and last those that read them last: both are
	// asked for with each chunk of nodes.
	made map[Value]int
	last []int
	half bool // products read bfloat16
}

// Pull is a reduction of whole lists.
type Pull struct {
	op  *op
	out Value
	// Reduce is how rows become one.
	Reduce Reduce
	// Weighted says that rows have weights. Scored says that these are computed from a column of
	// rows, and Softmax that they are the softmax of scores.
	Weighted, Scored, Softmax bool
	// Segmented says that Segment computes weights and sums, by way of the segments of lists.
	Segmented bool
	// Heads and Cols are the heads and columns of the result.
	Heads, Cols int
	scores      *op        // nil for weights that are a property of entries
	scale       Value      // a property of entries, times which they are; 0 for none
	by          *segmented // what Segment computes; nil unless Segmented
}

// Edges is what a layer reads of entries beside their rows, as far as it does: their weights, the
// numbers of their types, and TypeShare.
type Edges struct {
	Weights []float32
	Types   []uint32
	Shares  []float32
}

// Layer appends one layer.
type Layer func(b *Builder, x Value) Value

// MakeExactLayer cuts a layer whose inputs have cols columns. Products come before aggregations
// where rows become narrower; with half they read bfloat16. With words, inputs are sparse rows of
// as many, if the layer can read these: see Options.Sparse.
func MakeExactLayer(params *Params, layer Layer, cols int, half bool, words int) *ExactLayer {
	p := newProgram(params, 1)
	p.features = p.new(value{rows: Nodes(0), cols: cols, role: roleFeatures})
	p.logits = layer(&Builder{p: p, Exact: true}, p.features)
	p.check()
	order := p.narrowFirst()
	if words > 0 {
		order = p.sparseOrder(order)
	}
	p.reorder(order)
	p.fuseElements()
	p.forward = len(p.ops)
	p.fuseSums()
	p.dropDead()
	p.sparse = words > 0 && p.takeSparse(words)
	w := &ExactLayer{p: p, table: p.features, made: p.producers(), last: p.lastUses(), half: half}
	w.findPulls()
	return w
}

// narrowFirst returns the order that reads narrow rows. Segments read products of one value.
func (p *Program) narrowFirst() (order []bool) {
	for _, pl := range p.findPlaces() {
		o := &p.ops[pl.product]
		din, dout := p.of(o.in[1]).rows.n, p.of(o.in[1]).cols
		narrow := dout < din
		if p.ops[pl.pull].kind == opPullWeighted {
			narrow = dout <= din || p.ops[pl.pull].list.of == toSegments
		}
		order = append(order, narrow)
	}
	return order
}

// findPulls finds what is done over lists.
func (w *ExactLayer) findPulls() {
	for i := range w.p.ops {
		o := &w.p.ops[i]
		if !o.kind.reduces {
			continue
		}
		pull := Pull{op: o, out: o.out, Reduce: o.kind.reduce, Heads: max(1, o.heads),
			Cols: w.p.of(o.out).cols}
		switch {
		case o.list.of == toSegments:
			continue // of one that is Segmented
		case o.list.of == toNodes:
			w.findSegmented(&pull)
			w.pulls = append(w.pulls, pull)
			continue
		case len(o.in) > 1:
			w.weighted(&pull)
		}
		if len(w.pulls) > 0 && (w.table != o.in[0] || w.list != o.list) {
			panic("BUG: a layer reads two kinds of rows or of lists")
		}
		w.table, w.list = o.in[0], o.list
		w.pulls = append(w.pulls, pull)
	}
}

// weighted finds where the weights of a sum come from.
func (w *ExactLayer) weighted(pull *Pull) {
	pull.Weighted = true
	weights := pull.op.in[1]
	if w.p.of(weights).role == roleHost {
		pull.scale = weights
		return
	}
	pull.scores = &w.p.ops[w.made[weights]]
	switch pull.scores.kind {
	case opSoftmax:
		pull.Softmax = true
		pull.scores = &w.p.ops[w.made[pull.scores.in[0]]]
	case opRowScale:
		pull.scale = pull.scores.in[1]
		pull.scores = &w.p.ops[w.made[pull.scores.in[0]]]
	}
	typed := pull.scores.kind == opTypeRows || pull.scores.kind == opTypeShares
	if pull.Scored = !typed; pull.Scored {
		w.values = append(w.values, pull.scores.in[0])
	}
}

// Pulls returns the reductions of a layer, none for one that reads no lists.
func (w *ExactLayer) Pulls() []Pull { return w.pulls }

// Loops reports whether lists have an entry for their own node.
func (w *ExactLayer) Loops() bool { return w.list.Loops }

// Sparse reports whether inputs are sparse rows.
func (w *ExactLayer) Sparse() bool { return w.p.sparse }

// Transforms reports whether lists read rows that are computed from the inputs, and not these.
func (w *ExactLayer) Transforms() bool { return w.table != w.p.features }

// ByRelation reports whether lists read a row for each relation that a node is a source of: entries
// of a relation read those of theirs. Table computes the rows of a relation given its number for
// each node in place of the property.
func (w *ExactLayer) ByRelation() bool { return w.Reads(SourceRelation) }

// TableCols returns the width of the rows that lists read, OutCols that of the results.
func (w *ExactLayer) TableCols() int { return w.p.of(w.table).cols }

// OutCols returns the width of the layer's results.
func (w *ExactLayer) OutCols() int { return w.p.of(w.p.logits).cols }

// NodeProperty returns what the layer reads of nodes beside their rows, if anything: one of
// InvSqrtDegree, InvListWeight, InvSqrtWeight and NodeType. Lists are whole, so that it does not
// need ListScale.
func (w *ExactLayer) NodeProperty() (k Property, reads bool) {
	for _, p := range []Property{InvSqrtDegree, InvListWeight, InvSqrtWeight, NodeType} {
		if w.p.Reads(p) {
			if reads {
				panic("BUG: a layer reads two properties of nodes")
			}
			k, reads = p, true
		}
	}
	return k, reads
}

// ReadsTypes reports whether the layer reads the types of edges.
func (w *ExactLayer) ReadsTypes() bool {
	return w.Reads(EdgeType) || w.Reads(TypeShare) || w.Reads(SegmentType)
}

// Reads reports whether the layer reads a property.
func (w *ExactLayer) Reads(k Property) bool { return w.p.Reads(k) }

// ColumnCols returns the widths of what Columns computes.
func (w *ExactLayer) ColumnCols() (cols []int) {
	for _, v := range w.values {
		cols = append(cols, w.p.of(v).cols)
	}
	return cols
}

// ColumnFloats returns how many values Columns computes for each row.
func (w *ExactLayer) ColumnFloats() (n int) {
	for _, v := range w.values {
		n += w.p.of(v).cols
	}
	return n
}

// piece computes values of some nodes from what is known of them, each once.
type piece struct {
	w     *ExactLayer
	m     *Machine
	rows  int
	known map[Value]backend.Tensor
	lent  map[Value]bool // of known: others read them again
	// property holds the node property that the layer reads, of these nodes: see NodeProperty.
	property backend.Tensor
}

// rowsOf starts the computation for nodes whose rows of a value are x.
func (w *ExactLayer) rowsOf(m *Machine, of Value, x, property backend.Tensor) *piece {
	m.p = w.p
	return &piece{w: w, m: m, rows: x.Rows, known: map[Value]backend.Tensor{of: x},
		lent: map[Value]bool{of: true}, property: property}
}

// Table computes the rows that lists read from inputs x; property has a value of each node, where
// NodeProperty asks for it.
func (w *ExactLayer) Table(m *Machine, x, property backend.Tensor) backend.Tensor {
	return w.rowsOf(m, w.p.features, x, property).value(w.table)
}

// Columns computes from rows of the table what weights of entries need of rows: one matrix for each
// Pull that is scored, in their order.
func (w *ExactLayer) Columns(m *Machine, table,
	property backend.Tensor) (columns []backend.Tensor) {
	p := w.rowsOf(m, w.table, table, property)
	for _, v := range w.values {
		columns = append(columns, p.value(v))
	}
	return columns
}

// Own computes from the inputs x of nodes what weights need of their lists: one matrix for each
// Pull that is scored or segmented, in their order.
func (w *ExactLayer) Own(m *Machine, x, property backend.Tensor) (own []backend.Tensor) {
	p := w.rowsOf(m, w.p.features, x, property)
	for i := range w.pulls {
		if v := w.pulls[i].own(); v != 0 {
			own = append(own, p.value(v))
		}
	}
	return own
}

// own returns what weights read of the nodes that have lists; 0 for nothing.
func (pull *Pull) own() Value {
	switch {
	case pull.Segmented:
		return pull.by.own
	case pull.Scored:
		return pull.scores.in[1]
	}
	return 0
}

// ReadsOwn reports whether weights read something of the nodes that have lists.
func (w *ExactLayer) ReadsOwn() bool {
	return slices.ContainsFunc(w.pulls, func(p Pull) bool { return p.own() != 0 })
}

// OwnCols returns the widths of what Own computes.
func (w *ExactLayer) OwnCols() (cols []int) {
	for i := range w.pulls {
		if v := w.pulls[i].own(); v != 0 {
			cols = append(cols, w.p.of(v).cols)
		}
	}
	return cols
}

// Weights returns the weights of entries for a Pull that is weighted, or what their softmax is to
// be taken of, given what Columns and Own computed, if it is scored, and what entries have.
func (w *ExactLayer) Weights(m *Machine, pull *Pull, column, own backend.Tensor, edges Edges,
	s backend.Segments) backend.Tensor {
	o := pull.scores
	if o == nil {
		return w.edge(m, pull.scale, edges)
	}
	m.p = w.p
	t := o.operands()
	t.Out, t.Lists = m.be.Scratch(s.Entries, pull.Heads), s
	for i, v := range o.in {
		switch x := w.p.of(v); {
		case x.role == roleParam:
			t.In[i] = m.weight(v)
		case x.role == roleHost && Property(x.index).perEntry():
			t.In[i] = w.edge(m, v, edges)
		default:
			t.In[i] = [2]backend.Tensor{column, own}[i]
		}
	}
	m.be.Run(&o.kind.Op, &t)
	if pull.scale != 0 {
		m.be.Run(&opRowScale.Op, &backend.Operands{Out: t.Out,
			In: [4]backend.Tensor{t.Out, w.edge(m, pull.scale, edges)}})
	}
	return t.Out
}

// Softmax makes weights of the scores of entries, in place.
func (w *ExactLayer) Softmax(m *Machine, scores backend.Tensor, s backend.Segments) {
	m.be.Run(&opSoftmax.Op, &backend.Operands{Out: scores, In: [4]backend.Tensor{scores}, Lists: s})
}

// edge returns a property of entries.
func (w *ExactLayer) edge(m *Machine, v Value, e Edges) backend.Tensor {
	x := e.Weights
	switch Property(w.p.of(v).index) {
	case EdgeType:
		x = mem.View[float32](mem.BytesOf(e.Types))
	case TypeShare:
		x = e.Shares
	}
	return m.be.Host(x, len(x), 1)
}

// Reduced returns rows of the table reduced by lists, given the weights of a Pull that has them.
func (w *ExactLayer) Reduced(m *Machine, pull *Pull, table, weights backend.Tensor,
	s backend.Segments) backend.Tensor {
	t := pull.op.operands()
	t.Out, t.In, t.Lists = m.be.Scratch(s.Lists, pull.Cols), [4]backend.Tensor{table, weights}, s
	if pull.Reduce == Max {
		t.Extra[0] = m.be.Scratch(s.Lists, pull.Cols)
	}
	m.be.Run(&pull.op.kind.Op, &t)
	return t.Out
}

// Output computes the layer's results from the inputs x of nodes and what their lists were reduced
// to, pull by pull. The memory of these is overwritten.
func (w *ExactLayer) Output(m *Machine, x, property backend.Tensor,
	reduced []backend.Tensor) backend.Tensor {
	p := w.rowsOf(m, w.p.features, x, property)
	for i, pull := range w.pulls {
		p.known[pull.out] = reduced[i]
	}
	return p.value(w.p.logits)
}

// value computes a value, and what it is computed from.
func (p *piece) value(v Value) backend.Tensor {
	prog := p.w.p
	v = prog.root(v)
	if t, ok := p.known[v]; ok {
		return t
	}
	x := prog.of(v)
	switch x.role {
	case roleParam:
		return p.m.weight(v)
	case roleHost:
		if x.index == int(ListScale) {
			return p.ones()
		}
		return p.property
	}
	if i, ok := p.w.made[v]; ok {
		return p.compute(&prog.ops[i])
	}
	panic(fmt.Sprintf("BUG: %s is not computed from the nodes' own rows", prog.name(v)))
}

// ones returns the value of ListScale: lists are whole.
func (p *piece) ones() backend.Tensor {
	t := p.m.be.Scratch(p.rows, 1)
	backend.Zero(p.m.be, t)
	p.m.be.Run(&opShift.Op, &backend.Operands{Out: t, In: [4]backend.Tensor{t}, Scalar: 1})
	return t
}

// compute does an operation on rows of nodes.
func (p *piece) compute(o *op) backend.Tensor {
	if o.kind.lists != noLists {
		panic(fmt.Sprintf("BUG: operation %s is not of a node's own rows", o.kind))
	}
	t := o.operands()
	for i, v := range o.in {
		t.In[i] = p.value(v)
	}
	out := p.w.p.of(o.out)
	rows := p.rows
	if out.rows.kind == fixedRows {
		rows = out.rows.n
	}
	switch target := o.target(); {
	case target == 0:
		t.Out = p.m.be.Scratch(rows, out.cols)
	case p.w.keeps(o, target, p.lent):
		t.Out = p.m.be.Scratch(rows, out.cols)
		backend.Copy(p.m.be, t.Out, p.value(target))
	default:
		t.Out = p.value(target)
	}
	for i, v := range o.extra {
		t.Extra[i] = p.m.be.Scratch(rows, p.w.p.of(v).cols)
	}
	p.known[o.out] = t.Out
	if p.w.half {
		p.narrow(o, &t)
	}
	p.m.be.Run(&o.kind.Op, &t)
	return t.Out
}

// narrow has an operation read bfloat16 where it takes that.
func (p *piece) narrow(o *op, t *backend.Operands) {
	for i := range o.in {
		x := t.In[i]
		if p.w.p.takes(o, i) != takesHalf || o.kind.product == noProduct {
			continue
		}
		half := p.m.be.Scratch(1, (x.Len()+1)/2).Halved().View(0, x.Rows, x.Cols)
		p.m.be.Run(&opNarrow.Op, &backend.Operands{Out: half, In: [4]backend.Tensor{x}})
		t.In[i] = half
	}
}

// FixedFloats returns the scratch that does not grow with nodes and entries: what products take
// for weights of bfloat16, in Table, Columns, Own and Output one after the other, and what is made
// of parameters.
func (w *ExactLayer) FixedFloats() (floats int) {
	for i := range w.pulls {
		if pull := &w.pulls[i]; pull.Segmented {
			_, _, fixed := w.segmentedCols(pull.by)
			floats += fixed
		}
	}
	for i := range w.p.ops {
		o := &w.p.ops[i]
		if o.kind == opCompose {
			floats += aligned(w.p.of(o.out).rows.n * w.p.of(o.out).cols)
		}
		for k, v := range o.in {
			if x := w.p.of(v); w.half && o.kind.product != noProduct &&
				w.p.takes(o, k) == takesHalf &&
				x.rows.kind == fixedRows {
				floats += aligned((x.rows.n*x.cols + 1) / 2)
			}
		}
	}
	return floats
}

// keeps reports whether a value that an operation could overwrite is read again, or lent.
func (w *ExactLayer) keeps(o *op, target Value, lent map[Value]bool) bool {
	root := w.p.root(target)
	if lent[root] || w.p.of(root).role != roleStep {
		return true
	}
	return w.last[root] > w.p.time(w.made[o.out])
}

// ScratchCols returns how many values of scratch memory a node takes at most in Table, in Columns,
// or in Own, Reduced and Output; Weights take EntryCols for each entry besides.
func (w *ExactLayer) ScratchCols() int {
	own, reduced, output := 0, 0, counting(w, w.p.features)
	for i := range w.pulls {
		pull := &w.pulls[i]
		output.known[pull.out] = true
		reduced += pull.Cols
		if pull.Reduce == Max {
			reduced += pull.Cols
		}
	}
	of, columns := counting(w, w.p.features), counting(w, w.table)
	for i := range w.pulls {
		pull := &w.pulls[i]
		if v := pull.own(); v != 0 {
			own += of.cols(v)
		} else if pull.scores != nil {
			own += of.cols(pull.scores.in[1])
		}
		if pull.Segmented {
			_, nodes, _ := w.segmentedCols(pull.by)
			reduced += nodes - pull.Cols
		}
	}
	wide := 0
	for _, v := range w.values {
		wide += columns.cols(v)
	}
	return max(own+reduced+output.cols(w.p.logits), wide, counting(w, w.p.features).cols(w.table))
}

// EntryCols returns how many values Weights computes for an entry.
func (w *ExactLayer) EntryCols() (n int) {
	for i := range w.pulls {
		switch pull := &w.pulls[i]; {
		case pull.Segmented:
			entries, _, _ := w.segmentedCols(pull.by)
			n += entries
		case pull.Weighted:
			n += pull.Heads
		}
	}
	return n
}

// count finds what a piece would take of scratch memory.
type count struct {
	w           *ExactLayer
	known, lent map[Value]bool
}

func counting(w *ExactLayer, of Value) *count {
	return &count{w: w, known: map[Value]bool{of: true}, lent: map[Value]bool{of: true}}
}

// cols returns the columns that piece.value takes for a value and what it is computed from.
func (c *count) cols(v Value) (n int) {
	p := c.w.p
	v = p.root(v)
	if c.known[v] || p.of(v).role == roleParam {
		return 0
	}
	if x := p.of(v); x.role == roleHost { // ones are computed each time
		return x.cols
	}
	c.known[v] = true
	o := &p.ops[c.w.made[v]]
	for i, x := range o.in {
		n += c.cols(x)
		if c.w.half && o.kind.product != noProduct && p.takes(o, i) == takesHalf {
			n += (p.of(x).cols + 1) / 2
		}
	}
	target := o.target()
	if o.acc != 0 {
		n += c.cols(o.acc)
	}
	if o.kind != opCompose && (target == 0 || c.w.keeps(o, target, c.lent)) {
		n += p.of(o.out).cols
	}
	for _, x := range o.extra {
		n += p.of(x).cols
	}
	return n
}
