//go:build avogen

package main

import (
	"strings"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// sliceKernel is a kernel over slices of float32 that it goes through together, a vector at a time.
type sliceKernel struct {
	name, signature, doc string
	write                func(k *vectors)
}

// slicesFamily writes kernels for each instruction set.
func slicesFamily(kernels []sliceKernel) func() {
	return func() {
		for _, s := range isas {
			for _, k := range kernels {
				s.text(k.name, k.signature, k.doc)
				k.write(newVectors(s, k.signature))
			}
		}
	}
}

// text begins a function.
func (s isa) text(name, signature, doc string) {
	TEXT(name+s.name, NOSPLIT, signature)
	Pragma("noescape")
	Doc(name + s.name + " " + doc)
}

// vectors are the slices that a kernel goes through.
type vectors struct {
	isa
	base map[string]reg.GPVirtual // where each begins, by name
}

// newVectors loads where the slices among the parameters of a function begin.
func newVectors(s isa, signature string) *vectors {
	k := &vectors{isa: s, base: map[string]reg.GPVirtual{}}
	list, _, _ := strings.Cut(strings.TrimPrefix(signature, "func("), ")")
	var names []string // of one type
	for _, parameter := range strings.Split(list, ", ") {
		name, kind, typed := strings.Cut(parameter, " ")
		if names = append(names, name); !typed {
			continue
		}
		for _, name := range names {
			if kind == "[]float32" {
				k.base[name] = loadGP(Param(name).Base())
			}
		}
		names = nil
	}
	return k
}

// param returns a register filled with a float32 parameter.
func (k *vectors) param(name string) reg.VecVirtual { return k.broadcast(floatParam(name)) }

// over writes a loop over the length of a slice, and returns from the function.
func (k *vectors) over(name string, body func(a at)) {
	k.each(name, body)
	done()
}

// each writes a loop over the length of a slice.
func (k *vectors) each(name string, body func(a at)) { k.loop(loadGP(Param(name).Len()), body) }

// loop runs body over n values: first whole vectors, then the rest.
func (k *vectors) loop(n reg.GPVirtual, body func(a at)) {
	i, left := GP64(), GP64()
	XORL(i.As32(), i.As32())
	MOVQ(n, left)
	SUBQ(U32(k.lanes()), left)
	JL(LabelRef("rest"))
	Label("whole")
	body(at{k: k, i: i})
	ADDQ(U32(k.bytes), i)
	SUBQ(U32(k.lanes()), left)
	JGE(LabelRef("whole"))
	Label("rest")
	ADDQ(U32(k.lanes()), left)
	JZ(LabelRef("end"))
	rest := k.lowLanes(left)
	body(at{k: k, i: i, rest: &rest})
	Label("end")
}

func done() {
	VZEROUPPER()
	RET()
}

// at is where a step of a loop works: all lanes, or those of the rest.
type at struct {
	k    *vectors
	i    reg.GPVirtual // bytes from the begin of each slice
	rest *mask
}

// of returns where the step works in a slice.
func (a at) of(slice string) Mem { return Mem{Base: a.k.base[slice], Index: a.i, Scale: 1} }

func (a at) load(slice string) reg.VecVirtual {
	v := a.k.vec()
	a.k.loadRest(a.of(slice), a.rest, v)
	return v
}

func (a at) store(v reg.VecVirtual, slice string) {
	a.k.storeRest(v, a.rest, a.of(slice))
}

// minus returns the values of a slice, less those of another.
func (a at) minus(slice, other string) reg.VecVirtual {
	v := a.load(slice)
	VSUBPS(a.load(other), v, v)
	return v
}

// kept zeros the lanes of v that are not of the slices.
func (a at) kept(v reg.VecVirtual) {
	if a.rest != nil {
		a.k.keep(*a.rest, v)
	}
}

// greater returns the mask of the lanes in which a > b; a NaN is not greater.
func (s isa) greater(a, b reg.VecVirtual) mask {
	if s.wide {
		k := K()
		VCMPPS(U8(0x1e), b, a, k)
		return mask{k: k}
	}
	v := s.vec()
	VCMPPS(U8(0x1e), b, a, v)
	return mask{v: v}
}

// greaterInt returns the mask of the lanes in which a > b, as signed integers.
func (s isa) greaterInt(a, b reg.VecVirtual) mask {
	if s.wide {
		k := K()
		VPCMPGTD(b, a, k)
		return mask{k: k}
	}
	v := s.vec()
	VPCMPGTD(b, a, v)
	return mask{v: v}
}

// keep zeros the lanes of v that are not in the mask.
func (s isa) keep(k mask, v reg.VecVirtual) {
	if s.wide {
		VMOVAPS_Z(v, k.k, v)
	} else {
		VANDPS(k.v, v, v)
	}
}

func (s isa) xor(a, b reg.VecVirtual) {
	if s.wide {
		VPXORD(a, b, b)
	} else {
		VPXOR(a, b, b)
	}
}

func (s isa) copyOf(v reg.VecVirtual) reg.VecVirtual {
	c := s.vec()
	VMOVAPS(v, c)
	return c
}
