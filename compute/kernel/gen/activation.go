//go:build avogen

package main

import (
	"math"

	. "github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/reg"
)

// activationKernels are the activations and what scales values.
var activationKernels = []sliceKernel{
	{"times", "func(y, x []float32, f float32)", "is y = x*f, over the length of x.",
		func(k *vectors) {
			factor := k.param("f")
			k.over("x", func(a at) {
				v := a.load("x")
				VMULPS(factor, v, v)
				a.store(v, "y")
			})
		}},
	{"addScaled", "func(dst, src []float32, a float32)", "is dst += a*src.", func(k *vectors) {
		factor := k.param("a")
		k.over("src", func(a at) {
			v := a.load("dst")
			VFMADD231PS(a.load("src"), factor, v)
			a.store(v, "dst")
		})
	}},
	{"leaky", "func(x []float32, slope float32)", "is x = x>0 ? x : slope*x.",
		func(k *vectors) {
			slope, zero := k.param("slope"), k.zero()
			k.over("x", func(a at) {
				v, less := a.load("x"), k.vec()
				VMULPS(slope, v, less)
				a.store(k.choose(k.greater(v, zero), v, less), "x")
			})
		}},
	{"leakyGrad", "func(dx, y []float32, slope float32)", "is dx *= y>0 ? 1 : slope.",
		func(k *vectors) {
			slope, zero, one := k.param("slope"), k.zero(), k.float(1)
			k.over("y", func(a at) {
				factor := k.choose(k.greater(a.load("y"), zero), one, slope)
				VMULPS(a.load("dx"), factor, factor)
				a.store(factor, "dx")
			})
		}},
	{"elu", "func(x []float32)", "is x = x>0 ? x : exp(x)-1.", func(k *vectors) {
		zero, one := k.zero(), k.float(1)
		e := k.newExp()
		k.over("x", func(a at) {
			v, below := a.load("x"), k.vec()
			VMINPS(v, zero, below) // in this order a NaN stays
			p := e.of(below)
			VSUBPS(one, p, p)
			a.store(k.choose(k.greater(v, zero), v, p), "x")
		})
	}},
	{"eluGrad", "func(dx, y []float32)", "is dx *= y>0 ? 1 : y+1.", func(k *vectors) {
		zero, one := k.zero(), k.float(1)
		k.over("y", func(a at) {
			v := a.load("y")
			VMINPS(v, zero, v)
			VADDPS(one, v, v)
			VMULPS(a.load("dx"), v, v)
			a.store(v, "dx")
		})
	}},
	{"gelu", "func(y, x []float32)", "is y = GELU(x).", func(k *vectors) { gelu(k, false) }},
	{"geluGrad", "func(y, x []float32)", "is y *= the derivative of GELU at x.",
		func(k *vectors) { gelu(k, true) }},
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

// normalTail is a polynomial in t = 1/(1+tailStep*z), z >= 0, without its constant, the highest
// power first: exp(z*z/2) times the part of the normal distribution beyond z. It was fitted for the
// least largest relative error over z from 0 to 12, which is 2.5e-7 in float32.
var normalTail = []float32{0.036742307, -0.16168229, 0.21413788, -0.060924359, 0.13244240,
	0.098718591, 0.12094917, 0.11961627}

const tailStep = 0.3

// gelu writes GELU, or the product with its derivative.
func gelu(k *vectors, grad bool) {
	one := k.float(1)
	half, step, sign := k.float(-0.5), k.float(tailStep), k.constant(1<<31)
	density := k.float(float32(1 / math.Sqrt(2*math.Pi)))
	e, table := k.newExp(), k.table("normalTail", normalTail)
	k.over("x", func(a at) {
		v, square := a.load("x"), k.vec()
		VMULPS(v, v, square)
		VMULPS(half, square, square)
		exp := e.of(square)
		t, tail := k.vec(), k.vec()
		k.andNot(sign, v, t)
		VFMADD213PS(one, step, t)
		VDIVPS(t, one, t)
		VBROADCASTSS(table, tail)
		for i := 1; i < len(normalTail); i++ {
			VFMADD213PS(k.broadcast(table.Offset(4*i)), t, tail)
		}
		VMULPS(t, tail, tail)
		VMULPS(exp, tail, tail)
		body := k.vec()
		VSUBPS(tail, one, body)
		phi := k.choose(k.greater(v, k.zero()), body, tail)
		if grad {
			VMULPS(density, exp, exp)
			VFMADD231PS(exp, v, phi)
			VMULPS(a.load("y"), phi, phi)
		} else {
			VMULPS(v, phi, phi)
		}
		a.store(phi, "y")
	})
}

// andNot is to = v without the bits of k.
func (s isa) andNot(k, v, to reg.VecVirtual) {
	if s.wide {
		VPANDND(v, k, to)
	} else {
		VANDNPS(v, k, to)
	}
}
