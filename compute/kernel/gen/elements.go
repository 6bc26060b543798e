//go:build avogen

package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// elements writes what is computed of values on their way to bfloat16, in one pass: so that memory
// is read and written while it is computed. Of AVX-512 only.
func elements() {
	for _, round := range []bool{false, true} {
		for _, half := range []bool{false, true} {
			e := newElements(round)
			e.activate(half)
		}
		e := newElements(round)
		e.gradient()
	}
}

// The activations, by their numbers in package bf16.
const actReLU, actELU = 1, 2

// elementsKernel is one of these kernels.
type elementsKernel struct {
	s     isa
	round bool // by VCVTNEPS2BF16
	exp   *exp
	zero  reg.VecVirtual
	one   reg.VecVirtual
	drop  *dropper
}

func newElements(round bool) *elementsKernel { return &elementsKernel{s: avx512, round: round} }

// set names the instructions that round.
func (e *elementsKernel) set() string {
	if e.round {
		return "Dot"
	}
	return e.s.name
}

// load loads a vector of bfloat16 or of floats, or the rest of one, as floats.
func (e *elementsKernel) load(m Mem, half bool, rest *mask) reg.VecVirtual {
	v := e.s.vec()
	switch {
	case half && rest != nil:
		VPMOVZXWD_Z(m, rest.k, v)
	case half:
		VPMOVZXWD(m, v)
	default:
		e.s.loadRest(m, rest, v)
	}
	if half {
		VPSLLD(U8(16), v, v)
	}
	return v
}

// store rounds v and writes it.
func (e *elementsKernel) store(v reg.VecVirtual, m Mem, rest *mask) {
	if e.round {
		half := YMM()
		narrowLanes(v, half)
		if rest == nil {
			VMOVDQU16(half, m)
		} else {
			VMOVDQU16(half, rest.k, m)
		}
		return
	}
	e.s.roundWords(v)
	if rest == nil {
		VPMOVDW(v, m)
	} else {
		VPMOVDW(v, rest.k, m)
	}
}

// begin reads what draws need.
func (e *elementsKernel) begin() {
	e.zero, e.one, e.drop = e.s.zero(), e.s.float(1), newDropper(e.s)
	e.ifPlan("planned", e.drop.read)
}

// ifPlan does something with the plan of a dropout, if there is one.
func (e *elementsKernel) ifPlan(otherwise string, do func(plan reg.GPVirtual)) {
	plan := loadGP(Param("plan"))
	TESTQ(plan, plan)
	JZ(LabelRef(otherwise))
	do(plan)
	Label(otherwise)
}

// unless jumps to a label if a parameter is not v.
func unless(name string, v uint8, label string) {
	CMPQ(floatParam(name), U8(v))
	JNE(LabelRef(label))
}

// activate writes a kernel that computes activations of rows: see bf16.activateFunc.
func (e *elementsKernel) activate(half bool) {
	name, x := "activateFloats"+e.set(), "x *float32"
	if half {
		name, x = "activateHalf"+e.set(), "x *uint16"
	}
	TEXT(name, NOSPLIT, "func(out *uint16, "+x+", bias *float32, plan *uint32, rows, n int, "+
		"act uint64, first uint32)")
	Pragma("noescape")
	Doc(name + " computes activations: see activateFunc.")
	to, from := loadGP(Param("out")), loadGP(Param("x"))
	bytes := e.s.bytes
	if half {
		bytes /= 2
	}
	e.begin()
	e.exp = e.s.newExp()
	n, bias, left := loadGP(Param("n")), GP64(), GP64()
	Label("row")
	e.ifPlan("placed", e.drop.place)
	Load(Param("bias"), bias)
	MOVQ(n, left)
	step := func(rest *mask) {
		e.activateVector(to, from, bias, half, rest)
		if rest == nil {
			ADDQ(U32(bytes), from)
			ADDQ(U32(e.s.bytes/2), to)
		}
	}
	SUBQ(U32(e.s.lanes()), left)
	JL(LabelRef("rest"))
	Label("whole")
	step(nil)
	SUBQ(U32(e.s.lanes()), left)
	JGE(LabelRef("whole"))
	Label("rest")
	ADDQ(U32(e.s.lanes()), left)
	JZ(LabelRef("end"))
	k := e.s.lowLanes(left)
	step(&k)
	LEAQ(Mem{Base: to, Index: left, Scale: 2}, to)
	LEAQ(Mem{Base: from, Index: left, Scale: uint8(bytes / e.s.lanes())}, from)
	Label("end")
	ADDL(n.As32(), floatParam("first"))
	DECQ(floatParam("rows"))
	JNZ(LabelRef("row"))
	done()
}

