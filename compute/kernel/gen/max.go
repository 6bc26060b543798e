//go:build avogen

package main

import (
	"fmt"
	"math"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// maxima writes the largest values of rows, and their gradients.
func maxima() {
	for _, s := range isas {
		for vectors := 1; vectors <= s.most(5, 12); vectors++ {
			segmentMax(s, vectors)
		}
		for vectors := 1; vectors <= s.most(8, 16); vectors++ {
			segmentMaxGrad(s, vectors)
		}
	}
}

// segmentMax keeps the largest values, and the numbers of their rows, in registers.
func segmentMax(s isa, vectors int) {
	name := fmt.Sprintf("segmentMax%s_%d", s.name, vectors)
	TEXT(name, NOSPLIT, "func(out, x *float32, arg, off, idx *uint32, segments int, "+
		"stride, argStride uintptr, lanes int)")
	Pragma("noescape")
	Doc(fmt.Sprintf("%s finds the largest values of rows of %d vectors: see maxFunc.", name,
		vectors))
	u := newSums(s, vectors)
	arg := u.more()
	out, to, x := loadGP(Param("out")), loadGP(Param("arg")), loadGP(Param("x"))
	rowsOf(fetched{x: x, bytes: vectors * s.bytes}, func(p, count reg.GPVirtual) {
		beginMax(s, u.acc, arg.acc, p, count)
	}, func(r, at reg.GPVirtual) {
		number, i := rowNumber(s, r), 0
		larger := func(m Mem, v reg.VecVirtual) {
			if i == vectors-1 {
				s.loadMasked(m, u.last, u.tmp)
			} else {
				s.load(m, u.tmp)
			}
			s.takeLarger(u.tmp, number, v, arg.acc[i])
			i++
		}
		u.each(Mem{Base: x, Index: at, Scale: 1}, larger, larger)
	}, func(reg.GPVirtual) {
		Label("store")
		for _, w := range []struct {
			u  *sums
			to reg.GPVirtual
		}{{u, out}, {arg, to}} {
			w.u.each(Mem{Base: w.to}, func(m Mem, v reg.VecVirtual) { s.store(v, m) },
				func(m Mem, v reg.VecVirtual) { s.storeMasked(v, u.last, m) })
		}
		ADDQ(floatParam("stride"), out)
		ADDQ(floatParam("argStride"), to)
	})
}

// takeLarger replaces best by v, and its number, where v is not at most best, unless best is NaN.
func (s isa) takeLarger(v, number, best, arg reg.VecVirtual) {
	const notLessEqual, ordered = 0x16, 7
	if s.wide {
		k := K()
		VCMPPS(U8(ordered), best, best, k)
		VCMPPS(U8(notLessEqual), best, v, k, k)
		VMOVAPS(v, k, best)
		VMOVDQA32(number, k, arg)
		return
	}
	k, number2 := s.vec(), s.vec()
	VCMPPS(U8(ordered), best, best, k)
	VCMPPS(U8(notLessEqual), best, v, number2)
	VANDPS(number2, k, k)
	VBLENDVPS(k, v, best, best)
	VBLENDVPS(k, number, arg, arg)
}

// segmentMaxGrad adds rows in the columns in which a row has the largest value.
func segmentMaxGrad(s isa, vectors int) {
	name := fmt.Sprintf("segmentMaxGrad%s_%d", s.name, vectors)
	TEXT(name, NOSPLIT, "func(out, x *float32, arg, off, idx *uint32, segments int, "+
		"stride uintptr, lanes int, first uint32, accumulate uint64)")
	Pragma("noescape")
	Doc(fmt.Sprintf("%s adds rows of %d vectors in some columns: see maxGradFunc.", name,
		vectors))
	u := newSums(s, vectors)
	out, x, arg := loadGP(Param("out")), loadGP(Param("x")), loadGP(Param("arg"))
	last, number, one := GP64(), s.vec(), s.constant(1)
	VBROADCASTSS(floatParam("first"), number)
	rowsOf(fetched{}, func(_, _ reg.GPVirtual) {
		u.clear()
		CMPQ(floatParam("accumulate"), U8(0))
		JEQ(LabelRef("begun"))
		u.load(Mem{Base: out})
		Label("begun")
		MOVQ(I32(-1), last)
	}, func(r, at reg.GPVirtual) {
		CMPQ(r, last) // a segment that names the row twice
		JEQ(LabelRef("same"))
		MOVQ(r, last)
		m, numbers := Mem{Base: x, Index: at, Scale: 1}, Mem{Base: arg, Index: at, Scale: 1}
		for i, v := range u.acc {
			s.addWhere(u, m, numbers, number, v, i == vectors-1)
			m.Disp += s.bytes
			numbers.Disp += s.bytes
		}
		Label("same")
	}, func(reg.GPVirtual) {
		Label("store")
		u.store(Mem{Base: out})
		ADDQ(floatParam("stride"), out)
		VPADDD(one, number, number)
	})
}

// addWhere adds the values at m to v where the numbers are number.
func (s isa) addWhere(u *sums, m, numbers Mem, number, v reg.VecVirtual, masked bool) {
	if s.wide {
		k := K()
		if masked {
			VPCMPEQD(numbers, number, u.last.k, k)
		} else {
			VPCMPEQD(numbers, number, k)
		}
		VADDPS(m, v, k, v)
		return
	}
	k := s.vec()
	if masked {
		VPMASKMOVD(numbers, u.last.v, k)
		VPCMPEQD(k, number, k)
		VPAND(u.last.v, k, k)
	} else {
		VPCMPEQD(numbers, number, k)
	}
	VMASKMOVPS(m, k, u.tmp)
	VADDPS(u.tmp, v, v)
}

// beginMax has largest values begin below all, and their rows with the first of the list at p: or
// with zero and no row, of a list of no entries.
func beginMax(s isa, values, rows []reg.VecVirtual, p, count reg.GPVirtual) {
	fill := func(value, number uint32) {
		v, w := s.constant(value), s.constant(number)
		for i := range values {
			VMOVAPS(v, values[i])
			VMOVAPS(w, rows[i])
		}
	}
	fill(0, math.MaxUint32)
	TESTQ(count, count)
	JZ(LabelRef("begun"))
	fill(math.Float32bits(float32(math.Inf(-1))), 0)
	for _, v := range rows {
		VBROADCASTSS(Mem{Base: p}, v)
	}
	Label("begun")
}

// rowNumber returns a vector of the number of a row.
func rowNumber(s isa, r reg.GPVirtual) reg.VecVirtual {
	number := s.vec()
	if s.wide {
		VPBROADCASTD(r.As32(), number)
		return number
	}
	VMOVD(r.As32(), number.AsX())
	VPBROADCASTD(number.AsX(), number)
	return number
}
