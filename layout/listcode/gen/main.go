//go:build avogen

// Command gen writes the assembly of package listcode; see the go:generate line in listcode.go.
package main

import (
	"os"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

func main() {
	os.Args = []string{"gen", "-out", "kernels_amd64.s", "-stubs", "kernels_amd64.go",
		"-pkg", "listcode"}
	prefetchBits()
	packed()
	selectBit()
	places()
	placesOf()
	ask()
	take()
	heads()
	writeLow()
	writeCells()
	readCells()
	widest()
	Generate()
}

// prefetchBits asks for cache lines: Go has no way to say that. Here and in all kernels they are
// asked for in the second cache of a core, which waits for more of them at a time than the first,
// and lets the core compute meanwhile: PREFETCHT0 took a line in 9 ns where PREFETCHT1 took it in
// 6, on an AMD EPYC (Zen 4).
func prefetchBits() {
	TEXT("prefetchBits", NOSPLIT, "func(b *byte, places []uint64, bytes int)")
	Pragma("noescape")
	Doc("prefetchBits asks for the memory at each place, in bits after b, and so many bytes",
		"further on.")
	base := Load(Param("b"), GP64())
	at := Load(Param("places").Base(), GP64())
	n := Load(Param("places").Len(), GP64())
	further := Load(Param("bytes"), GP64())
	place := GP64()
	ADDQ(base, further)
	Label("next")
	TESTQ(n, n)
	JE(LabelRef("done"))
	MOVQ(Mem{Base: at}, place)
	SHRQ(U8(3), place)
	PREFETCHT1(Mem{Base: base, Index: place, Scale: 1})
	PREFETCHT1(Mem{Base: further, Index: place, Scale: 1})
	ADDQ(U8(8), at)
	DECQ(n)
	JMP(LabelRef("next"))
	Label("done")
	RET()
}

// ahead is how many places ahead memory is asked for: some 16 reads are under way at a time.
const ahead = 16

// packed loads fields of one width.
func packed() {
	TEXT("packedBMI", NOSPLIT, "func(b *byte, places []uint64, width uint64, out *uint32)")
	Pragma("noescape")
	Doc("packedBMI sets out to the fields of width bits at places, after which the array goes on",
		"for 16 more.")
	base := Load(Param("b"), GP64())
	at := Load(Param("places").Base(), GP64())
	n := Load(Param("places").Len(), GP64())
	width := Load(Param("width"), GP64())
	out := Load(Param("out"), GP64())
	place, word := GP64(), GP64()
	Label("next")
	TESTQ(n, n)
	JE(LabelRef("done"))
	MOVQ(Mem{Base: at, Disp: 8 * ahead}, place)
	SHRQ(U8(3), place)
	PREFETCHT1(Mem{Base: base, Index: place, Scale: 1})
	MOVQ(Mem{Base: at}, place)
	loadBits(base, place, word)
	BZHIQ(width, word, word)
	MOVL(word.As32(), Mem{Base: out})
	ADDQ(U8(4), out)
	ADDQ(U8(8), at)
	DECQ(n)
	JMP(LabelRef("next"))
	Label("done")
	RET()
}

// loadBits loads the bits from a place on, which it spoils.
func loadBits(base, place reg.Register, word reg.GPVirtual) {
	MOVQ(place, word)
	SHRQ(U8(3), word)
	ANDQ(U8(7), place)
	SHRXQ(place, Mem{Base: base, Index: word, Scale: 1}, word)
}

// selectBit finds a one by its number.
func selectBit() {
	TEXT("selectBMI", NOSPLIT, "func(word, rank uint64) uint64")
	Doc("selectBMI is the place of one number rank, below 64, of a word; 64 if it has none.")
	word, rank, one := Load(Param("word"), GP64()), Load(Param("rank"), GP64()), GP64()
	MOVL(U32(1), one.As32())
	selectOne(word, rank, one)
	Store(one.(reg.GPVirtual), ReturnIndex(0))
	RET()
}

// selectOne makes one, which is 1, the place of one number rank of a word: PDEP puts it there.
func selectOne(word, rank, one reg.Register) {
	SHLXQ(rank, one, one)
	PDEPQ(word, one, one)
	TZCNTQ(one, one)
}

// Where the fields of a Ref are, and of a place: see their types.
const (
	refLow    = 0
	refFirst  = 8
	refRecip  = 16
	refStride = 20
	refPer    = 22
	refBase   = 23
	refAhead  = 24
	refWidth  = 25
	refKind   = 26
	refFrom   = 28

	placeAt    = 0
	placeLow   = 8
	placeFirst = 16
	placeWidth = 20
	placeBase  = 21
	placeKind  = 22
	placeRank  = 23 // the last: that of a packed entry goes on beyond it
	placeBytes = 24
)

// places finds where entries of a list are.
func places() {
	TEXT("placesBMI", NOSPLIT, "func(r *uint64, pos []uint32, out *uint64, b *byte)")
	Pragma("noescape")
	Doc("placesBMI sets out to the places of entries of a list, which is packed or in cells, at",
		"positions; there is one at least. It asks for the memory that takeBMI reads there.")
	ref, pos := Load(Param("r"), GP64()), Load(Param("pos").Base(), GP64())
	n, out := Load(Param("pos").Len(), GP64()), Load(Param("out"), GP64())
	f := loadRef(ref)
	Label("next")
	findPlace(f, ref, pos, out, NewParamAddr("b", 40))
	ADDQ(U8(4), pos)
	ADDQ(U8(placeBytes), out)
	DECQ(n)
	JNE(LabelRef("next"))
	RET()
}

// placesOf finds where entries of lists are.
func placesOf() {
	TEXT("placesOfBMI", NOSPLIT, "func(refs *uint64, pos []uint32, out *uint64, b *byte)")
	Pragma("noescape")
	Doc("placesOfBMI is placesBMI of a list of its own for each position, of which refs has the",
		"address.")
	refs, pos := Load(Param("refs"), GP64()), Load(Param("pos").Base(), GP64())
	ref, out := GP64(), Load(Param("out"), GP64())
	Label("next")
	MOVQ(Mem{Base: refs}, ref)
	findPlace(loadRef(ref), ref, pos, out, NewParamAddr("b", 40))
	ADDQ(U8(8), refs)
	ADDQ(U8(4), pos)
	ADDQ(U8(placeBytes), out)
	DECQ(NewParamAddr("pos_len", 16))
	JNE(LabelRef("next"))
	RET()
}

// refFields are fields of a Ref in registers; rest is all but the rank of what a place has from its
// width on.
type refFields struct{ recip, stride, per, width, rest reg.GPVirtual }

func loadRef(ref reg.Register) refFields {
	f := refFields{GP64(), GP64(), GP64(), GP64(), GP64()}
	t := GP64()
	MOVL(Mem{Base: ref, Disp: refRecip}, f.recip.As32())
	MOVWLZX(Mem{Base: ref, Disp: refStride}, f.stride.As32())
	MOVBLZX(Mem{Base: ref, Disp: refPer}, f.per.As32())
	MOVBLZX(Mem{Base: ref, Disp: refWidth}, f.width.As32())
	MOVBLZX(Mem{Base: ref, Disp: refKind}, f.rest.As32())
	SHLQ(U8(8*(placeKind-placeWidth)), f.rest)
	MOVBLZX(Mem{Base: ref, Disp: refBase}, t.As32())
	SHLQ(U8(8*(placeBase-placeWidth)), t)
	ORQ(t, f.rest)
	ORQ(f.width, f.rest)
	return f
}

// findPlace finds the place of the entry at a position, and asks for the memory there.
func findPlace(f refFields, ref, pos, out reg.Register, bytes Mem) {
	at, rank, t := GP64(), GP64(), GP64()
	// The first entry of a list, which is in no cell, is taken as the second, of which it has no
	// bits.
	isFirst := GP64()
	MOVL(Mem{Base: pos}, rank.As32())
	SUBL(Mem{Base: ref, Disp: refFrom}, rank.As32())
	SUBQ(U8(1), rank)
	SBBQ(isFirst, isFirst)
	SUBQ(isFirst, rank)
	MOVQ(rank, at)
	IMULQ(f.recip, at)
	SHRQ(U8(32), at)
	MOVQ(at, t)
	IMULQ(f.per, t)
	SUBQ(t, rank)
	IMULQ(f.stride, at)
	ADDQ(Mem{Base: ref, Disp: refLow}, at)
	MOVQ(at, Mem{Base: out, Disp: placeAt})
	MOVQ(rank, t)
	SHLQ(U8(8*(placeRank-placeWidth)), t)
	ORQ(f.rest, t)
	ANDNQ(t, isFirst, t)
	MOVL(t.As32(), Mem{Base: out, Disp: placeWidth})
	MOVBLZX(Mem{Base: ref, Disp: refAhead}, t.As32())
	IMULQ(f.width, rank)
	ADDQ(t, rank)
	ADDQ(at, rank)
	MOVQ(rank, Mem{Base: out, Disp: placeLow})
	MOVL(Mem{Base: ref, Disp: refFirst}, t.As32())
	MOVL(t.As32(), Mem{Base: out, Disp: placeFirst})
	MOVQ(bytes, t)
	askFor(t, at, rank)
}

const (
	loadBytes = 8
	// upperReach is where the load of the upper bits of a cell ends: the base before them nearly
	// always takes two bytes.
	upperReach = 2 + loadBytes - 1
)

// askFor asks for the memory of a cell and of low bits at places, which it spoils.
func askFor(base, at, low reg.Register) {
	SHRQ(U8(3), at)
	PREFETCHT1(Mem{Base: base, Index: at, Scale: 1})
	PREFETCHT1(Mem{Base: base, Index: at, Scale: 1, Disp: upperReach})
	SHRQ(U8(3), low)
	PREFETCHT1(Mem{Base: base, Index: low, Scale: 1})
	PREFETCHT1(Mem{Base: base, Index: low, Scale: 1, Disp: loadBytes - 1})
}

// ask asks for the memory of places.
func ask() {
	TEXT("askBMI", NOSPLIT, "func(b *byte, places *uint64, n int)")
	Pragma("noescape")
	Doc("askBMI asks for the memory that takeBMI reads at n places, one at least.")
	base, place := Load(Param("b"), GP64()), Load(Param("places"), GP64())
	n, at, low := Load(Param("n"), GP64()), GP64(), GP64()
	Label("next")
	MOVQ(Mem{Base: place, Disp: placeAt}, at)
	MOVQ(Mem{Base: place, Disp: placeLow}, low)
	askFor(base, at, low)
	ADDQ(U8(placeBytes), place)
	DECQ(n)
	JNE(LabelRef("next"))
	RET()
}

// take reads entries.
func take() {
	TEXT("takeBMI", NOSPLIT, "func(b *byte, places *uint64, n int, out *uint32)")
	Pragma("noescape")
	Doc("takeBMI sets out to the entries at n places, one at least.")
	base, place := Load(Param("b"), GP64()), Load(Param("places"), GP64())
	n, out := Load(Param("n"), GP64()), Load(Param("out"), GP64())
	at, bits, rank, one, t := GP64(), GP64(), GP64(), GP64(), GP64()
	field := func(at int) Mem { return Mem{Base: place, Disp: at} }
	Label("next")
	MOVQ(field(placeAt), at)
	MOVBLZX(field(placeBase), bits.As32())
	MOVBLZX(field(placeRank), rank.As32())
	LEAQ(Mem{Base: at, Index: bits, Scale: 1}, t)
	loadBits(base, t, one)
	MOVL(U32(1), t.As32())
	selectOne(one, rank, t)
	SUBQ(rank, t)
	loadBits(base, at, one)
	BZHIQ(bits, one, one)
	ADDQ(t, one)
	MOVBQSX(field(placeKind), t)
	ANDQ(t, one)
	MOVBLZX(field(placeWidth), bits.As32())
	SHLXQ(bits, one, one)
	MOVQ(field(placeLow), at)
	loadBits(base, at, t)
	BZHIQ(bits, t, t)
	ADDQ(t, one)
	ADDL(field(placeFirst), one.As32())
	MOVL(one.As32(), Mem{Base: out})
	ADDQ(U8(4), out)
	ADDQ(U8(placeBytes), place)
	DECQ(n)
	JNE(LabelRef("next"))
	RET()
}

// What package listcode has as constants.
const (
	countBits   = 4
	wayBits     = 6
	wayEF       = 33
	wayCells    = 63
	cellsHead   = 5 + 6 + 6 + 5
	sampleLog   = 6
	kindWhole   = 1
	refCount    = 12
	refBytes    = 32
	formLeast   = 8
	formBits    = 10
	formLog     = 4 // of the size of a countForm
	codingBytes = 8
)

// headRegs are the registers of heads.
type headRegs struct {
	base, at, left, coding, ref, counts   reg.Register
	n, place, word, first, way, t, u, per reg.GPVirtual
}

// field is one of the Ref.
func (h *headRegs) field(at int) Mem { return Mem{Base: h.ref, Disp: at} }

// heads reads the heads of lists.
func heads() {
	TEXT("headsBMI", NOSPLIT, "func(b *byte, at []uint64, codings, refs *uint64, counts *uint32, "+
		"posBits uint64, forms *uint64, recips *uint32)")
	Pragma("noescape")
	Doc("headsBMI is readRefsPlain of one list at least.")
	h := &headRegs{base: Load(Param("b"), GP64()), at: Load(Param("at").Base(), GP64()),
		left: Load(Param("at").Len(), GP64()), coding: Load(Param("codings"), GP64()),
		ref: Load(Param("refs"), GP64()), counts: Load(Param("counts"), GP64()),
		n: GP64(), place: GP64(), word: GP64(), first: GP64(), way: GP64(), t: GP64(), u: GP64()}
	h.per = h.t
	Label("next")
	h.readCount()
	h.readFirst()
	h.readCells()
	h.writeCells()
	// A list that is coded as a whole: there are few.
	SUBQ(U8(wayEF), h.way)
	CMPQ(h.way, U8(wayCells-wayEF))
	JB(LabelRef("whole"))
	Label("write")
	MOVQ(h.place, h.field(refLow))
	ADDQ(U8(8), h.at)
	ADDQ(U8(codingBytes), h.coding)
	ADDQ(U8(refBytes), h.ref)
	ADDQ(U8(4), h.counts)
	DECQ(h.left)
	JNE(LabelRef("next"))
	RET()
	Label("whole")
	MOVB(h.way.As8(), h.field(refWidth))
	MOVB(U8(kindWhole), h.field(refKind))
	DECQ(h.n)
	SHRQ(U8(sampleLog), h.n)
	IMULQ(NewParamAddr("posBits", 56), h.n)
	ADDQ(h.n, h.place)
	JMP(LabelRef("write"))
}

// readCount writes the count, makes n what is coded of it, and place that of the first id.
func (h *headRegs) readCount() {
	MOVQ(Mem{Base: h.at}, h.place)
	MOVQ(h.place, h.t)
	loadBits(h.base, h.t, h.word)
	MOVQ(h.word, h.n)
	ANDQ(U8(1<<countBits-1), h.n)
	SHLQ(U8(formLog), h.n)
	ADDQ(NewParamAddr("forms", 64), h.n)
	SHRQ(U8(countBits), h.word)
	ANDQ(Mem{Base: h.n}, h.word)
	MOVBLZX(Mem{Base: h.n, Disp: formBits}, h.t.As32())
	MOVWLZX(Mem{Base: h.n, Disp: formLeast}, h.n.As32())
	ADDQ(h.word, h.n)
	LEAQ(Mem{Base: h.n, Disp: 1}, h.u)
	TESTQ(h.place, h.place)
	CMOVQEQ(h.place, h.u)
	MOVL(h.u.As32(), Mem{Base: h.counts})
	MOVL(h.u.As32(), h.field(refCount))
	ADDQ(h.t, h.place)
}

// readFirst writes the first id, and makes way the way, which is 0 where there is no other id, and
// place what is after it.
func (h *headRegs) readFirst() {
	MOVQ(h.place, h.t)
	loadBits(h.base, h.t, h.word)
	MOVQ(Mem{Base: h.coding}, h.first)
	MOVBQZX(h.first.As8(), h.t)
	BZHIQ(h.t, h.word, h.u)
	SHRXQ(h.t, h.word, h.way)
	ADDQ(h.t, h.place)
	SHRQ(U8(32), h.first)
	ADDL(h.u.As32(), h.first.As32())
	MOVL(h.first.As32(), h.field(refFirst))
	ANDQ(U8(1<<wayBits-1), h.way)
	XORL(h.u.As32(), h.u.As32())
	MOVL(U32(wayBits), h.t.As32())
	TESTQ(h.n, h.n)
	CMOVQEQ(h.n, h.way)
	CMOVQEQ(h.n, h.t)
	ADDQ(h.t, h.place)
}

// readCells makes word the head of cells, 0 where there are none, and place what is after it, and
// writes the kind.
func (h *headRegs) readCells() {
	MOVQ(h.place, h.t)
	loadBits(h.base, h.t, h.word)
	XORL(h.t.As32(), h.t.As32())
	CMPQ(h.way, U8(wayCells))
	SETEQ(h.t.As8())
	NEGQ(h.t) // of ones where there are cells
	ANDQ(h.t, h.word)
	MOVQ(h.t, h.u)
	ANDQ(U8(cellsHead), h.u)
	ADDQ(h.u, h.place)
	MOVB(h.t.As8(), h.field(refKind))
}

// writeCells writes the width, and what else is known of cells, or 0. t says whether there are any.
func (h *headRegs) writeCells() {
	MOVQ(h.word, h.u)
	ANDQ(U8(31), h.u)
	TESTQ(h.t, h.t)
	CMOVQEQ(h.way, h.u)
	MOVB(h.u.As8(), h.field(refWidth))
	upper := h.first
	MOVQ(h.word, h.per)
	SHRQ(U8(5), h.per)
	ANDQ(U8(63), h.per)
	MOVB(h.per.As8(), h.field(refPer))
	IMULQ(h.per, h.u) // of packed entries 0
	SHLQ(U8(2), h.per)
	ADDQ(NewParamAddr("recips", 72), h.per)
	MOVL(Mem{Base: h.per}, h.per.As32())
	MOVL(h.per.As32(), h.field(refRecip))
	MOVQ(h.word, upper)
	SHRQ(U8(11), upper)
	ANDQ(U8(63), upper)
	SHRQ(U8(17), h.word)
	ANDQ(U8(31), h.word)
	MOVB(h.word.As8(), h.field(refBase))
	ADDQ(upper, h.word)
	MOVB(h.word.As8(), h.field(refAhead))
	ADDQ(h.u, h.word)
	MOVW(h.word.As16(), h.field(refStride))
	MOVB(U8(0), Mem{Base: h.ref, Disp: refKind + 1})
	MOVL(U32(0), h.field(refFrom))
}
