// Package listfile stores the neighbor lists of a graph: blocks of lists, and an index of the first
// node of each block. Files are written, and scanned, from start to end; package topology reads
// single lists. They are described in docs/format/topology.md.
package listfile

import (
	"encoding/binary"
	"errors"
	"fmt"

	"gdb/internal/codec"
	"gdb/internal/mem"
	"gdb/kv"
	"gdb/layout"
)

// A topology file is a header (codec.Header), which counts as block 0, and blocks of BlockBytes, a
// power of two from 4 KiB to 1 MiB. Block b, from 1, is at codec.HeaderBytes + (b-1)*BlockBytes:
//
//	0        4        8               16      17      18      20       24       28       32
//	+--------+--------+---------------+-------+-------+-------+--------+--------+--------+
//	| crc32c | "GTBK" | block number  | codec | flags | zero  | first  | slots  | entries|
//	+--------+--------+---------------+-------+-------+-------+--------+--------+--------+
//	| slot directory: the end of each list, slots x u16 (u32 in blocks > 256 KiB), to 4 B |
//	| ids     entries x u32                                                               |
//	| types   entries x u16, if the file has types                                        |
//	| weights entries x f32, if the file has weights                                      |
//	| times   entries x i64, if the file has times                                        |
//	| zeros to BlockBytes                                                                 |
//	+-------------------------------------------------------------------------------------+
//
// The lists of nodes first … first+slots-1 stand one after the other; list k is entries
// end(k-1) … end(k)-1. Nodes between the last slot of a block and the first node of the next have
// no neighbors and take no space: an empty list costs 2 bytes if it lies between others of its
// block, and nothing in a run that a block has no room for.
//
// A list that is larger than a block (a hub) has a run of blocks of its own, flag 1: there is no
// directory, the field slots holds the position of the block's first entry in the list, and all
// but the last block of the run are full, so that position p is in block p/capacity of the run.
// The degree is known from the last block: its position plus its entries. So the writer need not
// know a degree in advance, and a reader that looks for the last block whose first node is not
// above a node finds the degree of any node in one block.
//
// The checksum is codec.BlockSum of the kind (which tells the direction), the store's UUID, the
// block number and all bytes after the checksum.
const (
	blockMagic       = "GTBK"
	BlockHeaderBytes = 32
	flagHub          = 1
	codecRaw         = 0
	BlockMin         = 4096 // the least block, in bytes
	blockMax         = 1 << 20
	blockDefault     = 4096
	narrowMax        = 256 << 10 // up to here 16 bits hold any end: (narrowMax-32)/4 < 1<<16
	IDBytes          = 4         // of an entry: its id, and where the file has them what follows
	TypeBytes        = 2
	WeightBytes      = 4
	TimeBytes        = 8
)

const _ uint = (1<<16 - 1) - (narrowMax-BlockHeaderBytes)/IDBytes // ends fit in 16 bits

// Shape is what the blocks of one file have in common; derived from its header.
type Shape struct {
	BlockBytes                  int
	SlotBytes                   int // 2 or 4
	entryBytes                  int // id, type, weight, time
	Types, Weights, Times       bool
	HubCapacity                 uint32 // entries of a full block of a hub
	typesAt, weightsAt, timesAt int    // bytes per entry before types, weights, times
}

func newBlockShape(blockBytes int, types, weights, times bool) (Shape, error) {
	s := Shape{BlockBytes: blockBytes, SlotBytes: 2, entryBytes: IDBytes,
		Types: types, Weights: weights, Times: times}
	if blockBytes < BlockMin || blockBytes > blockMax || blockBytes&(blockBytes-1) != 0 {
		return s, fmt.Errorf("block size %d is not a power of two from %d to %d", blockBytes,
			BlockMin, blockMax)
	}
	if blockBytes > narrowMax {
		s.SlotBytes = 4
	}
	s.typesAt = s.entryBytes
	if types {
		s.entryBytes += TypeBytes
	}
	s.weightsAt = s.entryBytes
	if weights {
		s.entryBytes += WeightBytes
	}
	s.timesAt = s.entryBytes
	if times {
		s.entryBytes += TimeBytes
	}
	s.HubCapacity = uint32((blockBytes - BlockHeaderBytes) / s.entryBytes)
	return s, nil
}

