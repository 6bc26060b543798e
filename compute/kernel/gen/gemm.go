//go:build avogen

package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// tileSignature declares kernel.tileFunc.
const tileSignature = "func(tiles, k int, a *float32, ars, aks uintptr, b *float32, bks uintptr, " +
	"c *float32, ldc uintptr, lanes int, mode uint64, next, nextStep uintptr)"

// The bits of mode have the values of the constants of the same names in kernel and in amx.
const modeAccumulate, modeStream = 1, 2

// gemm writes the tiles of matrix products. 12 rows of two AVX-512 vectors, or 6 of two AVX2
// vectors, are the most whose sums stay in registers beside a row of B and a value of A.
func gemm() {
	for _, t := range []struct {
		s    isa
		rows []int
	}{{avx512, []int{12, 8, 4, 2, 1}}, {avx2, []int{6, 4, 2, 1}}} {
		for _, rows := range t.rows {
			for vectors := 1; vectors <= 2; vectors++ {
				newTile(t.s, rows, vectors, rows == t.rows[0]).write()
			}
		}
		pack(t.s, 2*t.s.lanes())
		pack(t.s, t.rows[0])
	}
}

// tile writes one kernel: a column of tiles of C, each rows x vectors.
type tile struct {
	s             isa
	rows, vectors int
	acc           [][]reg.VecVirtual
	ap            []reg.GPVirtual // pointers to every fifth row of A
	ars, ars3     reg.GPVirtual
	last          mask
	fetches       bool // what comes next, while it computes
}

func newTile(s isa, rows, vectors int, fetches bool) *tile {
	return &tile{s: s, rows: rows, vectors: vectors, fetches: fetches}
}

func (t *tile) write() {
	TEXT(fmt.Sprintf("tile%s_%dx%d", t.s.name, t.rows, t.vectors), NOSPLIT, tileSignature)
	Pragma("noescape")
	Doc(fmt.Sprintf("tile%s_%dx%d computes tiles of %d rows and %d vectors of C: see tileFunc.",
		t.s.name, t.rows, t.vectors, t.rows, t.vectors))
	tiles, a, c := loadGP(Param("tiles")), loadGP(Param("a")), loadGP(Param("c"))
	ldc := loadGP(Param("ldc"))
	t.ars = loadGP(Param("ars"))
	t.ars3 = GP64()
	LEAQ(Mem{Base: t.ars, Index: t.ars, Scale: 2}, t.ars3)
	aks, bks := loadGP(Param("aks")), loadGP(Param("bks"))
	if t.s.wide {
		t.last = t.s.lowLanes(loadGP(Param("lanes")))
	}
	t.registers()
	Label("tile")
	t.pointers(a)
	for i := range t.acc {
		for _, v := range t.acc[i] {
			t.s.clear(v)
		}
	}
	t.fetchC(c, ldc)
	b, k := loadGP(Param("b")), loadGP(Param("k"))
	var next reg.GPVirtual
	if t.fetches {
		next = loadGP(Param("next"))
		ADDQ(U32(64), floatParam("next"))
	}
	t.loop(k, b, next, aks, bks)
	t.finish(c, ldc)
	all := GP64()
	IMUL3Q(U8(t.rows), t.ars, all)
	ADDQ(all, a)
	DECQ(tiles)
	JNZ(LabelRef("tile"))
	t.fence()
	VZEROUPPER()
	RET()
}

// fence waits for what was written past the caches, once for all tiles.
func (t *tile) fence() {
	if t.vectors < 2 {
		return
	}
	TESTQ(U32(modeStream), loadGP(Param("mode")))
	JZ(LabelRef("fenced"))
	SFENCE()
	Label("fenced")
}

// fetchC asks for the tile of C that is added to: it comes while the sums are computed.
func (t *tile) fetchC(c, ldc reg.GPVirtual) {
	if !t.fetches {
		return
	}
	TESTQ(U32(modeAccumulate), loadGP(Param("mode")))
	JZ(LabelRef("fetched"))
	p := GP64()
	MOVQ(c, p)
	for range t.rows {
		for at := 0; at < t.vectors*t.s.bytes; at += 64 {
			PREFETCHT0(Mem{Base: p, Disp: at})
		}
		ADDQ(ldc, p)
	}
	Label("fetched")
}

