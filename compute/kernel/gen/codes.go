//go:build avogen

package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// codes writes the kernels that look up codes of four bits in tables: see refScan of package pq.
func codes() {
	for _, s := range isas {
		s.text("scan", "func(masks *uint32, sums *uint16, codes, table *byte, groups, quads int, "+
			"stride uintptr, scale, least float32)", "scans groups of codes: see refScan.")
		masks, sums := loadGP(Param("masks")), loadGP(Param("sums"))
		row, table := loadGP(Param("codes")), loadGP(Param("table"))
		groups, quads := loadGP(Param("groups")), loadGP(Param("quads"))
		stride := loadGP(Param("stride"))
		scale, least := s.broadcast(floatParam("scale")), s.broadcast(floatParam("least"))
		nibbles := s.constant(0x0f0f0f0f)
		SHLQ(U8(6), quads) // bytes of codes
		Label("group")
		low, high := s.lookUp(row, table, quads, nibbles)
		bias := GP64()
		LEAQ(Mem{Base: row, Index: quads, Scale: 1}, bias)
		found := s.select16(low, sums, bias, 0, scale, least)
		rest := s.select16(high, sums, bias, 1, scale, least)
		SHLL(U8(16), rest)
		ORL(rest, found)
		MOVL(found, Mem{Base: masks})
		ADDQ(U8(4), masks)
		ADDQ(U8(64), sums)
		ADDQ(stride, row)
		DECQ(groups)
		JNZ(LabelRef("group"))
		done()
	}
}

// lookUp adds up what a table has for the codes of a group: the sums of the entries of the lower
// four bits, and of those of the upper ones. Each has two registers: sums of the entries with even
// numbers, in which those of their neighbors stand 8 bits higher, and of the odd ones.
func (s isa) lookUp(row, table, bytes reg.GPVirtual, nibbles reg.VecVirtual) (low,
	high [2]reg.VecVirtual) {
	for i := range low {
		low[i], high[i] = s.zero(), s.zero()
	}
	at := GP64()
	XORL(at.As32(), at.As32())
	Label("part")
	code, entries := s.vec(), s.vec()
	s.load(Mem{Base: row, Index: at, Scale: 1}, code)
	s.load(Mem{Base: table, Index: at, Scale: 1}, entries)
	upper := s.vec()
	VPSRLW(U8(4), code, upper)
	for _, half := range []struct {
		code reg.VecVirtual
		sums [2]reg.VecVirtual
	}{{code, low}, {upper, high}} {
		value := s.vec()
		s.and(nibbles, half.code, value)
		VPSHUFB(value, entries, value)
		VPADDW(value, half.sums[0], half.sums[0])
		VPSRLW(U8(8), value, value)
		VPADDW(value, half.sums[1], half.sums[1])
	}
	ADDQ(U8(s.bytes), at)
	CMPQ(at, bytes)
	JB(LabelRef("part"))
	return low, high
}

func (s isa) and(a, b, to reg.VecVirtual) {
	if s.wide {
		VPANDD(a, b, to)
	} else {
		VPAND(a, b, to)
	}
}

// select16 stores the sums of half a group, the first or the second, and returns a mask of those
// entries of which scale times the sum and the bias are above least.
func (s isa) select16(parts [2]reg.VecVirtual, sums, bias reg.GPVirtual, half int, scale,
	least reg.VecVirtual) reg.GPVirtual {
	even, odd := s.addQuarters(parts[0]), s.addQuarters(parts[1])
	shifted := XMM()
	VPSLLW(U8(8), odd, shifted)
	VPSUBW(shifted, even, even)
	first, second, words := XMM(), XMM(), YMM()
	VPUNPCKLWD(odd, even, first)
	VPUNPCKHWD(odd, even, second)
	VINSERTI128(U8(1), second, first.AsY(), words)
	VMOVDQU(words, Mem{Base: sums, Disp: 32 * half})
	found := GP32()
	if s.wide {
		value := ZMM()
		VPMOVZXWD(words, value)
		VCVTDQ2PS(value, value)
		VFMADD213PS(Mem{Base: bias, Disp: 64 * half}, scale, value)
		k := K()
		VCMPPS(U8(0x1e), least, value, k)
		KMOVW(k, found)
		return found
	}
	for i, eight := range []reg.VecVirtual{first, second} {
		value, mask := YMM(), GP32()
		VPMOVZXWD(eight, value)
		VCVTDQ2PS(value, value)
		VFMADD213PS(Mem{Base: bias, Disp: 64*half + 32*i}, scale, value)
		VCMPPS(U8(0x1e), least, value, value)
		VMOVMSKPS(value, mask)
		if i == 0 {
			MOVL(mask, found)
			continue
		}
		SHLL(U8(8), mask)
		ORL(mask, found)
	}
	return found
}

// addQuarters returns the sum of the quarters of a register of 64 bytes, or of the halves of one of
// 32.
func (s isa) addQuarters(v reg.VecVirtual) reg.VecVirtual {
	sum, rest := XMM(), XMM()
	if s.wide {
		upper := YMM()
		VEXTRACTI64X4(U8(1), v, upper)
		half := YMM()
		VPADDW(upper, v.AsY(), half)
		VEXTRACTI128(U8(1), half, rest)
		VPADDW(rest, half.AsX(), sum)
		return sum
	}
	VEXTRACTI128(U8(1), v, rest)
	VPADDW(rest, v.AsX(), sum)
	return sum
}
