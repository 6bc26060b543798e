//go:build avogen

// Command gen writes the assembly of package codec; see the go:generate line in codec.go.
package main

import (
	"os"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

func main() {
	os.Args = []string{"gen", "-out", "kernels_amd64.s", "-stubs", "kernels_amd64.go",
		"-pkg", "codec"}
	decodeGroups()
	maxOf()
	Generate()
}

// maxOf writes the largest of whole groups of 32 values: four vectors at a time, since a maximum
// takes a cycle and two can begin in one.
func maxOf() {
	TEXT("maxAVX2", NOSPLIT, "func(groups int, values *uint32) uint32")
	Pragma("noescape")
	Doc("maxAVX2 returns the largest of 32*groups values, at least one group.")
	n, at := Load(Param("groups"), GP64()), Load(Param("values"), GP64())
	var most [4]reg.VecVirtual
	for i := range most {
		most[i] = YMM()
		VPXOR(most[i], most[i], most[i])
	}
	Label("next")
	for i := range most {
		VPMAXUD(Mem{Base: at, Disp: 32 * i}, most[i], most[i])
	}
	ADDQ(U8(128), at)
	DECQ(n)
	JNE(LabelRef("next"))
	VPMAXUD(most[1], most[0], most[0])
	VPMAXUD(most[3], most[2], most[2])
	VPMAXUD(most[2], most[0], most[0])
	half, out := XMM(), GP32()
	VEXTRACTI128(U8(1), most[0], half)
	VPMAXUD(half, most[0].AsX(), half)
	swapped := XMM()
	VPSHUFD(U8(0x4e), half, swapped)
	VPMAXUD(swapped, half, half)
	VPSHUFD(U8(0xb1), half, swapped)
	VPMAXUD(swapped, half, half)
	VMOVD(half, out)
	VZEROUPPER()
	Store(out, ReturnIndex(0))
	RET()
}

// decodeGroups writes the decoder of whole groups of four. A group is one shuffle that puts the
// bytes of its deltas into 32-bit lanes, and a prefix sum of two shifts and adds. The place of the
// next group depends on nothing but a table of lengths, so groups overlap in the CPU.
func decodeGroups() {
	TEXT("decodeGroupsAVX", NOSPLIT,
		"func(dst []uint32, ctrl, data []byte, t *uint8) (groups, used int)")
	Pragma("noescape")
	Doc("decodeGroupsAVX decodes groups while ctrl, dst and 16 readable bytes of data last.")
	dst := Load(Param("dst").Base(), GP64())
	most := Load(Param("dst").Len(), GP64())
	ctrl := Load(Param("ctrl").Base(), GP64())
	n := Load(Param("ctrl").Len(), GP64())
	data := Load(Param("data").Base(), GP64())
	last := Load(Param("data").Len(), GP64())
	table := Load(Param("t"), GP64())
	SHRQ(U8(2), most)
	CMPQ(most, n)
	CMOVQLT(most, n)
	SUBQ(U8(16), last) // the last offset that 16 bytes can be read at

	i, used := GP64(), GP64()
	XORQ(i, i)
	XORQ(used, used)
	sum, v, t := XMM(), XMM(), XMM()
	VPXOR(sum, sum, sum)
	code, row := GP64(), GP64()
	Label("loop")
	CMPQ(i, n)
	JGE(LabelRef("done"))
	CMPQ(used, last)
	JG(LabelRef("done"))
	MOVBQZX(Mem{Base: ctrl, Index: i, Scale: 1}, code)
	MOVQ(code, row)
	SHLQ(U8(4), row)
	VMOVDQU(Mem{Base: data, Index: used, Scale: 1}, v)
	VPSHUFB(Mem{Base: table, Index: row, Scale: 1}, v, v)
	VPSLLDQ(U8(4), v, t)
	VPADDD(t, v, v)
	VPSLLDQ(U8(8), v, t)
	VPADDD(t, v, v)
	VPADDD(sum, v, v)
	VMOVDQU(v, Mem{Base: dst})
	ADDQ(U8(16), dst)
	VPSHUFD(U8(0xff), v, sum)
	MOVBQZX(Mem{Base: table, Disp: 256 * 16, Index: code, Scale: 1}, code)
	ADDQ(code, used)
	INCQ(i)
	JMP(LabelRef("loop"))
	Label("done")
	Store(i, ReturnIndex(0))
	Store(used, ReturnIndex(1))
	RET()
}
