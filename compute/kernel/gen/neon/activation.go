package main

import "math"

// activationKernels are the activations and what scales values.
var activationKernels = []sliceKernel{
	{"times", "func(y, x []float32, f float32)", "is y = x*f, over the length of x.",
		func(k *pass) {
			factor := k.param("f")
			k.over(func(a at) {
				v := a.load("x")
				k.mul(v, v, factor)
				a.store(v, "y")
			}, "y", "x")
		}},
	{"addScaled", "func(dst, src []float32, a float32)", "is dst += a*src.", func(k *pass) {
		factor := k.param("a")
		k.over(func(a at) {
			v := a.load("dst")
			k.addTimes(v, a.load("src"), factor)
			a.store(v, "dst")
		}, "dst", "src")
	}},
	{"leaky", "func(x []float32, slope float32)", "is x = x>0 ? x : slope*x.",
		func(k *pass) {
			slope := k.param("slope")
			k.over(func(a at) {
				v, less := a.load("x"), k.vec()
				k.mul(less, v, slope)
				a.store(k.choose(k.positive(v), v, less), "x")
			}, "x")
		}},
	{"leakyGrad", "func(dx, y []float32, slope float32)", "is dx *= y>0 ? 1 : slope.",
		func(k *pass) {
			slope, one := k.param("slope"), k.float(1)
			k.over(func(a at) {
				factor := k.choose(k.positive(a.load("y")), one, slope)
				k.mul(factor, factor, a.load("dx"))
				a.store(factor, "dx")
			}, "dx", "y")
		}},
	{"elu", "func(x []float32)", "is x = x>0 ? x : exp(x)-1.", func(k *pass) {
		zero, e := k.zero(), k.newExp()
		k.over(func(a at) {
			v, below := a.load("x"), k.vec()
			k.binary("fmin", below, v, zero) // a NaN stays
			p := e.of(below)
			k.sub(p, p, e.one)
			a.store(k.choose(k.positive(v), v, p), "x")
		}, "x")
	}},
	{"eluGrad", "func(dx, y []float32)", "is dx *= y>0 ? 1 : y+1.", func(k *pass) {
		zero, one := k.zero(), k.float(1)
		k.over(func(a at) {
			v := a.load("y")
			k.binary("fmin", v, v, zero)
			k.add(v, v, one)
			k.mul(v, v, a.load("dx"))
			a.store(v, "dx")
		}, "dx", "y")
	}},
	{"gelu", "func(y, x []float32)", "is y = GELU(x).", func(k *pass) { gelu(k, false) }},
	{"geluGrad", "func(y, x []float32)", "is y *= the derivative of GELU at x.",
		func(k *pass) { gelu(k, true) }},
}

// normalTail is the polynomial of the same name in the generator for amd64: exp(z*z/2) times the
// part of the normal distribution beyond z, in t = 1/(1+tailStep*z).
var normalTail = []float32{0.036742307, -0.16168229, 0.21413788, -0.060924359, 0.13244240,
	0.098718591, 0.12094917, 0.11961627}

const tailStep = 0.3

// gelu writes GELU, or the product with its derivative.
func gelu(k *pass, grad bool) {
	half, step := k.float(-0.5), k.float(tailStep)
	density := k.float(float32(1 / math.Sqrt(2*math.Pi)))
	e := k.newExp()
	var polynomial []vec
	for _, c := range normalTail {
		polynomial = append(polynomial, k.float(c))
	}
	k.over(func(a at) {
		v, exp := a.load("x"), k.vec()
		k.mul(exp, v, v)
		k.mul(exp, exp, half)
		k.scope(func() { k.move(exp, e.of(exp)) })
		t, tail, next := k.vec(), k.vec(), k.vec()
		k.unary("fabs", next, v)
		k.move(t, e.one)
		k.addTimes(t, next, step)
		k.div(t, e.one, t)
		k.move(tail, polynomial[0])
		for _, c := range polynomial[1:] {
			k.move(next, c)
			k.addTimes(next, tail, t)
			tail, next = next, tail
		}
		k.mul(tail, tail, t)
		k.mul(tail, tail, exp)
		k.sub(next, e.one, tail)
		phi := k.choose(k.positive(v), next, tail)
		if grad {
			k.mul(exp, exp, density)
			k.addTimes(phi, exp, v)
			k.mul(phi, phi, a.load("y"))
		} else {
			k.mul(phi, phi, v)
		}
		a.store(phi, "y")
	}, "y", "x")
}
