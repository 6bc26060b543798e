//go:build avogen

package main

import (
	"math"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// linkKernels are what link prediction does with single rows.
var linkKernels = []sliceKernel{
	{"product", "func(y, a, b []float32)", "is y = a*b, over the length of b.",
		func(k *vectors) {
			k.over("b", func(a at) {
				v := a.load("a")
				VMULPS(a.load("b"), v, v)
				a.store(v, "y")
			})
		}},
	{"addCube", "func(g, x []float32, f float32)", "is g += f*|x|*x, over the length of x.",
		func(k *vectors) {
			f := k.param("f")
			k.over("x", func(a at) {
				v, sum := a.load("x"), a.load("g")
				size := k.bits(v, magnitudeBits)
				VMULPS(f, size, size)
				VFMADD231PS(v, size, sum)
				a.store(sum, "g")
			})
		}},
	{"dot", "func(a, b []float32) float32", "is the sum of a*b, over the length of b.",
		func(k *vectors) {
			sum := k.zero()
			k.each("b", func(a at) { VFMADD231PS(a.load("a"), a.load("b"), sum) })
			k.result(sum, addLanes)
		}},
	{"manhattan", "func(a, b []float32) float32", "is the sum of |a-b|, over the length of b.",
		func(k *vectors) {
			sum := k.zero()
			k.each("b", func(a at) {
				VADDPS(k.bits(a.minus("a", "b"), magnitudeBits), sum, sum)
			})
			k.result(sum, addLanes)
		}},
	{"manhattanGrad", "func(da, db, a, b []float32, w float32)",
		"is da -= w*sign(a-b) and db += w*sign(a-b), over the length of b.", manhattanGrad},
	{"modulus", "func(ar, ai, br, bi []float32) float32",
		"is the sum of the moduli of a-b, over the length of bi.", func(k *vectors) {
			sum := k.zero()
			k.each("bi", func(a at) {
				square := k.squaredModulus(a.minus("ar", "br"), a.minus("ai", "bi"))
				root := k.inverseRoot(square)
				VMULPS(square, root, root)
				a.kept(root)
				VADDPS(root, sum, sum)
			})
			k.result(sum, addLanes)
		}},
	{"modulusGrad", "func(da, db, a, b []float32, half, n uint64, w float32)",
		"adds gradients of n complex numbers, whose imaginary parts lie half values behind the " +
			"real ones: see refModulusGrad.", modulusGrad},
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

// manhattanGrad takes the sign of a difference from its bits: where there is none, the weight is
// cleared.
func manhattanGrad(k *vectors) {
	w, zero := k.param("w"), k.zero()
	k.over("b", func(a at) {
		diff := a.minus("a", "b")
		up, down := k.vec(), k.vec()
		VMOVAPS(w, up)
		VMOVAPS(w, down)
		k.keep(k.greater(diff, zero), up)
		k.keep(k.greater(zero, diff), down)
		VSUBPS(down, up, up)
		v := a.load("da")
		VSUBPS(up, v, v)
		a.store(v, "da")
		VADDPS(a.load("db"), up, up)
		a.store(up, "db")
	})
}

// inverseRoot returns 1/sqrt(v) for positive v: an estimate, and one step of Newton's method.
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

// squaredModulus returns x²+y² and a little more: see refModulus.
func (s isa) squaredModulus(x, y reg.VecVirtual) reg.VecVirtual {
	v := s.float(math.Float32frombits(modulusLeastBits))
	VFMADD231PS(x, x, v)
	VFMADD231PS(y, y, v)
	return v
}

// modulusLeastBits are the bits of modulusLeast, 1e-20.
const modulusLeastBits = 0x1e3ce508

func modulusGrad(k *vectors) {
	w, half := k.param("w"), loadGP(Param("half"))
	SHLQ(U8(2), half)
	for _, real := range []string{"da", "db", "a", "b"} {
		imaginary := GP64()
		LEAQ(Mem{Base: k.base[real], Index: half, Scale: 1}, imaginary)
		k.base[real+"i"] = imaginary
	}
	k.loop(loadGP(Param("n")), func(a at) {
		x, y := a.minus("a", "b"), a.minus("ai", "bi")
		f := k.inverseRoot(k.squaredModulus(x, y))
		VMULPS(w, f, f)
		for _, part := range []struct {
			diff   reg.VecVirtual
			da, db string
		}{{x, "da", "db"}, {y, "dai", "dbi"}} {
			own, other := a.load(part.da), a.load(part.db)
			VFNMADD231PS(f, part.diff, own)
			VFMADD231PS(f, part.diff, other)
			a.store(own, part.da)
			a.store(other, part.db)
		}
	})
	done()
}
