package listfile

import (
	"context"
	"errors"
	"fmt"

	"gdb/blockdev"
	"gdb/internal/codec"
	"gdb/internal/pace"
	"gdb/kv"
	"gdb/layout"
)

// Lists holds the neighbor lists of some nodes. The list of node i is Nbrs[Off[i]:Off[i+1]], sorted
// by id; Types, Weights and Times are parallel to Nbrs, or nil.
type Lists struct {
	Off     []uint64
	Nbrs    []layout.NodeID
	Types   []uint16
	Weights []float32
	Times   []int64

	ends []uint32 // scratch of Decode
}

// File is an opened topology file.
type File struct {
	*layout.File
	Fields
	Shape  Shape
	Seed   uint32
	Blocks int64
	// Numbers says which lists belong to which node; nil if each node has one.
	Numbers *layout.NodeLists
}

// Open opens the lists of a direction, and checks header and size. The caller calls Close.
func Open(ctx context.Context, s *layout.Store, dev blockdev.Device,
	dir layout.Direction) (*File, error) {
	path, _ := layout.TopologyPaths(dir)
	f, err := s.OpenFile(dev, path)
	if err != nil {
		return nil, err
	}
	l := &File{File: f, Seed: layout.SumSeed(layout.TopologyKind(dir), s.Meta().UUID)}
	if err := l.begin(ctx, s, dir); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return l, nil
}

// Described returns a File as the catalog describes it, without reading its header.
func Described(f *layout.File, dir layout.Direction, m *kv.Meta) (*File, error) {
	l := &File{File: f, Fields: FieldsOf(m, dir), Numbers: layout.ListsOf(m, dir),
		Seed: layout.SumSeed(layout.TopologyKind(dir), m.UUID)}
	var err error
	l.Shape, err = l.Fields.Shape()
	return l, err
}

func (l *File) begin(ctx context.Context, s *layout.Store, dir layout.Direction) error {
	var err error
	l.Fields, l.Shape, err = readFields(ctx, l.File, layout.TopologyKind(dir), s.Meta().UUID)
	if err != nil {
		return err
	}
	l.Numbers = layout.ListsOf(s.Meta(), dir)
	if want := layout.CountLists(s.Meta(), dir); l.Nodes != s.Meta().Nodes || l.Lists != want {
		return l.Damage(0, 0, "file has %d lists of %d nodes, the store %d of %d", l.Lists, l.Nodes,
			want, s.Meta().Nodes)
	}
	l.Blocks = (l.Size() - BlockOffset(1, l.BlockBytes)) / int64(l.BlockBytes)
	if m, listed := s.Meta().File(l.Path); listed {
		return l.CheckSize(m.Size)
	}
	return l.CheckSize(BlockOffset(l.Blocks+1, l.BlockBytes))
}

// readFields reads the fields of the header of a topology file or of its index.
func readFields(ctx context.Context, f *layout.File, kind string, uuid kv.UUID) (fields Fields,
	s Shape, err error) {
	h, err := f.ReadHeader(ctx, kind, uuid)
	if err != nil {
		return fields, s, err
	}
	if fields, err = DecodeFields(h.Fields); err == nil {
		s, err = fields.Shape()
	}
	if err != nil {
		err = f.Damage(0, 0, "header: %v", err)
	}
	return fields, s, err
}

// Order follows the blocks of a topology file, and checks that each may come after those before it.
type Order struct {
	next  uint64 // first node that no block so far has a part of
	after uint64 // where the last list ends so far; it may go on
	open  bool   // the last list may go on
	Lost  bool   // the last block was damaged, so anything may follow
}

// take checks that k may follow, and returns the number of nodes without neighbors before it, and
// whether its first list goes on with the last list before it.
func (o *Order) take(s *Shape, k *Block) (gap uint64, cont bool, err error) {
	cont = o.open && k.Start > 0 && uint64(k.First)+1 == o.next
	switch {
	case o.Lost:
		cont = k.Start > 0
		o.next = uint64(k.First)
	case cont && uint64(k.Start) != o.after:
		return 0, cont, fmt.Errorf("%w begins at position %d of node %d's list, want %d",
			ErrBlock, k.Start, k.First, o.after)
	case !cont && uint64(k.First) < o.next:
		return 0, cont, fmt.Errorf("%w begins with node %d, want %d or above", ErrBlock, k.First,
			o.next)
	case !cont && k.Start != 0:
		return 0, cont, fmt.Errorf("%w begins in the middle of node %d's list", ErrBlock, k.First)
	}
	if !cont {
		gap = uint64(k.First) - o.next
	}
	last, err := s.Part(k, k.Slots-1)
	if err != nil {
		return gap, cont, err
	}
	o.next = uint64(k.First) + uint64(k.Slots)
	o.open = k.raw == nil || k.raw.hub
	o.after, o.Lost = uint64(last.Start)+uint64(last.Count), false
	return gap, cont, nil
}

// DamageBlock returns err as damage of block n.
func (l *File) DamageBlock(n int64, err error) error {
	return l.Damage(n, BlockOffset(n, l.BlockBytes), "%v", err)
}

