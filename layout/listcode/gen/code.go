//go:build avogen

package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// bitWriter is where bits are written: used bits of the byte at out are, and those after it are 0.
type bitWriter struct{ buf, out, used, t reg.GPVirtual }

// loadWriter loads a bitWriter from the parameters buf and at.
func loadWriter() *bitWriter {
	w := &bitWriter{buf: GP64(), out: GP64(), used: GP64(), t: GP64()}
	Load(Param("buf"), w.buf)
	Load(Param("at"), w.used)
	MOVQ(w.buf, w.out)
	w.pass()
	return w
}

// pass moves out to the byte in which the used bits end.
func (w *bitWriter) pass() {
	MOVQ(w.used, w.t)
	SHRQ(U8(3), w.t)
	ADDQ(w.t, w.out)
	ANDQ(U8(7), w.used)
}

// field writes a value, which it spoils, of up to 57 bits.
func (w *bitWriter) field(v reg.GPVirtual, width Mem) {
	MOVBLZX(Mem{Base: w.out}, w.t.As32())
	SHLXQ(w.used, v, v)
	ORQ(w.t, v)
	MOVQ(v, Mem{Base: w.out})
	MOVB(U8(0), Mem{Base: w.out, Disp: 8}) // all 64 bits may be used
	ADDQ(width, w.used)
	w.pass()
}

// end returns the place after the last bit.
func (w *bitWriter) end() {
	SUBQ(w.buf, w.out)
	LEAQ(Mem{Base: w.used, Index: w.out, Scale: 8}, w.out)
	Store(w.out, Return("end"))
}

// lowBits writes the low bits of ids from src to end, less the first of the list, two at a time.
type lowBits struct{ src, end, first2, mask2, low reg.GPVirtual }

func (l *lowBits) write(w *bitWriter, word, d reg.GPVirtual, name string) {
	MOVBLZX(Mem{Base: w.out}, word.As32())
	Label(name + "Pair")
	LEAQ(Mem{Base: l.src, Disp: 8}, d)
	CMPQ(d, l.end)
	JA(LabelRef(name + "Single"))
	MOVQ(Mem{Base: l.src}, d)
	SUBQ(l.first2, d) // no id is below the first, so nothing is borrowed from the second
	PEXTQ(l.mask2, d, d)
	SHLXQ(w.used, d, d)
	ORQ(d, word)
	MOVQ(word, Mem{Base: w.out})
	LEAQ(Mem{Base: w.used, Index: l.low, Scale: 2}, w.used)
	MOVQ(w.used, d)
	ANDQ(U8(0x38), d)
	SHRXQ(d, word, word)
	w.pass()
	ADDQ(U8(8), l.src)
	JMP(LabelRef(name + "Pair"))
	Label(name + "Single")
	CMPQ(l.src, l.end)
	JE(LabelRef(name + "Done"))
	MOVL(Mem{Base: l.src}, d.As32())
	SUBL(l.first2.As32(), d.As32())
	BZHIQ(l.low, d, d)
	SHLXQ(w.used, d, d)
	ORQ(d, word)
	MOVQ(word, Mem{Base: w.out})
	ADDQ(l.low, w.used)
	w.pass()
	ADDQ(U8(4), l.src)
	Label(name + "Done")
}

// writeLow writes the low bits of ids.
func writeLow() {
	TEXT("writeLowBMI", NOSPLIT, "func(ids []uint32, first2, mask2, low uint64, buf *byte, "+
		"at uint64) (end uint64)")
	Pragma("noescape")
	Doc("writeLowBMI writes the low bits, up to 28, of each id less the first of the list, which",
		"first2 has twice, from bit at of buf on, and returns where they end. The byte there has",
		"zeros from that bit on, and 16 bytes after the end are spoiled.")
	l := &lowBits{src: GP64(), end: GP64(), first2: GP64(), mask2: GP64(), low: GP64()}
	Load(Param("ids").Base(), l.src)
	Load(Param("ids").Len(), l.end)
	LEAQ(Mem{Base: l.src, Index: l.end, Scale: 4}, l.end)
	Load(Param("first2"), l.first2)
	Load(Param("mask2"), l.mask2)
	Load(Param("low"), l.low)
	w := loadWriter()
	l.write(w, GP64(), GP64(), "low")
	w.end()
	RET()
}

// Where parameters of writeCells are.
var (
	writePer   = NewParamAddr("per", 48)
	writeUpper = NewParamAddr("upper", 56)
	writeBase  = NewParamAddr("base", 64)
)

