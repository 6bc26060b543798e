package listfile

import (
	"fmt"

	"gdb/internal/codec"
	"gdb/kv"
	"gdb/layout"
)

// Fields are the fields of the header of a topology file and of its index:
//
//	0        4            8       12      20
//	+--------+------------+-------+--------+
//	| layout | blockBytes | flags | nodes  |      flags: 1 types, 2 weights, 4 times
//	+--------+------------+-------+--------+
//
// Edges and blocks are in the last page of the index, since they are known only at the end. So both
// files are written in one stream.
type Fields struct {
	Version               uint32 // version of the layout; 0 if only the catalog is known
	BlockBytes            int
	types, weights, times bool // attributes that edges have
	Nodes                 uint64
}

// Versions of the layout; only the last one is written. Files of formerLayout have raw blocks, and
// an index without positions. CodedLayout is the first with coded lists, none of which is in cells.
// A program that does not know cells takes them for damage, so it must refuse cellLayout.
const (
	formerLayout = 1
	CodedLayout  = 2
	cellLayout   = 3
)

func (f *Fields) encode() []byte {
	var e codec.Enc
	e.U32(f.Version)
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

// DecodeFields decodes the fields of a header, and checks that they are valid.
func DecodeFields(b []byte) (Fields, error) {
	d := codec.NewDec(b)
	f := Fields{Version: d.U32(), BlockBytes: int(d.U32())}
	flags := d.U32()
	f.types, f.weights, f.times = flags&1 != 0, flags&2 != 0, flags&4 != 0
	f.Nodes = d.U64()
	switch {
	case d.Err() != nil:
		return f, d.Err()
	case f.Version < formerLayout || f.Version > cellLayout:
		return f, fmt.Errorf("topology layout %d, this program reads %d to %d: read the store "+
			"with the program that wrote it, or ingest its source again", f.Version, formerLayout,
			cellLayout)
	case flags > 7 || d.Remaining() != 0:
		return f, fmt.Errorf("flags %x and %d further bytes are unknown", flags, d.Remaining())
	case f.Nodes > layout.MaxNodes:
		return f, fmt.Errorf("%d nodes are more than ids of 32 bits", f.Nodes)
	}
	_, err := f.Shape()
	return f, err
}

// Shape returns the shape of the blocks of a file with these fields.
func (f *Fields) Shape() (Shape, error) { return newBlockShape(f) }

// FieldsOf returns the fields that the catalog expects in the headers of a topology file and its
// index. It does not know their version.
func FieldsOf(m *kv.Meta) Fields {
	return Fields{BlockBytes: m.BlockBytes, Nodes: m.Nodes,
		types: len(m.EdgeTypes) > 0, weights: m.Weighted, times: m.Timestamped}
}

// Agrees reports whether f and o describe the same graph, whatever their versions.
func (f Fields) Agrees(o Fields) bool {
	f.Version = o.Version
	return f == o
}
