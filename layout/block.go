package layout

import (
	"encoding/binary"
	"errors"
	"fmt"

	"gdb/internal/codec"
	"gdb/internal/mem"
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
	blockMagic   = "GTBK"
	blockHeader  = 32
	flagHub      = 1
	codecRaw     = 0
	blockMin     = 4096
	blockMax     = 1 << 20
	blockDefault = 4096
	narrowMax    = 256 << 10 // up to here 16 bits hold any end: (narrowMax-32)/4 < 1<<16
	idBytes      = 4
	typeBytes    = 2
	weightBytes  = 4
	timeBytes    = 8
)

// maxNodes is how many ids there are.
const maxNodes = 1 << 32

const _ uint = (1<<16 - 1) - (narrowMax-blockHeader)/idBytes // ends fit in 16 bits

// blockShape is what the blocks of one file have in common; derived from its header.
type blockShape struct {
	blockBytes                  int
	slotBytes                   int // 2 or 4
	entryBytes                  int // id, type, weight, time
	types, weights, times       bool
	hubCapacity                 uint32 // entries of a full block of a hub
	typesAt, weightsAt, timesAt int    // bytes per entry before types, weights, times
}

func newBlockShape(blockBytes int, types, weights, times bool) (blockShape, error) {
	s := blockShape{blockBytes: blockBytes, slotBytes: 2, entryBytes: idBytes,
		types: types, weights: weights, times: times}
	if blockBytes < blockMin || blockBytes > blockMax || blockBytes&(blockBytes-1) != 0 {
		return s, fmt.Errorf("block size %d is not a power of two from %d to %d", blockBytes,
			blockMin, blockMax)
	}
	if blockBytes > narrowMax {
		s.slotBytes = 4
	}
	s.typesAt = s.entryBytes
	if types {
		s.entryBytes += typeBytes
	}
	s.weightsAt = s.entryBytes
	if weights {
		s.entryBytes += weightBytes
	}
	s.timesAt = s.entryBytes
	if times {
		s.entryBytes += timeBytes
	}
	s.hubCapacity = uint32((blockBytes - blockHeader) / s.entryBytes)
	return s, nil
}

// directoryBytes is the size of the slot directory of so many slots.
func (s *blockShape) directoryBytes(slots int) int { return (slots*s.slotBytes + 3) &^ 3 }

// fits says whether lists with so many slots and entries fit in one block.
func (s *blockShape) fits(slots, entries int) bool {
	return blockHeader+s.directoryBytes(slots)+entries*s.entryBytes <= s.blockBytes
}

// attributes says whether anything runs parallel to the ids.
func (s *blockShape) attributes() bool { return s.types || s.weights || s.times }

// errBlock is the cause of every failed parseBlock.
var errBlock = errors.New("block")

// block is a view of the bytes of one verified block.
type block struct {
	b       []byte
	first   NodeID
	slots   uint32 // 1 for a hub
	start   uint32 // position in the list of a hub's first entry here
	entries uint32
	ids     int // offset of the ids
	hub     bool
}

// parseBlock checks the header of a block and that its parts fit; the ends of the slots are
// checked as they are used. It takes any bytes without panic.
func parseBlock(s *blockShape, b []byte) (block, error) {
	if len(b) != s.blockBytes {
		return block{}, fmt.Errorf("%w of %d bytes, want %d", errBlock, len(b), s.blockBytes)
	}
	le := binary.LittleEndian
	k := block{b: b, first: NodeID(le.Uint32(b[20:])), slots: le.Uint32(b[24:]),
		entries: le.Uint32(b[28:]), hub: b[17] == flagHub, ids: blockHeader}
	switch {
	case string(b[4:8]) != blockMagic:
		return k, fmt.Errorf("%w magic is %q, want %q", errBlock, b[4:8], blockMagic)
	case b[16] != codecRaw:
		return k, fmt.Errorf("%w codec %d is unknown", errBlock, b[16])
	case b[17] > flagHub || b[18] != 0 || b[19] != 0:
		return k, fmt.Errorf("%w flags %x are unknown", errBlock, b[17:20])
	}
	if k.hub {
		k.start, k.slots = k.slots, 1
		if k.entries == 0 || k.entries > s.hubCapacity || k.start%s.hubCapacity != 0 ||
			uint64(k.start)+uint64(k.entries) > 1<<32-1 {
			return k, fmt.Errorf("%w of a hub has %d entries from position %d", errBlock,
				k.entries, k.start)
		}
		return k, nil
	}
	if k.slots == 0 || k.slots > uint32(s.blockBytes) || k.entries > uint32(s.blockBytes) ||
		!s.fits(int(k.slots), int(k.entries)) || uint64(k.first)+uint64(k.slots) > maxNodes {
		return k, fmt.Errorf("%w has %d lists from node %d and %d entries: too many", errBlock,
			k.slots, k.first, k.entries)
	}
	k.ids += s.directoryBytes(int(k.slots))
	if s.end(k.b, k.slots-1) != k.entries {
		return k, fmt.Errorf("%w has %d entries, its last list ends at %d", errBlock, k.entries,
			s.end(k.b, k.slots-1))
	}
	return k, nil
}