// writeCells writes cells.
func writeCells() {
	TEXT("writeCellsBMI", NOSPLIT, "func(ids []uint32, first2, mask2, low, per, upper, "+
		"base uint64, buf *byte, at uint64) (end uint64)")
	Pragma("noescape")
	Doc("writeCellsBMI is cells.append without the head, from bit at of buf on: see writeLowBMI.",
		"There is one id at least.")
	l := &lowBits{src: GP64(), end: GP64(), first2: GP64(), mask2: GP64(), low: GP64()}
	n, word, bias, d := GP64(), GP64(), GP64(), GP64()
	Load(Param("ids").Base(), l.src)
	Load(Param("ids").Len(), n)
	Load(Param("first2"), l.first2)
	Load(Param("mask2"), l.mask2)
	Load(Param("low"), l.low)
	w := loadWriter()
	Label("cell")
	MOVQ(writePer, d)
	CMPQ(n, d)
	CMOVQLT(n, d)
	SUBQ(d, n)
	LEAQ(Mem{Base: l.src, Index: d, Scale: 4}, l.end)
	MOVL(Mem{Base: l.src}, d.As32())
	SUBL(l.first2.As32(), d.As32())
	SHRXL(l.low.As32(), d.As32(), d.As32())
	MOVQ(d, bias)
	NEGQ(bias)
	w.field(d, writeBase)
	// A one for each id, at its high bits, less those of the first of the cell, and its number.
	XORL(word.As32(), word.As32())
	q := w.t
	MOVQ(l.src, q)
	Label("one")
	MOVL(Mem{Base: q}, d.As32())
	SUBL(l.first2.As32(), d.As32())
	SHRXL(l.low.As32(), d.As32(), d.As32())
	ADDQ(bias, d)
	BTSQ(d, word)
	INCQ(bias)
	ADDQ(U8(4), q)
	CMPQ(q, l.end)
	JB(LabelRef("one"))
	w.field(word, writeUpper)
	l.write(w, word, d, "cells")
	TESTQ(n, n)
	JNE(LabelRef("cell"))
	w.end()
	RET()
}

// Where parameters of readCells are.
var (
	readPer   = NewParamAddr("per", 24)
	readUpper = NewParamAddr("upper", 32)
	readBase  = NewParamAddr("base", 40)
)

// readCells decodes cells.
func readCells() {
	TEXT("readCellsBMI", NOSPLIT, "func(b *byte, at, low, per, upper, base uint64, ids []uint32, "+
		"first uint32) (ok bool)")
	Pragma("noescape")
	Doc("readCellsBMI is cells.decode of one id at least; not ok if the cells are damaged.")
	b, at, low := Load(Param("b"), GP64()), Load(Param("at"), GP64()), GP64()
	Load(Param("low"), low)
	out, n := Load(Param("ids").Base(), GP64()), GP64()
	Load(Param("ids").Len(), n)
	first, prev := GP64(), GP64()
	Load(Param("first"), first.As32())
	MOVL(first.As32(), prev.As32())
	count, t, word, high, base := GP64(), GP64(), GP64(), GP64(), GP64()
	Label("cell")
	MOVQ(readPer, count)
	CMPQ(n, count)
	CMOVQLT(n, count)
	SUBQ(count, n)
	field := func(width Mem, to reg.GPVirtual) {
		MOVQ(at, t)
		loadBits(b, t, to)
		MOVQ(width, t)
		BZHIQ(t, to, to)
		ADDQ(t, at)
	}
	field(readBase, base)
	field(readUpper, high)
	TESTQ(U32(1), high)
	JE(LabelRef("damaged"))
	POPCNTQ(high, t)
	CMPQ(t, count)
	JNE(LabelRef("damaged"))
	Label("id")
	MOVQ(at, t)
	loadBits(b, t, word)
	BZHIQ(low, word, word)
	TZCNTQ(high, t)
	BLSRQ(high, high)
	ADDQ(base, t)
	DECQ(base)
	SHLXQ(low, t, t)
	ADDL(word.As32(), t.As32())
	ADDL(first.As32(), t.As32())
	CMPL(t.As32(), prev.As32())
	JB(LabelRef("damaged"))
	MOVL(t.As32(), prev.As32())
	MOVL(t.As32(), Mem{Base: out})
	ADDQ(U8(4), out)
	ADDQ(low, at)
	DECQ(count)
	JNE(LabelRef("id"))
	TESTQ(n, n)
	JNE(LabelRef("cell"))
	MOVB(U8(1), t.As8())
	Store(t.As8(), Return("ok"))
	RET()
	Label("damaged")
	XORL(t.As32(), t.As32())
	Store(t.As8(), Return("ok"))
	RET()
}

// widest measures cells.
func widest() {
	TEXT("widestBMI", NOSPLIT, "func(ids []uint32, first, per, low, most uint64) uint64")
	Pragma("noescape")
	Doc("widestBMI is widestPlain of one id at least.")
	src, n := Load(Param("ids").Base(), GP64()), Load(Param("ids").Len(), GP64())
	first, per := Load(Param("first"), GP64()), Load(Param("per"), GP64())
	low, most := Load(Param("low"), GP64()), Load(Param("most"), GP64())
	a, b, wide := GP64(), GP64(), GP64()
	XORL(wide.As32(), wide.As32())
	Label("cell")
	CMPQ(n, per)
	CMOVQLT(n, per)
	MOVL(Mem{Base: src}, a.As32())
	SUBL(first.(reg.GPVirtual).As32(), a.As32())
	SHRXL(low.(reg.GPVirtual).As32(), a.As32(), a.As32())
	MOVL(Mem{Base: src, Index: per, Scale: 4, Disp: -4}, b.As32())
	SUBL(first.(reg.GPVirtual).As32(), b.As32())
	SHRXL(low.(reg.GPVirtual).As32(), b.As32(), b.As32())
	SUBQ(a, b)
	ADDQ(per, b)
	CMPQ(b, wide)
	CMOVQGT(b, wide)
	CMPQ(wide, most)
	JA(LabelRef("done"))
	LEAQ(Mem{Base: src, Index: per, Scale: 4}, src)
	SUBQ(per, n)
	JNE(LabelRef("cell"))
	Label("done")
	Store(wide, ReturnIndex(0))
	RET()
}
