//go:build avogen

// Command gen writes the assembly of package listdir; see the go:generate line in listdir.go.
package main

import (
	"os"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
)

func main() {
	os.Args = []string{"gen", "-out", "kernels_amd64.s", "-stubs", "kernels_amd64.go",
		"-pkg", "listdir"}
	locate()
	Generate()
}

// What package listdir has as constants.
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

// locate finds where lists begin.
func locate() {
	TEXT("locateBMI", NOSPLIT, "func(dir *byte, groupSize, unitBits uint64, blocks *byte, "+
		"blockShift uint64, index *byte, nodes []uint32, at []uint64, block, seek *uint32) int")
	Pragma("noescape")
	Doc("locateBMI is locatePlain of one node at least, and asks for memory.")
	dir, group := Load(Param("dir"), GP64()), Load(Param("groupSize"), GP64())
	bytes, nodes := Load(Param("blocks"), GP64()), Load(Param("nodes").Base(), GP64())
	at, block := Load(Param("at").Base(), GP64()), Load(Param("block"), GP64())
	seek, last := Load(Param("seek"), GP64()), Load(Param("nodes").Len(), GP64())
	i, t, v, word, first, k := GP64(), GP64(), GP64(), GP64(), GP64(), GP64()
	LEAQ(Mem{Base: nodes, Index: last, Scale: 4, Disp: -4}, last)
	XORL(i.As32(), i.As32())
	Label("next")
	// Ask for the group of a node further on, or of the last.
	LEAQ(Mem{Base: nodes, Index: i, Scale: 4, Disp: 4 * nodesAhead}, t)
	CMPQ(t, last)
	CMOVQHI(last, t)
	MOVL(Mem{Base: t}, t.As32())
	SHRQ(U8(groupLog), t)
	IMULQ(group, t)
	PREFETCHT1(Mem{Base: dir, Index: t, Scale: 1})
	PREFETCHT1(Mem{Base: dir, Index: t, Scale: 1, Disp: 63})

	// k is where the place of the node is, in bits of the group.
	MOVL(Mem{Base: nodes, Index: i, Scale: 4}, v.As32())
	MOVQ(v, k)
	ANDQ(U8(1<<groupLog-1), k)
	SHRQ(U8(groupLog), v)
	IMULQ(group, v)
	ADDQ(dir, v)
	MOVL(Mem{Base: v}, first.As32())
	MOVQ(unitBits, t)
	ADDQ(U8(blockBits), t)
	IMULQ(t, k)
	ADDQ(U8(8*groupHead), k)
	// Load the word with it, which does not end after the group.
	MOVQ(k, word)
	SHRQ(U8(3), word)
	LEAQ(Mem{Base: group, Disp: -8}, t)
	CMPQ(word, t)
	CMOVQHI(t, word)
	MOVQ(Mem{Base: v, Index: word, Scale: 1}, v)
	SHLQ(U8(3), word)
	SUBQ(word, k)
	SHRXQ(k, v, word)
	MOVQ(unitBits, t)
	BZHIQ(t, word, v) // the unit
	SHRXQ(t, word, word)
	ANDQ(U8(outsideGroup), word) // blocks after the first
	// k is 1 where the list is empty or the block is not known; then t is 1 where it is empty.
	XORL(k.As32(), k.As32())
	CMPQ(word, U8(outsideGroup))
	SETEQ(k.As8())
	ADDQ(word, first)
	MOVL(i.As32(), Mem{Base: seek})
	MOVQ(blockLog, word)
	SHLXQ(word, first, word)
	LEAQ(Mem{Base: word, Index: v, Scale: 1 << unitLog}, word)
	INCQ(v) // of ones: 1<<unitBits
	SHRXQ(t, v, t)
	ANDQ(k, t)
	SUBQ(t, k)
	LEAQ(Mem{Base: seek, Index: k, Scale: 4}, seek)
	XORL(k.As32(), k.As32())
	TESTQ(t, t)
	CMOVQNE(k, word)
	CMOVQNE(k, first)

	MOVQ(word, Mem{Base: at, Index: i, Scale: 8})
	MOVL(first.As32(), Mem{Base: block, Index: i, Scale: 4})
	SHRQ(U8(3), word)
	PREFETCHT1(Mem{Base: bytes, Index: word, Scale: 1})
	PREFETCHT1(Mem{Base: bytes, Index: word, Scale: 1, Disp: headReach})
	SHLQ(U8(indexLog), first)
	ADDQ(index, first)
	PREFETCHT1(Mem{Base: first})
	PREFETCHT1(Mem{Base: first, Disp: indexReach})
	INCQ(i)
	CMPQ(i, count)
	JB(LabelRef("next"))
	MOVQ(NewParamAddr("seek", 104), t)
	SUBQ(t, seek)
	SHRQ(U8(2), seek)
	Store(seek, ReturnIndex(0))
	RET()
}
