// Package edgefile keeps lists of edges: the splits of a graph's edges that link prediction trains
// on and is measured by, in the direction of the source.
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
// The checksum covers the file's kind, the store, the number of the block and everything after
// itself. Types are there if edges have types. Each column of a block is whole, so that decoding is
// three copies. The number of edges is not in the header, which is written first: it follows from
// the length of the file and the last block.
package edgefile

import (
	"encoding/binary"
	"errors"
	"fmt"

	"gdb/internal/codec"
	"gdb/kv"
	"gdb/layout"
)

// blockHead is what a block has before its edges.
const blockHead = 16

// fileLayout is the version of the format.
const fileLayout = 1

// Splits are the splits that edges may be in, in the order of messages.
var Splits = []string{"train", "val", "test"}

// ErrNoSplits says that a store was made without splits of its edges.
var ErrNoSplits = errors.New("the store has no splits of its edges")

// Path is where the edges of a split are, relative to the store.
func Path(split string) string { return "edges/" + split + ".edges" }

// Kind is the kind of the file of a split; "" if there is no such split. It tells one split's
// blocks from another's.
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

// SplitOf is the split whose files have a kind; "" if none have.
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

// Len is the number of edges.
func (e *Edges) Len() int { return len(e.Src) }

// Slice is the edges [from, to), which share their memory with e.
func (e *Edges) Slice(from, to int) Edges {
	out := Edges{Src: e.Src[from:to], Dst: e.Dst[from:to]}
	if e.Rel != nil {
		out.Rel = e.Rel[from:to]
	}
	return out
}

// Spec is what the edges of a file are of. It decides the layout of a block.
type Spec struct {
	Kind  string
	UUID  kv.UUID
	Nodes uint64 // ends are below it
	Types int    // types are below it; 0 if edges have no type
}

// SpecOf is the spec of a file of a kind of the store.
func SpecOf(m *kv.Meta, kind string) Spec {
	return Spec{Kind: kind, UUID: m.UUID, Nodes: m.Nodes, Types: len(m.EdgeTypes)}
}

// EdgeBytes is what an edge takes in a block, with a type or without.
func EdgeBytes(typed bool) int {
	if typed {
		return 10
	}
	return 8
}

// PerBlock is how many edges a full block has.
func (s *Spec) PerBlock() int { return (layout.PageBytes - blockHead) / EdgeBytes(s.Types > 0) }

// fields are what the header adds, before the fields of who keeps the file.
func (s *Spec) fields() []byte {
	e := codec.Enc{}
	e.U32(fileLayout)
	e.U64(s.Nodes)
	e.U32(uint32(s.Types))
	return e.B
}

// header is the first block of a file; own are the fields of who keeps it.
func (s *Spec) header(own []byte) []byte {
	return codec.Header{Kind: s.Kind, UUID: s.UUID, Fields: append(s.fields(), own...)}.Encode()
}

// checkFields compares the fields of a header with what they should be, and returns the fields of
// who keeps the file.
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

// encodeBlock writes block number n, from 1, of edges that fit in it to b, which is a page.
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
	seal(s, b, n)
}

// seal writes the checksum of block n.
func seal(s *Spec, b []byte, n uint64) {
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

// verify checks what a block says of itself and returns how many edges it has.
func (s *Spec) verify(b []byte, n uint64) (count int, err error) {
	want := binary.LittleEndian.Uint32(b)
	if got := codec.BlockSum(s.Kind, s.UUID, n, b[4:layout.PageBytes]); got != want {
		return 0, fmt.Errorf("checksum is %08x, its bytes give %08x", want, got)
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

// checkEdges checks the edges from number first on.
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