// activateVector computes a vector of values, or the rest of one, and moves bias on.
func (e *elementsKernel) activateVector(to, from, bias reg.GPVirtual, half bool, rest *mask) {
	v := e.load(Mem{Base: from}, half, rest)
	TESTQ(bias, bias)
	JZ(LabelRef(inRest("biased", rest)))
	VADDPS(e.load(Mem{Base: bias}, false, rest), v, v)
	ADDQ(U32(e.s.bytes), bias)
	Label(inRest("biased", rest))
	unless("act", actReLU, inRest("notReLU", rest))
	VMAXPS(v, e.zero, v) // in this order a NaN stays
	Label(inRest("notReLU", rest))
	unless("act", actELU, inRest("notELU", rest))
	below := e.s.vec()
	VMINPS(v, e.zero, below)
	p := e.exp.of(below)
	VSUBPS(e.one, p, p)
	VMOVAPS(e.s.choose(e.s.greater(v, e.zero), v, p), v)
	Label(inRest("notELU", rest))
	e.dropAndStore(v, to, rest)
}

// dropAndStore drops values of v out, if there is a plan, and writes them.
func (e *elementsKernel) dropAndStore(v reg.VecVirtual, to reg.GPVirtual, rest *mask) {
	CMPQ(floatParam("plan"), U8(0))
	JEQ(LabelRef(inRest("dropped", rest)))
	e.drop.apply(v)
	Label(inRest("dropped", rest))
	e.store(v, Mem{Base: to}, rest)
}

// inRest returns a label, which the rest of a vector has of its own.
func inRest(label string, rest *mask) string {
	if rest != nil {
		return label + "Rest"
	}
	return label
}

// gradient writes a kernel that computes gradients of activations: see bf16.gradientFunc.
func (e *elementsKernel) gradient() {
	name := "activateGrad" + e.set()
	TEXT(name, NOSPLIT, "func(out *uint16, dy *float32, y *uint16, plan *uint32, n int, "+
		"act uint64, first uint32, factor float32)")
	Pragma("noescape")
	Doc(name + " computes gradients of activations: see gradientFunc.")
	to, dy, y := loadGP(Param("out")), loadGP(Param("dy")), loadGP(Param("y"))
	e.begin()
	e.ifPlan("placed", e.drop.place)
	factor := e.s.broadcast(floatParam("factor"))
	left := loadGP(Param("n"))
	e.s.eachVector(left, func(rest *mask) {
		v, old := e.load(Mem{Base: dy}, false, rest), e.load(Mem{Base: y}, true, rest)
		unless("act", actReLU, inRest("notReLU", rest))
		VMULPS(factor, v, v)
		e.s.keep(e.s.greater(old, e.zero), v)
		JMP(LabelRef(inRest("dropped", rest)))
		Label(inRest("notReLU", rest))
		VMULPS(factor, old, old)
		VMINPS(old, e.zero, old)
		VADDPS(e.one, old, old)
		VMULPS(v, old, v)
		e.dropAndStore(v, to, rest)
		ADDQ(U32(e.s.bytes), dy)
		ADDQ(U32(e.s.bytes/2), y)
		ADDQ(U32(e.s.bytes/2), to)
	})
}
