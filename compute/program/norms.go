package program

import "gdb/compute/backend"

// Norms of rows, and of columns over a batch.

var opLayerNorm = &Kind{name: "layer-norm",
	grad: func(t *tape, o *op, dy Value) { t.norm(opLayerNormGrad, o, dy) },
	run: func(m *Machine, _ *op, t *operands) {
		m.be.LayerNorm(t.out, t.in[0], t.in[1], t.in[2], t.extra[0])
	}}

// LayerNorm scales each row to mean 0 and variance 1, and then by gamma and beta (1,cols).
func (b *Builder) LayerNorm(x, gamma, beta Value) Value {
	vx := b.p.of(x)
	o := simple(opLayerNorm, x, gamma, beta)
	o.extra = []Value{b.p.new(value{rows: vx.rows, cols: 2})}
	return b.like(x, o)
}

// norm appends the gradients of a norm, which one operation computes.
func (t *tape) norm(kind *Kind, o *op, dy Value) {
	x, gamma, beta := o.in[0], o.in[1], o.in[2]
	g := simple(kind, dy, x, gamma, o.extra[0])
	v := *t.p.of(x)
	for range 2 {
		g.extra = append(g.extra, t.p.new(value{rows: Fixed(1), cols: v.cols, grad: true}))
	}
	dx := t.p.add(g, v.rows, v.cols)
	t.hold(gamma, g.extra[0])
	t.hold(beta, g.extra[1])
	t.hold(x, dx)
}

var opLayerNormGrad = &Kind{name: "layer-norm-grad",
	taken: func(z sized, _ int) backend.Taken {
		return backend.TakenByLayerNormGrad(z.rows(0), z.cols(0))
	},
	run: func(m *Machine, _ *op, t *operands) {
		m.be.LayerNormGrad(t.out, t.extra[0], t.extra[1], t.in[0], t.in[1], t.in[2], t.in[3])
	}}

// opBatchNorm is of x, by the batch; it adds to statistics, its last operand.
var opBatchNorm = &Kind{name: "batch-norm", counts: true,
	grad: func(t *tape, o *op, dy Value) { t.norm(opBatchNormGrad, o, dy) },
	run: func(m *Machine, _ *op, t *operands) {
		m.be.BatchNorm(t.out, t.in[0], t.in[1], t.in[2], t.extra[0])
		m.be.TrackNorm(t.in[3], t.extra[0], t.in[0].Rows)
	}}

var opBatchNormGrad = &Kind{name: "batch-norm-grad",
	run: func(m *Machine, _ *op, t *operands) {
		m.be.BatchNormGrad(t.out, t.extra[0], t.extra[1], t.in[0], t.in[1], t.in[2], t.in[3])
	}}

// opNormApply is of x, by statistics.
var opNormApply = &Kind{name: "norm-apply",
	run: func(m *Machine, _ *op, t *operands) {
		m.be.NormApply(t.out, t.in[0], t.in[1], t.in[2], t.in[3])
	}}

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
