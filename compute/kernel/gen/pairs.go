//go:build avogen

package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// pairSignature declares bf16.tileFunc.
const pairSignature = "func(tiles, pairs int, a *uint16, ars, aks uintptr, b *uint32, " +
	"c *float32, ldc uintptr, lanes int, mode uint64, next, nextStep uintptr)"

// modeHalf equals the constant of package bf16; the other bits of mode mean the same as for
// kernel's tiles.
const modeHalf = 4

// pairs writes the tiles of products of bfloat16, and what packs their operands. Tiles differ from
// those of float32 in that a step takes a pair of values of A from each row.
func pairs() {
	for _, t := range []struct {
		s    isa
		dot  bool
		rows []int
	}{{avx512, true, []int{12, 8, 4, 2, 1}}, {avx512, false, []int{12, 8, 4, 2, 1}},
		{avx2, false, []int{6, 4, 2, 1}}} {
		for _, rows := range t.rows {
			for vectors := 1; vectors <= 2; vectors++ {
				p := pairTile{tile: newTile(t.s, rows, vectors, rows == t.rows[0]), dot: t.dot}
				p.write()
			}
		}
	}
	for _, s := range isas {
		packPairs(s, 3, false)
		packPairs(s, 2, true)
	}
	packPairs(avx512, 2, false)
}

// pairTile writes a column of tiles: with dot by VDPBF16PS, else by float32 arithmetic in the same
// order. That instruction adds the second product of a pair first, each with one rounding, and
// takes denormals for zeros in what it reads and writes: the others are told to.
type pairTile struct {
	*tile
	dot  bool
	high reg.VecVirtual // the bits of the second value of a pair
}

func (t *pairTile) write() {
	name := fmt.Sprintf("tile%s_%dx%d", t.set(), t.rows, t.vectors)
	TEXT(name, NOSPLIT, pairSignature)
	Pragma("noescape")
	Doc(fmt.Sprintf("%s computes tiles of %d rows and %d vectors of C: see tileFunc.", name, t.rows,
		t.vectors))
	control := AllocLocal(8)
	STMXCSR(control)
	LDMXCSR(flushDenormals())
	tiles, a, c := loadGP(Param("tiles")), loadGP(Param("a")), loadGP(Param("c"))
	ldc, aks := loadGP(Param("ldc")), loadGP(Param("aks"))
	t.ars = loadGP(Param("ars"))
	t.ars3 = GP64()
	LEAQ(Mem{Base: t.ars, Index: t.ars, Scale: 2}, t.ars3)
	if t.s.wide {
		t.last = t.s.lowLanes(loadGP(Param("lanes")))
	}
	if t.s.wide && !t.dot {
		t.high = t.s.constant(0xffff0000)
	}
	t.registers()
	Label("tile")
	t.pointers(a)
	for i := range t.acc {
		for _, v := range t.acc[i] {
			t.s.clear(v)
		}
	}
	t.sums(loadGP(Param("b")), aks)
	t.finish(c, ldc)
	all := GP64()
	IMUL3Q(U8(t.rows), t.ars, all)
	ADDQ(all, a)
	DECQ(tiles)
	JNZ(LabelRef("tile"))
	t.fence()
	LDMXCSR(control)
	VZEROUPPER()
	RET()
}

// set names the instructions that the tile is made of.
func (t *pairTile) set() string {
	if t.dot {
		return "Dot"
	}
	return t.s.name
}

// sums writes the loop over pairs. The last one may be half of one.
func (t *pairTile) sums(b, aks reg.GPVirtual) {
	k := loadGP(Param("pairs"))
	var next reg.GPVirtual
	if t.fetches {
		next = loadGP(Param("next"))
	}
	TESTQ(k, k)
	JZ(LabelRef("half"))
	Label("loop")
	if t.fetches {
		PREFETCHT1(Mem{Base: next})
		ADDQ(floatParam("nextStep"), next)
	}
	t.step(b, func(i int) reg.VecVirtual {
		v := t.s.vec()
		VPBROADCASTD(t.value(i), v)
		return v
	})
	for _, p := range t.ap {
		ADDQ(aks, p)
	}
	ADDQ(U32(t.stepBytes()), b)
	DECQ(k)
	JNZ(LabelRef("loop"))
	if t.fetches {
		MOVQ(next, floatParam("next"))
	}
	Label("half")
	TESTQ(U32(modeHalf), floatParam("mode"))
	JZ(LabelRef("summed"))
	t.step(b, func(i int) reg.VecVirtual {
		word, v := GP32(), t.s.vec()
		MOVWLZX(t.value(i), word)
		if t.s.wide {
			VPBROADCASTD(word, v)
		} else {
			VMOVD(word, v.AsX())
			VPBROADCASTD(v.AsX(), v)
		}
		return v
	})
	Label("summed")
}

// stepBytes returns what a panel has for a step: a word for each column, or with float32 two.
func (t *pairTile) stepBytes() int {
	if t.dot {
		return 2 * t.s.bytes
	}
	return 4 * t.s.bytes
}

// step adds the products of a pair of columns of A and a pair of rows of B. pair returns the pair
// of row i in all lanes.
func (t *pairTile) step(b reg.GPVirtual, pair func(i int) reg.VecVirtual) {
	if t.dot {
		row := t.loadRow(b, 0)
		for i, acc := range t.acc {
			v := pair(i)
			for j := range row {
				dotPairs(row[j], v, acc[j])
			}
		}
		return
	}
	row := t.loadRow(b, 0)
	for i, acc := range t.acc {
		v := pair(i)
		if t.s.wide {
			VPANDD(t.high, v, v)
		} else {
			VPAND(t.s.inMemory(0xffff0000), v, v)
		}
		for j := range row {
			VFMADD231PS(row[j], v, acc[j])
		}
	}
	row = t.loadRow(b, 2*t.s.bytes)
	for i, acc := range t.acc {
		v := pair(i)
		VPSLLD(U8(16), v, v)
		for j := range row {
			VFMADD231PS(row[j], v, acc[j])
		}
	}
}

