package program

import "gdb/compute/backend"

// Operations on single values. They work in the place of their first operand, but for GELU, whose
// gradient needs the input.

var opBias = &Kind{name: "bias", grad: biasRule, dropout: true, writesHalf: always,
	run: func(m *Machine, o *op, t *operands) {
		if t.out.Half {
			m.activate(o, t, backend.Activation{Bias: t.in[1]})
			return
		}
		m.be.Bias(t.out, t.in[1])
		m.dropAfter(o, t.out)
	}}

// Bias adds a row vector to each row.
func (b *Builder) Bias(x, bias Value) Value {
	b.check(b.p.of(bias).rows == Fixed(1) && b.p.of(bias).cols == b.p.of(x).cols, "Bias", x, bias)
	return b.like(x, inPlace(opBias, x, bias))
}

func biasRule(t *tape, o *op, dy Value) {
	t.give(o.in[1], simple(opColumnSum, dy))
	t.hold(o.in[0], dy)
}

// opBiasReLU is max(0, x + a row y).
var opBiasReLU = &Kind{name: "bias-relu", dropout: true, masks: true, writesHalf: always,
	grad: func(t *tape, o *op, dy Value) {
		dz := t.reluGrad(o, dy)
		t.give(o.in[1], simple(opColumnSum, dz))
		t.hold(o.in[0], dz)
	},
	run: func(m *Machine, o *op, t *operands) {
		if t.out.Half {
			m.activate(o, t, backend.Activation{Bias: t.in[1], ReLU: true})
			return
		}
		m.be.BiasReLU(t.out, t.in[1])
		m.dropAfter(o, t.out)
	}}

var opReLU = &Kind{name: "relu", biased: opBiasReLU, dropout: true, masks: true, writesHalf: always,
	grad: func(t *tape, o *op, dy Value) { t.hold(o.in[0], t.reluGrad(o, dy)) },
	run: func(m *Machine, o *op, t *operands) {
		if t.out.Half {
			m.activate(o, t, backend.Activation{ReLU: true})
			return
		}
		m.be.LeakyReLU(t.out, 0)
		m.dropAfter(o, t.out)
	}}

// ReLU is x above zero, and else zero.
func (b *Builder) ReLU(x Value) Value { return b.like(x, inPlace(opReLU, x)) }

// opReLUGrad is x where y, an output, is positive; with a scalar, of ReLU and then Dropout of that
// rate.
var opReLUGrad = &Kind{name: "relu-grad", takes: second(takesEither), writesHalf: always,
	run: func(m *Machine, o *op, t *operands) {
		if t.out.Half {
			m.halves().ReLUGradTo(t.out, t.in[0], t.in[1], o.scalar)
			return
		}
		m.be.ReLUGrad(t.out, t.in[1], o.scalar)
	}}

// reluGrad is the gradient of ReLU, and of a dropout after it.
func (t *tape) reluGrad(o *op, dy Value) Value {
	g := inPlace(opReLUGrad, dy, o.out)
	if d, ok := t.masked[o.out]; ok {
		g.in[1], g.scalar = d.out, d.rate
	}
	v := *t.p.of(o.out)
	return t.p.add(g, v.rows, v.cols)
}

var opELU = &Kind{name: "elu", writesHalf: always,
	grad: func(t *tape, o *op, dy Value) { t.give(o.in[0], inPlace(opELUGrad, dy, o.out)) },
	run: func(m *Machine, o *op, t *operands) {
		if t.out.Half {
			m.activate(o, t, backend.Activation{Bias: t.in[1], ELU: true})
			return
		}
		m.be.ELU(t.out)
	}}

// ELU is x above zero, and exp(x)-1 below.
func (b *Builder) ELU(x Value) Value { return b.like(x, inPlace(opELU, x)) }

// opELUGrad is x times the derivative at an output y; with a rate, of ELU and then a dropout.
var opELUGrad = &Kind{name: "elu-grad",
	takes: func(p *Program, o *op, i int) operand {
		if o.rate > 0 {
			return second(takesHalf)(p, o, i)
		}
		return second(takesEither)(p, o, i)
	},
	writesHalf: func(p *Program, o *op) bool { return o.rate > 0 },
	run: func(m *Machine, o *op, t *operands) {
		x := t.in[0]
		if !t.out.Half {
			x = t.out
		}
		if t.in[1].Half || t.out.Half {
			m.halves().ELUGradTo(t.out, x, t.in[1], m.dropped(o, t.out))
			return
		}
		m.be.ELUGrad(t.out, t.in[1])
	}}

