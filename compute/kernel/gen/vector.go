//go:build avogen

package main

import (
	"math"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// vector writes the elementwise kernels and those of one row.
func vector() {
	for _, s := range isas {
		add(s)
		scale(s)
		bias(s, false)
		bias(s, true)
		reluGrad(s)
		dropout(s)
		sgd(s)
		adagrad(s)
		adam(s)
		rowMax(s)
		expSum(s)
	}
}

// text begins a function.
func (s isa) text(name, signature, doc string) {
	TEXT(name+s.name, NOSPLIT, signature)
	Pragma("noescape")
	Doc(name + s.name + " " + doc)
}

// at is where a step of a loop works: all lanes, or those of the rest.
type at struct {
	s    isa
	i    reg.GPVirtual // bytes from the begin of each array
	rest *mask
}

func (a at) load(p reg.Register) reg.VecVirtual {
	v, m := a.s.vec(), Mem{Base: p, Index: a.i, Scale: 1}
	if a.rest != nil {
		a.s.loadMasked(m, *a.rest, v)
	} else {
		a.s.load(m, v)
	}
	return v
}

func (a at) store(v reg.VecVirtual, p reg.Register) {
	m := Mem{Base: p, Index: a.i, Scale: 1}
	if a.rest != nil {
		a.s.storeMasked(v, *a.rest, m)
	} else {
		a.s.store(v, m)
	}
}

// loop runs body over n values: first whole vectors, then the rest.
func (s isa) loop(n reg.GPVirtual, body func(a at)) {
	i, left := GP64(), GP64()
	XORL(i.As32(), i.As32())
	MOVQ(n, left)
	SUBQ(U32(s.lanes()), left)
	JL(LabelRef("rest"))
	Label("whole")
	body(at{s: s, i: i})
	ADDQ(U32(s.bytes), i)
	SUBQ(U32(s.lanes()), left)
	JGE(LabelRef("whole"))
	Label("rest")
	ADDQ(U32(s.lanes()), left)
	JZ(LabelRef("end"))
	k := s.lowLanes(left)
	body(at{s: s, i: i, rest: &k})
	Label("end")
}

func done() {
	VZEROUPPER()
	RET()
}

// base and length are those of a slice parameter.
func base(name string) reg.GPVirtual   { return loadGP(Param(name).Base()) }
func length(name string) reg.GPVirtual { return loadGP(Param(name).Len()) }

// greater is the mask of the lanes in which a > b; a NaN is not greater.
func (s isa) greater(a, b reg.VecVirtual) mask {
	if s.wide {
		k := K()
		VCMPPS(U8(0x1e), b, a, k)
		return mask{k: k}
	}
	v := s.vec()
	VCMPPS(U8(0x1e), b, a, v)
	return mask{v: v}
}

// greaterInt is the mask of the lanes in which a > b, as signed integers.
func (s isa) greaterInt(a, b reg.VecVirtual) mask {
	if s.wide {
		k := K()
		VPCMPGTD(b, a, k)
		return mask{k: k}
	}
	v := s.vec()
	VPCMPGTD(b, a, v)
	return mask{v: v}
}

// keep zeros the lanes of v that are not in the mask.
func (s isa) keep(k mask, v reg.VecVirtual) {
	if s.wide {
		VMOVAPS_Z(v, k.k, v)
	} else {
		VANDPS(k.v, v, v)
	}
}

func (s isa) xor(a, b reg.VecVirtual) {
	if s.wide {
		VPXORD(a, b, b)
	} else {
		VPXOR(a, b, b)
	}
}

func (s isa) copyOf(v reg.VecVirtual) reg.VecVirtual {
	c := s.vec()
	VMOVAPS(v, c)
	return c
}

func add(s isa) {
	s.text("add", "func(dst, src []float32)", "is dst += src, over the length of src.")
	dst, src := base("dst"), base("src")
	s.loop(length("src"), func(a at) {
		v := a.load(src)
		VADDPS(a.load(dst), v, v)
		a.store(v, dst)
	})
	done()
}

func scale(s isa) {
	s.text("scale", "func(x []float32, s float32)", "is x *= s.")
	x, factor := base("x"), s.broadcast(floatParam("s"))
	s.loop(length("x"), func(a at) {
		v := a.load(x)
		VMULPS(factor, v, v)
		a.store(v, x)
	})
	done()
}

// bias adds a row to each row of y, and cuts at zero if relu is set. rows and n are positive.
func bias(s isa, relu bool) {
	name, doc := "bias", "adds bias to each row of y(rows,n)."
	if relu {
		name, doc = "biasReLU", "adds bias to each row of y(rows,n) and cuts at zero."
	}
	s.text(name, "func(y, bias []float32, rows, n int)", doc)
	y, b, rows, n := base("y"), base("bias"), loadGP(Param("rows")), loadGP(Param("n"))
	var zero reg.VecVirtual
	if relu {
		zero = s.zero()
	}
	Label("row")
	s.loop(n, func(a at) {
		v := a.load(y)
		VADDPS(a.load(b), v, v)
		if relu {
			VMAXPS(v, zero, v) // in this order a NaN stays
		}
		a.store(v, y)
	})
	LEAQ(Mem{Base: y, Index: n, Scale: 4}, y)
	DECQ(rows)
	JNZ(LabelRef("row"))
	done()
}

func reluGrad(s isa) {
	s.text("reluGrad", "func(dy, y []float32, scale float32)",
		"scales dy, and zeroes it where y is not positive.")
	dy, y, zero := base("dy"), base("y"), s.zero()
	factor := s.broadcast(floatParam("scale"))
	s.loop(length("y"), func(a at) {
		positive := s.greater(a.load(y), zero)
		v := a.load(dy)
		VMULPS(factor, v, v)
		s.keep(positive, v)
		a.store(v, dy)
	})
	done()
}

// The constants of dropout.go.
const (
	drawStep = 0x9e3779b9
	drawMul1 = 0x7feb352d
	drawMul2 = 0x846ca68b
)

func dropout(s isa) {
	s.text("dropout", "func(y []float32, plan *uint32, first uint32)",
		"drops or scales y: see refDropout.")
	y, plan, d := base("y"), loadGP(Param("plan")), newDropper(s)
	d.read(plan)
	d.place(plan)
	s.loop(length("y"), func(a at) {
		v := a.load(y)
		d.apply(v)
		a.store(v, y)
	})
	done()
}

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

func sgd(s isa) {
	s.text("sgd", "func(w, g []float32, lr, weightDecay float32)", "is w -= lr(g+weightDecay·w).")
	w, g := base("w"), base("g")
	lr, decay := s.broadcast(floatParam("lr")), s.broadcast(floatParam("weightDecay"))
	s.loop(length("g"), func(a at) {
		grad, weight := a.load(g), a.load(w)
		VFMADD231PS(decay, weight, grad)
		VFNMADD231PS(lr, grad, weight)
		a.store(weight, w)
	})
	done()
}

func adagrad(s isa) {
	s.text("adagrad", "func(w, g, s []float32, lr, eps, weightDecay float32)",
		"is a step of Adagrad: see refAdagrad.")
	w, g, sum := base("w"), base("g"), base("s")
	lr, eps := s.broadcast(floatParam("lr")), s.broadcast(floatParam("eps"))
	decay := s.broadcast(floatParam("weightDecay"))
	s.loop(length("g"), func(a at) {
		grad, weight, squares := a.load(g), a.load(w), a.load(sum)
		VFMADD231PS(decay, weight, grad)
		VFMADD231PS(grad, grad, squares)
		a.store(squares, sum)
		VSQRTPS(squares, squares)
		VADDPS(eps, squares, squares)
		VMULPS(lr, grad, grad)
		VDIVPS(squares, grad, grad)
		VSUBPS(grad, weight, weight)
		a.store(weight, w)
	})
	done()
}

func adam(s isa) {
	s.text("adam", "func(w, g, m, v []float32, plan *float32)", "is a step of Adam: see refAdam.")
	w, g, m, v, plan := base("w"), base("g"), base("m"), base("v"), loadGP(Param("plan"))
	var c [9]reg.VecVirtual
	for i := range c {
		c[i] = s.broadcast(Mem{Base: plan, Disp: 4 * i})
	}
	l2, beta1, rest1, beta2, rest2 := c[0], c[1], c[2], c[3], c[4]
	rootScale, eps, shrink, rate := c[5], c[6], c[7], c[8]
	s.loop(length("g"), func(a at) {
		grad, weight := a.load(g), a.load(w)
		VFMADD231PS(l2, weight, grad)
		mean := a.load(m)
		VMULPS(beta1, mean, mean)
		VFMADD231PS(rest1, grad, mean)
		a.store(mean, m)
		squares := a.load(v)
		VMULPS(beta2, squares, squares)
		VMULPS(grad, grad, grad)
		VFMADD231PS(rest2, grad, squares)
		a.store(squares, v)
		VSQRTPS(squares, squares)
		VFMADD213PS(eps, rootScale, squares)
		VMULPS(rate, mean, mean)
		VDIVPS(squares, mean, mean)
		VFMSUB213PS(mean, shrink, weight)
		a.store(weight, w)
	})
	done()
}
