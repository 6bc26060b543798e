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
		for vectors := 1; vectors <= s.most(8, 16); vectors++ {
			edgeSum(s, vectors)
			edgeDot(s, vectors)
		}
	}
}

// edgeParams are the parameters of all kernels of this file, after the pointers to the rows.
const edgeParams = "off, idx *uint32, lists, heads int, xRow, xHead, ownHead uintptr, lanes int, " +
	"accumulate uint64"

// edgeText begins the function for a number of vectors. pointers are its first parameters.
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
	fetch *fetcher      // nil if no rows are shared
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
	if l.fetch != nil {
		l.fetch.begin(off)
	}
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
	if l.fetch != nil {
		l.fetch.list(list, listEnd)
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
	if l.fetch != nil {
		l.fetch.entry(next, at, x, xRow)
	}
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
	if l.fetch != nil {
		l.fetch.head()
	}
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

// linesAhead is how much of a row an entry fetches for each head.
const linesAhead = 2

// fetcher asks for the rows of the next list while the present one is computed, a part of a row for
// each entry and head, so that memory works while all heads but the first read from the cache. It
// does so only if every head reads the same of a row.
type fetcher struct {
	lines         int           // of a row
	ahead, column reg.GPVirtual // bytes to an entry of the next list, and into the row
}

// begin stores where the entries end in the place of off, which is in a register.
func (f *fetcher) begin(off reg.GPVirtual) {
	end, idx := loadGP(Param("lists")), loadGP(Param("idx"))
	MOVL(Mem{Base: off, Index: end, Scale: 4}, end.As32())
	LEAQ(Mem{Base: idx, Index: end, Scale: 4}, end)
	MOVQ(end, floatParam("off"))
	f.ahead, f.column = GP64(), GP64()
}

// list sets how far ahead the entries of a list look: by its length, within all entries. 0 is for
// no further.
func (f *fetcher) list(list, listEnd reg.GPVirtual) {
	XORL(f.column.As32(), f.column.As32())
	XORL(f.ahead.As32(), f.ahead.As32())
	CMPQ(floatParam("xHead"), U8(0))
	JNE(LabelRef("ahead"))
	length := GP64()
	MOVQ(listEnd, length)
	SUBQ(list, length)
	MOVQ(floatParam("off"), f.ahead)
	SUBQ(listEnd, f.ahead)
	CMPQ(length, f.ahead)
	CMOVQLT(length, f.ahead)
	Label("ahead")
}

// entry fetches for the entry at next; at is free.
func (f *fetcher) entry(next, at, x, xRow reg.GPVirtual) {
	TESTQ(f.ahead, f.ahead)
	JZ(LabelRef("fetched"))
	MOVL(Mem{Base: next, Index: f.ahead, Scale: 1}, at.As32())
	IMULQ(xRow, at)
	ADDQ(f.column, at)
	for line := range min(f.lines, linesAhead) {
		PREFETCHT0(Mem{Base: x, Index: at, Scale: 1, Disp: 64 * line})
	}
	Label("fetched")
}

// head goes on to the next lines of the rows, or stays at the last.
func (f *fetcher) head() {
	if f.lines <= linesAhead {
		return
	}
	ADDQ(U32(64*linesAhead), f.column)
	CMPQ(f.column, U32(64*(f.lines-linesAhead)))
	JLE(LabelRef("column"))
	MOVQ(U32(64*(f.lines-linesAhead)), f.column)
	Label("column")
}

func edgeSum(s isa, vectors int) {
	edgeText(s, "edgeSum", vectors, "out, x, weight *float32", "adds weighted rows")
	u := newSums(s, vectors)
	l := edgeLoop{fetch: &fetcher{lines: (vectors*s.bytes + 63) / 64}}
	l.run("out", "weight", func() {
		u.begin(Mem{Base: l.own})
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
	acc := s.vecs(min(vectors, 4))
	l := edgeLoop{fetch: &fetcher{lines: (vectors*s.bytes + 63) / 64}}
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
