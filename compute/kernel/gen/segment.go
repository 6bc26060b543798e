//go:build avogen

package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// segment writes the sums of rows: one kernel for each number of vectors whose sums stay in
// registers, so that a row is read once, as a whole.
func segment() {
	for _, s := range isas {
		for vectors := 1; vectors <= s.most(12, 16); vectors++ {
			segmentSum(s, vectors)
			weightedSum(s, vectors)
			columnSum(s, vectors)
		}
	}
}

// sums are the running sums of some columns.
type sums struct {
	s    isa
	acc  []reg.VecVirtual
	last mask
	tmp  reg.VecVirtual
}

func newSums(s isa, vectors int) *sums {
	last := s.lowLanes(loadGP(Param("lanes")))
	return &sums{s: s, last: last, tmp: s.vec(), acc: s.vecs(vectors)}
}

// more returns other values of the same columns.
func (u *sums) more() *sums {
	return &sums{s: u.s, last: u.last, tmp: u.tmp, acc: u.s.vecs(len(u.acc))}
}

func (u *sums) clear() {
	for _, v := range u.acc {
		u.s.clear(v)
	}
}

// begin clears the sums, or with the parameter accumulate reads them at m.
func (u *sums) begin(m Mem) {
	u.clear()
	accumulate := loadGP(Param("accumulate"))
	TESTQ(accumulate, accumulate)
	JZ(LabelRef("begun"))
	u.load(m)
	Label("begun")
}

// each calls whole for every vector of the row at m but the last, and masked for that one.
func (u *sums) each(m Mem, whole, masked func(m Mem, v reg.VecVirtual)) {
	for i, v := range u.acc {
		m := m
		m.Disp += i * u.s.bytes
		if i < len(u.acc)-1 {
			whole(m, v)
		} else {
			masked(m, v)
		}
	}
}

func (u *sums) load(m Mem) {
	u.each(m, func(m Mem, v reg.VecVirtual) { u.s.load(m, v) },
		func(m Mem, v reg.VecVirtual) { u.s.loadMasked(m, u.last, v) })
}

// store writes the sums. Masked stores of AVX2 take 12 and more cycles, so a whole vector goes
// without.
func (u *sums) store(m Mem) {
	whole := func(m Mem, v reg.VecVirtual) { u.s.store(v, m) }
	masked := func(m Mem, v reg.VecVirtual) { u.s.storeMasked(v, u.last, m) }
	if u.s.wide {
		u.each(m, whole, masked)
		return
	}
	u.each(m, whole, func(m Mem, v reg.VecVirtual) {
		lanes := loadGP(Param("lanes"))
		CMPQ(lanes, U32(u.s.lanes()))
		JNE(LabelRef("part"))
		whole(m, v)
		JMP(LabelRef("stored"))
		Label("part")
		masked(m, v)
		Label("stored")
	})
}

func (u *sums) add(m Mem) {
	u.each(m, func(m Mem, v reg.VecVirtual) { VADDPS(m, v, v) },
		func(m Mem, v reg.VecVirtual) {
			u.s.loadMasked(m, u.last, u.tmp)
			VADDPS(u.tmp, v, v)
		})
}

func (u *sums) addTimes(m Mem, weight reg.VecVirtual) {
	u.each(m, func(m Mem, v reg.VecVirtual) { VFMADD231PS(m, weight, v) },
		func(m Mem, v reg.VecVirtual) {
			u.s.loadMasked(m, u.last, u.tmp)
			VFMADD231PS(u.tmp, weight, v)
		})
}

func (u *sums) scale(factor reg.VecVirtual) {
	for _, v := range u.acc {
		VMULPS(factor, v, v)
	}
}

// fetched says which rows are asked for before their turn: bytes of each at x, as many rows ahead
// as fetchedAhead bytes hold, but no more than fetchedRows. Memory then has several under way, not
// only what fits beside the sums of one. Rows that are written where they are read from gain
// nothing by it: 0 bytes are for none. Nor do narrow ones, of fewer bytes than fetchedLeast, of
// which several fit beside each other: to find the row would take as long as to add one that is in
// a cache.
type fetched struct {
	x          reg.GPVirtual
	bytes      int
	rows       int // ahead; 0: none are asked for
	last, next reg.GPVirtual
}

const (
	// fetchedLeast is the narrowest row that is asked for, in bytes.
	fetchedLeast = 256
	// fetchedAhead and fetchedRows: means of rows of 512 bytes were fastest 12 rows ahead, and of
	// 1024 bytes 6 rows ahead.
	fetchedAhead, fetchedRows = 6144, 12
)

// begin finds the last row of all segments.
func (f *fetched) begin(off, idx, segments reg.GPVirtual) {
	if f.bytes < fetchedLeast {
		return
	}
	f.rows = min(fetchedAhead/f.bytes, fetchedRows)
	f.last, f.next = GP64(), GP64()
	MOVL(Mem{Base: off, Index: segments, Scale: 4}, f.last.As32())
	LEAQ(Mem{Base: idx, Index: f.last, Scale: 4, Disp: -4}, f.last)
}

