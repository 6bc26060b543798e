package listfile

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"gdb/internal/codec"
	"gdb/kv"
	"gdb/layout"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// Spec says what a topology file holds.
type Spec struct {
	UUID      kv.UUID
	Direction layout.Direction
	Nodes     uint64 // 0 for 4096
	// Lists says which list of a typed store an edge is in; nil if nodes have one list each.
	Lists      *layout.NodeLists
	BlockBytes int // 0 is 4096
	Types      bool
	Weights    bool
	Times      bool
}

// Writer packs lists into blocks. Lists come in node order, each sorted by neighbor id. Both files
// are written in one stream, and memory does not grow with the graph: two write buffers of 1 MiB,
// and the entries of about two blocks.
type Writer struct {
	spec  Spec
	lists *layout.FileWriter
	index indexWriter
	seed  uint32
	edges uint64
	packing
}

// NewWriter creates the file of lists (PREFIX.csc, or PREFIX.csr for out-lists) and its index
// (PREFIX.idx). The caller calls Finish or Abort.
func NewWriter(fs vfs.FS, prefix string, spec Spec) (*Writer, error) {
	spec.BlockBytes = cmp.Or(spec.BlockBytes, blockDefault)
	f := Fields{Version: cellLayout, BlockBytes: spec.BlockBytes, Nodes: spec.Nodes,
		Lists: spec.Nodes, types: spec.Types, weights: spec.Weights, times: spec.Times}
	if spec.Lists != nil {
		f.Lists = spec.Lists.Count()
	}
	shape, err := f.Shape()
	if err != nil {
		return nil, fmt.Errorf("layout: write %s: %w", prefix, err)
	}
	if max(f.Nodes, f.Lists) > layout.MaxNodes {
		return nil, fmt.Errorf("layout: write %s: %d nodes with %d lists are more than the %d ids "+
			"of 32 bits", prefix, f.Nodes, f.Lists, uint64(layout.MaxNodes))
	}
	kind := layout.TopologyKind(spec.Direction)
	w := &Writer{spec: spec, seed: layout.SumSeed(kind, spec.UUID)}
	w.packing = newPacking(&shape, "write "+prefix, w.writeBlock)
	if w.lists, err = layout.CreateFile(fs, prefix+layout.ListsExt(spec.Direction)); err != nil {
		return nil, err
	}
	w.index.PageWriter, err = layout.CreatePages(fs, prefix+".idx",
		codec.Header{Kind: layout.IndexKind(spec.Direction), UUID: spec.UUID, Fields: f.encode()})
	if err == nil {
		err = w.lists.Write(codec.Header{Kind: kind, UUID: spec.UUID, Fields: f.encode()}.Encode())
	}
	if err != nil {
		return nil, errors.Join(err, w.Abort())
	}
	return w, nil
}

// Edge is one entry of a list. Attributes that the spec leaves out are ignored.
type Edge struct {
	Nbr    layout.NodeID
	Type   uint16
	Weight float32
	Time   int64
}

// AddEdge appends an edge to the list of node, in a typed store that by the type of the edge. Lists
// come in ascending order; those that are skipped are empty.
func (w *Writer) AddEdge(node layout.NodeID, e Edge) (err error) {
	if w.spec.Lists != nil {
		if node, err = w.spec.Lists.List(node, e.Type); err != nil {
			return fmt.Errorf("layout: write %s: %w", w.lists.Path, err)
		}
	}
	if !w.any || node != w.node {
		if err := w.openList(node); err != nil {
			return err
		}
	} else if e.Nbr < w.last {
		return fmt.Errorf("layout: write %s: neighbor %d of node %d comes after %d; sort the lists",
			w.lists.Path, e.Nbr, node, w.last)
	}
	if uint64(e.Nbr) >= w.spec.Nodes {
		return fmt.Errorf("layout: write %s: neighbor %d of node %d is not below the %d nodes",
			w.lists.Path, e.Nbr, node, w.spec.Nodes)
	}
	w.pend.ids = append(w.pend.ids, uint32(e.Nbr))
	w.addAttributes(e)
	w.last = e.Nbr
	w.edges++
	if len(w.pend.ids) < w.look {
		return nil
	}
	return w.spill()
}

// AddEdges appends entries from … to-1 of l to the list of node, as AddEdge does. The store is not
// typed, and l has what the spec says. The list is whole if it has no other entries, of which less
// has to be looked at.
func (w *Writer) AddEdges(node layout.NodeID, l *Lists, from, to uint64, whole bool) error {
	if from == to {
		return nil
	}
	if !w.any || node != w.node {
		if err := w.openList(node); err != nil {
			return err
		}
	}
	if last := l.Nbrs[to-1]; uint64(last) >= w.spec.Nodes { // those before are not above it
		return fmt.Errorf("layout: write %s: neighbor %d of node %d is not below the %d nodes",
			w.lists.Path, last, node, w.spec.Nodes)
	}
	w.edges += to - from
	if err := w.sorted(l.Nbrs[from:to]); err != nil {
		return err
	}
	if whole && w.addWhole(l.Nbrs[from:to]) {
		return nil
	}
	return w.add(l, from, to)
}

func (w *Writer) addAttributes(e Edge) {
	v := &w.pend.values
	if w.shape.Types {
		v[typeColumn] = append(v[typeColumn], uint64(e.Type))
	}
	if w.shape.Weights {
		v[weightColumn] = append(v[weightColumn], uint64(math.Float32bits(e.Weight)))
	}
	if w.shape.Times {
		v[timeColumn] = append(v[timeColumn], uint64(e.Time)^1<<63)
	}
}

// openList closes the open list and opens the list of node.
func (w *Writer) openList(node layout.NodeID) error {
	if w.spec.Lists == nil && uint64(node) >= w.spec.Nodes {
		return fmt.Errorf("layout: write %s: node %d is not below the %d nodes", w.lists.Path,
			node, w.spec.Nodes)
	}
	if w.any && node < w.node {
		return fmt.Errorf("layout: write %s: node %d comes after node %d; sort the edges",
			w.lists.Path, node, w.node)
	}
	return w.begin(node)
}

// writeBlock writes a block.
func (w *Writer) writeBlock(b *blockBuilder) error {
	out := b.finish(w.index.blocks + 1)
	binary.LittleEndian.PutUint32(out, layout.NumberedSum(w.seed, out[8:16], out[4:]))
	if err := w.index.add(b.first, b.start); err != nil {
		return err
	}
	return w.lists.Write(out)
}

// Finish writes the last block and the index, syncs both files, and returns their records.
func (w *Writer) Finish() ([]kv.FileMeta, error) {
	if err := w.flush(); err != nil {
		return nil, err
	}
	lists, index := layout.TopologyPaths(w.spec.Direction)
	lm, err := w.lists.Finish(lists, layout.TopologyKind(w.spec.Direction))
	if err != nil {
		return nil, errors.Join(err, w.Abort())
	}
	im, err := w.index.finish(index, w.edges)
	return []kv.FileMeta{lm, im}, err
}

// Abort closes the files without finishing them.
func (w *Writer) Abort() error {
	var err error
	if w.lists != nil {
		err = w.lists.Abort()
	}
	if w.index.PageWriter != nil {
		err = errors.Join(err, w.index.Abort())
	}
	return err
}
