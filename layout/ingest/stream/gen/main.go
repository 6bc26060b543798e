//go:build avogen

// Command gen writes the assembly of package stream; see the go:generate line in pairs.go.
package main

import (
	"os"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

func main() {
	os.Args = []string{"gen", "-out", "kernels_amd64.s", "-stubs", "kernels_amd64.go",
		"-pkg", "stream"}
	watch()
	Generate()
}

// lanes is the number of nodes in a register, and lessOrEqual a comparison of VPCMPUD.
const lanes, lessOrEqual = 16, 2

// watch marks the sources of a list whose edges are in a sample.
func watch() {
	TEXT("watchAVX512", NOSPLIT, "func(src []uint32, f *uint32, out *uint16)")
	Pragma("noescape")
	Doc("watchAVX512 is filter.markPlain.")
	src, n := Load(Param("src").Base(), GP64()), Load(Param("src").Len(), GP64())
	f, out := Load(Param("f"), GP64()), Load(Param("out"), GP64())
	field := func(i int) reg.VecVirtual {
		z := ZMM()
		VPBROADCASTD(Mem{Base: f, Disp: 4 * i}, z)
		return z
	}
	dst, dstHash, ends, pairs := field(0), field(1), field(2), field(3)
	add, first, second, third := field(4), field(5), field(6), field(7)
	all, ones := K(), GP64()
	MOVQ(I32(-1), ones)
	KMOVW(ones.As32(), all)
	Label("next")
	CMPQ(n, U8(lanes))
	JGE(LabelRef("whole"))
	TESTQ(n, n)
	JE(LabelRef("done"))
	BZHIL(n.(reg.GPVirtual).As32(), ones.As32(), ones.As32())
	KMOVW(ones.As32(), all)
	MOVQ(U32(lanes), n)
	Label("whole")
	v, h, t := ZMM(), ZMM(), ZMM()
	VMOVDQU32_Z(Mem{Base: src}, all, v)
	VPADDD(add, v, h)
	VPMULLD(first, h, h)
	VPSRLD(U8(15), h, t)
	VPXORD(t, h, h)
	VPMULLD(second, h, h)
	isEnd, isPair, isLoop := K(), K(), K()
	VPCMPUD(U8(lessOrEqual), ends, h, isEnd)
	VPADDD(dstHash, h, h)
	VPSRLD(U8(16), h, t)
	VPXORD(t, h, h)
	VPMULLD(third, h, h)
	VPCMPUD(U8(lessOrEqual), pairs, h, isPair)
	VPCMPEQD(dst, v, isLoop)
	KORW(isEnd, isPair, isPair)
	KORW(isLoop, isPair, isPair)
	KANDW(all, isPair, isPair)
	KMOVW(isPair, Mem{Base: out})
	ADDQ(U8(4*lanes), src)
	ADDQ(U8(2), out)
	SUBQ(U8(lanes), n)
	JNE(LabelRef("next"))
	Label("done")
	VZEROUPPER()
	RET()
}