var opGELU = &Kind{name: "gelu",
	grad: func(t *tape, o *op, dy Value) { t.give(o.in[0], inPlace(opGELUGrad, dy, o.in[0])) },
	run:  func(m *Machine, _ *op, t *operands) { m.be.GELU(t.out, t.in[0]) }}

// GELU is x times the share of the normal distribution below it.
func (b *Builder) GELU(x Value) Value { return b.like(x, simple(opGELU, x)) }

var opGELUGrad = &Kind{name: "gelu-grad",
	run: func(m *Machine, _ *op, t *operands) { m.be.GELUGrad(t.out, t.in[1]) }}

var opLeakyReLU = &Kind{name: "leaky-relu",
	grad: func(t *tape, o *op, dy Value) {
		g := inPlace(opLeakyReLUGrad, dy, o.out)
		g.scalar = o.scalar
		t.give(o.in[0], g)
	},
	run: func(m *Machine, o *op, t *operands) { m.be.LeakyReLU(t.out, o.scalar) }}

// LeakyReLU is x above zero, and slope times x below.
func (b *Builder) LeakyReLU(x Value, slope float32) Value {
	o := inPlace(opLeakyReLU, x)
	o.scalar = slope
	return b.like(x, o)
}

var opLeakyReLUGrad = &Kind{name: "leaky-relu-grad",
	run: func(m *Machine, o *op, t *operands) { m.be.LeakyReLUGrad(t.out, t.in[1], o.scalar) }}

// opDropout is its own gradient, with the same site.
var opDropout = &Kind{name: "dropout", grad: dropoutRule, follows: true, writesHalf: always,
	run: func(m *Machine, o *op, t *operands) {
		first, key := m.firstDropped(o, t.out), m.key(o.site)
		if t.out.Half {
			m.halves().Activate(t.out, t.in[0], backend.Activation{Rate: o.scalar, First: first,
				Key: key})
			return
		}
		m.be.Dropout(t.out, first, o.scalar, key)
	}}

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

// dropoutRule drops gradients out as values were. After ReLU both are one operation.
func dropoutRule(t *tape, o *op, dy Value) {
	x := o.in[0]
	for i := range t.p.forward {
		if from := &t.p.ops[i]; from.out == x && t.uses[x] == 1 && from.kind.masks {
			t.masked[x] = dropped{o.out, o.scalar}
			t.hold(x, dy)
			return
		}
	}
	g := inPlace(o.kind, dy)
	g.scalar, g.site, g.tail = o.scalar, o.site, o.tail
	t.give(x, g)
}

// opAdd is x + y: y is added to the last rows of x.
var opAdd = &Kind{name: "add",
	grad: func(t *tape, o *op, dy Value) {
		t.hold(o.in[0], dy)
		t.hold(o.in[1], dy)
	},
	run: func(m *Machine, _ *op, t *operands) { m.be.Add(lastRows(t.out, t.in[1].Rows), t.in[1]) }}

// Add is x + y.
func (b *Builder) Add(x, y Value) Value {
	vx, vy := b.p.of(x), b.p.of(y)
	b.check(vx.cols == vy.cols && vx.rows == vy.rows, "Add", x, y)
	return b.p.add(inPlace(opAdd, x, y), vx.rows, vx.cols)
}

var opScale = &Kind{name: "scale",
	grad: func(t *tape, o *op, dy Value) {
		g := inPlace(o.kind, dy)
		g.scalar = o.scalar
		t.give(o.in[0], g)
	},
	run: func(m *Machine, o *op, t *operands) { m.be.Scale(t.out, o.scalar) }}

// Scale is x times a factor.
func (b *Builder) Scale(x Value, factor float32) Value {
	o := inPlace(opScale, x)
	o.scalar = factor
	return b.like(x, o)
}

var opShift = &Kind{name: "shift",
	grad: func(t *tape, o *op, dy Value) { t.hold(o.in[0], dy) },
	run:  func(m *Machine, o *op, t *operands) { m.be.Shift(t.out, o.scalar) }}

// Shift is x plus a number.
func (b *Builder) Shift(x Value, number float32) Value {
	o := inPlace(opShift, x)
	o.scalar = number
	return b.like(x, o)
}

var opRowScale = &Kind{name: "row-scale",
	grad: func(t *tape, o *op, dy Value) { t.give(o.in[0], inPlace(o.kind, dy, o.in[1])) },
	run:  func(m *Machine, _ *op, t *operands) { m.be.RowScale(t.out, t.in[1]) }}

// RowScale multiplies each row of x by a value of y (rows,1), which is not learned.
func (b *Builder) RowScale(x, y Value) Value {
	b.check(b.p.of(y).cols == 1 && b.p.of(x).rows == b.p.of(y).rows, "RowScale", x, y)
	return b.like(x, inPlace(opRowScale, x, y))
}
