// Package listfile stores the neighbor lists of a graph: a file of blocks of lists, and an index of
// where each block begins. Both are written from start to end; this package scans them in the same
// order, and package topology reads single lists. docs/format/topology.md describes the files. An
// entry is one neighbor in a list, an attribute is a type, weight or time of its edge, and a slot
// is the place of one node's list in a block.
package listfile

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"

	"gdb/internal/codec"
	"gdb/layout"
	"gdb/layout/listcode"
)

// A topology file is a header (codec.Header), which counts as block 0, and blocks of BlockBytes, a
// power of two from 4 KiB to 1 MiB. Block b, from 1, is at codec.HeaderBytes + (b-1)*BlockBytes:
//
//	0        4        8              16      17      18      19     20      24      28        32
//	+--------+--------+--------------+-------+-------+-------+------+-------+-------+---------+
//	| crc32c | "GTBK" | block number | codec | flags | width | zero | first | slots | entries |
//	+--------+--------+--------------+-------+-------+-------+------+-------+-------+---------+
//	32       36       40             44             48
//	+--------+--------+--------------+--------------+
//	| start  | base   | ends, bits   | counts, bits |
//	+--------+--------+--------------+--------------+-----------------------------------------+
//	| ends: where each list ends, in units of 4 bits; a list of package listcode              |
//	| counts: where it ends in entries, if edges have types, weights or times; likewise       |
//	| lists: those that are not empty, with a first id of width bits above base               |
//	| types, weights, times, as far as the file has them: columns of package listcode           |
//	| zeros to BlockBytes, eight at least                                                     |
//	+-----------------------------------------------------------------------------------------+
//
// Each part begins with a whole byte. The block has the lists of nodes first … first+slots-1. Its
// first list may have begun in an earlier block and its last list may go on in the next: start is
// the position, in the list of node first, of its first entry here. Nodes between the last slot of
// a block and the first node of the next have no neighbors.
//
// The index has first and start of each block, so a reader finds the block of any position of a
// list without reading other blocks. The degree of a node is where its list ends in the last block
// that has some of it, so a writer need not know it in advance.
//
// The checksum is codec.BlockSum of the kind (which tells the direction), the store's UUID, the
// block number and all bytes after the checksum. Blocks of codec 0 are described in rawblock.go.
const (
	blockMagic       = "GTBK"
	blockHeaderBytes = 48
	codecRaw         = 0
	codecCompact     = 1
	BlockMin         = 4096 // the smallest block, in bytes
	blockMax         = 1 << 20
	blockDefault     = 4096
	// unitBits is the unit in which lists begin, in bits. Ends take two bits less each than they
	// would in bits, and a list one and a half more on average.
	unitBits = 4
	// The bytes of an entry's id and attributes, in memory and, at most, in a block.
	IDBytes     = 4
	TypeBytes   = 2
	WeightBytes = 4
	TimeBytes   = 8
)

const _ uint = listcode.PaddingMost - unitBits // a list may be followed by bits that fill a unit

// Shape is what all blocks of a file have in common. It follows from the file's header.
type Shape struct {
	BlockBytes            int
	Types, Weights, Times bool
	nodes                 uint64
	posBits               int // bits of a position in the bits of a block
	endBits               int // bits of the end of a list, in units
	raw                   rawShape
}

func newBlockShape(f *Fields) (Shape, error) {
	s := Shape{BlockBytes: f.BlockBytes, Types: f.types, Weights: f.weights, Times: f.times,
		nodes: f.Nodes}
	if n := f.BlockBytes; n < BlockMin || n > blockMax || n&(n-1) != 0 {
		return s, fmt.Errorf("block size %d is not a power of two from %d to %d", n, BlockMin,
			blockMax)
	}
	s.posBits = bits.Len(uint(8*s.BlockBytes - 1))
	s.endBits = bits.Len(uint(8*s.BlockBytes/unitBits - 1))
	s.raw = newRawShape(&s)
	return s, nil
}

