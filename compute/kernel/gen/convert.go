//go:build avogen

package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// convert writes the conversions between float32 and bfloat16. Those of AVX2 leave what is less
// than a vector.
func convert() {
	for _, s := range isas {
		narrow(s, s.name, s.roundWords)
		widen(s)
	}
	narrow(avx512, "Dot", nil)
}

// narrow writes a kernel that rounds floats: see refNarrow. round makes the lanes of a vector
// words; without it VCVTNEPS2BF16 does.
func narrow(s isa, set string, round func(v reg.VecVirtual)) {
	name := "narrow" + set
	TEXT(name, NOSPLIT, "func(out *uint16, x *float32, n int)")
	Pragma("noescape")
	Doc(name + " rounds n floats: see refNarrow.")
	out, x := loadGP(Param("out")), loadGP(Param("x"))
	s.eachVector(loadGP(Param("n")), func(rest *mask) {
		v := s.vec()
		s.loadRest(Mem{Base: x}, rest, v)
		to := Mem{Base: out}
		switch {
		case round == nil:
			half := YMM()
			narrowLanes(v, half)
			if rest == nil {
				VMOVDQU16(half, to)
			} else {
				VMOVDQU16(half, rest.k, to)
			}
		case !s.wide:
			round(v)
			high := XMM()
			VEXTRACTI128(U8(1), v, high)
			VPACKUSDW(high, v.AsX(), high)
			VMOVDQU(high, to)
		case rest == nil:
			round(v)
			VPMOVDW(v, to)
		default:
			round(v)
			VPMOVDW(v, rest.k, to)
		}
		ADDQ(U32(s.bytes), x)
		ADDQ(U32(s.bytes/2), out)
	})
}

// widen writes a kernel that makes floats of bfloat16.
func widen(s isa) {
	name := "widen" + s.name
	TEXT(name, NOSPLIT, "func(out *float32, x *uint16, n int)")
	Pragma("noescape")
	Doc(name + " makes n values floats.")
	out, x := loadGP(Param("out")), loadGP(Param("x"))
	s.eachVector(loadGP(Param("n")), func(rest *mask) {
		v := s.vec()
		if rest != nil {
			VPMOVZXWD_Z(Mem{Base: x}, rest.k, v)
			VPSLLD(U8(16), v, v)
			s.storeMasked(v, *rest, Mem{Base: out})
		} else {
			s.loadWide(Mem{Base: x}, v)
			s.store(v, Mem{Base: out})
		}
		ADDQ(U32(s.bytes/2), x)
		ADDQ(U32(s.bytes), out)
	})
}

// loadWide loads a vector of bfloat16 as floats.
func (s isa) loadWide(m Mem, v reg.VecVirtual) {
	VPMOVZXWD(m, v)
	VPSLLD(U8(16), v, v)
}

// eachVector runs body for n values, a vector at a time, and with AVX-512 for the rest.
func (s isa) eachVector(left reg.GPVirtual, body func(rest *mask)) {
	SUBQ(U32(s.lanes()), left)
	JL(LabelRef("rest"))
	Label("whole")
	body(nil)
	SUBQ(U32(s.lanes()), left)
	JGE(LabelRef("whole"))
	Label("rest")
	if s.wide {
		ADDQ(U32(s.lanes()), left)
		JZ(LabelRef("end"))
		k := s.lowLanes(left)
		body(&k)
		Label("end")
	}
	done()
}

// roundWords makes each float of v a bfloat16 in the low half of its lane: half of the last bit
// that stays is added, less a bit if that one is 0, so that ties go to even. A NaN keeps its upper
// bits and gets quiet; what has no exponent becomes zero.
func (s isa) roundWords(v reg.VecVirtual) {
	one, half := s.inMemory(1), s.inMemory(0x7fff)
	quiet, exponent, sign := s.inMemory(0x400000), s.inMemory(0x7f800000), s.inMemory(0x80000000)
	t, as := s.vec(), s.vec()
	VPSRLD(U8(16), v, t)
	if s.wide {
		VPANDD(one, t, t)
		VPADDD(half, t, t)
		VPADDD(v, t, t)
		nan, zero := K(), K()
		VCMPPS(U8(3), v, v, nan)
		VPTESTNMD(exponent, v, zero)
		VPORD(quiet, v, nan, t)
		VPANDD(sign, v, zero, t)
		VPSRLD(U8(16), t, v)
		return
	}
	k := s.vec()
	VPAND(one, t, t)
	VPADDD(half, t, t)
	VPADDD(v, t, t)
	VCMPPS(U8(3), v, v, k)
	VPOR(quiet, v, as)
	VBLENDVPS(k, as, t, t)
	VPAND(exponent, v, as)
	VPXOR(k, k, k)
	VPCMPEQD(k, as, k)
	VPAND(sign, v, as)
	VBLENDVPS(k, as, t, t)
	VPSRLD(U8(16), t, v)
}

var words = map[string]Mem{}

// inMemory returns a vector of words in memory, which takes no register.
func (s isa) inMemory(x uint32) Mem {
	return s.inMemoryEach(fmt.Sprintf("words%08x", x), func(int) uint32 { return x })
}

// inMemoryEach is such a vector of words by their lanes.
func (s isa) inMemoryEach(name string, of func(lane int) uint32) Mem {
	name += s.name
	m, ok := words[name]
	if !ok {
		m = GLOBL(name, RODATA|NOPTR)
		for i := range s.lanes() {
			DATA(4*i, U32(of(i)))
		}
		words[name] = m
	}
	return m
}
