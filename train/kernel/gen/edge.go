//go:build avogen

package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// edge writes the sums and products of rows with a weight for each entry and head.
func edge() {
	for _, s := range isas {
		most := 8
		if s.wide {
			most = 16
		}
		for vectors := 1; vectors <= most; vectors++ {
			edgeSum(s, vectors)
			edgeDot(s, vectors)
		}
	}
}

// edgeParams are those of all kernels of this file, after the pointers to the rows.
const edgeParams = "off, idx *uint32, lists, heads int, xRow, xHead, ownHead uintptr, lanes int, " +
	"accumulate uint64"

// edgeText begins a function of so many vectors. pointers are the first parameters.
func edgeText(s isa, name string, vectors int, pointers, doc string) {
	text(s, name, vectors, "func("+pointers+", "+edgeParams+")", doc+": see edgeFunc.")
}

// scoreText begins a function that has att too.
func scoreText(s isa, name string, vectors int, doc string) {
	text(s, name, vectors, "func(own, x, values *float32, "+edgeParams+
		", att, out, sum *float32, slope float32)", doc+": see scoreFunc.")
}

func text(s isa, name string, vectors int, signature, doc string) {
	name = fmt.Sprintf("%s%s_%d", name, s.name, vectors)
	TEXT(name, NOSPLIT, signature)
	Pragma("noescape")
	Doc(fmt.Sprintf("%s works on rows of %d vectors. It %s", name, vectors, doc))
}

// edgeLoop is the loop over lists, heads and entries.
type edgeLoop struct {
	lines int           // of the cache, of a row that may be shared; 0 if none is
	own   reg.GPVirtual // the list's own row at the head: to write, or to multiply with
	value reg.GPVirtual // where the edge value of the entry is
	heads reg.GPVirtual // that are left
	row   Mem           // where the row of the entry has the head's values
}

// run writes the loop: begin and end are called for each list and head, and entry for each entry.
// Lists without entries skip from begin to the label "store", which end defines if it must.
func (l *edgeLoop) run(own, value string, begin, entry, end func()) {
	l.own = loadGP(Param(own))
	values, off := loadGP(Param(value)), loadGP(Param("off"))
	xRow, step := loadGP(Param("xRow")), loadGP(Param("heads"))
	SHLQ(U8(2), step)
	list, listEnd, heads, x := GP64(), GP64(), GP64(), GP64()
	at, next := GP64(), GP64()
	l.value, l.heads = GP64(), heads
	l.row = Mem{Base: x, Index: at, Scale: 1}
	Label("list")
	MOVL(Mem{Base: off}, list.As32())
	MOVL(Mem{Base: off, Disp: 4}, listEnd.As32())
	idx := loadGP(Param("idx"))
	LEAQ(Mem{Base: idx, Index: list, Scale: 4}, list)
	LEAQ(Mem{Base: idx, Index: listEnd, Scale: 4}, listEnd)
	if l.lines > 0 {
		l.fetch(listEnd, off, xRow)
	}
	Load(Param("heads"), heads)
	Load(Param("x"), x)
	Label("head")
	MOVQ(list, next)
	MOVQ(values, l.value)
	begin()
	CMPQ(next, listEnd)
	JEQ(LabelRef("store"))
	Label("entry")
	MOVL(Mem{Base: next}, at.As32())
	IMULQ(xRow, at)
	entry()
	ADDQ(U32(4), next)
	ADDQ(step, l.value)
	CMPQ(next, listEnd)
	JNE(LabelRef("entry"))
	end()
	ADDQ(floatParam("ownHead"), l.own)
	ADDQ(floatParam("xHead"), x)
	ADDQ(U32(4), values)
	DECQ(heads)
	JNZ(LabelRef("head"))
	// values is at the first entry's end now: the list's end is the others' further.
	SUBQ(step, values)
	SUBQ(list, listEnd)
	SHRQ(U8(2), listEnd)
	IMULQ(step, listEnd)
	ADDQ(listEnd, values)
	ADDQ(U32(4), off)
	DECQ(floatParam("lists"))
	JNZ(LabelRef("list"))
	VZEROUPPER()
	RET()
}