// entriesMost bounds the entries of a block, and its slots.
func (s *Shape) entriesMost() int { return 8*s.BlockBytes - 1 }

// HasAttributes reports whether edges have types, weights or times.
func (s *Shape) HasAttributes() bool { return s.Types || s.Weights || s.Times }

// ErrBlock is wrapped by every error of ParseBlock and of reading a damaged block.
var ErrBlock = errors.New("block")

// Block is a view of the bytes of one verified block.
type Block struct {
	Bytes   []byte
	First   layout.NodeID // node of the first list
	Slots   uint32        // number of lists
	Start   uint32        // position in the first list of its first entry here
	Entries uint32        // number of entries of all lists
	raw     *rawBlock     // nil unless codec is 0

	coding         listcode.Coding
	ends, counts   listcode.List // counts only if there are attributes
	listsAt, bound uint64        // in bits; no list or column ends beyond bound
	columns        [3]listcode.Column
}

// ParseBlock checks the header of a block and that its parts fit. Lists are checked only when they
// are used. It accepts any bytes without panic.
func ParseBlock(s *Shape, b []byte) (Block, error) {
	if len(b) != s.BlockBytes {
		return Block{}, fmt.Errorf("%w of %d bytes, want %d", ErrBlock, len(b), s.BlockBytes)
	}
	le := binary.LittleEndian
	k := Block{Bytes: b, First: layout.NodeID(le.Uint32(b[20:])), Slots: le.Uint32(b[24:]),
		Entries: le.Uint32(b[28:])}
	if string(b[4:8]) != blockMagic {
		return k, fmt.Errorf("%w magic is %q, want %q", ErrBlock, b[4:8], blockMagic)
	}
	switch b[16] {
	case codecRaw:
		return parseRaw(s, k)
	case codecCompact:
		return parseCompact(s, k)
	}
	return k, fmt.Errorf("%w codec %d is unknown", ErrBlock, b[16])
}

// parseCompact checks a block of codec 1.
func parseCompact(s *Shape, k Block) (Block, error) {
	b, le := k.Bytes, binary.LittleEndian
	k.Start = le.Uint32(b[32:])
	k.coding = listcode.Coding{Base: le.Uint32(b[36:]), FirstBits: int(b[18]), PosBits: s.posBits}
	most := uint32(s.entriesMost())
	switch {
	case b[17] != 0 || b[19] != 0 || b[18] > 32:
		return k, fmt.Errorf("%w flags %x are unknown", ErrBlock, b[17:20])
	case k.Slots == 0 || k.Slots > most || k.Entries == 0 || k.Entries > most ||
		uint64(k.First)+uint64(k.Slots) > layout.MaxNodes:
		return k, fmt.Errorf("%w has %d lists from node %d and %d entries: too many", ErrBlock,
			k.Slots, k.First, k.Entries)
	case uint64(k.Start)+uint64(k.Entries) > 1<<32-1:
		return k, fmt.Errorf("%w has %d entries from position %d of node %d's list", ErrBlock,
			k.Entries, k.Start, k.First)
	}
	k.bound = uint64(s.BlockBytes-listcode.Slack) * 8
	at, err := k.directory(s)
	if err != nil {
		return k, fmt.Errorf("%w directory: %w", ErrBlock, err)
	}
	k.listsAt = at
	if at, err = k.endOfLists(); err != nil {
		return k, err
	}
	for i, c := range s.columns() {
		if !c.has {
			continue
		}
		at = (at + 7) &^ 7
		k.columns[i], err = listcode.ParseColumn(b, at, k.bound, int(k.Entries), c.bits)
		if err != nil {
			return k, fmt.Errorf("%w %s: %w", ErrBlock, c.name, err)
		}
		at = k.columns[i].End
	}
	return k, nil
}

