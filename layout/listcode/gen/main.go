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
	ask()
	aim()
	take()
	Generate()
}

// prefetchBits asks for cache lines: Go has no way to say that.
func prefetchBits() {
	TEXT("prefetchBits", NOSPLIT, "func(b *byte, places []uint64)")
	Pragma("noescape")
	Doc("prefetchBits asks for the memory at each place, in bits after b.")
	base := Load(Param("b"), GP64())
	at := Load(Param("places").Base(), GP64())
	n := Load(Param("places").Len(), GP64())
	place := GP64()
	Label("next")
	TESTQ(n, n)
	JE(LabelRef("done"))
	MOVQ(Mem{Base: at}, place)
	SHRQ(U8(3), place)
	PREFETCHT0(Mem{Base: base, Index: place, Scale: 1})
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

// Where the fields of a source are: see its type.
const (
	sourceLow     = 0
	sourceUpper   = 8
	sourceSamples = 16
	sourceFirst   = 24
	sourceWidth   = 28
	sourceCoded   = 29
)

// draws is a loop over the draws of a batch.
type draws struct{ base, all, sources, n reg.Register }

func loadDraws() draws {
	return draws{base: Load(Param("b"), GP64()), all: Load(Param("draws").Base(), GP64()),
		sources: Load(Param("sources"), GP64()), n: Load(Param("draws").Len(), GP64())}
}

func (d *draws) each(body func()) {
	Label("next")
	TESTQ(d.n, d.n)
	JE(LabelRef("done"))
	body()
	ADDQ(U8(8), d.all)
	DECQ(d.n)
	JMP(LabelRef("next"))
	Label("done")
	RET()
}

// load loads the number of a draw's field, which is 0 for position 0 too, and where its source is
// after the others.
func (d *draws) load(field, source reg.GPVirtual) {
	MOVQ(Mem{Base: d.all}, source)
	MOVL(source.As32(), field.As32())
	SHRQ(U8(32), source)
	SUBQ(U8(1), field)
	ADCQ(U8(0), field)
}

func (d *draws) source(at reg.Register, field int) Mem {
	return Mem{Base: d.sources, Index: at, Scale: 1, Disp: field}
}

// sample makes the number of a field the place of its sample, or of the first one if it has none;
// has is all ones if it has one. posBits is what samples take.
func (d *draws) sample(field, source, has reg.GPVirtual, posBits reg.Register) {
	MOVBQSX(d.source(source, sourceCoded), has)
	SHRQ(U8(6), field)
	ANDQ(has, field)
	MOVQ(field, has)
	NEGQ(has)
	SBBQ(has, has)
	ADDQ(has, field)
	IMULQ(posBits, field)
	ADDQ(d.source(source, sourceSamples), field)
}

// ask asks for the low bits and the samples.
func ask() {
	TEXT("askBMI", NOSPLIT, "func(b *byte, draws []uint64, sources *uint64, posBits uint64)")
	Pragma("noescape")
	Doc("askBMI asks for the memory of the fields, and of the samples, of draws.")
	d := loadDraws()
	posBits := Load(Param("posBits"), GP64())
	field, source, has := GP64(), GP64(), GP64()
	d.each(func() {
		d.load(field, source)
		d.sample(field, source, has, posBits)
		SHRQ(U8(3), field)
		PREFETCHT0(Mem{Base: d.base, Index: field, Scale: 1})
	})
}

// aim finds from where on a one is looked for.
func aim() {
	TEXT("aimBMI", NOSPLIT, "func(b *byte, draws []uint64, sources *uint64, posBits, last uint64, "+
		"starts *uint64)")
	Pragma("noescape")
	Doc("aimBMI sets starts to the places from which on the ones of draws are looked for, none",
		"after last, and asks for the memory there.")
	d := loadDraws()
	posBits := Load(Param("posBits"), GP64())
	last := Load(Param("last"), GP64())
	starts := Load(Param("starts"), GP64())
	field, source, has, word, place := GP64(), GP64(), GP64(), GP64(), GP64()
	d.each(func() {
		d.load(field, source)
		MOVBQZX(d.source(source, sourceWidth), place)
		IMULQ(field, place)
		ADDQ(d.source(source, sourceLow), place)
		SHRQ(U8(3), place)
		PREFETCHT0(Mem{Base: d.base, Index: place, Scale: 1})
		PREFETCHT0(Mem{Base: d.base, Index: place, Scale: 1, Disp: 7})
		d.sample(field, source, has, posBits)
		loadBits(d.base, field, word)
		BZHIQ(posBits, word, word)
		ANDQ(has, word)
		ADDQ(d.source(source, sourceUpper), word)
		CMPQ(word, last)
		CMOVQHI(last, word)
		MOVQ(word, Mem{Base: starts})
		SHRQ(U8(3), word)
		PREFETCHT0(Mem{Base: d.base, Index: word, Scale: 1})
		PREFETCHT0(Mem{Base: d.base, Index: word, Scale: 1, Disp: 31})
		ADDQ(U8(8), starts)
	})
}

// take finds ones by their number: PDEP puts a one to the place of the one that is asked for. Four
// words have nearly all of them.
func take() {
	TEXT("takeBMI", NOSPLIT, "func(b *byte, draws []uint64, sources *uint64, starts *uint64, "+
		"words int, out *uint32)")
	Pragma("noescape")
	Doc("takeBMI sets out to the entries of draws, and looks for a one in no more than so many",
		"words, or four.")
	d := loadDraws()
	starts := Load(Param("starts"), GP64())
	out := Load(Param("out"), GP64())
	field, source, low, start := GP64(), GP64(), GP64(), GP64()
	rank, left, word, count, t := GP64(), GP64(), GP64(), GP64(), GP64()
	d.each(func() {
		d.load(field, source)
		scanFour(d.base, starts, field, rank, left, start, word, low, count, t)
		MOVQ(rank, t)
		SUBQ(count, t)
		JCC(LabelRef("far"))
		Label("found")
		MOVL(U32(1), t.As32())
		SHLXQ(left, t, t)
		PDEPQ(word, t, t)
		TZCNTQ(t, t)
		SUBQ(d.base, low)
		LEAQ(Mem{Base: t, Index: low, Scale: 8}, t)
		SUBQ(d.source(source, sourceUpper), t)
		SUBQ(field, t)
		MOVBQSX(d.source(source, sourceCoded), word)
		ANDQ(word, t)
		// The low bits.
		MOVBQZX(d.source(source, sourceWidth), count)
		SHLXQ(count, t, t)
		IMULQ(count, field)
		ADDQ(d.source(source, sourceLow), field)
		loadBits(d.base, field, low)
		BZHIQ(count, low, low)
		ADDQ(low, t)
		XORL(count.As32(), count.As32())
		CMPL(count.As32(), Mem{Base: d.all}) // carry unless it is position 0
		SBBQ(count, count)
		ANDQ(count, t)
		ADDL(d.source(source, sourceFirst), t.As32())
		MOVL(t.As32(), Mem{Base: out})
		ADDQ(U8(8), starts)
		ADDQ(U8(4), out)
	})
	far(start, low, word, left, rank, count, t)
}

// scanFour finds which of the four words at start has the one of a field: word, at low, and there
// it is number left. count are the ones of all four.
func scanFour(base, starts reg.Register,
	field, rank, left, start, word, low, count, t reg.GPVirtual) {
	MOVQ(Mem{Base: starts}, start)
	MOVQ(field, rank)
	ANDQ(U8(63), rank)
	MOVQ(start, t)
	ANDQ(U8(7), t)
	SHRQ(U8(3), start)
	ADDQ(base, start)
	SHRXQ(t, Mem{Base: start}, word)
	SHLXQ(t, word, word)
	POPCNTQ(word, count)
	MOVQ(rank, left)
	MOVQ(start, low) // of the word that has the one
	for i := 1; i < 4; i++ {
		MOVQ(rank, t)
		SUBQ(count, t)
		CMOVQCC(t, left)
		CMOVQCC(Mem{Base: start, Disp: 8 * i}, word)
		LEAQ(Mem{Base: start, Disp: 8 * i}, t)
		CMOVQCC(t, low)
		POPCNTQ(Mem{Base: start, Disp: 8 * i}, t)
		ADDQ(t, count)
	}
}

// far looks through the words after the first four.
func far(start, low, word, left, rank, count, t reg.GPVirtual) {
	Label("far")
	words := Load(Param("words"), count)
	LEAQ(Mem{Base: start, Disp: 24}, low)
	Label("scan")
	ADDQ(U8(8), low)
	MOVQ(Mem{Base: low}, word)
	MOVQ(t, left)
	POPCNTQ(word, rank)
	SUBQ(rank, t)
	JCS(LabelRef("found"))
	DECQ(words)
	CMPQ(words, U8(4))
	JGT(LabelRef("scan"))
	JMP(LabelRef("found"))
}
