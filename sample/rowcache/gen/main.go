//go:build avogen

package main

import (
	"os"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

func main() {
	os.Args = []string{"gen", "-out", "kernels_amd64.s", "-stubs", "kernels_amd64.go",
		"-pkg", "rowcache"}
	askRows()
	streamRows("streamRows", false)
	streamRows("streamRowsTo", true)
	Generate()
}

const (
	lineBytes = 64
	vecBytes  = 32
)

func param(name string) reg.GPVirtual {
	r := GP64()
	Load(Param(name), r)
	return r
}

// askRows asks for the lines of rows in the second cache of a core: it waits for more of them at a
// time than the first, of which copies after PREFETCHT0 took .75 of the time without, and after
// PREFETCHT1 .4, on an AMD EPYC (Zen 4).
func askRows() {
	TEXT("askRows", NOSPLIT, "func(table *byte, rows *uint32, n, width uint64)")
	Pragma("noescape")
	Doc("askRows asks for the memory of n rows of so many bytes, at least one row of one.")
	table, rows, n, width := param("table"), param("rows"), param("n"), param("width")
	at, end := GP64(), GP64()
	Label("row")
	rowAt(at, rows, table, width)
	LEAQ(Mem{Base: at, Index: width, Scale: 1}, end)
	Label("line")
	PREFETCHT1(Mem{Base: at})
	ADDQ(U8(lineBytes), at)
	CMPQ(at, end)
	JB(LabelRef("line"))
	PREFETCHT1(Mem{Base: end, Disp: -1}) // one more line if rows begin within one
	ADDQ(U8(4), rows)
	DECQ(n)
	JNE(LabelRef("row"))
	RET()
}

// rowAt is where the row begins whose number is at rows.
func rowAt(at, rows, table, width reg.GPVirtual) {
	MOVL(Mem{Base: rows}, at.As32())
	IMULQ(width, at)
	ADDQ(table, at)
}

// streamRows copies rows past the caches, and asks for others meanwhile. With vectors of 16 bytes
// it took a fifth more time, with those of 64 as much.
func streamRows(name string, to bool) {
	args, doc := "", " i of out."
	if to {
		args, doc = ", to *uint32", " to[i] of out."
	}
	TEXT(name, NOSPLIT, "func(out, table *byte, rows, last *uint32, n, width, ahead uint64"+args+
		")")
	Pragma("noescape")
	Doc(name+" copies row rows[i] of table to row"+doc,
		"There are n rows, one at least, of width bytes, which 32 divides as it does the place of",
		"out; meanwhile that is asked for which is so many ahead of each, up to the one at last.")
	out, table, rows, last := param("out"), param("table"), param("rows"), param("last")
	n, width, ahead := param("n"), param("width"), param("ahead")
	dst, places := out, reg.GPVirtual(nil)
	if to {
		dst, places = GP64(), param("to")
	}
	from, end, next, ask := GP64(), GP64(), GP64(), GP64()
	Label("row")
	rowAt(from, rows, table, width)
	LEAQ(Mem{Base: rows, Index: ahead, Scale: 4}, next)
	CMPQ(next, last)
	CMOVQHI(last, next)
	rowAt(ask, next, table, width)
	if to {
		rowAt(dst, places, out, width)
		ADDQ(U8(4), places)
	}
	LEAQ(Mem{Base: from, Index: width, Scale: 1}, end)
	streamRow(dst, from, end, ask)
	ADDQ(U8(4), rows)
	DECQ(n)
	JNE(LabelRef("row"))
	SFENCE()
	VZEROUPPER()
	RET()
}

// streamRow copies the bytes from … end, and asks for as many.
func streamRow(dst, from, end, ask reg.GPVirtual) {
	low, high := YMM(), YMM()
	Label("line")
	PREFETCHT1(Mem{Base: ask})
	VMOVDQU(Mem{Base: from}, low)
	VMOVNTDQ(low, Mem{Base: dst})
	ADDQ(U8(vecBytes), dst)
	ADDQ(U8(vecBytes), from)
	CMPQ(from, end)
	JE(LabelRef("copied"))
	VMOVDQU(Mem{Base: from}, high)
	VMOVNTDQ(high, Mem{Base: dst})
	ADDQ(U8(vecBytes), dst)
	ADDQ(U8(vecBytes), from)
	ADDQ(U8(lineBytes), ask)
	CMPQ(from, end)
	JB(LabelRef("line"))
	Label("copied")
}