// directory parses the lists of ends and of counts, and returns where the lists begin, in bits.
func (k *Block) directory(s *Shape) (at uint64, err error) {
	le := binary.LittleEndian
	at = blockHeaderBytes * 8
	for i, l := range [...]*listcode.List{&k.ends, &k.counts} {
		coding := s.directoryCoding(i)
		size := uint64(le.Uint32(k.Bytes[40+4*i:]))
		if i == 1 && !s.HasAttributes() {
			if size != 0 {
				return at, fmt.Errorf("%d bits of counts that edges have no use for", size)
			}
			break
		}
		if size > k.bound-at {
			return at, fmt.Errorf("%d bits at bit %d", size, at)
		}
		if *l, err = coding.Parse(k.Bytes, at, at+size); err != nil {
			return at, err
		}
		if l.Count != k.Slots {
			return at, fmt.Errorf("%d ends of %d lists", l.Count, k.Slots)
		}
		if at = (at + size + 7) &^ 7; at > k.bound {
			return at, fmt.Errorf("ends at bit %d", at)
		}
	}
	return at, nil
}

// endOfLists checks that the last list ends with the block's entries, and returns where, in bits.
func (k *Block) endOfLists() (uint64, error) {
	end, ok := k.ends.At(k.Bytes, k.Slots-1)
	if at := k.listsAt + unitBits*uint64(end); ok && at <= k.bound {
		if k.counts.Count == 0 {
			return at, nil
		}
		if n, ok := k.counts.At(k.Bytes, k.Slots-1); ok && n == k.Entries {
			return at, nil
		}
	}
	return 0, fmt.Errorf("%w has %d entries, its last list does not end with them", ErrBlock,
		k.Entries)
}

// column describes an attribute, whose values are stored parallel to the ids.
type column struct {
	name string
	has  bool
	bits int // bits of a value
}

// The columns of a block.
const (
	typeColumn = iota
	weightColumn
	timeColumn
)

func (s *Shape) columns() [3]column {
	return [3]column{{"types", s.Types, 8 * TypeBytes}, {"weights", s.Weights, 8 * WeightBytes},
		{"times", s.Times, 8 * TimeBytes}}
}

// CheckIDs returns an error unless all ids of a raw block are nodes of the graph. Ids of other
// blocks are checked when they are decoded.
func (k *Block) CheckIDs(nodes uint64) error {
	if k.raw == nil {
		return nil
	}
	return checkIDs(k.raw.ids(k), nodes)
}

// checkIDs returns an error unless all ids are nodes of the graph. Callers need not check them
// again.
func checkIDs(ids []uint32, nodes uint64) error {
	if most := codec.Max(ids); len(ids) > 0 && uint64(most) >= nodes {
		return fmt.Errorf("%w has neighbor %d of %d nodes", ErrBlock, most, nodes)
	}
	return nil
}

// Number returns the block's number, from 1.
func (k *Block) Number() int64 { return int64(binary.LittleEndian.Uint64(k.Bytes[8:])) }

// Raw reports whether the block's ids are stored uncoded.
func (k *Block) Raw() bool { return k.raw != nil }

// VerifyBlock checks the number and checksum of block n. seed is layout.SumSeed of the file's kind.
func VerifyBlock(seed uint32, n int64, b []byte) error {
	le := binary.LittleEndian
	if got := le.Uint64(b[8:]); got != uint64(n) {
		return fmt.Errorf("%w says that it is number %d", ErrBlock, got)
	}
	want, got := le.Uint32(b), layout.NumberedSum(seed, b[8:16], b[4:])
	if want != got {
		return fmt.Errorf("checksum is %08x, its bytes give %08x", want, got)
	}
	return nil
}

// BlockOffset returns where block n of a topology file, counted from 1, begins in the file.
func BlockOffset(n int64, blockBytes int) int64 {
	return codec.HeaderBytes + (n-1)*int64(blockBytes)
}
