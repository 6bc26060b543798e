//go:build avogen

package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// weighted writes the sums of rows of bfloat16 times the weights of entries: of one head, or of
// heads side by side, of two heads that read the same values, and of rows that all heads add to.
func weighted() {
	for _, s := range isas {
		most := s.most(8, 16)
		for vectors := 1; vectors <= most; vectors++ {
			weightedAll(s, vectors)
		}
		for vectors := 1; vectors <= most/2; vectors++ {
			weightedPair(s, vectors)
		}
		for each := 1; each < most; each *= 2 {
			for heads := 2; heads*each <= most; heads *= 2 {
				weightedHeads(s, each, heads)
			}
		}
	}
}

// entrySums writes a kernel: see bf16.weightedFunc.
type entrySums struct {
	s     isa
	parts []*halfRows   // sums that lie outHead bytes apart
	row   reg.GPVirtual // of the entry
	next  reg.GPVirtual // that which is asked for
	value reg.GPVirtual // the weights of the entry
}

// newWeighted begins the function for a number of sums of a number of vectors each.
func newWeighted(s isa, name, doc string, sums, vectors int) *entrySums {
	TEXT(name, NOSPLIT, "func(out *float32, x *uint16, weight *float32, off, idx, "+
		"entry *uint32, lists, heads int, weightRow, xRow, xHead, outRow, outHead uintptr, "+
		"lanes int, accumulate uint64)")
	Pragma("noescape")
	Doc(fmt.Sprintf("%s %s: see weightedFunc.", name, doc))
	u := &entrySums{s: s, row: GP64(), next: GP64(), value: GP64()}
	u.parts = append(u.parts, newHalfRows(s, vectors))
	for len(u.parts) < sums {
		u.parts = append(u.parts, u.parts[0].more())
	}
	return u
}

// write writes the loop over lists. body is called for each entry.
func (u *entrySums) write(body func()) {
	off, idx, x := loadGP(Param("off")), loadGP(Param("idx")), loadGP(Param("x"))
	out, first, last := loadGP(Param("out")), GP64(), AllocLocal(8)
	lastEntry(off, idx, last)
	MOVL(Mem{Base: off}, first.As32())
	LEAQ(Mem{Base: idx, Index: first, Scale: 4}, first)
	p, end := GP64(), GP64()
	Label("list")
	listEntries(off, idx, p, end)
	for _, part := range u.parts {
		part.clear()
	}
	CMPQ(floatParam("accumulate"), U8(0))
	JEQ(LabelRef("begun"))
	u.each(out, (*halfRows).load)
	Label("begun")
	CMPQ(p, end)
	JEQ(LabelRef("store"))
	Label("entry")
	u.weights(p, idx, first)
	entryRows(p, x, last, u.row, u.next)
	body()
	ADDQ(U32(4), p)
	CMPQ(p, end)
	JNE(LabelRef("entry"))
	Label("store")
	u.each(out, (*halfRows).store)
	ADDQ(floatParam("outRow"), out)
	ADDQ(U32(4), off)
	DECQ(floatParam("lists"))
	JNZ(LabelRef("list"))
	VZEROUPPER()
	RET()
}

// each calls fn with each part and where it is.
func (u *entrySums) each(out reg.GPVirtual, fn func(part *halfRows, m Mem)) {
	m := Mem{Base: out}
	for i, part := range u.parts {
		if i > 0 {
			m.Index, m.Scale = loadGP(Param("outHead")), 1
		}
		fn(part, m)
	}
}

// weights finds the weights of the entry at p: by the number that entry has there, or in their
// order.
func (u *entrySums) weights(p, idx, first reg.GPVirtual) {
	MOVQ(p, u.value)
	CMPQ(floatParam("entry"), U8(0))
	JEQ(LabelRef("inOrder"))
	SUBQ(idx, u.value)
	ADDQ(floatParam("entry"), u.value)
	MOVL(Mem{Base: u.value}, u.value.As32())
	JMP(LabelRef("numbered"))
	Label("inOrder")
	SUBQ(first, u.value)
	SHRQ(U8(2), u.value)
	Label("numbered")
	IMULQ(floatParam("weightRow"), u.value)
	ADDQ(floatParam("weight"), u.value)
}

// weight returns the weight of head h of the entry.
func (u *entrySums) weight(h int) reg.VecVirtual {
	return u.s.broadcast(Mem{Base: u.value, Disp: 4 * h})
}

// add adds the vectors of the row, from one on, to the same ones of each part, times a weight each,
// and asks for as much of a row to come, as fetched does.
func (u *entrySums) add(from, to int, weights ...reg.VecVirtual) {
	product, half := u.s.vec(), u.s.bytes/2
	row := u.parts[0]
	for i := from; i < to; i++ {
		if i*half%64 == 0 {
			PREFETCHT1(Mem{Base: u.next, Disp: i * half})
		}
		row.vector(Mem{Base: u.row, Disp: i * half}, i)
		for k, w := range weights {
			VMULPS(row.tmp, w, product)
			VADDPS(product, u.parts[k].acc[i], u.parts[k].acc[i])
		}
	}
}

// weightedAll writes sums to which the heads of a row add one after the other.
func weightedAll(s isa, vectors int) {
	u := newWeighted(s, fmt.Sprintf("weightedAll%s_%d", s.name, vectors),
		fmt.Sprintf("sums heads of %d vectors", vectors), 1, vectors)
	heads := GP64()
	u.write(func() {
		Load(Param("heads"), heads)
		Label("head")
		u.add(0, vectors, u.weight(0))
		ADDQ(U32(4), u.value)
		ADDQ(floatParam("xHead"), u.row)
		ADDQ(floatParam("xHead"), u.next)
		DECQ(heads)
		JNZ(LabelRef("head"))
	})
}

// weightedPair writes the sums of two heads that read the same values.
func weightedPair(s isa, vectors int) {
	u := newWeighted(s, fmt.Sprintf("weightedPair%s_%d", s.name, vectors),
		fmt.Sprintf("sums two heads that read the same %d vectors", vectors), 2, vectors)
	u.write(func() { u.add(0, vectors, u.weight(0), u.weight(1)) })
}

// weightedHeads writes the sums of heads side by side, of whole vectors each.
func weightedHeads(s isa, each, heads int) {
	u := newWeighted(s, fmt.Sprintf("weightedHeads%s_%dx%d", s.name, heads, each),
		fmt.Sprintf("sums %d heads of %d vectors side by side", heads, each), 1, heads*each)
	u.write(func() {
		for h := range heads {
			u.add(h*each, (h+1)*each, u.weight(h))
		}
	})
}