// row asks for the row that comes rows later than the one at p. It comes to the second-level cache:
// the first has few lines under way at once, which the rows at hand need.
func (f *fetched) row(p, stride reg.GPVirtual) {
	if f.rows == 0 {
		return
	}
	LEAQ(Mem{Base: p, Disp: 4 * f.rows}, f.next)
	CMPQ(f.next, f.last)
	CMOVQGT(f.last, f.next)
	MOVL(Mem{Base: f.next}, f.next.As32())
	IMULQ(stride, f.next)
	for at := 0; at < f.bytes; at += 64 {
		PREFETCHT1(Mem{Base: f.x, Index: f.next, Scale: 1, Disp: at})
	}
}

// rowsOf writes the loop over segments: begin and end of each come from off, body handles one
// row, whose number is in r and whose address is x+at.
func rowsOf(f fetched, begin func(p, count reg.GPVirtual), body func(r, at reg.GPVirtual),
	end func(count reg.GPVirtual)) {
	off, idx, segments := loadGP(Param("off")), loadGP(Param("idx")), loadGP(Param("segments"))
	stride := loadGP(Param("stride"))
	f.begin(off, idx, segments)
	Label("segment")
	p, count := GP64(), GP64()
	MOVL(Mem{Base: off}, p.As32())
	MOVL(Mem{Base: off, Disp: 4}, count.As32())
	SUBQ(p, count)
	LEAQ(Mem{Base: idx, Index: p, Scale: 4}, p)
	begin(p, count)
	left := GP64()
	MOVQ(count, left)
	TESTQ(left, left)
	JZ(LabelRef("store"))
	Label("row")
	f.row(p, stride)
	r, at := GP64(), GP64()
	MOVL(Mem{Base: p}, r.As32())
	MOVQ(r, at)
	IMULQ(stride, at)
	body(r, at)
	ADDQ(U32(4), p)
	DECQ(left)
	JNZ(LabelRef("row"))
	end(count)
	ADDQ(U32(4), off)
	DECQ(segments)
	JNZ(LabelRef("segment"))
	VZEROUPPER()
	RET()
}

func segmentSum(s isa, vectors int) {
	name := fmt.Sprintf("segmentSum%s_%d", s.name, vectors)
	TEXT(name, NOSPLIT, "func(out, x *float32, off, idx *uint32, segments int, stride uintptr, "+
		"lanes int, mean uint64)")
	Pragma("noescape")
	Doc(fmt.Sprintf("%s sums rows of %d vectors: see segmentFunc.", name, vectors))
	u := newSums(s, vectors)
	out, x, stride := loadGP(Param("out")), loadGP(Param("x")), loadGP(Param("stride"))
	rowsOf(fetched{x: x, bytes: vectors * s.bytes}, func(_, _ reg.GPVirtual) { u.clear() },
		func(_, at reg.GPVirtual) { u.add(Mem{Base: x, Index: at, Scale: 1}) },
		func(count reg.GPVirtual) {
			mean := loadGP(Param("mean"))
			TESTQ(mean, mean)
			JZ(LabelRef("store"))
			u.scale(s.inverse(count))
			Label("store")
			u.store(Mem{Base: out})
			ADDQ(stride, out)
		})
}

func weightedSum(s isa, vectors int) {
	name := fmt.Sprintf("weightedSum%s_%d", s.name, vectors)
	TEXT(name, NOSPLIT, "func(out, x, weight *float32, off, idx *uint32, segments int, "+
		"stride uintptr, lanes int, accumulate uint64)")
	Pragma("noescape")
	Doc(fmt.Sprintf("%s adds weighted rows of %d vectors: see weightedFunc.", name, vectors))
	u := newSums(s, vectors)
	out, x, weight := loadGP(Param("out")), loadGP(Param("x")), loadGP(Param("weight"))
	stride := loadGP(Param("stride"))
	rowsOf(fetched{}, func(_, _ reg.GPVirtual) {
		u.begin(Mem{Base: out})
	},
		func(r, at reg.GPVirtual) {
			w := s.broadcast(Mem{Base: weight, Index: r, Scale: 4})
			u.addTimes(Mem{Base: x, Index: at, Scale: 1}, w)
		},
		func(_ reg.GPVirtual) {
			Label("store")
			u.store(Mem{Base: out})
			ADDQ(stride, out)
		})
}

func columnSum(s isa, vectors int) {
	name := fmt.Sprintf("columnSum%s_%d", s.name, vectors)
	TEXT(name, NOSPLIT, "func(out, x *float32, rows int, stride uintptr, lanes int)")
	Pragma("noescape")
	Doc(fmt.Sprintf("%s sums rows of %d vectors that follow one another: see columnFunc.", name,
		vectors))
	u := newSums(s, vectors)
	out, x := loadGP(Param("out")), loadGP(Param("x"))
	rows, stride := loadGP(Param("rows")), loadGP(Param("stride"))
	u.clear()
	Label("row")
	u.add(Mem{Base: x})
	ADDQ(stride, x)
	DECQ(rows)
	JNZ(LabelRef("row"))
	u.store(Mem{Base: out})
	VZEROUPPER()
	RET()
}
