// Package edgefile stores lists of edges in files: the splits of a graph's edges that link
// prediction trains on and is measured by. Edges have the direction of the source.
//
// # File of edges
//
// After the header of every data file come blocks of 4 KiB. All but the last are full:
//
//	0        4        8              16
//	+--------+--------+--------------+-------------+------------------+-------------+-------+
//	| crc32c | edges  | block number | sources u32 | destinations u32 | types u16   | zeros |
//	+--------+--------+--------------+-------------+------------------+-------------+-------+
//
// The checksum covers the file's kind, the store, the block number and everything after itself. The
// column of types is there only if edges have types. Each column of a block is contiguous, so
// decoding is three copies. The header is written first, so it does not hold the number of edges,
// which follows from the length of the file and the last block.
package edgefile

import (
	"encoding/binary"
	"errors"
	"fmt"

	"gdb/internal/codec"
	"gdb/kv"
	"gdb/layout"
)

// blockHead is the size of a block's head, in bytes.
const blockHead = 16

// fileLayout is the version of the format.
const fileLayout = 1

// Splits are the splits that edges may be in, in the order in which messages list them.
var Splits = []string{"train", "val", "test"}

// ErrNoSplits is returned for a store that was made without splits of its edges.
var ErrNoSplits = errors.New("the store has no splits of its edges")

// Path returns the path of the edges of a split, relative to the store.
func Path(split string) string { return "edges/" + split + ".edges" }

// Kind returns the kind of the file of a split, or "" if there is no such split. Each split has its
// own, so that a block of one never verifies as a block of another.
func Kind(split string) string {
	switch split {
	case "train":
		return "GETR"
	case "val":
		return "GEVA"
	case "test":
		return "GETE"
	}
	return ""
}

// SplitOf returns the split whose file has this kind, or "" if there is none.
func SplitOf(kind string) string {
	for _, s := range Splits {
		if Kind(s) == kind {
			return s
		}
	}
	return ""
}

// Edges are edges by column: edge i leads from Src[i] to Dst[i]. Rel is nil if edges have no type.
type Edges struct {
	Src, Dst []uint32
	Rel      []uint16
}

// Len returns the number of edges.
func (e *Edges) Len() int { return len(e.Src) }

// Clear removes all edges, and keeps the memory.
func (e *Edges) Clear() { e.Src, e.Dst, e.Rel = e.Src[:0], e.Dst[:0], e.Rel[:0] }

// Slice returns the edges [from, to). They share their memory with e.
func (e *Edges) Slice(from, to int) Edges {
	out := Edges{Src: e.Src[from:to], Dst: e.Dst[from:to]}
	if e.Rel != nil {
		out.Rel = e.Rel[from:to]
	}
	return out
}

// Spec says what the edges of a file are. It determines the layout of a block.
type Spec struct {
	Kind  string
	UUID  kv.UUID
	Nodes uint64 // all nodes of edges are below it
	Types int    // all types of edges are below it; 0 if edges have no types
}

// SpecOf returns the spec of the store's file of this kind.
func SpecOf(m *kv.Meta, kind string) Spec {
	return Spec{Kind: kind, UUID: m.UUID, Nodes: m.Nodes, Types: len(m.EdgeTypes)}
}

// EdgeBytes returns the bytes of an edge in a block, with or without a type.
func EdgeBytes(typed bool) int {
	if typed {
		return 10
	}
	return 8
}

// PerBlock returns the number of edges of a full block.
func (s *Spec) PerBlock() int { return (layout.PageBytes - blockHead) / EdgeBytes(s.Types > 0) }

// fields returns the header fields, without those of the user of the file.
func (s *Spec) fields() []byte {
	e := codec.Enc{}
	e.U32(fileLayout)
	e.U64(s.Nodes)
	e.U32(uint32(s.Types))
	return e.B
}

// checkFields compares the fields of a header with those of the spec, and returns the fields of the
// user of the file.
func (s *Spec) checkFields(fields []byte) (own []byte, err error) {
	d := codec.NewDec(fields)
	version, nodes, types := d.U32(), d.U64(), d.U32()
	if err := d.Err(); err != nil {
		return nil, err
	}
	if version != fileLayout {
		return nil, fmt.Errorf("%w: edges of layout %d, this gdb reads %d", kv.ErrFormat, version,
			fileLayout)
	}
	if nodes != s.Nodes || int(types) != s.Types {
		return nil, fmt.Errorf("it has edges of %d nodes and %d types, the store %d and %d", nodes,
			types, s.Nodes, s.Types)
	}
	return d.Bytes(d.Remaining()), d.Err()
}

// encodeBlock writes block number n, from 1, to the page b. The edges must fit in a block.
func (s *Spec) encodeBlock(b []byte, n uint64, e *Edges) {
	clear(b)
	binary.LittleEndian.PutUint32(b[4:], uint32(e.Len()))
	binary.LittleEndian.PutUint64(b[8:], n)
	at := b[blockHead:]
	for i, v := range e.Src {
		binary.LittleEndian.PutUint32(at[4*i:], v)
	}
	at = at[4*e.Len():]
	for i, v := range e.Dst {
		binary.LittleEndian.PutUint32(at[4*i:], v)
	}
	at = at[4*e.Len():]
	for i, v := range e.Rel {
		binary.LittleEndian.PutUint16(at[2*i:], v)
	}
	binary.LittleEndian.PutUint32(b, codec.BlockSum(s.Kind, s.UUID, n, b[4:layout.PageBytes]))
}

// DecodeBlock verifies block number n, a page, and appends its edges to out.
func (s *Spec) DecodeBlock(b []byte, n uint64, out *Edges) error {
	count, err := s.verify(b, n)
	if err != nil {
		return err
	}
	at := b[blockHead:]
	for i := range count {
		out.Src = append(out.Src, binary.LittleEndian.Uint32(at[4*i:]))
	}
	at = at[4*count:]
	for i := range count {
		out.Dst = append(out.Dst, binary.LittleEndian.Uint32(at[4*i:]))
	}
	at = at[4*count:]
	for i := range count * min(s.Types, 1) {
		out.Rel = append(out.Rel, binary.LittleEndian.Uint16(at[2*i:]))
	}
	return s.checkEdges(out, out.Len()-count)
}

// verify checks the checksum and head of a block, and returns how many edges it has.
func (s *Spec) verify(b []byte, n uint64) (count int, err error) {
	if err := layout.VerifyPage(s.Kind, s.UUID, int64(n), b[:layout.PageBytes]); err != nil {
		return 0, err
	}
	if got := binary.LittleEndian.Uint64(b[8:]); got != n {
		return 0, fmt.Errorf("it says that it is block %d", got)
	}
	rows := binary.LittleEndian.Uint32(b[4:])
	if rows == 0 || rows > uint32(s.PerBlock()) {
		return 0, fmt.Errorf("it has %d edges, want 1 to %d", rows, s.PerBlock())
	}
	return int(rows), nil
}

// checkEdges checks that nodes and types of the edges from number first on are in range.
func (s *Spec) checkEdges(e *Edges, first int) error {
	for i := first; i < e.Len(); i++ {
		if v := max(e.Src[i], e.Dst[i]); uint64(v) >= s.Nodes {
			return fmt.Errorf("an edge has node %d of %d", v, s.Nodes)
		}
	}
	for i := first; i < len(e.Rel); i++ {
		if int(e.Rel[i]) >= s.Types {
			return fmt.Errorf("an edge has type %d of %d", e.Rel[i], s.Types)
		}
	}
	return nil
}
