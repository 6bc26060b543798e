//go:build avogen

package main

import (
	"fmt"
	"math"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// gather writes the sums and largest values of rows of bfloat16: one kernel for each number of
// vectors whose sums stay in registers. Those of AVX2 take whole vectors only.
func gather() {
	for _, s := range isas {
		most := s.most(8, 16)
		for vectors := 1; vectors <= most; vectors++ {
			gatherSum(s, vectors)
		}
		for vectors := 1; vectors <= most/2; vectors++ {
			gatherMax(s, vectors)
		}
	}
}

// halfRows are the running values of some columns.
type halfRows struct {
	s    isa
	acc  []reg.VecVirtual
	last mask
	tmp  reg.VecVirtual
}

func newHalfRows(s isa, vectors int) *halfRows {
	u := &halfRows{s: s, tmp: s.vec()}
	if s.wide {
		u.last = s.lowLanes(loadGP(Param("lanes")))
	}
	u.acc = s.vecs(vectors)
	return u
}

// more returns other values of the same columns.
func (u *halfRows) more() *halfRows {
	return &halfRows{s: u.s, last: u.last, acc: u.s.vecs(len(u.acc))}
}

// each calls fn with each vector of the row at m, as floats.
func (u *halfRows) each(m Mem, fn func(i int, v reg.VecVirtual)) {
	for i := range u.acc {
		u.vector(m.Offset(i*u.s.bytes/2), i)
		fn(i, u.tmp)
	}
}

// vector loads vector i of a row, as floats.
func (u *halfRows) vector(m Mem, i int) {
	if i == len(u.acc)-1 && u.s.wide {
		VPMOVZXWD_Z(m, u.last.k, u.tmp)
	} else {
		VPMOVZXWD(m, u.tmp)
	}
	VPSLLD(U8(16), u.tmp, u.tmp)
}

// load and store are of rows of words: sums, or numbers of rows.
func (u *halfRows) load(m Mem) {
	for i, v := range u.acc {
		at := m.Offset(i * u.s.bytes)
		if i == len(u.acc)-1 && u.s.wide {
			u.s.loadMasked(at, u.last, v)
		} else {
			u.s.load(at, v)
		}
	}
}

func (u *halfRows) store(m Mem) {
	for i, v := range u.acc {
		at := m.Offset(i * u.s.bytes)
		if i == len(u.acc)-1 && u.s.wide {
			u.s.storeMasked(v, u.last, at)
		} else {
			u.s.store(v, at)
		}
	}
}

func (u *halfRows) clear() {
	for _, v := range u.acc {
		u.s.clear(v)
	}
}

// gatherSum writes a kernel that sums rows: see bf16.sumFunc.
func gatherSum(s isa, vectors int) {
	name := fmt.Sprintf("gatherSum%s_%d", s.name, vectors)
	TEXT(name, NOSPLIT, "func(out *float32, x *uint16, off, idx *uint32, "+
		"segments int, stride, outStride uintptr, lanes int, mean uint64)")
	Pragma("noescape")
	Doc(fmt.Sprintf("%s sums rows of %d vectors: see gather.go.", name, vectors))
	u := newHalfRows(s, vectors)
	out, x, outStride := loadGP(Param("out")), loadGP(Param("x")), loadGP(Param("outStride"))
	ahead := fetched{x: x, bytes: vectors * s.bytes / 2}
	rowsOf(ahead, func(_, _ reg.GPVirtual) { u.clear() },
		func(_, at reg.GPVirtual) {
			u.each(Mem{Base: x, Index: at, Scale: 1}, func(i int, v reg.VecVirtual) {
				VADDPS(v, u.acc[i], u.acc[i])
			})
		},
		func(count reg.GPVirtual) {
			mean := loadGP(Param("mean"))
			TESTQ(mean, mean)
			JZ(LabelRef("store"))
			factor := s.inverse(count)
			for _, v := range u.acc {
				VMULPS(factor, v, v)
			}
			Label("store")
			u.store(Mem{Base: out})
			ADDQ(outStride, out)
		})
}

// inverse returns 1/count in all lanes.
func (s isa) inverse(count reg.GPVirtual) reg.VecVirtual {
	length, one, bits := XMM(), XMM(), GP32()
	VXORPS(length, length, length)
	VCVTSI2SSQ(count, length, length)
	MOVL(U32(math.Float32bits(1)), bits)
	VMOVD(bits, one)
	VDIVSS(length, one, one)
	factor := s.vec()
	VBROADCASTSS(one, factor)
	return factor
}

// gatherMax writes a kernel that finds the largest values of rows, and which rows have them.
func gatherMax(s isa, vectors int) {
	name := fmt.Sprintf("gatherMax%s_%d", s.name, vectors)
	TEXT(name, NOSPLIT, "func(out *float32, x *uint16, arg, off, idx *uint32, segments int, "+
		"stride, outStride, argStride uintptr, lanes int)")
	Pragma("noescape")
	Doc(fmt.Sprintf("%s finds the largest values of rows of %d vectors: see maxFunc.", name,
		vectors))
	u := newHalfRows(s, vectors)
	arg := u.more()
	out, to, x := loadGP(Param("out")), loadGP(Param("arg")), loadGP(Param("x"))
	rowsOf(fetched{x: x, bytes: vectors * s.bytes / 2}, func(p, count reg.GPVirtual) {
		beginMax(s, u.acc, arg.acc, p, count)
	}, func(r, at reg.GPVirtual) {
		number := rowNumber(s, r)
		u.each(Mem{Base: x, Index: at, Scale: 1}, func(i int, v reg.VecVirtual) {
			s.takeLarger(v, number, u.acc[i], arg.acc[i])
		})
	}, func(reg.GPVirtual) {
		Label("store")
		u.store(Mem{Base: out})
		arg.store(Mem{Base: to})
		ADDQ(floatParam("outStride"), out)
		ADDQ(floatParam("argStride"), to)
	})
}
