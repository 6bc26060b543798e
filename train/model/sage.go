package model

import (
	"strconv"

	"gdb/internal/mem"
	"gdb/internal/rng"
	"gdb/sample"
	"gdb/train/backend"
)

// dropDomain keeps the keys of dropout apart from other draws.
const dropDomain = 0x64726f70 // "drop"

// sage is GraphSAGE with mean aggregation (Hamilton, Ying and Leskovec, "Inductive Representation
// Learning on Large Graphs"): h'(v) = W_self·h(v) + W_nbr·mean(h(u): u in N(v)) + b, then ReLU
// and dropout but after the last layer. The mean of no neighbors is zero.
type sage struct {
	be     backend.Backend
	p      Params
	held   mem.Account // the lists of layers
	dims   []int       // width of the input and of each layer's output
	layers []sageLayer
	dead   deadRows
	// order says whether a layer transforms first: transformFirst, but for tests.
	order func(v sample.Layer, din, dout int, needsInput bool) bool
}

// sageLayer holds the numbers of its parameters, and what a step keeps from the forward pass for
// the backward pass.
type sageLayer struct {
	self, nbr, bias int

	first     bool // transform first, then aggregate
	view      sample.Layer
	at        []uint32 // in place: the input numbers of view.Idx
	off, idx  []uint32 // memory of view
	seg       backend.Segments
	x, out    backend.Tensor // input (In, din) and output (Out, dout)
	table     backend.Tensor // of features, if layer 0 reads them in place: x is (Out, din)
	agg       backend.Tensor // (Out, din): means of inputs, or (In, dout): transformed inputs
	dx, dout  backend.Tensor // gradients; dx of layer 0 is never computed
	dropInput uint64         // key of the dropout of x; 0 without
}

// SAGE is the architecture of these models.
type SAGE struct{}

// Name is sage.
func (SAGE) Name() string { return "sage" }

// New returns a model of len(dims)-1 layers.
func (SAGE) New(be backend.Backend, dims []int, training bool, budget *mem.Budget) (Model, error) {
	return newSAGE(be, dims, training, budget)
}

// newSAGE is New, with the type.
func newSAGE(be backend.Backend, dims []int, training bool, budget *mem.Budget) (*sage, error) {
	m := &sage{be: be, dims: dims, order: transformFirst,
		held: mem.NewAccount(budget, "lists of layers")}
	m.layers = m.p.layers(dims)
	return m, m.p.allocate(be, training)
}

// layers adds the parameters of all layers.
func (p *Params) layers(dims []int) []sageLayer {
	layers := make([]sageLayer, len(dims)-1)
	for i := range layers {
		l, at := &layers[i], "layer "+strconv.Itoa(i+1)
		l.self = p.add(at+" self", dims[i], dims[i+1], false)
		l.nbr = p.add(at+" neighbors", dims[i], dims[i+1], false)
		l.bias = p.add(at+" bias", 1, dims[i+1], true)
	}
	return layers
}

// Architecture is SAGE.
func (m *sage) Architecture() Architecture { return SAGE{} }

// Dims are the widths of the input and of each layer's output.
func (m *sage) Dims() []int { return m.dims }

// Params are the weights of all layers.
func (m *sage) Params() *Params { return &m.p }

// Forward computes the logits (seeds, classes) of a batch. They, and all that backward needs, are
// valid until the backend's next Begin. It changes x, and results are there: see deadRows.
func (m *sage) Forward(d *sample.Dense, x []float32, s Step) (backend.Tensor, error) {
	if err := m.prepare(d, x, s); err != nil {
		return backend.Tensor{}, err
	}
	for i := range m.layers {
		l := &m.layers[i]
		if l.dropInput != 0 {
			first := 0
			if l.inPlace() {
				first = int(l.view.Skip) * l.x.Cols
			}
			m.be.Dropout(l.x, first, s.Dropout, l.dropInput)
		}
		m.transform(l, s.Dropout)
		if bias := m.p.weight(l.bias); i == len(m.layers)-1 {
			m.be.Bias(l.out, bias)
		} else {
			m.be.BiasReLU(l.out, bias)
		}
	}
	return m.layers[len(m.layers)-1].out, nil
}

