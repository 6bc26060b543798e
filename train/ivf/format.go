package ivf

import (
	"fmt"

	"gdb/compute/kernel/pq"
	"gdb/internal/codec"
	"gdb/kv"
	"gdb/layout"
)

// Kind is the kind of the file, as in its header.
const Kind = "GIVF"

const (
	formatVersion = 1
	// blockBytes is the size of a block of codes, the unit of reads and of the cache.
	blockBytes = 32 << 10
	// blockHead is what stands before the groups of a block, in bytes: its checksum, and zeros.
	blockHead = 64
	// pageWords is the number of words in a page of tables, behind its checksum.
	pageWords = layout.PageBytes/4 - 1
	// listsMost and dimMost bound what a header may claim.
	listsMost = 1 << 22
	dimMost   = 1 << 16
)

// shape is what the header of a file says.
type shape struct {
	pq.Shape
	Groups, Lists int // of the tree
	Vectors       uint64
	CodeGroups    uint64 // groups of codes
	Sums          bool
	By, Of        string
	Snapshot      uint64
}

// stride returns the bytes of a group: codes, and bias, node and sum of each vector.
func (s *shape) stride() int {
	words := 2
	if s.Sums {
		words = 3
	}
	return s.GroupBytes() + words*4*pq.Group
}

// perBlock returns how many groups a block has.
func (s *shape) perBlock() int { return (blockBytes - blockHead) / s.stride() }

// blocks returns the number of blocks.
func (s *shape) blocks() int64 {
	per := uint64(s.perBlock())
	return int64((s.CodeGroups + per - 1) / per)
}

// words returns how many words the tables have: centers of groups, the first list of each group and
// the number of lists, centers of lists, centers of codes, and the first group of codes of each
// list and the number of groups.
func (s *shape) words() int64 {
	return int64(s.Groups+s.Lists)*int64(s.Dim) + int64(s.Groups) + 1 + int64(s.Values()) +
		int64(s.Lists) + 1
}

// firstBlock returns where the blocks begin.
func (s *shape) firstBlock() int64 {
	return codec.HeaderBytes + (s.words()+pageWords-1)/pageWords*layout.PageBytes
}

// fileBytes returns the size of the file.
func (s *shape) fileBytes() int64 { return s.firstBlock() + s.blocks()*blockBytes }

// fields encodes the fields of the header.
func (s *shape) fields() []byte {
	var e codec.Enc
	for _, v := range []int{formatVersion, s.Dim, s.Width, s.Parts, s.Groups, s.Lists} {
		e.U32(uint32(v))
	}
	e.U64(s.Vectors)
	e.U64(s.CodeGroups)
	sums := uint32(0)
	if s.Sums {
		sums = 1
	}
	e.U32(sums)
	e.U64(s.Snapshot)
	e.String(s.By)
	e.String(s.Of)
	return e.B
}

// decodeFields decodes and checks the fields of a header.
func decodeFields(b []byte) (s shape, err error) {
	d := codec.NewDec(b)
	version := d.U32()
	s.Dim, s.Width, s.Parts = int(d.U32()), int(d.U32()), int(d.U32())
	s.Groups, s.Lists = int(d.U32()), int(d.U32())
	s.Vectors, s.CodeGroups = d.U64(), d.U64()
	sums := d.U32()
	s.Sums, s.Snapshot = sums == 1, d.U64()
	s.By, s.Of = d.String(), d.String()
	switch {
	case d.Err() != nil:
		return s, d.Err()
	case version != formatVersion:
		return s, fmt.Errorf("version %d, this gdb reads %d", version, formatVersion)
	case d.Remaining() != 0:
		return s, fmt.Errorf("%d further bytes are unknown", d.Remaining())
	case s.Dim < 1 || s.Dim > dimMost || s.Shape != pq.ShapeOf(s.Dim):
		return s, fmt.Errorf("vectors of %d columns in %d parts of %d", s.Dim, s.Parts, s.Width)
	case s.Groups < 1 || s.Lists < s.Groups || s.Lists > listsMost:
		return s, fmt.Errorf("%d lists in %d groups", s.Lists, s.Groups)
	case s.Vectors > layout.MaxNodes || sums > 1 ||
		s.CodeGroups > s.Vectors/pq.Group+uint64(s.Lists):
		return s, fmt.Errorf("%d groups of codes for %d vectors", s.CodeGroups, s.Vectors)
	}
	return s, CheckCloseness(s.By)
}

// header returns the header of a file.
func (s *shape) header(uuid kv.UUID) codec.Header {
	return codec.Header{Kind: Kind, UUID: uuid, Fields: s.fields()}
}