// directoryBytes is the size of the slot directory of so many slots.
func (s *Shape) directoryBytes(slots int) int { return (slots*s.SlotBytes + 3) &^ 3 }

// fits says whether lists with so many slots and entries fit in one block.
func (s *Shape) fits(slots, entries int) bool {
	return BlockHeaderBytes+s.directoryBytes(slots)+entries*s.entryBytes <= s.BlockBytes
}

// HasAttributes says whether anything runs parallel to the ids.
func (s *Shape) HasAttributes() bool { return s.Types || s.Weights || s.Times }

// ErrBlock is the cause of every failed ParseBlock.
var ErrBlock = errors.New("block")

// Block is a view of the bytes of one verified block.
type Block struct {
	Bytes   []byte
	First   layout.NodeID // the node of the first list
	Slots   uint32        // 1 for a hub
	Start   uint32        // position in the list of a hub's first entry here
	Entries uint32        // of all lists
	IDsAt   int           // offset of the ids
	Hub     bool
}

// ParseBlock checks the header of a block and that its parts fit; the ends of the slots are
// checked as they are used. It takes any bytes without panic.
func ParseBlock(s *Shape, b []byte) (Block, error) {
	if len(b) != s.BlockBytes {
		return Block{}, fmt.Errorf("%w of %d bytes, want %d", ErrBlock, len(b), s.BlockBytes)
	}
	le := binary.LittleEndian
	k := Block{Bytes: b, First: layout.NodeID(le.Uint32(b[20:])), Slots: le.Uint32(b[24:]),
		Entries: le.Uint32(b[28:]), Hub: b[17] == flagHub, IDsAt: BlockHeaderBytes}
	switch {
	case string(b[4:8]) != blockMagic:
		return k, fmt.Errorf("%w magic is %q, want %q", ErrBlock, b[4:8], blockMagic)
	case b[16] != codecRaw:
		return k, fmt.Errorf("%w codec %d is unknown", ErrBlock, b[16])
	case b[17] > flagHub || b[18] != 0 || b[19] != 0:
		return k, fmt.Errorf("%w flags %x are unknown", ErrBlock, b[17:20])
	}
	if k.Hub {
		k.Start, k.Slots = k.Slots, 1
		if k.Entries == 0 || k.Entries > s.HubCapacity || k.Start%s.HubCapacity != 0 ||
			uint64(k.Start)+uint64(k.Entries) > 1<<32-1 {
			return k, fmt.Errorf("%w of a hub has %d entries from position %d", ErrBlock,
				k.Entries, k.Start)
		}
		return k, nil
	}
	if k.Slots == 0 || k.Slots > uint32(s.BlockBytes) || k.Entries > uint32(s.BlockBytes) ||
		!s.fits(int(k.Slots), int(k.Entries)) || uint64(k.First)+uint64(k.Slots) > layout.MaxNodes {
		return k, fmt.Errorf("%w has %d lists from node %d and %d entries: too many", ErrBlock,
			k.Slots, k.First, k.Entries)
	}
	k.IDsAt += s.directoryBytes(int(k.Slots))
	if s.end(k.Bytes, k.Slots-1) != k.Entries {
		return k, fmt.Errorf("%w has %d entries, its last list ends at %d", ErrBlock, k.Entries,
			s.end(k.Bytes, k.Slots-1))
	}
	return k, nil
}

// CheckIDs fails unless all ids of a block are nodes of the graph: who uses them looks no further.
func (k *Block) CheckIDs(nodes uint64) error {
	ids := mem.View[uint32](k.Bytes[k.IDsAt : k.IDsAt+int(k.Entries)*IDBytes])
	if most := codec.Max(ids); len(ids) > 0 && uint64(most) >= nodes {
		return fmt.Errorf("%w has neighbor %d of %d nodes", ErrBlock, most, nodes)
	}
	return nil
}

