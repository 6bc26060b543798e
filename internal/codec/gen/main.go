//go:build avogen

// Command gen writes the assembly of package codec; see the go:generate line in deltas.go.
package main

import (
	"os"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
)

func main() {
	os.Args = []string{"gen", "-out", "deltas_amd64.s", "-stubs", "deltas_amd64.go",
		"-pkg", "codec"}
	decodeGroups()
	Generate()
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
