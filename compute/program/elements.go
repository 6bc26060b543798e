package program

import (
	"math"

	"gdb/compute/backend"
)

// Operations on single values. They work in the place of their first operand, but for GELU, whose
// gradient needs the input.

var opBias = define("bias", biased,
	each(func(x, y, _ float32) float32 { return x + y }),
	Kind{grad: biasRule, dropout: true, writesHalf: always})

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
var opBiasReLU = define("bias-relu", biased,
	each(func(x, y, _ float32) float32 { return max(0, x+y) }),
	Kind{dropout: true, masks: true, writesHalf: always,
		grad: func(t *tape, o *op, dy Value) {
			dz := t.reluGrad(o, dy)
			t.give(o.in[1], simple(opColumnSum, dz))
			t.hold(o.in[0], dz)
		}})

var opReLU = define("relu", sameLen,
	each(func(x, _, _ float32) float32 { return max(0, x) }),
	Kind{biased: map[*Kind]*Kind{opBias: opBiasReLU, opTypeBias: opTypeBiasReLU},
		dropout: true, masks: true, writesHalf: always,
		grad: func(t *tape, o *op, dy Value) { t.hold(o.in[0], t.reluGrad(o, dy)) }})

// ReLU returns x above zero, and else zero.
func (b *Builder) ReLU(x Value) Value { return b.like(x, inPlace(opReLU, x)) }

// opReLUGrad is x where y, an output, is positive; with a scalar, of ReLU and then Dropout of that
// rate.
var opReLUGrad = define("relu-grad", likeSecond, each(func(x, y, s float32) float32 {
	if y > 0 {
		return x * (1 / (1 - s))
	}
	return 0
}), Kind{takes: second(takesEither), writesHalf: always})

// reluGrad returns the gradient of ReLU, and of a dropout after it.
func (t *tape) reluGrad(o *op, dy Value) Value {
	g := inPlace(opReLUGrad, dy, o.out)
	if d, ok := t.masked[o.out]; ok {
		g.in[1], g.scalar = d.out, d.rate
	}
	v := *t.p.of(o.out)
	return t.p.add(g, v.rows, v.cols)
}

var opELU = define("elu", sameLen,
	each(func(x, bias, _ float32) float32 { return elu(x + bias) }),
	Kind{writesHalf: always, grad: func(t *tape, o *op, dy Value) {
		t.give(o.in[0], inPlace(opELUGrad, dy, o.out))
	}})

// ELU returns x above zero, and exp(x)-1 below.
func (b *Builder) ELU(x Value) Value { return b.like(x, inPlace(opELU, x)) }

// opELUGrad is x times the derivative at an output y; with a rate, of ELU and then a dropout.
var opELUGrad = define("elu-grad", likeSecond, eluGradRef,
	Kind{takes: func(p *Program, o *op, i int) operand {
		if o.rate > 0 {
			return second(takesHalf)(p, o, i)
		}
		return second(takesEither)(p, o, i)
	}, writesHalf: func(p *Program, o *op) bool { return o.rate > 0 }})

var opGELU = define("gelu", sameLen, each(func(x, _, _ float32) float32 {
	return x * float32(math.Erfc(-float64(x)/math.Sqrt2)/2)
}), Kind{grad: func(t *tape, o *op, dy Value) {
	t.give(o.in[0], inPlace(opGELUGrad, dy, o.in[0]))
}})

// GELU returns x times the share of the normal distribution below it.
func (b *Builder) GELU(x Value) Value { return b.like(x, simple(opGELU, x)) }

var opGELUGrad = define("gelu-grad", likeSecond, each(func(dy, x, _ float32) float32 {
	v := float64(x)
	return dy * float32(math.Erfc(-v/math.Sqrt2)/2+v*math.Exp(-v*v/2)/math.Sqrt(2*math.Pi))
}), Kind{})

var opLeakyReLU = define("leaky-relu", sameLen,
	each(func(x, _, s float32) float32 { return leaky(x, s) }),
	Kind{grad: func(t *tape, o *op, dy Value) {
		g := inPlace(opLeakyReLUGrad, dy, o.out)
		g.scalar = o.scalar
		t.give(o.in[0], g)
	}})

// LeakyReLU returns x above zero, and slope times x below.
func (b *Builder) LeakyReLU(x Value, slope float32) Value {
	o := inPlace(opLeakyReLU, x)
	o.scalar = slope
	return b.like(x, o)
}

