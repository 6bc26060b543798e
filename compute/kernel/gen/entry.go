//go:build avogen

package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// entry writes the products of rows of bfloat16 for each entry of lists and each head.
func entry() {
	for _, s := range isas {
		d := entryDot{s: s}
		d.write()
	}
}

const (
	// blockBytes is what a step multiplies: 32 values, a line of memory.
	blockBytes = 64
	// entriesAhead is how many entries before its turn a row is asked for.
	entriesAhead = 10
)

// entryDot writes a kernel that multiplies a list's own row with those of its entries: see
// bf16.dotFunc. Rows are read as a whole, all heads of one entry after the other, so that memory
// gives whole rows. A step splits words into two vectors of floats, of their odd and their even
// values, without moving any between lanes.
type entryDot struct {
	s            isa
	row, at, own reg.GPVirtual // at is where a block is in the row, and in the row that is next
	next         reg.GPVirtual
	acc          []reg.VecVirtual // odd and even, of each vector of a block
	masks        []mask           // of the vectors of the last block
	high         reg.VecVirtual
}

func (d *entryDot) write() {
	name := "entryDot" + d.s.name
	TEXT(name, NOSPLIT, "func(dw *float32, own, x *uint16, off, idx *uint32, "+
		"lists, heads, d int, xRow, xHead uintptr)")
	Pragma("noescape")
	Doc(name + " multiplies rows: see dotFunc.")
	vectors := blockBytes / d.s.bytes
	d.acc = d.s.vecs(2 * vectors)
	d.high = d.s.constant(0xffff0000)
	d.lastMasks(vectors)
	off, idx, x := loadGP(Param("off")), loadGP(Param("idx")), loadGP(Param("x"))
	own, to := loadGP(Param("own")), loadGP(Param("dw"))
	last := AllocLocal(8)
	lastEntry(off, idx, last)
	p, end := GP64(), GP64()
	d.row, d.at, d.own, d.next = GP64(), GP64(), GP64(), GP64()
	Label("list")
	listEntries(off, idx, p, end)
	CMPQ(p, end)
	JEQ(LabelRef("none"))
	Label("entry")
	entryRows(p, x, last, d.row, d.next)
	MOVQ(own, d.own)
	XORL(d.at.As32(), d.at.As32())
	d.eachHead(to)
	ADDQ(U32(4), p)
	CMPQ(p, end)
	JNE(LabelRef("entry"))
	Label("none")
	d.nextOwn(own)
	ADDQ(U32(4), off)
	DECQ(floatParam("lists"))
	JNZ(LabelRef("list"))
	VZEROUPPER()
	RET()
}

// lastEntry keeps in last where the last entry of all lists is.
func lastEntry(off, idx reg.GPVirtual, last Mem) {
	number := loadGP(Param("lists"))
	MOVL(Mem{Base: off, Index: number, Scale: 4}, number.As32())
	LEAQ(Mem{Base: idx, Index: number, Scale: 4, Disp: -4}, number)
	MOVQ(number, last)
}

// listEntries sets where the entries of the list at off begin and end.
func listEntries(off, idx, begin, end reg.GPVirtual) {
	MOVL(Mem{Base: off}, begin.As32())
	MOVL(Mem{Base: off, Disp: 4}, end.As32())
	LEAQ(Mem{Base: idx, Index: begin, Scale: 4}, begin)
	LEAQ(Mem{Base: idx, Index: end, Scale: 4}, end)
}

// entryRows sets where the row of the entry at p is, and the row of an entry to come, up to the
// last.
func entryRows(p, x reg.GPVirtual, last Mem, row, next reg.GPVirtual) {
	LEAQ(Mem{Base: p, Disp: 4 * entriesAhead}, next)
	CMPQ(next, last)
	CMOVQGT(last, next)
	for _, r := range []struct{ from, to reg.GPVirtual }{{p, row}, {next, next}} {
		MOVL(Mem{Base: r.from}, r.to.As32())
		IMULQ(floatParam("xRow"), r.to)
		ADDQ(x, r.to)
	}
}

// nextOwn moves to the own row of the next list: its heads are side by side.
func (d *entryDot) nextOwn(own reg.GPVirtual) {
	bytes := loadGP(Param("d"))
	IMULQ(floatParam("heads"), bytes)
	LEAQ(Mem{Base: own, Index: bytes, Scale: 2}, own)
}