// prepare takes the memory of a whole step.
func (m *sage) prepare(d *sample.Dense, x []float32, s Step) error {
	m.dead = deadRows{}
	for i := range m.layers {
		l := &m.layers[i]
		l.view = d.LayerView(i, l.off[:0], l.idx[:0])
		if i > 0 { // layer 0 aliases d
			l.off, l.idx = l.view.Off, l.view.Idx
		}
		l.at = nil
		if i == 0 && s.Table.Rows > 0 {
			l.at, l.view.Idx = l.view.Idx, s.Rows
		}
		if err := m.held.AtLeast(m.listBytes()); err != nil {
			return err
		}
		m.memory(i, x, s)
		l.dropInput = 0
		if s.Train && s.Dropout > 0 {
			l.dropInput = rng.Key(dropDomain, s.Seed, s.Epoch, s.Batch, uint64(i)) | 1
		}
	}
	return m.be.Err()
}

// listBytes is the memory of the layers' views.
func (m *sage) listBytes() int64 {
	n := 0
	for i := range m.layers {
		n += cap(m.layers[i].off) + cap(m.layers[i].idx)
	}
	return 4 * int64(n)
}

// memory takes the tensors of one layer.
func (m *sage) memory(i int, x []float32, s Step) {
	l, in, out := &m.layers[i], int(m.layers[i].view.In), int(m.layers[i].view.Out)
	din, dout := m.dims[i], m.dims[i+1]
	inPlace := i == 0 && s.Table.Rows > 0
	l.first = !inPlace && m.order(l.view, din, dout, i > 0 && s.Train)
	rows := 0
	if s.Train && (i > 0 || l.first) { // the gradient goes back through the lists
		rows = in
	}
	l.seg = m.be.Segments(backend.Lists{Off: l.view.Off, Idx: l.view.Idx, At: l.at, Rows: rows})
	switch {
	case i > 0:
		l.x = m.layers[i-1].out
	case inPlace:
		l.x, l.table = m.be.Host(x, out, din), s.Table
	default:
		l.table = backend.Tensor{}
		l.x = m.be.Host(x, in, din)
	}
	m.results(i, s)
}

// results takes the tensors that a layer computes.
func (m *sage) results(i int, s Step) {
	l, in, out := &m.layers[i], int(m.layers[i].view.In), int(m.layers[i].view.Out)
	din, dout := m.dims[i], m.dims[i+1]
	take := func(rows, cols int) backend.Tensor {
		if off, ok := m.dead.take(rows * cols); ok {
			return m.dead.rows.View(off, rows, cols)
		}
		return m.be.Scratch(rows, cols)
	}
	if l.first {
		l.agg = take(in, dout)
	} else {
		l.agg = take(out, din)
	}
	if i == 0 && !l.first && !l.inPlace() {
		m.dead = newDeadRows(l.x.Slice(0, int(l.view.Skip)))
	}
	l.out = take(out, dout)
	if s.Train {
		l.dout = take(out, dout)
		if i > 0 {
			l.dx = m.layers[i-1].dout
		}
	}
}

// deadRows are the inputs of the first layer that are not its outputs' own: once they are averaged
// nothing reads them, and what is computed after that takes their place.
type deadRows struct {
	deadRoom
	rows backend.Tensor // a vector
}

func newDeadRows(rows backend.Tensor) deadRows {
	return deadRows{rows: rows.Flat(), deadRoom: deadRoom{floats: rows.Len()}}
}

// deadAlign is the alignment of what takes their place, in floats: a cache line.
const deadAlign = 16

// deadRoom hands out floats from the first on.
type deadRoom struct{ floats, used int }

