package listfile

import (
	"encoding/binary"
	"fmt"

	"gdb/internal/mem"
	"gdb/layout"
)

// Blocks of codec 0 are in files of the former layout. They store ids uncoded:
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
// List k has entries end(k-1) … end(k)-1. A list that is larger than a block (a hub's) has several
// blocks of its own, with flag 1: there is no directory, the field slots holds the position of the
// block's first entry in the list, and all blocks of the list but the last are full.
const (
	rawHeaderBytes = 32
	flagHub        = 1
	narrowMax      = 256 << 10 // up to this size 16 bits hold any end: (narrowMax-32)/4 < 1<<16
)

const _ uint = (1<<16 - 1) - (narrowMax-rawHeaderBytes)/IDBytes // ends fit in 16 bits

// rawShape is what all raw blocks of a file have in common.
type rawShape struct {
	slotBytes   int // 2 or 4
	entryBytes  int // bytes of id, type, weight and time
	at          [3]int
	hubCapacity uint32 // entries of a full block of a hub
}

func newRawShape(s *Shape) rawShape {
	r := rawShape{slotBytes: 2, entryBytes: IDBytes}
	if s.BlockBytes > narrowMax {
		r.slotBytes = 4
	}
	for i, c := range s.columns() {
		r.at[i] = r.entryBytes
		if c.has {
			r.entryBytes += c.bits / 8
		}
	}
	r.hubCapacity = uint32((s.BlockBytes - rawHeaderBytes) / r.entryBytes)
	return r
}

// directoryBytes returns the size of the directory of this number of slots.
func (r *rawShape) directoryBytes(slots int) int { return (slots*r.slotBytes + 3) &^ 3 }

// rawBlock is what a raw block has besides the fields of Block.
type rawBlock struct {
	shape *rawShape
	hub   bool
	idsAt int
}

// parseRaw checks a block of codec 0.
func parseRaw(s *Shape, k Block) (Block, error) {
	b, r := k.Bytes, &s.raw
	w := &rawBlock{shape: r, hub: b[17] == flagHub, idsAt: rawHeaderBytes}
	k.raw = w
	if b[17] > flagHub || b[18] != 0 || b[19] != 0 {
		return k, fmt.Errorf("%w flags %x are unknown", ErrBlock, b[17:20])
	}
	if w.hub {
		k.Start, k.Slots = k.Slots, 1
		if k.Entries == 0 || k.Entries > r.hubCapacity || k.Start%r.hubCapacity != 0 ||
			uint64(k.Start)+uint64(k.Entries) > 1<<32-1 {
			return k, fmt.Errorf("%w of a hub has %d entries from position %d", ErrBlock,
				k.Entries, k.Start)
		}
		return k, nil
	}
	size := uint32(s.BlockBytes)
	if k.Slots == 0 || k.Slots > size || k.Entries > size ||
		rawHeaderBytes+r.directoryBytes(int(k.Slots))+int(k.Entries)*r.entryBytes > s.BlockBytes ||
		uint64(k.First)+uint64(k.Slots) > layout.MaxNodes {
		return k, fmt.Errorf("%w has %d lists from node %d and %d entries: too many", ErrBlock,
			k.Slots, k.First, k.Entries)
	}
	w.idsAt += r.directoryBytes(int(k.Slots))
	if end := w.end(b, k.Slots-1); end != k.Entries {
		return k, fmt.Errorf("%w has %d entries, its last list ends at %d", ErrBlock, k.Entries,
			end)
	}
	return k, nil
}

// end returns where list k of a block ends, in entries.
func (w *rawBlock) end(b []byte, k uint32) uint32 {
	if w.shape.slotBytes == 2 {
		return uint32(binary.LittleEndian.Uint16(b[rawHeaderBytes+2*int(k):]))
	}
	return binary.LittleEndian.Uint32(b[rawHeaderBytes+4*int(k):])
}

// ids returns the ids of all lists.
func (w *rawBlock) ids(k *Block) []uint32 {
	return mem.View[uint32](k.Bytes[w.idsAt : w.idsAt+int(k.Entries)*IDBytes])
}

// list returns the range of a list in the entries of a block.
func (w *rawBlock) list(k *Block, slot uint32) (from, to uint32, err error) {
	if w.hub {
		return 0, k.Entries, nil
	}
	if slot > 0 {
		from = w.end(k.Bytes, slot-1)
	}
	to = w.end(k.Bytes, slot)
	if from > to || to > k.Entries {
		return 0, 0, fmt.Errorf("%w: list of node %d is entries %d to %d of %d", ErrBlock,
			uint64(k.First)+uint64(slot), from, to, k.Entries)
	}
	return from, to, nil
}

// RawDirectory returns the size of an end in a raw block's directory, and where its ids begin.
func (k *Block) RawDirectory() (width, ids int) { return k.raw.shape.slotBytes, k.raw.idsAt }

// value returns the value of an entry in a column.
func (w *rawBlock) value(k *Block, column int, entry uint32) uint64 {
	b, le := k.Bytes[w.idsAt+w.shape.at[column]*int(k.Entries):], binary.LittleEndian
	switch column {
	case typeColumn:
		return uint64(le.Uint16(b[entry*TypeBytes:]))
	case weightColumn:
		return uint64(le.Uint32(b[entry*WeightBytes:]))
	}
	return le.Uint64(b[entry*TimeBytes:]) ^ 1<<63
}
