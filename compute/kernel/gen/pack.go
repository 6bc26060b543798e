//go:build avogen

package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// pack writes a kernel that copies rows to panels of width values: see kernel.packFunc. A panel of
// two vectors feeds the tiles' rows of B, one of a tile's rows their columns of A.
func pack(s isa, width int) {
	TEXT(fmt.Sprintf("pack%s_%d", s.name, width), NOSPLIT,
		"func(panels, src *float32, rows, n int, stride, panel uintptr)")
	Pragma("noescape")
	Doc(fmt.Sprintf("pack%s_%d copies rows to panels of %d values: see packFunc.", s.name, width,
		width))
	dst, src := loadGP(Param("panels")), loadGP(Param("src"))
	rows, n := loadGP(Param("rows")), loadGP(Param("n"))
	stride, panel := loadGP(Param("stride")), loadGP(Param("panel"))
	masks := packMasks(s, n, width)
	from, to, left := GP64(), GP64(), GP64()
	Label("row")
	MOVQ(src, from)
	MOVQ(dst, to)
	MOVQ(n, left)
	SUBQ(U32(width), left)
	JL(LabelRef("rest"))
	Label("panel")
	if width%s.lanes() == 0 {
		a, b := s.vec(), s.vec()
		s.load(Mem{Base: from}, a)
		s.load(Mem{Base: from, Disp: s.bytes}, b)
		s.store(a, Mem{Base: to})
		s.store(b, Mem{Base: to, Disp: s.bytes})
	} else if s.wide {
		a := s.vec()
		s.loadMasked(Mem{Base: from}, masks[2], a)
		s.storeMasked(a, masks[2], Mem{Base: to})
	} else {
		copySix(from, to)
	}
	ADDQ(U32(4*width), from)
	ADDQ(panel, to)
	SUBQ(U32(width), left)
	JGE(LabelRef("panel"))
	Label("rest")
	ADDQ(U32(width), left)
	JZ(LabelRef("next"))
	packRest(s, width, masks, from, to)
	Label("next")
	ADDQ(stride, src)
	ADDQ(U32(4*width), dst)
	DECQ(rows)
	JNZ(LabelRef("row"))
	VZEROUPPER()
	RET()
}

// packMasks returns the masks of the two vectors of the last panel, and of a panel that is not a
// whole number of vectors.
func packMasks(s isa, n reg.GPVirtual, width int) [3]mask {
	rest, t := GP64(), GP64()
	MOVQ(n, reg.RAX)
	XORL(reg.EDX, reg.EDX)
	MOVQ(U32(width), t)
	DIVQ(t)
	MOVQ(reg.RDX, rest)
	first, second, zero := GP64(), GP64(), GP64()
	MOVQ(U32(s.lanes()), first)
	CMPQ(rest, first)
	CMOVQLT(rest, first)
	XORL(zero.As32(), zero.As32())
	MOVQ(rest, second)
	SUBQ(U32(s.lanes()), second)
	CMOVQLT(zero, second)
	masks := [3]mask{s.lowLanes(first), s.lowLanes(second)}
	if width%s.lanes() != 0 {
		whole := GP64()
		MOVQ(U32(width), whole)
		masks[2] = s.lowLanes(whole)
	}
	return masks
}

// packRest copies the columns of the last panel and pads them with zeros.
func packRest(s isa, width int, masks [3]mask, from, to reg.GPVirtual) {
	a := s.vec()
	s.loadMasked(Mem{Base: from}, masks[0], a)
	if width%s.lanes() != 0 {
		s.storeMasked(a, masks[2], Mem{Base: to})
		return
	}
	b := s.vec()
	s.loadMasked(Mem{Base: from, Disp: s.bytes}, masks[1], b)
	s.store(a, Mem{Base: to})
	s.store(b, Mem{Base: to, Disp: s.bytes})
}

// copySix copies six values with AVX2, whose masked stores take 12 and more cycles each.
func copySix(from, to reg.GPVirtual) {
	four, two := XMM(), XMM()
	VMOVUPS(Mem{Base: from}, four)
	VMOVSD(Mem{Base: from, Disp: 16}, two)
	VMOVUPS(four, Mem{Base: to})
	VMOVSD(two, Mem{Base: to, Disp: 16})
}