// Number is the block's number, from 1.
func (k *Block) Number() int64 { return int64(binary.LittleEndian.Uint64(k.Bytes[8:])) }

// end is where list k of a block ends, in entries.
func (s *Shape) end(b []byte, k uint32) uint32 {
	if s.SlotBytes == 2 {
		return uint32(binary.LittleEndian.Uint16(b[BlockHeaderBytes+2*int(k):]))
	}
	return binary.LittleEndian.Uint32(b[BlockHeaderBytes+4*int(k):])
}

// List returns the range of list k of a block that is no hub.
func (s *Shape) List(k *Block, slot uint32) (from, to uint32, err error) {
	if slot > 0 {
		from = s.end(k.Bytes, slot-1)
	}
	to = s.end(k.Bytes, slot)
	if from > to || to > k.Entries {
		return 0, 0, fmt.Errorf("%w: list of node %d is entries %d to %d of %d", ErrBlock,
			uint64(k.First)+uint64(slot), from, to, k.Entries)
	}
	return from, to, nil
}

// Offsets of what runs parallel to the ids.
func (s *Shape) typesOff(k *Block) int   { return k.IDsAt + s.typesAt*int(k.Entries) }
func (s *Shape) weightsOff(k *Block) int { return k.IDsAt + s.weightsAt*int(k.Entries) }
func (s *Shape) timesOff(k *Block) int   { return k.IDsAt + s.timesAt*int(k.Entries) }

// VerifyBlock checks number and checksum of block n, whose file starts its sums at seed.
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

// BlockOffset is where block n of a topology file, counted from 1, stands.
func BlockOffset(n int64, blockBytes int) int64 {
	return codec.HeaderBytes + (n-1)*int64(blockBytes)
}

// Fields are the fields of the header of a topology file and of its index:
//
//	0        4            8       12      20
//	+--------+------------+-------+--------+
//	| layout | blockBytes | flags | nodes  |      flags: 1 types, 2 weights, 4 times
//	+--------+------------+-------+--------+
//
// Edges and blocks stand in the last page of the index, since they are known at the end only: so
// both files are written in one stream.
type Fields struct {
	BlockBytes            int
	types, weights, times bool // what edges have
	Nodes                 uint64
}

// topologyLayout is the version of the block layout.
const topologyLayout = 1

func (f *Fields) encode() []byte {
	var e codec.Enc
	e.U32(topologyLayout)
	e.U32(uint32(f.BlockBytes))
	var flags uint32
	for i, set := range []bool{f.types, f.weights, f.times} {
		if set {
			flags |= 1 << i
		}
	}
	e.U32(flags)
	e.U64(f.Nodes)
	return e.B
}

// DecodeFields decodes the fields of a header and checks that files can have them.
func DecodeFields(b []byte) (Fields, error) {
	d := codec.NewDec(b)
	version := d.U32()
	f := Fields{BlockBytes: int(d.U32())}
	flags := d.U32()
	f.types, f.weights, f.times = flags&1 != 0, flags&2 != 0, flags&4 != 0
	f.Nodes = d.U64()
	switch {
	case d.Err() != nil:
		return f, d.Err()
	case version != topologyLayout:
		return f, fmt.Errorf("topology layout %d, this gdb reads %d", version, topologyLayout)
	case flags > 7 || d.Remaining() != 0:
		return f, fmt.Errorf("flags %x and %d further bytes are unknown", flags, d.Remaining())
	case f.Nodes > layout.MaxNodes:
		return f, fmt.Errorf("%d nodes are more than ids of 32 bits", f.Nodes)
	}
	_, err := f.Shape()
	return f, err
}

// Shape is that of the blocks of a file with these fields.
func (f *Fields) Shape() (Shape, error) {
	return newBlockShape(f.BlockBytes, f.types, f.weights, f.times)
}

// FieldsOf are the fields that the headers of a topology file and its index have by the catalog.
func FieldsOf(m *kv.Meta) Fields {
	return Fields{BlockBytes: m.BlockBytes, Nodes: m.Nodes,
		types: len(m.EdgeTypes) > 0, weights: m.Weighted, times: m.Timestamped}
}