// checkIDs fails unless all ids of a block are nodes of the graph: who uses them looks no further.
func (k *block) checkIDs(nodes uint64) error {
	ids := mem.View[uint32](k.b[k.ids : k.ids+int(k.entries)*idBytes])
	if most := codec.Max(ids); len(ids) > 0 && uint64(most) >= nodes {
		return fmt.Errorf("%w has neighbor %d of %d nodes", errBlock, most, nodes)
	}
	return nil
}

// number is the block's number, from 1.
func (k *block) number() int64 { return int64(binary.LittleEndian.Uint64(k.b[8:])) }

// end is where list k of a block ends, in entries.
func (s *blockShape) end(b []byte, k uint32) uint32 {
	if s.slotBytes == 2 {
		return uint32(binary.LittleEndian.Uint16(b[blockHeader+2*int(k):]))
	}
	return binary.LittleEndian.Uint32(b[blockHeader+4*int(k):])
}

// list returns the range of list k of a block that is no hub.
func (s *blockShape) list(k *block, slot uint32) (from, to uint32, err error) {
	if slot > 0 {
		from = s.end(k.b, slot-1)
	}
	to = s.end(k.b, slot)
	if from > to || to > k.entries {
		return 0, 0, fmt.Errorf("%w: list of node %d is entries %d to %d of %d", errBlock,
			uint64(k.first)+uint64(slot), from, to, k.entries)
	}
	return from, to, nil
}

// Offsets of what runs parallel to the ids.
func (s *blockShape) typesOff(k *block) int   { return k.ids + s.typesAt*int(k.entries) }
func (s *blockShape) weightsOff(k *block) int { return k.ids + s.weightsAt*int(k.entries) }
func (s *blockShape) timesOff(k *block) int   { return k.ids + s.timesAt*int(k.entries) }

// verifyBlock checks number and checksum of block n, whose file starts its sums at seed.
func verifyBlock(seed uint32, n int64, b []byte) error {
	le := binary.LittleEndian
	if got := le.Uint64(b[8:]); got != uint64(n) {
		return fmt.Errorf("%w says that it is number %d", errBlock, got)
	}
	want, got := le.Uint32(b), numberedSum(seed, b[8:16], b[4:])
	if want != got {
		return fmt.Errorf("checksum is %08x, its bytes give %08x", want, got)
	}
	return nil
}

// blockOffset is where block n of a topology file, counted from 1, stands.
func blockOffset(n int64, blockBytes int) int64 {
	return codec.HeaderBytes + (n-1)*int64(blockBytes)
}

// topologyFields are the fields of the header of a topology file and of its index:
//
//	0        4            8       12      20
//	+--------+------------+-------+--------+
//	| layout | blockBytes | flags | nodes  |      flags: 1 types, 2 weights, 4 times
//	+--------+------------+-------+--------+
//
// Edges and blocks stand in the last page of the index, since they are known at the end only: so
// both files are written in one stream.
type topologyFields struct {
	blockBytes            int
	types, weights, times bool
	nodes                 uint64
}

// topologyLayout is the version of the block layout.
const topologyLayout = 1

func (f *topologyFields) encode() []byte {
	var e codec.Enc
	e.U32(topologyLayout)
	e.U32(uint32(f.blockBytes))
	var flags uint32
	for i, set := range []bool{f.types, f.weights, f.times} {
		if set {
			flags |= 1 << i
		}
	}
	e.U32(flags)
	e.U64(f.nodes)
	return e.B
}

func decodeTopologyFields(b []byte) (topologyFields, error) {
	d := codec.NewDec(b)
	version := d.U32()
	f := topologyFields{blockBytes: int(d.U32())}
	flags := d.U32()
	f.types, f.weights, f.times = flags&1 != 0, flags&2 != 0, flags&4 != 0
	f.nodes = d.U64()
	switch {
	case d.Err() != nil:
		return f, d.Err()
	case version != topologyLayout:
		return f, fmt.Errorf("topology layout %d, this gdb reads %d", version, topologyLayout)
	case flags > 7 || d.Rest() != 0:
		return f, fmt.Errorf("flags %x and %d further bytes are unknown", flags, d.Rest())
	case f.nodes > maxNodes:
		return f, fmt.Errorf("%d nodes are more than ids of 32 bits", f.nodes)
	}
	_, err := f.shape()
	return f, err
}

func (f *topologyFields) shape() (blockShape, error) {
	return newBlockShape(f.blockBytes, f.types, f.weights, f.times)
}