// loop adds the products of k columns of A and rows of B. A tile of narrow vectors takes half as
// long as one of wide vectors, and there are four times as many: it fetches every fourth step.
func (t *tile) loop(k, b, next, aks, bks reg.GPVirtual) {
	step := func() {
		t.step(b)
		for _, p := range t.ap {
			ADDQ(aks, p)
		}
		ADDQ(bks, b)
	}
	many := t.fetches && !t.s.wide
	if many {
		SUBQ(U8(4), k)
		JLT(LabelRef("few"))
		Label("four")
		PREFETCHT1(Mem{Base: next})
		ADDQ(floatParam("nextStep"), next)
		for range 4 {
			step()
		}
		SUBQ(U8(4), k)
		JGE(LabelRef("four"))
		Label("few")
		ADDQ(U8(4), k)
		JZ(LabelRef("summed"))
	}
	Label("loop")
	if t.fetches && !many {
		PREFETCHT1(Mem{Base: next})
		ADDQ(floatParam("nextStep"), next)
	}
	step()
	DECQ(k)
	JNZ(LabelRef("loop"))
	if many {
		Label("summed")
	}
}

func (t *tile) registers() {
	for range t.rows {
		t.acc = append(t.acc, t.s.vecs(t.vectors))
	}
	for range (t.rows + 4) / 5 {
		t.ap = append(t.ap, GP64())
	}
}

// pointers sets ap for the tile at a.
func (t *tile) pointers(a reg.GPVirtual) {
	MOVQ(a, t.ap[0])
	for g := 1; g < len(t.ap); g++ {
		LEAQ(Mem{Base: t.ap[g-1], Index: t.ars, Scale: 4}, t.ap[g])
		ADDQ(t.ars, t.ap[g])
	}
}

// value returns where row i of A has its value for this step: five rows are reached from a pointer.
func (t *tile) value(i int) Mem {
	m := Mem{Base: t.ap[i/5]}
	switch i % 5 {
	case 1, 2, 4:
		m.Index, m.Scale = t.ars, uint8(i%5)
	case 3:
		m.Index, m.Scale = t.ars3, 1
	}
	return m
}

// step adds the products of one column of A and one row of B.
func (t *tile) step(b reg.GPVirtual) {
	row := make([]reg.VecVirtual, t.vectors)
	for j := range row {
		row[j] = t.s.vec()
		m := Mem{Base: b, Disp: j * t.s.bytes}
		if j == t.vectors-1 && t.s.wide {
			t.s.loadMasked(m, t.last, row[j])
		} else {
			t.s.load(m, row[j])
		}
	}
	for i, acc := range t.acc {
		if t.s.wide && t.vectors == 1 {
			VFMADD231PS_BCST(t.value(i), row[0], acc[0])
			continue
		}
		v := t.s.broadcast(t.value(i))
		for j := range row {
			VFMADD231PS(row[j], v, acc[j])
		}
	}
}

// finish adds to, or overwrites, the tile at c, and moves c to the next.
func (t *tile) finish(c, ldc reg.GPVirtual) {
	if !t.s.wide {
		t.last = t.s.lowLanes(loadGP(Param("lanes")))
	}
	old, mode := t.s.vec(), loadGP(Param("mode"))
	if t.vectors == 2 {
		TESTQ(U32(modeStream), mode)
		JNZ(LabelRef("stream"))
	}
	TESTQ(U32(modeAccumulate), mode)
	JZ(LabelRef("store"))
	p := GP64()
	MOVQ(c, p)
	for _, acc := range t.acc {
		for j, v := range acc {
			m := Mem{Base: p, Disp: j * t.s.bytes}
			if j == t.vectors-1 {
				t.s.loadMasked(m, t.last, old)
				VADDPS(old, v, v)
			} else {
				VADDPS(m, v, v)
			}
		}
		ADDQ(ldc, p)
	}
	// Masked stores of AVX2 take 12 and more cycles each: whole vectors go without.
	Label("store")
	lanes := loadGP(Param("lanes"))
	CMPQ(lanes, U32(t.s.lanes()))
	JNE(LabelRef("part"))
	t.storeRows(c, ldc, t.s.store, t.s.store)
	JMP(LabelRef("stored"))
	Label("part")
	t.storeRows(c, ldc, t.s.store,
		func(v reg.VecVirtual, m Mem) { t.s.storeMasked(v, t.last, m) })
	if t.vectors == 2 {
		JMP(LabelRef("stored"))
		Label("stream")
		past := func(v reg.VecVirtual, m Mem) { VMOVNTPS(v, m) }
		t.storeRows(c, ldc, past, past)
	}
	Label("stored")
}

// storeRows writes the tile to c, the last vector of each row by last and the one before by first,
// and moves c to the next tile.
func (t *tile) storeRows(c, ldc reg.GPVirtual, first, last func(v reg.VecVirtual, m Mem)) {
	for _, acc := range t.acc {
		for j, v := range acc {
			m := Mem{Base: c, Disp: j * t.s.bytes}
			if j == t.vectors-1 {
				last(v, m)
			} else {
				first(v, m)
			}
		}
		ADDQ(ldc, c)
	}
}