var opLeakyReLUGrad = define("leaky-relu-grad", likeSecond, each(func(dy, y, s float32) float32 {
	return dy * leakySlope(y, s)
}), Kind{})

// opDropout is its own gradient, with the same site.
var opDropout = define("dropout", sameLen,
	each(func(x, _, _ float32) float32 { return x }),
	Kind{grad: dropoutRule, drops: true, follows: true, writesHalf: always})

// Dropout zeroes values with probability rate in training and scales the others by 1/(1-rate).
func (b *Builder) Dropout(x Value, rate float32) Value {
	b.p.sites++
	if !b.Train || rate == 0 {
		return x
	}
	o := inPlace(opDropout, x)
	o.rate, o.site = rate, b.p.sites-1
	return b.like(x, o)
}

// dropoutRule drops gradients out as values were. After ReLU both are one operation.
func dropoutRule(t *tape, o *op, dy Value) {
	x := o.in[0]
	for i := range t.p.forward {
		if from := &t.p.ops[i]; from.out == x && t.uses[x] == 1 && from.kind.masks {
			t.masked[x] = dropped{o.out, o.rate}
			t.hold(x, dy)
			return
		}
	}
	g := inPlace(o.kind, dy)
	g.rate, g.site, g.tail = o.rate, o.site, o.tail
	t.give(x, g)
}

// opAdd is x + y: y is added to the last rows of x.
var opAdd = define("add", addFits, addRef, Kind{grad: func(t *tape, o *op, dy Value) {
	t.hold(o.in[0], dy)
	t.hold(o.in[1], dy)
}})

// Add returns x + y.
func (b *Builder) Add(x, y Value) Value {
	vx, vy := b.p.of(x), b.p.of(y)
	b.check(vx.cols == vy.cols && vx.rows == vy.rows, "Add", x, y)
	return b.p.add(inPlace(opAdd, x, y), vx.rows, vx.cols)
}

var opScale = define("scale", sameLen,
	each(func(x, _, s float32) float32 { return x * s }),
	Kind{grad: func(t *tape, o *op, dy Value) {
		g := inPlace(o.kind, dy)
		g.scalar = o.scalar
		t.give(o.in[0], g)
	}})

// Scale returns x times a factor.
func (b *Builder) Scale(x Value, factor float32) Value {
	o := inPlace(opScale, x)
	o.scalar = factor
	return b.like(x, o)
}

var opShift = define("shift", sameLen,
	each(func(x, _, s float32) float32 { return x + s }),
	Kind{grad: func(t *tape, o *op, dy Value) { t.hold(o.in[0], dy) }})

// Shift returns x plus a number.
func (b *Builder) Shift(x Value, number float32) Value {
	o := inPlace(opShift, x)
	o.scalar = number
	return b.like(x, o)
}

var opRowScale = define("row-scale", func(o *backend.Operands) bool {
	return o.In[1].Len() == o.Out.Rows
}, rowScaleRef, Kind{grad: func(t *tape, o *op, dy Value) {
	t.give(o.in[0], inPlace(o.kind, dy, o.in[1]))
}})

// RowScale multiplies each row of x by a value of y (rows,1), which is not learned.
func (b *Builder) RowScale(x, y Value) Value {
	b.check(b.p.of(y).cols == 1 && b.p.of(x).rows == b.p.of(y).rows, "RowScale", x, y)
	return b.like(x, inPlace(opRowScale, x, y))
}

func eluGradRef(h *backend.Plain) {
	y := h.From[1].V
	for i, dy := range h.From[0].V {
		h.To.V[i] = dy * min(1, y[i]*(1-h.Drop.Rate)+1)
	}
	h.Drops()
}

func addFits(o *backend.Operands) bool {
	return o.Out.Cols == o.In[1].Cols && o.Out.Rows >= o.In[1].Rows
}

func addRef(h *backend.Plain) {
	copyRef(h)
	addTo(h.To.V[len(h.To.V)-len(h.From[1].V):], h.From[1].V, 1)
}

func rowScaleRef(h *backend.Plain) {
	for i, f := range h.From[1].V {
		for j, x := range h.From[0].Row(i) {
			h.To.Row(i)[j] = x * f
		}
	}
}