func (t *pairTile) loadRow(b reg.GPVirtual, at int) []reg.VecVirtual {
	row := make([]reg.VecVirtual, t.vectors)
	for j := range row {
		row[j] = t.s.vec()
		t.s.load(Mem{Base: b, Disp: at + j*t.s.bytes}, row[j])
	}
	return row
}

var flush *Mem

// flushDenormals returns a value of the register MXCSR: its default with the bits FTZ and DAZ.
func flushDenormals() Mem {
	if flush == nil {
		m := GLOBL("flushDenormals", RODATA|NOPTR)
		DATA(0, U32(0x9fc0))
		flush = &m
	}
	return *flush
}

// packPairs writes a kernel that copies rows, two and two, to panels: see bf16.packFunc. A row of a
// panel is a number of vectors of words, each a pair of values of one column, or widened two rows
// of floats, the second one first. AVX2 packs whole panels only.
func packPairs(s isa, vectors int, widened bool) {
	name := fmt.Sprintf("pack%s_%d", s.name, vectors)
	if widened {
		name = fmt.Sprintf("packWide%s_%d", s.name, vectors)
	}
	TEXT(name, NOSPLIT,
		"func(panels *uint32, src *uint16, pairs, n int, stride, panel uintptr)")
	Pragma("noescape")
	Doc(fmt.Sprintf("%s copies pairs of rows to panels of %d columns: see packFunc.", name,
		vectors*s.lanes()))
	p := pairPacker{s: s, vectors: vectors, widened: widened, stride: loadGP(Param("stride")),
		from: GP64(), to: GP64()}
	dst, src, panel := loadGP(Param("panels")), loadGP(Param("src")), loadGP(Param("panel"))
	count, n, left := loadGP(Param("pairs")), loadGP(Param("n")), GP64()
	width := vectors * s.lanes()
	var masks []mask
	if s.wide {
		masks = p.masks(n, width)
	}
	Label("row")
	MOVQ(src, p.from)
	MOVQ(dst, p.to)
	MOVQ(n, left)
	SUBQ(U32(width), left)
	JL(LabelRef("rest"))
	Label("panel")
	p.panel(nil)
	ADDQ(U32(2*width), p.from)
	ADDQ(panel, p.to)
	SUBQ(U32(width), left)
	JGE(LabelRef("panel"))
	Label("rest")
	if s.wide {
		ADDQ(U32(width), left)
		JZ(LabelRef("next"))
		p.panel(masks)
		Label("next")
	}
	LEAQ(Mem{Base: src, Index: p.stride, Scale: 2}, src)
	ADDQ(U32(p.stepBytes()), dst)
	DECQ(count)
	JNZ(LabelRef("row"))
	VZEROUPPER()
	RET()
}

type pairPacker struct {
	s                isa
	vectors          int
	widened          bool
	stride, from, to reg.GPVirtual
}

func (p *pairPacker) stepBytes() int {
	if p.widened {
		return 2 * p.vectors * p.s.bytes
	}
	return p.vectors * p.s.bytes
}

// masks returns those of the vectors of the last panel, of n columns.
func (p *pairPacker) masks(n reg.GPVirtual, width int) (all []mask) {
	t, rest, zero := GP64(), GP64(), GP64()
	MOVQ(n, reg.RAX)
	XORL(reg.EDX, reg.EDX)
	MOVQ(U32(width), t)
	DIVQ(t)
	MOVQ(reg.RDX, rest)
	XORL(zero.As32(), zero.As32())
	for range p.vectors {
		lanes := GP64()
		MOVQ(U32(p.s.lanes()), lanes)
		CMPQ(rest, lanes)
		CMOVQLT(rest, lanes)
		all = append(all, p.s.lowLanes(lanes))
		SUBQ(U32(p.s.lanes()), rest)
		CMOVQLT(zero, rest)
	}
	return all
}

// panel copies a pair of rows of one panel, with masks of the last one.
func (p *pairPacker) panel(masks []mask) {
	for j := range p.vectors {
		first, second := p.s.vec(), p.s.vec()
		at := Mem{Base: p.from, Disp: j * p.s.bytes / 2}
		next := at
		next.Index, next.Scale = p.stride, 1
		for _, w := range []struct {
			m  Mem
			to reg.VecVirtual
		}{{at, first}, {next, second}} {
			if masks != nil {
				VPMOVZXWD_Z(w.m, masks[j].k, w.to)
			} else {
				VPMOVZXWD(w.m, w.to)
			}
		}
		VPSLLD(U8(16), second, second)
		switch {
		case p.widened:
			VPSLLD(U8(16), first, first)
			p.s.store(second, Mem{Base: p.to, Disp: j * p.s.bytes})
			p.s.store(first, Mem{Base: p.to, Disp: (p.vectors + j) * p.s.bytes})
		case p.s.wide:
			VPORD(second, first, first)
			p.s.store(first, Mem{Base: p.to, Disp: j * p.s.bytes})
		default:
			VPOR(second, first, first)
			p.s.store(first, Mem{Base: p.to, Disp: j * p.s.bytes})
		}
	}
}
