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
	ask()
	take()
	Generate()
}

// prefetchBits asks for cache lines: Go has no way to say that.
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
	PREFETCHT0(Mem{Base: base, Index: place, Scale: 1})
	PREFETCHT0(Mem{Base: further, Index: place, Scale: 1})
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
	PREFETCHT0(Mem{Base: base, Index: place, Scale: 1})
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

// Where the fields of a Ref are: see its type.
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
)

// list is a loop over positions of a list, and what it keeps in registers.
type list struct {
	base, pos, n, ref                          reg.Register
	recip, stride, per, baseBits, ahead, width reg.GPVirtual
}

func loadList() *list {
	l := &list{base: Load(Param("b"), GP64()), pos: Load(Param("pos").Base(), GP64()),
		n: Load(Param("pos").Len(), GP64()), ref: Load(Param("r"), GP64())}
	l.recip, l.stride, l.per = GP64(), GP64(), GP64()
	l.ahead, l.width = GP64(), GP64()
	MOVL(l.field(refRecip), l.recip.As32())
	MOVWLZX(l.field(refStride), l.stride.As32())
	MOVBLZX(l.field(refPer), l.per.As32())
	MOVBLZX(l.field(refAhead), l.ahead.As32())
	MOVBLZX(l.field(refWidth), l.width.As32())
	return l
}

func (l *list) field(at int) Mem { return Mem{Base: l.ref, Disp: at} }

// each loops over the positions, of which there is one at least.
func (l *list) each(body func()) {
	Label("next")
	body()
	ADDQ(U8(4), l.pos)
	DECQ(l.n)
	JNE(LabelRef("next"))
	RET()
}

// cell loads where the cell of a position begins, and the number of its entry in it. The first
// position, which has none, is taken as the second.
func (l *list) cell(at, rank, t reg.GPVirtual) {
	MOVL(Mem{Base: l.pos}, rank.As32())
	SUBQ(U8(1), rank)
	ADCQ(U8(0), rank)
	MOVQ(rank, at)
	IMULQ(l.recip, at)
	SHRQ(U8(32), at)
	MOVQ(at, t)
	IMULQ(l.per, t)
	SUBQ(t, rank)
	IMULQ(l.stride, at)
	ADDQ(l.field(refLow), at)
}

// lowBits makes the number of an entry the place of its low bits.
func (l *list) lowBits(at, rank reg.GPVirtual) {
	IMULQ(l.width, rank)
	ADDQ(l.ahead, rank)
	ADDQ(at, rank)
}

const (
	loadBytes = 8
	// upperReach is where the load of the upper bits of a cell ends: the base before them nearly
	// always takes two bytes.
	upperReach = 2 + loadBytes - 1
)

// ask asks for cells and low bits.
func ask() {
	TEXT("askBMI", NOSPLIT, "func(b *byte, pos []uint32, r *uint64)")
	Pragma("noescape")
	Doc("askBMI asks for the memory that takeBMI reads; there is one position at least.")
	l := loadList()
	at, rank, t := GP64(), GP64(), GP64()
	l.each(func() {
		l.cell(at, rank, t)
		l.lowBits(at, rank)
		SHRQ(U8(3), at)
		PREFETCHT0(Mem{Base: l.base, Index: at, Scale: 1})
		PREFETCHT0(Mem{Base: l.base, Index: at, Scale: 1, Disp: upperReach})
		SHRQ(U8(3), rank)
		PREFETCHT0(Mem{Base: l.base, Index: rank, Scale: 1})
		PREFETCHT0(Mem{Base: l.base, Index: rank, Scale: 1, Disp: loadBytes - 1})
	})
}

// take reads entries.
func take() {
	TEXT("takeBMI", NOSPLIT, "func(b *byte, pos []uint32, r *uint64, out *uint32)")
	Pragma("noescape")
	Doc("takeBMI sets out to the entries of a list, which is packed or in cells, at positions;",
		"there is one at least.")
	l := loadList()
	out := Load(Param("out"), GP64())
	l.baseBits = GP64()
	MOVBLZX(l.field(refBase), l.baseBits.As32())
	at, rank, one, t := GP64(), GP64(), GP64(), GP64()
	l.each(func() {
		l.cell(at, rank, t)
		LEAQ(Mem{Base: at, Index: l.baseBits, Scale: 1}, t)
		loadBits(l.base, t, one)
		MOVL(U32(1), t.As32())
		selectOne(one, rank, t)
		SUBQ(rank, t)
		l.lowBits(at, rank)
		loadBits(l.base, at, one)
		BZHIQ(l.baseBits, one, one)
		ADDQ(t, one)
		MOVBQSX(l.field(refKind), t)
		ANDQ(t, one)
		SHLXQ(l.width, one, one)
		loadBits(l.base, rank, t)
		BZHIQ(l.width, t, t)
		ADDQ(t, one)
		XORL(t.As32(), t.As32())
		CMPL(t.As32(), Mem{Base: l.pos}) // carry unless it is position 0
		SBBQ(t, t)
		ANDQ(t, one)
		ADDL(l.field(refFirst), one.As32())
		MOVL(one.As32(), Mem{Base: out})
		ADDQ(U8(4), out)
	})
}
