package listfile

import (
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
	UUID       kv.UUID
	Direction  layout.Direction
	Nodes      uint64
	BlockBytes int // 0 is 4096
	Types      bool
	Weights    bool
	Times      bool
}

// Writer packs lists into blocks. Lists come in node order, sorted by neighbor id. Both
// files are written in one stream, and memory does not grow with the graph: two write buffers of
// 1 MiB and a block. Disk: 4 bytes per edge (2, 4, 8 more for type, weight, time), 2 per node, and
// 4 per block for the index.
type Writer struct {
	spec  Spec
	shape Shape
	lists *layout.FileWriter
	index *indexWriter
	seed  uint32
	edges uint64

	// The block being filled: its first node, the ends of its closed lists, its entries. The last
	// list is open; its node is node, and it begins at entry open.
	any     bool // there is an open list
	first   layout.NodeID
	node    layout.NodeID
	ends    []uint32
	entries int
	open    int
	last    layout.NodeID // the last id of the open list
	hub     bool
	start   uint32 // a hub's entries in earlier blocks

	ids, types, weights, times []byte
	block                      []byte
}

// NewWriter starts the lists (PREFIX.csc, or PREFIX.csr for out-lists) and their index
// (PREFIX.idx).
func NewWriter(fs vfs.FS, prefix string, spec Spec) (*Writer, error) {
	if spec.BlockBytes == 0 {
		spec.BlockBytes = blockDefault
	}
	f := Fields{BlockBytes: spec.BlockBytes, Nodes: spec.Nodes,
		types: spec.Types, weights: spec.Weights, times: spec.Times}
	shape, err := f.Shape()
	if err != nil {
		return nil, fmt.Errorf("layout: write %s: %w", prefix, err)
	}
	if spec.Nodes > layout.MaxNodes {
		return nil, fmt.Errorf("layout: write %s: %d nodes are more than the %d ids of 32 bits",
			prefix, spec.Nodes, uint64(layout.MaxNodes))
	}
	kind := layout.TopologyKind(spec.Direction)
	w := &Writer{spec: spec, shape: shape, seed: layout.SumSeed(kind, spec.UUID),
		block: make([]byte, spec.BlockBytes)}
	if w.lists, err = layout.CreateFile(fs, prefix+layout.ListsExt(spec.Direction)); err != nil {
		return nil, err
	}
	w.index, err = newIndexWriter(fs, prefix+".idx", layout.IndexKind(spec.Direction), spec.UUID,
		f.encode())
	if err == nil {
		err = w.lists.Write(codec.Header{Kind: kind, UUID: spec.UUID, Fields: f.encode()}.Encode())
	}
	if err != nil {
		return nil, errors.Join(err, w.Abort())
	}
	return w, nil
}

// Edge is one entry of a list; fields that the spec leaves out are ignored.
type Edge struct {
	Nbr    layout.NodeID
	Type   uint16
	Weight float32
	Time   int64
}

// AddEdge appends an edge to the list of node. Nodes come in ascending order; nodes that are
// skipped have empty lists.
func (w *Writer) AddEdge(node layout.NodeID, e Edge) error {
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
	if !w.room() {
		if err := w.makeRoom(); err != nil {
			return err
		}
	}
	le := binary.LittleEndian
	w.ids = le.AppendUint32(w.ids, uint32(e.Nbr))
	if w.shape.entryBytes > IDBytes {
		w.addAttributes(e)
	}
	w.entries++
	w.last = e.Nbr
	w.edges++
	return nil
}

func (w *Writer) addAttributes(e Edge) {
	le := binary.LittleEndian
	if w.shape.Types {
		w.types = le.AppendUint16(w.types, e.Type)
	}
	if w.shape.Weights {
		w.weights = le.AppendUint32(w.weights, math.Float32bits(e.Weight))
	}
	if w.shape.Times {
		w.times = le.AppendUint64(w.times, uint64(e.Time))
	}
}

// room says whether one more entry fits in the block.
func (w *Writer) room() bool {
	if w.hub {
		return uint32(w.entries) < w.shape.HubCapacity
	}
	return w.shape.fits(len(w.ends)+1, w.entries+1)
}

