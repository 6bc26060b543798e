//go:build avogen

package main

import (
	"math"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// result reduces all lanes of v by op, and stores that as the result.
func (s isa) result(v reg.VecVirtual, op func(a, b, to reg.Register)) {
	storeResult(0, s.fold(v, YMM(), YMM(), op))
	done()
}

// storeResult writes a float as result i.
func storeResult(i int, x reg.Register) {
	a, err := ReturnIndex(i).Resolve()
	if err != nil {
		panic(err)
	}
	VMOVSS(x, a.Addr)
}

// fold reduces all lanes of v by op to the first of a register: that of first, which is one of the
// first sixteen registers as second is.
func (s isa) fold(v reg.VecVirtual, first, second reg.Vec,
	op func(a, b, to reg.Register)) reg.Register {
	y, half := first.AsY(), second.AsY()
	if s.wide {
		VEXTRACTF64X4(U8(1), v, half)
		VEXTRACTF64X4(U8(0), v, y)
		op(half, y, y)
	} else {
		VMOVAPS(v, y)
	}
	x, other := first.AsX(), second.AsX()
	VEXTRACTF128(U8(1), y, other)
	op(other, x, x)
	VPERMILPS(U8(0x4e), x, other)
	op(other, x, x)
	VPERMILPS(U8(0xb1), x, other)
	op(other, x, x)
	return x
}

func rowMax(k *vectors) {
	best := k.float(float32(math.Inf(-1)))
	k.each("x", func(a at) {
		v := a.load("x")
		switch {
		case a.rest == nil:
			VMAXPS(v, best, best)
		case k.wide:
			VMAXPS(v, best, a.rest.k, best)
		default:
			larger := k.vec()
			VMAXPS(v, best, larger)
			VBLENDVPS(a.rest.v, larger, best, best)
		}
	})
	k.result(best, func(a, b, to reg.Register) { VMAXPS(a, b, to) })
}

// The polynomial for exp on [-ln 2/2, ln 2/2] comes from Moshier's Cephes library (expf): its error
// is below 2 units in the last place.
var expPolynomial = []float32{1.9875691500e-4, 1.3981999507e-3, 8.3334519073e-3, 4.1665795894e-2,
	1.6666665459e-1, 5.0000001201e-1}

const (
	ln2High = 0.693359375 // of few bits, so that its multiples are exact
	ln2Low  = -2.12194440e-4
	// expLeast is where exp is taken for zero: some way above the least normal number, since
	// gradients shrink what exp gives, and denormal numbers slow a product down a hundredfold.
	expLeast = -64
)

// expSum computes exp(x-shift).
func expSum(k *vectors) {
	shift := k.param("shift")
	sum, e := k.zero(), k.newExp()
	k.each("x", func(a at) {
		r := a.load("x")
		VSUBPS(shift, r, r)
		p := e.of(r)
		a.kept(p)
		a.store(p, "out")
		VADDPS(p, sum, sum)
	})
	k.result(sum, addLanes)
}

// exp holds what exponentials need in registers.
type exp struct {
	s                       isa
	log2e, high, low, least reg.VecVirtual
	table                   Mem
}

func (s isa) newExp() *exp {
	coefficients := append(expPolynomial[:len(expPolynomial):len(expPolynomial)], 1)
	return &exp{s, s.float(math.Log2E), s.float(ln2High), s.float(ln2Low), s.float(expLeast),
		s.table("expTable", coefficients)}
}

// of returns exp(r), for r at most 0, as 2^n·exp(r'), n an integer and r' small. It changes r.
func (e *exp) of(r reg.VecVirtual) reg.VecVirtual {
	s := e.s
	n, t := s.vec(), s.vec()
	normal := s.greater(r, e.least)
	VMULPS(e.log2e, r, n)
	VCVTPS2DQ(n, n)
	VCVTDQ2PS(n, t)
	VFNMADD231PS(e.high, t, r)
	VFNMADD231PS(e.low, t, r)
	p := s.broadcast(e.table.Offset(0))
	for i := 1; i < len(expPolynomial); i++ {
		VFMADD213PS(s.broadcast(e.table.Offset(4*i)), r, p)
	}
	VMULPS(r, p, p)
	VFMADD213PS(r, r, p)
	VADDPS(s.broadcast(e.table.Offset(4*len(expPolynomial))), p, p)
	VPSLLD(U8(23), n, n)
	VPADDD(n, p, p)
	s.keepNormal(normal, r, p)
	return p
}

// keepNormal zeros the lanes of p that are not normal, but for those in which r is NaN.
func (s isa) keepNormal(normal mask, r, p reg.VecVirtual) {
	if s.wide {
		nan := K()
		VCMPPS(U8(3), r, r, nan)
		KORW(nan, normal.k, normal.k)
	} else {
		nan := s.vec()
		VCMPPS(U8(3), r, r, nan)
		VORPS(nan, normal.v, normal.v)
	}
	s.keep(normal, p)
}

var tables = map[string]Mem{}

// table holds floats in memory, once for each instruction set.
func (s isa) table(name string, values []float32) Mem {
	name += s.name
	m, ok := tables[name]
	if !ok {
		m = GLOBL(name, RODATA|NOPTR)
		for i, c := range values {
			DATA(4*i, U32(math.Float32bits(c)))
		}
		tables[name] = m
	}
	return m
}