// eachHead writes the products of an entry.
func (d *entryDot) eachHead(to reg.GPVirtual) {
	heads, left := loadGP(Param("heads")), GP64()
	Label("head")
	for _, v := range d.acc {
		d.s.clear(v)
	}
	Load(Param("d"), left)
	SUBQ(U32(blockBytes/2), left)
	JL(LabelRef("rest"))
	Label("block")
	d.block(nil)
	ADDQ(U32(blockBytes), d.own)
	ADDQ(U32(blockBytes), d.at)
	SUBQ(U32(blockBytes/2), left)
	JGE(LabelRef("block"))
	Label("rest")
	ADDQ(U32(blockBytes/2), left)
	JZ(LabelRef("sum"))
	d.block(d.masks)
	LEAQ(Mem{Base: d.own, Index: left, Scale: 2}, d.own)
	LEAQ(Mem{Base: d.at, Index: left, Scale: 2}, d.at)
	Label("sum")
	d.total(to)
	ADDQ(U32(4), to)
	CMPQ(floatParam("xHead"), U8(0)) // whole rows of each head, or columns of its own
	JNE(LabelRef("moved"))
	XORL(d.at.As32(), d.at.As32())
	Label("moved")
	DECQ(heads)
	JNZ(LabelRef("head"))
}

// block multiplies a line of both rows and asks for that of a row to come.
func (d *entryDot) block(masks []mask) {
	line := Mem{Base: d.row, Index: d.at, Scale: 1}
	PREFETCHT1(Mem{Base: d.next, Index: d.at, Scale: 1})
	for i := range len(d.acc) / 2 {
		x, y := d.s.vec(), d.s.vec()
		for _, v := range []struct {
			from Mem
			to   reg.VecVirtual
		}{{line.Offset(i * d.s.bytes), x}, {Mem{Base: d.own, Disp: i * d.s.bytes}, y}} {
			switch {
			case masks == nil:
				d.s.load(v.from, v.to)
			case d.s.wide:
				VMOVDQU16_Z(v.from, masks[i].k, v.to)
			default:
				VPMASKMOVD(v.from, masks[i].v, v.to)
			}
		}
		odd, even := d.odd(x), d.odd(y)
		VFMADD231PS(odd, even, d.acc[2*i])
		VPSLLD(U8(16), x, x)
		VPSLLD(U8(16), y, y)
		VFMADD231PS(x, y, d.acc[2*i+1])
	}
}

// odd returns the odd values of v.
func (d *entryDot) odd(v reg.VecVirtual) reg.VecVirtual {
	to := d.s.vec()
	if d.s.wide {
		VPANDD(d.high, v, to)
	} else {
		VPAND(d.high, v, to)
	}
	return to
}

// total adds up the sums, and writes that. With AVX2 the vectors of a block are first added as the
// halves of a wider one are.
func (d *entryDot) total(to reg.GPVirtual) {
	for i := 0; i < len(d.acc); i += 2 {
		VADDPS(d.acc[i+1], d.acc[i], d.acc[i])
	}
	if !d.s.wide {
		VADDPS(d.acc[0], d.acc[2], d.acc[0])
	}
	x := d.s.fold(d.acc[0], reg.Y0, reg.Y1, func(a, b, to reg.Register) { VADDPS(a, b, to) })
	VMOVSS(x, Mem{Base: to})
}

// lastMasks makes the masks of a block that is not full: of words, or with AVX2 of pairs of them.
func (d *entryDot) lastMasks(vectors int) {
	rest := loadGP(Param("d"))
	ANDQ(U8(blockBytes/2-1), rest)
	if d.s.wide {
		ones, k := GP32(), K()
		MOVL(U32(0xffffffff), ones)
		BZHIL(rest.As32(), ones, ones)
		KMOVD(ones, k)
		d.masks = []mask{{k: k}}
		return
	}
	SHRQ(U8(1), rest)
	zero, all := GP64(), GP64()
	XORL(zero.As32(), zero.As32())
	MOVQ(U32(d.s.lanes()), all)
	for range vectors {
		n := GP64()
		MOVQ(all, n)
		CMPQ(rest, all)
		CMOVQLT(rest, n)
		d.masks = append(d.masks, d.s.lowLanes(n))
		SUBQ(U32(d.s.lanes()), rest)
		CMOVQLT(zero, rest)
	}
}