// Each calls fn with every block, verified and in order.
func (l *File) Each(ctx context.Context, fn func(k *Block, gap uint64, cont bool) error) error {
	return l.blocks(ctx, 1, l.Blocks+1, Order{}, fn)
}

// blocks calls fn with the blocks first to last-1, given order as the blocks before left it.
func (l *File) blocks(ctx context.Context, first, last int64, order Order,
	fn func(k *Block, gap uint64, cont bool) error) error {
	from, unit := BlockOffset(first, l.BlockBytes), int64(l.BlockBytes)
	end := BlockOffset(last, l.BlockBytes)
	var k Block // here, so that not each of them is allocated
	var steps pace.Steps
	return l.Stream(ctx, from, end, l.BlockBytes, func(off int64, data []byte) error {
		for i := int64(0); i < int64(len(data)); i += unit {
			n, b := first+(off+i-from)/unit, data[i:i+unit:i+unit]
			var gap uint64
			var cont bool
			var err error
			if k, gap, cont, err = l.Next(n, b, &order); err != nil {
				return l.DamageBlock(n, err)
			}
			if err := fn(&k, gap, cont); err != nil {
				return err
			}
			if err := steps.Took(ctx, pace.Block+int(k.Entries)); err != nil {
				return err
			}
		}
		return nil
	})
}

// Next verifies and parses block n, and checks that it may come there: see Order.
func (l *File) Next(n int64, b []byte, order *Order) (k Block, gap uint64, cont bool,
	err error) {
	if k, err = l.verified(n, b); err == nil {
		gap, cont, err = l.place(&k, order)
	}
	return k, gap, cont, err
}

// verified verifies and parses block n.
func (l *File) verified(n int64, b []byte) (k Block, err error) {
	if err = VerifyBlock(l.Seed, n, b); err != nil {
		return k, err
	}
	if k, err = ParseBlock(&l.Shape, b); err != nil {
		return k, err
	}
	return k, k.CheckIDs(l.Nodes)
}

// place checks that a block may follow those before it: see Order.
func (l *File) place(k *Block, order *Order) (gap uint64, cont bool, err error) {
	gap, cont, err = order.take(&l.Shape, k)
	if err == nil && order.next > l.Lists {
		err = fmt.Errorf("%w ends with list %d of %d", ErrBlock, order.next-1, l.Lists)
	}
	return gap, cont, err
}

// Fields are the fields of the header of a topology file and of its index:
//
//	0        4            8       12      20      28
//	+--------+------------+-------+--------+-------+
//	| layout | blockBytes | flags | nodes  | lists |      flags: 1 types, 2 weights, 4 times
//	+--------+------------+-------+--------+-------+
//
// Lists are left out if there are as many as nodes: those of a typed store have numbers of their
// own, from which the type of an edge follows.
//
// Edges and blocks are in the last page of the index, since they are known only at the end. So both
// files are written in one stream.
type Fields struct {
	Version               uint32 // version of the layout; 0 if only the catalog is known
	BlockBytes            int
	types, weights, times bool // attributes that edges have
	Nodes                 uint64
	Lists                 uint64
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
	if f.Lists != f.Nodes {
		e.U64(f.Lists)
	}
	return e.B
}

// DecodeFields decodes the fields of a header, and checks that they are valid.
func DecodeFields(b []byte) (Fields, error) {
	d := codec.NewDec(b)
	f := Fields{Version: d.U32(), BlockBytes: int(d.U32())}
	flags := d.U32()
	f.types, f.weights, f.times = flags&1 != 0, flags&2 != 0, flags&4 != 0
	f.Nodes = d.U64()
	if f.Lists = f.Nodes; d.Remaining() > 0 {
		f.Lists = d.U64()
	}
	switch {
	case d.Err() != nil:
		return f, d.Err()
	case f.Version < formerLayout || f.Version > cellLayout:
		return f, fmt.Errorf("topology layout %d, this program reads %d to %d: read the store "+
			"with the program that wrote it, or ingest its source again", f.Version, formerLayout,
			cellLayout)
	case flags > 7 || d.Remaining() != 0:
		return f, fmt.Errorf("flags %x and %d further bytes are unknown", flags, d.Remaining())
	case max(f.Nodes, f.Lists) > layout.MaxNodes:
		return f, fmt.Errorf("%d nodes and %d lists are more than ids of 32 bits", f.Nodes, f.Lists)
	}
	_, err := f.Shape()
	return f, err
}

// Shape returns the shape of the blocks of a file with these fields.
func (f *Fields) Shape() (Shape, error) { return newBlockShape(f) }

// FieldsOf returns the fields that the catalog expects in the headers of a topology file and its
// index. It does not know their version.
func FieldsOf(m *kv.Meta, dir layout.Direction) Fields {
	return Fields{BlockBytes: m.BlockBytes, Nodes: m.Nodes, Lists: layout.CountLists(m, dir),
		types: len(m.EdgeTypes) > 0 && !m.Typed(), weights: m.Weighted, times: m.Timestamped}
}

// Agrees reports whether f and o describe the same graph, whatever their versions.
func (f Fields) Agrees(o Fields) bool {
	f.Version = o.Version
	return f == o
}
