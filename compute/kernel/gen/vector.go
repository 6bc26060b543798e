//go:build avogen

package main

import (
	"math"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// vectorKernels are elementwise, or of one row.
var vectorKernels = []sliceKernel{
	{"add", "func(dst, src []float32)", "is dst += src, over the length of src.",
		func(k *vectors) {
			k.over("src", func(a at) {
				v := a.load("src")
				VADDPS(a.load("dst"), v, v)
				a.store(v, "dst")
			})
		}},
	{"scale", "func(x []float32, s float32)", "is x *= s.", func(k *vectors) {
		factor := k.param("s")
		k.over("x", func(a at) {
			v := a.load("x")
			VMULPS(factor, v, v)
			a.store(v, "x")
		})
	}},
	{"bias", "func(y, bias []float32, rows, n int)", "adds bias to each row of y(rows,n).",
		func(k *vectors) { bias(k, false) }},
	{"biasReLU", "func(y, bias []float32, rows, n int)",
		"adds bias to each row of y(rows,n) and cuts at zero.",
		func(k *vectors) { bias(k, true) }},
	{"reluGrad", "func(dy, y []float32, scale float32)",
		"scales dy, and zeroes it where y is not positive.", func(k *vectors) {
			zero, factor := k.zero(), k.param("scale")
			k.over("y", func(a at) {
				positive := k.greater(a.load("y"), zero)
				v := a.load("dy")
				VMULPS(factor, v, v)
				k.keep(positive, v)
				a.store(v, "dy")
			})
		}},
	{"dropout", "func(y []float32, plan *uint32, first uint32)",
		"drops or scales y: see refDropout.", func(k *vectors) {
			plan, d := loadGP(Param("plan")), newDropper(k.isa)
			d.read(plan)
			d.place(plan)
			k.over("y", func(a at) {
				v := a.load("y")
				d.apply(v)
				a.store(v, "y")
			})
		}},
	{"sgd", "func(w, g []float32, lr, weightDecay float32)", "is w -= lr(g+weightDecay·w).",
		func(k *vectors) {
			lr, decay := k.param("lr"), k.param("weightDecay")
			k.over("g", func(a at) {
				grad, weight := a.load("g"), a.load("w")
				VFMADD231PS(decay, weight, grad)
				VFNMADD231PS(lr, grad, weight)
				a.store(weight, "w")
			})
		}},
	{"adagrad", "func(w, g, s []float32, lr, eps, weightDecay float32)",
		"is a step of Adagrad: see refAdagrad.", func(k *vectors) {
			lr, eps, decay := k.param("lr"), k.param("eps"), k.param("weightDecay")
			k.over("g", func(a at) {
				grad, weight, squares := a.load("g"), a.load("w"), a.load("s")
				VFMADD231PS(decay, weight, grad)
				VFMADD231PS(grad, grad, squares)
				a.store(squares, "s")
				VSQRTPS(squares, squares)
				VADDPS(eps, squares, squares)
				VMULPS(lr, grad, grad)
				VDIVPS(squares, grad, grad)
				VSUBPS(grad, weight, weight)
				a.store(weight, "w")
			})
		}},
	{"adam", "func(w, g, m, v []float32, plan *float32)", "is a step of Adam: see refAdam.", adam},
	{"rowMax", "func(x []float32) float32", "is the largest value of x.", rowMax},
	{"expSum", "func(out, x []float32, shift float32) float32",
		"writes exp(x-shift), for x at most shift, and returns the sum: see refExpSum.", expSum},
}

// bias adds a row to each row of y, and cuts at zero if relu is set. rows and n are positive.
func bias(k *vectors, relu bool) {
	rows, n := loadGP(Param("rows")), loadGP(Param("n"))
	var zero reg.VecVirtual
	if relu {
		zero = k.zero()
	}
	Label("row")
	k.loop(n, func(a at) {
		v := a.load("y")
		VADDPS(a.load("bias"), v, v)
		if relu {
			VMAXPS(v, zero, v) // in this order a NaN stays
		}
		a.store(v, "y")
	})
	LEAQ(Mem{Base: k.base["y"], Index: n, Scale: 4}, k.base["y"])
	DECQ(rows)
	JNZ(LabelRef("row"))
	done()
}

// The constants of dropout.go.
const (
	drawStep = 0x9e3779b9
	drawMul1 = 0x7feb352d
	drawMul2 = 0x846ca68b
)

// dropper drops values out, by a plan.
type dropper struct {
	s                            isa
	position, stride, mul1, mul2 reg.VecVirtual
	mix, below, factor           reg.VecVirtual
}

func newDropper(s isa) *dropper {
	return &dropper{s: s, position: s.vec(), mix: s.vec(), below: s.vec(), factor: s.vec(),
		stride: s.constant(drawStep * uint32(s.lanes()) & math.MaxUint32),
		mul1:   s.constant(drawMul1), mul2: s.constant(drawMul2)}
}

// read reads a plan. A draw is kept from the threshold on: where it is greater than one less.
func (d *dropper) read(plan reg.GPVirtual) {
	VBROADCASTSS(Mem{Base: plan, Disp: 4}, d.mix)
	VBROADCASTSS(Mem{Base: plan, Disp: 8}, d.below)
	VPSUBD(d.s.constant(1), d.below, d.below)
	VBROADCASTSS(Mem{Base: plan, Disp: 12}, d.factor)
}

// place sets the position of the next value: first.
func (d *dropper) place(plan reg.GPVirtual) {
	VBROADCASTSS(floatParam("first"), d.position)
	VPADDD(d.s.inMemoryEach("laneNumbers", func(i int) uint32 { return uint32(i) }), d.position,
		d.position)
	VPMULLD(d.s.constant(drawStep), d.position, d.position)
	VPADDD(d.s.broadcast(Mem{Base: plan}), d.position, d.position)
}

// apply drops values of v out, or scales them.
func (d *dropper) apply(v reg.VecVirtual) {
	x, t := d.s.copyOf(d.position), d.s.vec()
	VPADDD(d.stride, d.position, d.position)
	VPSRLD(U8(16), x, t)
	d.s.xor(t, x)
	VPMULLD(d.mul1, x, x)
	VPSRLD(U8(15), x, t)
	d.s.xor(t, x)
	d.s.xor(d.mix, x)
	VPMULLD(d.mul2, x, x)
	VPSRLD(U8(16), x, t)
	d.s.xor(t, x)
	VPSRLD(U8(8), x, x)
	kept := d.s.greaterInt(x, d.below)
	VMULPS(d.factor, v, v)
	d.s.keep(kept, v)
}

func adam(k *vectors) {
	plan := loadGP(Param("plan"))
	var c [9]reg.VecVirtual
	for i := range c {
		c[i] = k.broadcast(Mem{Base: plan, Disp: 4 * i})
	}
	l2, beta1, rest1, beta2, rest2 := c[0], c[1], c[2], c[3], c[4]
	rootScale, eps, shrink, rate := c[5], c[6], c[7], c[8]
	k.over("g", func(a at) {
		grad, weight := a.load("g"), a.load("w")
		VFMADD231PS(l2, weight, grad)
		mean := a.load("m")
		VMULPS(beta1, mean, mean)
		VFMADD231PS(rest1, grad, mean)
		a.store(mean, "m")
		squares := a.load("v")
		VMULPS(beta2, squares, squares)
		VMULPS(grad, grad, grad)
		VFMADD231PS(rest2, grad, squares)
		a.store(squares, "v")
		VSQRTPS(squares, squares)
		VFMADD213PS(eps, rootScale, squares)
		VMULPS(rate, mean, mean)
		VDIVPS(squares, mean, mean)
		VFMSUB213PS(mean, shrink, weight)
		a.store(weight, "w")
	})
}