// openList ends the open list and opens that of node, in this block if the empty lists between
// and one entry fit, else in the next.
func (w *Writer) openList(node layout.NodeID) error {
	if uint64(node) >= w.spec.Nodes {
		return fmt.Errorf("layout: write %s: node %d is not below the %d nodes", w.lists.Path,
			node, w.spec.Nodes)
	}
	if w.any && node < w.node {
		return fmt.Errorf("layout: write %s: node %d comes after node %d; sort the edges",
			w.lists.Path, node, w.node)
	}
	fresh := !w.any
	if w.any {
		slots := uint64(node-w.first) + 1
		fresh = w.hub || slots > uint64(w.shape.BlockBytes) ||
			!w.shape.fits(int(slots), w.entries+1)
		if fresh {
			if err := w.endBlock(); err != nil {
				return err
			}
		}
	}
	if fresh {
		w.first = node
	}
	for len(w.ends) < int(node-w.first) {
		w.ends = append(w.ends, uint32(w.entries))
	}
	w.any, w.node, w.open, w.last = true, node, w.entries, 0
	return nil
}

// endBlock closes the open list and writes the block.
func (w *Writer) endBlock() error {
	if !w.hub {
		w.ends = append(w.ends, uint32(w.entries))
	}
	if err := w.writeBlock(w.entries); err != nil {
		return err
	}
	w.drop(w.entries)
	w.hub, w.start = false, 0
	return nil
}

// makeRoom is called when the open list has one entry more than fits. The lists before it are
// written, and it moves to a block of its own; if it has one already it becomes a hub.
func (w *Writer) makeRoom() error {
	switch {
	case w.hub:
		full := uint32(w.entries)
		if err := w.writeBlock(w.entries); err != nil {
			return err
		}
		w.drop(w.entries)
		if uint64(w.start)+2*uint64(full) > math.MaxUint32 {
			return fmt.Errorf("layout: write %s: node %d has more than %d neighbors",
				w.lists.Path, w.node, w.start)
		}
		w.start += full
	case len(w.ends) == 0:
		w.hub = true
	default:
		if err := w.writeBlock(w.open); err != nil {
			return err
		}
		w.drop(w.open)
		w.first, w.open = w.node, 0
	}
	if !w.room() {
		return w.makeRoom()
	}
	return nil
}

// writeBlock writes the closed lists, which are the first n entries.
func (w *Writer) writeBlock(n int) error {
	b, le := w.block, binary.LittleEndian
	clear(b)
	copy(b[4:], blockMagic)
	le.PutUint64(b[8:], w.index.blocks+1)
	b[16] = codecRaw
	le.PutUint32(b[20:], uint32(w.first))
	le.PutUint32(b[24:], uint32(len(w.ends)))
	le.PutUint32(b[28:], uint32(n))
	at := BlockHeaderBytes
	if w.hub {
		b[17] = flagHub
		le.PutUint32(b[24:], w.start)
	} else {
		for i, end := range w.ends {
			if w.shape.SlotBytes == 2 {
				le.PutUint16(b[at+2*i:], uint16(end))
			} else {
				le.PutUint32(b[at+4*i:], end)
			}
		}
		at += w.shape.directoryBytes(len(w.ends))
	}
	at += copy(b[at:], w.ids[:n*IDBytes])
	if w.shape.Types {
		at += copy(b[at:], w.types[:n*TypeBytes])
	}
	if w.shape.Weights {
		at += copy(b[at:], w.weights[:n*WeightBytes])
	}
	if w.shape.Times {
		copy(b[at:], w.times[:n*TimeBytes])
	}
	le.PutUint32(b, layout.NumberedSum(w.seed, b[8:16], b[4:]))
	if err := w.index.add(w.first); err != nil {
		return err
	}
	return w.lists.Write(b)
}

// drop forgets the closed lists, which are the first n entries.
func (w *Writer) drop(n int) {
	w.ends = w.ends[:0]
	w.entries -= n
	shift := func(b []byte, width int) []byte {
		if len(b) == 0 {
			return b
		}
		return b[:copy(b, b[n*width:])]
	}
	w.ids = shift(w.ids, IDBytes)
	w.types = shift(w.types, TypeBytes)
	w.weights = shift(w.weights, WeightBytes)
	w.times = shift(w.times, TimeBytes)
}

// Finish writes the last block and the index, syncs both files, and returns their records.
func (w *Writer) Finish() ([]kv.FileMeta, error) {
	if w.any {
		if err := w.endBlock(); err != nil {
			return nil, err
		}
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
	if w.index != nil {
		err = errors.Join(err, w.index.file.Abort())
	}
	return err
}
