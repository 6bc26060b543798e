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
	fields()
	packed()
	selectOnes()
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
	MOVBLZX(Mem{Base: base, Index: place, Scale: 1}, place.As32())
	ADDQ(U8(8), at)
	DECQ(n)
	JMP(LabelRef("next"))
	Label("done")
	RET()
}

// ahead is how many places ahead memory is asked for: some 16 reads are under way at a time.
const ahead = 16

// fieldLoop loads the fields at places, with the memory of those to come asked for.
func fieldLoop(base, at, n reg.Register, each func(word reg.Register)) {
	place, word := GP64(), GP64()
	Label("next")
	TESTQ(n, n)
	JE(LabelRef("done"))
	MOVQ(Mem{Base: at, Disp: 8 * ahead}, place)
	SHRQ(U8(3), place)
	PREFETCHT0(Mem{Base: base, Index: place, Scale: 1})
	MOVQ(Mem{Base: at}, place)
	MOVQ(place, word)
	SHRQ(U8(3), word)
	ANDQ(U8(7), place)
	SHRXQ(place, Mem{Base: base, Index: word, Scale: 1}, word)
	each(word)
	ADDQ(U8(8), at)
	DECQ(n)
	JMP(LabelRef("next"))
	Label("done")
	RET()
}

// fields adds fields of any widths to first ids.
func fields() {
	TEXT("fieldsBMI", NOSPLIT,
		"func(b *byte, places []uint64, widths *uint8, firsts, out *uint32)")
	Pragma("noescape")
	Doc("fieldsBMI sets out to firsts and the fields of widths bits at places, after which the",
		"array goes on for 16 more.")
	base := Load(Param("b"), GP64())
	at := Load(Param("places").Base(), GP64())
	n := Load(Param("places").Len(), GP64())
	widths := Load(Param("widths"), GP64())
	firsts := Load(Param("firsts"), GP64())
	out := Load(Param("out"), GP64())
	width := GP64()
	fieldLoop(base, at, n, func(word reg.Register) {
		MOVBQZX(Mem{Base: widths}, width)
		BZHIQ(width, word, word)
		ADDL(Mem{Base: firsts}, word.(reg.GPVirtual).As32())
		MOVL(word.(reg.GPVirtual).As32(), Mem{Base: out})
		INCQ(widths)
		ADDQ(U8(4), firsts)
		ADDQ(U8(4), out)
	})
}

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
	fieldLoop(base, at, n, func(word reg.Register) {
		BZHIQ(width, word, word)
		MOVL(word.(reg.GPVirtual).As32(), Mem{Base: out})
		ADDQ(U8(4), out)
	})
}

// selectOnes finds ones by their number: PDEP puts a one to the place of the one that is asked for.
func selectOnes() {
	TEXT("selectOnesBMI", NOSPLIT, "func(b *byte, at []uint64, rank *uint64, words int)")
	Pragma("noescape")
	Doc("selectOnesBMI replaces each place by that of one number rank%64 from it on, or by one",
		"beyond so many words. After the places the array goes on for 16 more.")
	base := Load(Param("b"), GP64())
	at := Load(Param("at").Base(), GP64())
	n := Load(Param("at").Len(), GP64())
	ranks := Load(Param("rank"), GP64())
	words := Load(Param("words"), GP64())
	place, rank, word, count := GP64(), GP64(), GP64(), GP64()
	from, left, one := GP64(), GP64(), GP64()
	Label("next")
	TESTQ(n, n)
	JE(LabelRef("done"))
	MOVQ(Mem{Base: at, Disp: 8 * ahead}, place)
	SHRQ(U8(3), place)
	PREFETCHT0(Mem{Base: base, Index: place, Scale: 1})
	MOVQ(Mem{Base: at}, place)
	MOVQ(Mem{Base: ranks}, rank)
	ANDQ(U8(63), rank)
	MOVQ(words, left)
	MOVQ(place, from)
	SHRQ(U8(3), from)
	ANDQ(U8(7), place)
	SHRXQ(place, Mem{Base: base, Index: from, Scale: 1}, word)
	SHLXQ(place, word, word)
	Label("scan")
	POPCNTQ(word, count)
	CMPQ(rank, count)
	JLT(LabelRef("found"))
	SUBQ(count, rank)
	ADDQ(U8(8), from)
	MOVQ(Mem{Base: base, Index: from, Scale: 1}, word)
	DECQ(left)
	JNE(LabelRef("scan"))
	Label("found")
	MOVQ(U64(1), one)
	SHLXQ(rank, one, one)
	PDEPQ(word, one, one)
	TZCNTQ(one, one)
	SHLQ(U8(3), from)
	ADDQ(from, one)
	MOVQ(one, Mem{Base: at})
	ADDQ(U8(8), at)
	ADDQ(U8(8), ranks)
	DECQ(n)
	JMP(LabelRef("next"))
	Label("done")
	RET()
}
