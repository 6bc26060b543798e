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
		"-pkg", "listfile"}
	locate()
	Generate()
}

// What package listfile has as constants.
const (
	groupLog     = 5
	groupHead    = 4
	blockBits    = 2
	outsideGroup = 1<<blockBits - 1
	unitLog      = 2
	indexLog     = 4
)

const (
	// nodesAhead is for how many nodes the directory is asked for before it is read.
	nodesAhead = 24
	// headReach is how far the head of a list is read, in bytes, and indexReach the index: the
	// first word of the next block too.
	headReach  = 15
	indexReach = 1<<indexLog + 7
)

// Where parameters are that are read again for each node.
var (
	unitBits = NewParamAddr("unitBits", 16)
	blockLog = NewParamAddr("blockShift", 32)
	index    = NewParamAddr("index", 40)
	count    = NewParamAddr("at_len", 80)
)

// locateRegs are the registers of locate.
type locateRegs struct {
	dir, group, bytes, nodes, at, block, seek reg.Register

	last, i, t, v, word, first, k reg.GPVirtual
}

// locate finds where lists begin.
func locate() {
	TEXT("locateBMI", NOSPLIT, "func(dir *byte, groupSize, unitBits uint64, blocks *byte, "+
		"blockShift uint64, index *byte, nodes []uint32, at []uint64, block, seek *uint32) int")
	Pragma("noescape")
	Doc("locateBMI is locatePlain of one node at least, and asks for memory.")
	l := &locateRegs{dir: Load(Param("dir"), GP64()), group: Load(Param("groupSize"), GP64()),
		bytes: Load(Param("blocks"), GP64()), nodes: Load(Param("nodes").Base(), GP64()),
		at: Load(Param("at").Base(), GP64()), block: Load(Param("block"), GP64()),
		seek: Load(Param("seek"), GP64()), last: GP64(),
		i: GP64(), t: GP64(), v: GP64(), word: GP64(), first: GP64(), k: GP64()}
	Load(Param("nodes").Len(), l.last)
	LEAQ(Mem{Base: l.nodes, Index: l.last, Scale: 4, Disp: -4}, l.last)
	XORL(l.i.As32(), l.i.As32())
	Label("next")
	l.askAhead()
	l.readPlace()
	l.write()
	INCQ(l.i)
	CMPQ(l.i, count)
	JB(LabelRef("next"))
	MOVQ(NewParamAddr("seek", 104), l.t)
	SUBQ(l.t, l.seek)
	SHRQ(U8(2), l.seek)
	Store(l.seek, ReturnIndex(0))
	RET()
}

// askAhead asks for the group of a node further on, or of the last.
func (l *locateRegs) askAhead() {
	LEAQ(Mem{Base: l.nodes, Index: l.i, Scale: 4, Disp: 4 * nodesAhead}, l.t)
	CMPQ(l.t, l.last)
	CMOVQHI(l.last, l.t)
	MOVL(Mem{Base: l.t}, l.t.As32())
	SHRQ(U8(groupLog), l.t)
	IMULQ(l.group, l.t)
	PREFETCHT1(Mem{Base: l.dir, Index: l.t, Scale: 1})
	PREFETCHT1(Mem{Base: l.dir, Index: l.t, Scale: 1, Disp: 63})
}

// readPlace makes first the block of the group, word how many blocks after it the list is, and v
// its unit.
func (l *locateRegs) readPlace() {
	// k is where the place of the node is, in bits of the group.
	MOVL(Mem{Base: l.nodes, Index: l.i, Scale: 4}, l.v.As32())
	MOVQ(l.v, l.k)
	ANDQ(U8(1<<groupLog-1), l.k)
	SHRQ(U8(groupLog), l.v)
	IMULQ(l.group, l.v)
	ADDQ(l.dir, l.v)
	MOVL(Mem{Base: l.v}, l.first.As32())
	MOVQ(unitBits, l.t)
	ADDQ(U8(blockBits), l.t)
	IMULQ(l.t, l.k)
	ADDQ(U8(8*groupHead), l.k)
	// Load the word with it, which does not end after the group.
	MOVQ(l.k, l.word)
	SHRQ(U8(3), l.word)
	LEAQ(Mem{Base: l.group, Disp: -8}, l.t)
	CMPQ(l.word, l.t)
	CMOVQHI(l.t, l.word)
	MOVQ(Mem{Base: l.v, Index: l.word, Scale: 1}, l.v)
	SHLQ(U8(3), l.word)
	SUBQ(l.word, l.k)
	SHRXQ(l.k, l.v, l.word)
	MOVQ(unitBits, l.t)
	BZHIQ(l.t, l.word, l.v)
	SHRXQ(l.t, l.word, l.word)
	ANDQ(U8(outsideGroup), l.word)
}

// write writes the place and the block, and asks for the memory there.
func (l *locateRegs) write() {
	// k is 1 where the list is empty or the block is not known; then t is 1 where it is empty.
	XORL(l.k.As32(), l.k.As32())
	CMPQ(l.word, U8(outsideGroup))
	SETEQ(l.k.As8())
	ADDQ(l.word, l.first)
	MOVL(l.i.As32(), Mem{Base: l.seek})
	MOVQ(blockLog, l.word)
	SHLXQ(l.word, l.first, l.word)
	LEAQ(Mem{Base: l.word, Index: l.v, Scale: 1 << unitLog}, l.word)
	INCQ(l.v) // of ones: 1<<unitBits
	SHRXQ(l.t, l.v, l.t)
	ANDQ(l.k, l.t)
	SUBQ(l.t, l.k)
	LEAQ(Mem{Base: l.seek, Index: l.k, Scale: 4}, l.seek)
	XORL(l.k.As32(), l.k.As32())
	TESTQ(l.t, l.t)
	CMOVQNE(l.k, l.word)
	CMOVQNE(l.k, l.first)
	MOVQ(l.word, Mem{Base: l.at, Index: l.i, Scale: 8})
	MOVL(l.first.As32(), Mem{Base: l.block, Index: l.i, Scale: 4})
	SHRQ(U8(3), l.word)
	PREFETCHT1(Mem{Base: l.bytes, Index: l.word, Scale: 1})
	PREFETCHT1(Mem{Base: l.bytes, Index: l.word, Scale: 1, Disp: headReach})
	SHLQ(U8(indexLog), l.first)
	ADDQ(index, l.first)
	PREFETCHT1(Mem{Base: l.first})
	PREFETCHT1(Mem{Base: l.first, Disp: indexReach})
}
