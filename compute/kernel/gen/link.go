//go:build avogen

package main

import (
	"math"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// link writes what link prediction does with single rows.
func link() {
	for _, s := range isas {
		product(s)
		addCube(s)
		dot(s)
		manhattan(s)
		manhattanGrad(s)
		modulus(s)
		modulusGrad(s)
	}
}

// bits returns v with the sign bit kept, or without it.
func (s isa) bits(v reg.VecVirtual, mask uint32) reg.VecVirtual {
	m := s.constant(mask)
	if s.wide {
		VPANDD(m, v, m)
	} else {
		VPAND(m, v, m)
	}
	return m
}

const magnitudeBits = 0x7fffffff

func product(s isa) {
	s.text("product", "func(y, a, b []float32)", "is y = a*b, over the length of b.")
	y, a, b := base("y"), base("a"), base("b")
	s.loop(length("b"), func(at at) {
		v := at.load(a)
		VMULPS(at.load(b), v, v)
		at.store(v, y)
	})
	done()
}

func addCube(s isa) {
	s.text("addCube", "func(g, x []float32, f float32)", "is g += f*|x|*x, over the length of x.")
	g, x, f := base("g"), base("x"), s.broadcast(floatParam("f"))
	s.loop(length("x"), func(a at) {
		v, sum := a.load(x), a.load(g)
		size := s.bits(v, magnitudeBits)
		VMULPS(f, size, size)
		VFMADD231PS(v, size, sum)
		a.store(sum, g)
	})
	done()
}

func dot(s isa) {
	s.text("dot", "func(a, b []float32) float32", "is the sum of a*b, over the length of b.")
	a, b, sum := base("a"), base("b"), s.zero()
	s.loop(length("b"), func(at at) { VFMADD231PS(at.load(a), at.load(b), sum) })
	s.result(sum, addLanes)
}

func manhattan(s isa) {
	s.text("manhattan", "func(a, b []float32) float32",
		"is the sum of |a-b|, over the length of b.")
	a, b, sum := base("a"), base("b"), s.zero()
	s.loop(length("b"), func(at at) { VADDPS(s.bits(at.minus(a, b), magnitudeBits), sum, sum) })
	s.result(sum, addLanes)
}

// manhattanGrad takes the sign of a difference from its bits: where there is none, the weight is
// cleared.
func manhattanGrad(s isa) {
	s.text("manhattanGrad", "func(da, db, a, b []float32, w float32)",
		"is da -= w*sign(a-b) and db += w*sign(a-b), over the length of b.")
	da, db, a, b, w := base("da"), base("db"), base("a"), base("b"), s.broadcast(floatParam("w"))
	zero := s.zero()
	s.loop(length("b"), func(at at) {
		diff := at.minus(a, b)
		up, down := s.vec(), s.vec()
		VMOVAPS(w, up)
		VMOVAPS(w, down)
		s.keep(s.greater(diff, zero), up)
		s.keep(s.greater(zero, diff), down)
		VSUBPS(down, up, up)
		v := at.load(da)
		VSUBPS(up, v, v)
		at.store(v, da)
		VADDPS(at.load(db), up, up)
		at.store(up, db)
	})
	done()
}

// inverseRoot is 1/sqrt(v) for positive v: an estimate, and one step of Newton's method.
func (s isa) inverseRoot(v reg.VecVirtual) reg.VecVirtual {
	y, t := s.vec(), s.vec()
	if s.wide {
		VRSQRT14PS(v, y)
	} else {
		VRSQRTPS(v, y)
	}
	VMULPS(y, v, t)
	VMULPS(y, t, t)
	three := s.float(3)
	VSUBPS(t, three, t)
	VMULPS(s.float(0.5), y, y)
	VMULPS(t, y, y)
	return y
}

// squaredModulus is x²+y² and a little more: see refModulus.
func (s isa) squaredModulus(x, y reg.VecVirtual) reg.VecVirtual {
	v := s.float(math.Float32frombits(modulusLeastBits))
	VFMADD231PS(x, x, v)
	VFMADD231PS(y, y, v)
	return v
}

// modulusLeastBits are those of modulusLeast, 1e-20.
const modulusLeastBits = 0x1e3ce508

func modulus(s isa) {
	s.text("modulus", "func(ar, ai, br, bi []float32) float32",
		"is the sum of the moduli of a-b, over the length of bi.")
	ar, ai, br, bi := base("ar"), base("ai"), base("br"), base("bi")
	sum := s.zero()
	s.loop(length("bi"), func(at at) {
		square := s.squaredModulus(at.minus(ar, br), at.minus(ai, bi))
		root := s.inverseRoot(square)
		VMULPS(square, root, root)
		at.kept(root)
		VADDPS(root, sum, sum)
	})
	s.result(sum, addLanes)
}

func modulusGrad(s isa) {
	s.text("modulusGrad", "func(da, db, a, b []float32, half, n uint64, w float32)",
		"adds gradients of n complex numbers, whose imaginary parts lie half values behind the "+
			"real ones: see refModulusGrad.")
	da, db, a, b, w := base("da"), base("db"), base("a"), base("b"), s.broadcast(floatParam("w"))
	half := loadGP(Param("half"))
	SHLQ(U8(2), half)
	imaginary := func(p reg.GPVirtual) reg.GPVirtual {
		q := GP64()
		LEAQ(Mem{Base: p, Index: half, Scale: 1}, q)
		return q
	}
	dai, dbi, ai, bi := imaginary(da), imaginary(db), imaginary(a), imaginary(b)
	s.loop(loadGP(Param("n")), func(at at) {
		x, y := at.minus(a, b), at.minus(ai, bi)
		f := s.inverseRoot(s.squaredModulus(x, y))
		VMULPS(w, f, f)
		for _, part := range []struct {
			diff   reg.VecVirtual
			da, db reg.GPVirtual
		}{{x, da, db}, {y, dai, dbi}} {
			own, other := at.load(part.da), at.load(part.db)
			VFNMADD231PS(f, part.diff, own)
			VFMADD231PS(f, part.diff, other)
			at.store(own, part.da)
			at.store(other, part.db)
		}
	})
	done()
}
