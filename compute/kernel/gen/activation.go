//go:build avogen

package main

import (
	"math"

	. "github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/reg"
)

// activation writes the activations and what scales values.
func activation() {
	for _, s := range isas {
		times(s)
		addScaled(s)
		leaky(s)
		leakyGrad(s)
		elu(s)
		eluGrad(s)
		gelu(s, false)
		gelu(s, true)
	}
}

// float returns a register filled with v.
func (s isa) float(v float32) reg.VecVirtual { return s.constant(math.Float32bits(v)) }

// choose returns yes in the lanes of the mask, and no in the others.
func (s isa) choose(k mask, yes, no reg.VecVirtual) reg.VecVirtual {
	v := s.vec()
	if s.wide {
		VBLENDMPS(yes, no, k.k, v)
	} else {
		VBLENDVPS(k.v, yes, no, v)
	}
	return v
}

func times(s isa) {
	s.text("times", "func(y, x []float32, f float32)", "is y = x*f, over the length of x.")
	y, x, factor := base("y"), base("x"), s.broadcast(floatParam("f"))
	s.loop(length("x"), func(a at) {
		v := a.load(x)
		VMULPS(factor, v, v)
		a.store(v, y)
	})
	done()
}

func addScaled(s isa) {
	s.text("addScaled", "func(dst, src []float32, a float32)", "is dst += a*src.")
	dst, src, factor := base("dst"), base("src"), s.broadcast(floatParam("a"))
	s.loop(length("src"), func(a at) {
		v := a.load(dst)
		VFMADD231PS(a.load(src), factor, v)
		a.store(v, dst)
	})
	done()
}

func leaky(s isa) {
	s.text("leaky", "func(x []float32, slope float32)", "is x = x>0 ? x : slope*x.")
	x, slope, zero := base("x"), s.broadcast(floatParam("slope")), s.zero()
	s.loop(length("x"), func(a at) {
		v, less := a.load(x), s.vec()
		VMULPS(slope, v, less)
		a.store(s.choose(s.greater(v, zero), v, less), x)
	})
	done()
}

func leakyGrad(s isa) {
	s.text("leakyGrad", "func(dx, y []float32, slope float32)", "is dx *= y>0 ? 1 : slope.")
	dx, y, slope, zero := base("dx"), base("y"), s.broadcast(floatParam("slope")), s.zero()
	one := s.float(1)
	s.loop(length("y"), func(a at) {
		factor := s.choose(s.greater(a.load(y), zero), one, slope)
		VMULPS(a.load(dx), factor, factor)
		a.store(factor, dx)
	})
	done()
}

func elu(s isa) {
	s.text("elu", "func(x []float32)", "is x = x>0 ? x : exp(x)-1.")
	x, zero, one := base("x"), s.zero(), s.float(1)
	e := s.newExp()
	s.loop(length("x"), func(a at) {
		v, below := a.load(x), s.vec()
		VMINPS(v, zero, below) // in this order a NaN stays
		p := e.of(below)
		VSUBPS(one, p, p)
		a.store(s.choose(s.greater(v, zero), v, p), x)
	})
	done()
}

func eluGrad(s isa) {
	s.text("eluGrad", "func(dx, y []float32)", "is dx *= y>0 ? 1 : y+1.")
	dx, y, zero, one := base("dx"), base("y"), s.zero(), s.float(1)
	s.loop(length("y"), func(a at) {
		v := a.load(y)
		VMINPS(v, zero, v)
		VADDPS(one, v, v)
		VMULPS(a.load(dx), v, v)
		a.store(v, dx)
	})
	done()
}

// normalTail is a polynomial in t = 1/(1+tailStep*z), z >= 0, without its constant, the highest
// power first: exp(z*z/2) times the part of the normal distribution beyond z. It was fitted for the
// least largest relative error over z from 0 to 12, which is 2.5e-7 in float32.
var normalTail = []float32{0.036742307, -0.16168229, 0.21413788, -0.060924359, 0.13244240,
	0.098718591, 0.12094917, 0.11961627}

const tailStep = 0.3

// gelu writes GELU, or the product with its derivative.
func gelu(s isa, grad bool) {
	if grad {
		s.text("geluGrad", "func(y, x []float32)", "is y *= the derivative of GELU at x.")
	} else {
		s.text("gelu", "func(y, x []float32)", "is y = GELU(x).")
	}
	y, x, one := base("y"), base("x"), s.float(1)
	half, step, sign := s.float(-0.5), s.float(tailStep), s.constant(1<<31)
	density := s.float(float32(1 / math.Sqrt(2*math.Pi)))
	e, table := s.newExp(), s.table("normalTail", normalTail)
	s.loop(length("x"), func(a at) {
		v, square := a.load(x), s.vec()
		VMULPS(v, v, square)
		VMULPS(half, square, square)
		exp := e.of(square)
		t, tail := s.vec(), s.vec()
		s.andNot(sign, v, t)
		VFMADD213PS(one, step, t)
		VDIVPS(t, one, t)
		VBROADCASTSS(table, tail)
		for i := 1; i < len(normalTail); i++ {
			VFMADD213PS(s.broadcast(table.Offset(4*i)), t, tail)
		}
		VMULPS(t, tail, tail)
		VMULPS(exp, tail, tail)
		body := s.vec()
		VSUBPS(tail, one, body)
		phi := s.choose(s.greater(v, s.zero()), body, tail)
		if grad {
			VMULPS(density, exp, exp)
			VFMADD231PS(exp, v, phi)
			VMULPS(a.load(y), phi, phi)
		} else {
			VMULPS(v, phi, phi)
		}
		a.store(phi, y)
	})
	done()
}

// andNot is to = v without the bits of k.
func (s isa) andNot(k, v, to reg.VecVirtual) {
	if s.wide {
		VPANDND(v, k, to)
	} else {
		VANDNPS(v, k, to)
	}
}
