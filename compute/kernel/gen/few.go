//go:build avogen

package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// fewOnce equals the constant of package kernel.
const fewOnce = 4

// few writes the products with few columns. They read rows of A once and in order: four rows
// with AVX-512, or two with AVX2, are the most whose products with four columns stay in registers.
func few() {
	for _, s := range isas {
		newFew(s).times(s.most(2, 4))
		newFew(s).outer(s.most(2, 4))
	}
}

// fewKernel writes one kernel: loops over rows of A, some at a time, and over the vectors of them.
type fewKernel struct {
	s          isa
	a, panel   reg.GPVirtual // that move from vector to vector
	next       reg.GPVirtual // where the rows after those of a are
	ars, ars3  reg.GPVirtual
	rest       mask             // the lanes of the last vector, if it is not whole
	acc        []reg.VecVirtual // by row, then by column
	row, other reg.VecVirtual
}

func newFew(s isa) *fewKernel { return &fewKernel{s: s} }

// begin loads what both kernels take, and returns where A begins and the rows that are left.
func (w *fewKernel) begin() (a, rows reg.GPVirtual) {
	a, rows, w.ars, w.ars3 = loadGP(Param("a")), loadGP(Param("rows")), loadGP(Param("ars")), GP64()
	LEAQ(Mem{Base: w.ars, Index: w.ars, Scale: 2}, w.ars3)
	w.a, w.next, w.panel = GP64(), GP64(), GP64()
	w.row, w.other = w.s.vec(), w.s.vec()
	rest := loadGP(Param("k"))
	ANDQ(U32(w.s.lanes()-1), rest)
	w.rest = w.s.lowLanes(rest)
	return a, rows
}

// groups writes body for groups of rows, and then for single rows; a moves on.
func (w *fewKernel) groups(a, left reg.GPVirtual, rows int, body func(rows int, suffix string)) {
	for _, n := range []int{rows, 1} {
		suffix := fmt.Sprintf("_%d", n)
		SUBQ(U32(n), left)
		JL(LabelRef("rest" + suffix))
		Label("rows" + suffix)
		body(n, suffix)
		for range n {
			ADDQ(w.ars, a)
		}
		SUBQ(U32(n), left)
		JGE(LabelRef("rows" + suffix))
		Label("rest" + suffix)
		ADDQ(U32(n), left)
	}
	VZEROUPPER()
	RET()
}

// vectors writes step for the vectors of rows of A: with no mask for those that are whole.
func (w *fewKernel) vectors(a reg.GPVirtual, rows int, panel, suffix string,
	step func(rest *mask)) {
	left := loadGP(Param("k"))
	MOVQ(a, w.a)
	IMUL3Q(U8(rows), w.ars, w.next)
	ADDQ(a, w.next)
	Load(Param(panel), w.panel)
	SUBQ(U32(w.s.lanes()), left)
	JL(LabelRef("part" + suffix))
	Label("vector" + suffix)
	step(nil)
	ADDQ(U32(w.s.bytes), w.a)
	ADDQ(U32(w.s.bytes), w.next)
	ADDQ(U32(fewOnce*w.s.bytes), w.panel)
	SUBQ(U32(w.s.lanes()), left)
	JGE(LabelRef("vector" + suffix))
	Label("part" + suffix)
	ADDQ(U32(w.s.lanes()), left)
	JZ(LabelRef("done" + suffix))
	step(&w.rest)
	Label("done" + suffix)
}

// loadRow reads the vector of row r, and asks memory for that of the rows that come next.
func (w *fewKernel) loadRow(r int, rest *mask, to reg.VecVirtual) {
	m, next := Mem{Base: w.a}, Mem{Base: w.next}
	switch r {
	case 1, 2:
		m.Index, m.Scale = w.ars, uint8(r)
	case 3:
		m.Index, m.Scale = w.ars3, 1
	}
	next.Index, next.Scale = m.Index, m.Scale
	PREFETCHT0(next)
	w.s.loadRest(m, rest, to)
}

// column returns where the panel has the vector of a column.
func (w *fewKernel) column(c int) Mem { return Mem{Base: w.panel, Disp: c * w.s.bytes} }