// fetch asks for the rows of the next list, so that they come while all heads but the first read
// from the cache: only if every head reads the same of a row. The next list begins at begin.
func (l *edgeLoop) fetch(begin, off, xRow reg.GPVirtual) {
	xHead := loadGP(Param("xHead"))
	TESTQ(xHead, xHead)
	JNZ(LabelRef("fetched"))
	CMPQ(floatParam("lists"), U8(1))
	JEQ(LabelRef("fetched"))
	end, next, x, at := GP64(), GP64(), loadGP(Param("x")), GP64()
	MOVL(Mem{Base: off, Disp: 8}, end.As32())
	Load(Param("idx"), next)
	LEAQ(Mem{Base: next, Index: end, Scale: 4}, end)
	MOVQ(begin, next)
	JMP(LabelRef("more"))
	Label("fetch")
	MOVL(Mem{Base: next}, at.As32())
	IMULQ(xRow, at)
	for line := 0; line < l.lines; line++ {
		PREFETCHT0(Mem{Base: x, Index: at, Scale: 1, Disp: 64 * line})
	}
	ADDQ(U32(4), next)
	Label("more")
	CMPQ(next, end)
	JNE(LabelRef("fetch"))
	Label("fetched")
}

func edgeSum(s isa, vectors int) {
	edgeText(s, "edgeSum", vectors, "out, x, weight *float32", "adds weighted rows")
	u := newSums(s, vectors)
	l := edgeLoop{lines: (vectors*s.bytes + 63) / 64}
	l.run("out", "weight", func() {
		u.clear()
		accumulate := loadGP(Param("accumulate"))
		TESTQ(accumulate, accumulate)
		JZ(LabelRef("begun"))
		u.load(Mem{Base: l.own})
		Label("begun")
	}, func() {
		u.addTimes(l.row, s.broadcast(Mem{Base: l.value}))
	}, func() {
		Label("store")
		u.store(Mem{Base: l.own})
	})
}

// edgeDot multiplies a list's own row with those of its entries. Four sums at most run beside each
// other.
func edgeDot(s isa, vectors int) {
	edgeText(s, "edgeDot", vectors, "own, x, dw *float32", "multiplies rows")
	u := newSums(s, vectors)
	acc := make([]reg.VecVirtual, min(vectors, 4))
	for i := range acc {
		acc[i] = s.vec()
	}
	l := edgeLoop{lines: (vectors*s.bytes + 63) / 64}
	l.run("own", "dw", func() { u.load(Mem{Base: l.own}) }, func() {
		i := 0
		add := func(m Op, v reg.VecVirtual) {
			if to := acc[i%len(acc)]; i < len(acc) {
				VMULPS(m, v, to)
			} else {
				VFMADD231PS(m, v, to)
			}
			i++
		}
		u.each(l.row, func(m Mem, v reg.VecVirtual) { add(m, v) },
			func(m Mem, v reg.VecVirtual) {
				s.loadMasked(m, u.last, u.tmp)
				add(u.tmp, v)
			})
		storeDot(s, acc, Mem{Base: l.value})
	}, func() { Label("store") })
}

// storeDot adds up all lanes of some sums and writes the total to m, or adds it there.
func storeDot(s isa, acc []reg.VecVirtual, m Mem) {
	for ; len(acc) > 1; acc = acc[:(len(acc)+1)/2] {
		half := (len(acc) + 1) / 2
		for i := half; i < len(acc); i++ {
			VADDPS(acc[i], acc[i-half], acc[i-half])
		}
	}
	x := s.fold(acc[0], reg.Y0, reg.Y1, func(a, b, to reg.Register) { VADDPS(a, b, to) })
	CMPQ(floatParam("accumulate"), U8(0))
	JEQ(LabelRef("write"))
	VADDSS(m, x, x)
	Label("write")
	VMOVSS(x, m)
}