func (r *deadRoom) take(n int) (off int, ok bool) {
	off = r.used
	if n > r.floats-off {
		return 0, false
	}
	r.used += min((n+deadAlign-1)/deadAlign*deadAlign, r.floats-off)
	return off, true
}

// inPlace says whether a layer reads rows of a table.
func (l *sageLayer) inPlace() bool { return l.table.Rows > 0 }

// inputs returns the tensors of which a layer averages rows, and that of its outputs' own inputs.
func (l *sageLayer) inputs() (averaged, self backend.Tensor) {
	if l.inPlace() {
		return l.table, l.x
	}
	return l.x, l.x.Slice(int(l.view.Skip), int(l.view.Out))
}

// transform computes W_self·x + W_nbr·mean(x), in the cheaper order.
func (m *sage) transform(l *sageLayer, dropout float32) {
	averaged, self := l.inputs()
	if l.first {
		m.be.MatMul(l.agg, l.x, m.p.weight(l.nbr), false)
		m.be.SegmentMean(l.out, l.agg, l.seg)
		m.be.MatMul(l.out, self, m.p.weight(l.self), true)
		return
	}
	if l.inPlace() && l.dropInput != 0 { // the rows are not this step's to change
		m.be.SegmentMeanDropout(l.agg, averaged, l.seg, dropout, l.dropInput)
	} else {
		m.be.SegmentMean(l.agg, averaged, l.seg)
	}
	m.be.MatMul(l.out, self, m.p.weight(l.self), false)
	m.be.MatMul(l.out, l.agg, m.p.weight(l.nbr), true)
}

// Logits are the outputs of the last layer.
func (m *sage) Logits() backend.Tensor { return m.layers[len(m.layers)-1].out }

// GradLogits is where the gradient of the logits goes before Backward.
func (m *sage) GradLogits() backend.Tensor { return m.layers[len(m.layers)-1].dout }

// Backward computes the gradients of all parameters from that of the logits.
func (m *sage) Backward(s Step) {
	for i := len(m.layers) - 1; i >= 0; i-- {
		l := &m.layers[i]
		m.be.ColumnSum(m.p.grad(l.bias), l.dout)
		_, self := l.inputs()
		m.be.MatMulTA(m.p.grad(l.self), self, l.dout, false)
		if l.first {
			m.backTransformed(l, i > 0)
		} else {
			m.backAggregated(l, i > 0)
		}
		if i == 0 {
			return
		}
		rate := s.Dropout
		if l.dropInput == 0 {
			rate = 0
		}
		m.be.ReLUGrad(l.dx, l.x, rate)
	}
}

// backAggregated is the backward pass of (AX)W. The gradient of the means takes their place.
func (m *sage) backAggregated(l *sageLayer, needsInput bool) {
	m.be.MatMulTA(m.p.grad(l.nbr), l.agg, l.dout, false)
	if !needsInput {
		return
	}
	m.be.MatMulTB(l.agg, l.dout, m.p.weight(l.nbr), false)
	m.be.MatMulTB(l.dx.Slice(int(l.view.Skip), int(l.view.Out)), l.dout, m.p.weight(l.self), false)
	m.be.SegmentMeanGrad(l.dx, l.agg, l.seg, int(l.view.Skip))
}

// backTransformed is the backward pass of A(XW). The gradient of XW takes its place.
func (m *sage) backTransformed(l *sageLayer, needsInput bool) {
	m.be.SegmentMeanGrad(l.agg, l.dout, l.seg, l.agg.Rows)
	m.be.MatMulTA(m.p.grad(l.nbr), l.x, l.agg, false)
	if !needsInput {
		return
	}
	m.be.MatMulTB(l.dx, l.agg, m.p.weight(l.nbr), false)
	m.be.MatMulTB(l.dx.Slice(int(l.view.Skip), int(l.view.Out)), l.dout, m.p.weight(l.self), true)
}