// times writes C (+)= A·B.
func (w *fewKernel) times(rows int) {
	w.s.text("few", "func(rows, k int, a *float32, ars uintptr, b *float32, c *float32, "+
		"ldc uintptr, columns int, accumulate uint64)", "multiplies rows: see fewFunc.")
	a, left := w.begin()
	c, ldc, columns := loadGP(Param("c")), loadGP(Param("ldc")), loadGP(Param("columns"))
	lanes := w.s.lowLanes(columns)
	w.acc = w.s.vecs(fewOnce * rows)
	b := w.s.vecs(fewOnce)
	w.groups(a, left, rows, func(rows int, suffix string) {
		for _, v := range w.acc[:fewOnce*rows] {
			w.s.clear(v)
		}
		w.vectors(a, rows, "b", suffix, func(rest *mask) {
			for i, v := range b {
				w.s.load(w.column(i), v)
			}
			for r := range rows {
				w.loadRow(r, rest, w.row)
				for i, v := range b {
					VFMADD231PS(w.row, v, w.acc[fewOnce*r+i])
				}
			}
		})
		for r := range rows {
			w.storeSums(w.acc[fewOnce*r:][:fewOnce], Mem{Base: c}, lanes,
				fmt.Sprintf("%s_%d", suffix, r))
			ADDQ(ldc, c)
		}
	})
}

// storeSums adds up the lanes of the sums of a row, one for each column, and writes the totals to
// m, or adds them there.
func (w *fewKernel) storeSums(v []reg.VecVirtual, m Mem, lanes mask, suffix string) {
	// pairs is the sums of lanes of two vectors, which stand side by side in the first.
	pairs := func(lower, upper func(ops ...Op), a, b reg.VecVirtual) {
		upper(b, a, w.other)
		lower(b, a, a)
		VADDPS(w.other, a, a)
	}
	pairs(VUNPCKLPS, VUNPCKHPS, v[0], v[1])
	pairs(VUNPCKLPS, VUNPCKHPS, v[2], v[3])
	pairs(VUNPCKLPD, VUNPCKHPD, v[0], v[2])
	// Each four lanes have sums of the columns now.
	total := v[0]
	if w.s.wide {
		for _, order := range []uint64{0x4e, 0xb1} {
			VSHUFF32X4(U8(order), total, total, w.other)
			VADDPS(w.other, total, total)
		}
	} else {
		VEXTRACTF128(U8(1), total, w.other.AsX())
		VADDPS(w.other, total, total)
	}
	accumulate := loadGP(Param("accumulate"))
	TESTQ(accumulate, accumulate)
	JZ(LabelRef("store" + suffix))
	w.s.loadMasked(m, lanes, w.other)
	VADDPS(w.other, total, total)
	Label("store" + suffix)
	if w.s.wide {
		w.s.storeMasked(total, lanes, m)
		return
	}
	// Masked stores of AVX2 take 12 and more cycles each.
	CMPQ(floatParam("columns"), U8(fewOnce))
	JNE(LabelRef("some" + suffix))
	VMOVUPS(total.AsX(), m)
	JMP(LabelRef("stored" + suffix))
	Label("some" + suffix)
	w.s.storeMasked(total, lanes, m)
	Label("stored" + suffix)
}

// outer writes sums += Aᵀ·B.
func (w *fewKernel) outer(rows int) {
	w.s.text("fewTA", "func(rows, k int, a *float32, ars uintptr, b *float32, brs uintptr, "+
		"col1, col2, col3 uintptr, sums *float32)", "adds products of rows: see fewTAFunc.")
	a, left := w.begin()
	b, brs := loadGP(Param("b")), loadGP(Param("brs"))
	factors := w.s.vecs(fewOnce * rows)
	w.acc = w.s.vecs(fewOnce)
	column := GP64()
	w.groups(a, left, rows, func(rows int, suffix string) {
		for r := range rows {
			VBROADCASTSS(Mem{Base: b}, factors[fewOnce*r])
			for i := 1; i < fewOnce; i++ {
				Load(Param(fmt.Sprintf("col%d", i)), column)
				VBROADCASTSS(Mem{Base: b, Index: column, Scale: 1}, factors[fewOnce*r+i])
			}
			ADDQ(brs, b)
		}
		w.vectors(a, rows, "sums", suffix, func(rest *mask) {
			for i, v := range w.acc {
				w.s.load(w.column(i), v)
			}
			for r := range rows {
				w.loadRow(r, rest, w.row)
				for i, v := range w.acc {
					VFMADD231PS(w.row, factors[fewOnce*r+i], v)
				}
			}
			for i, v := range w.acc {
				w.s.store(v, w.column(i))
			}
		})
	})
}
