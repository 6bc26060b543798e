// Package exact computes a model over whole neighbor lists, layer by layer over the whole graph, in
// bounded memory.
package exact

import (
	"context"
	"errors"
	"fmt"
	"math"

	"gdb/compute/backend"
	"gdb/compute/program"
	"gdb/internal/mem"
	"gdb/sample"
	"gdb/sample/loader"
	"gdb/train/model"

	"github.com/RoaringBitmap/roaring/v2"
)

const (
	// Bytes is the least memory that inference takes: for a range of nodes and a window of a file.
	Bytes = 24 << 20
	// HeapBytes is the part of it on the heap: parts of lists, of at most listEdges entries, and
	// the rows of a chunk of nodes.
	HeapBytes = 12 << 20
	// GivenBytes is what a device is given of a chunk of nodes and its lists at most.
	GivenBytes = chunkBytes + 2<<20
	// chunkRowsMax is how many nodes are computed at once at most: enough for full speed.
	chunkRowsMax = 8192
	// chunkBytes bounds all buffers of a chunk of nodes.
	chunkBytes = Bytes * 5 / 12
	// entryFloats bounds what is computed for the entries of a part of lists.
	entryFloats = 1 << 20
)

// Inference computes a model exactly, layer by layer over the whole graph, in bounded memory.
// Every node has all its neighbors, and each layer is computed once for each node.
//
// Only the nodes whose logits are wanted are computed, and those that they need: their neighbors
// in the layer before, and so on. A layer reads a table (the features, or the states of the layer
// before) and writes the next, which has a row for each node that is needed of it.
//
// If the table is in memory, means are taken from it directly. If it is in a file, reading the row
// of every edge would be one random read each; instead the nodes are done in blocks whose means
// and lists fit in memory, and for each block of nodes the table is read once, in sequence, window
// by window: ceil((N·width + E)/memory) sequential readings of the table, one of the lists, and no
// random one. When a layer is narrower than its input, the input is transformed first, so that
// narrow rows are averaged.
type Inference struct {
	Source  *loader.Source
	Backend backend.Backend
	Model   *model.Model
	// Vectors are learned rows that stand behind each node's features, (nodes, width); nil if
	// there are none.
	Vectors []float32
	// Dir is the directory, relative to the store, for states that do not fit in memory. Claim is
	// called before the first is written there; it may be nil.
	Dir   string
	Claim func() error
	// Layers is how many of the model's layers are computed. Run emits the output of the last of
	// these. 0 computes all layers.
	Layers int
	// Hidden, if it is not nil, is called with the hidden states that layer computes of all nodes,
	// in ascending order, whichever nodes' logits are wanted. rows are valid during the call.
	Hidden func(layer int, rows []float32) error
	// OnDisk writes states to files even if they fit in memory, and RowsMax bounds blocks and
	// windows. Tests set them.
	OnDisk  bool
	RowsMax int

	lists *lists
	want  *roaring.Bitmap   // the nodes whose logits are wanted; nil for all
	types []int             // the first nodes of types, where they are others than the model's
	sets  []*sample.NodeSet // nodes needed of the input (0) and of each layer but the last
	files bool              // states were written to files

	// Tests set these: the size of parts of lists, how many entries are held, and a wrapper that
	// hides that a table is in memory.
	partEdges   uint64
	entriesMost int
	wrap        func(table) table
}

// Emit is called with the rows of some nodes. Both slices are valid during the call.
type Emit func(nodes []sample.NodeID, rows []float32) error

// Run computes the logits of the wanted nodes and passes them to emit, in ascending order of ids;
// nil wants all nodes. What emit gets is valid during the call.
func (f *Inference) Run(ctx context.Context, want *roaring.Bitmap,
	emit Emit) (err error) {
	if s := f.Model.Spec(); s.SampledOnly() {
		return fmt.Errorf("exact: %s with columns of edges is computed on sampled neighbors alone "+
			"so far", s.Name())
	}
	f.lists = newLists(f.Source.Topology, f.Source.Budget)
	defer f.lists.close()
	f.lists.limit = f.limit()
	f.want = want
	if err := f.need(ctx); err != nil {
		return errors.Join(err, f.freeSets())
	}
	src := f.wrapped(f.inputTable())
	defer func() { err = errors.Join(err, src.Close(), f.clean(), f.freeSets()) }()
	last := len(f.Model.Dims()) - 2
	if f.Layers > 0 {
		last = min(last, f.Layers-1)
	}
	for i := range last + 1 {
		if i == last {
			return f.layer(ctx, i, src, emit)
		}
		next, err := f.hidden(ctx, i, src)
		if err != nil {
			return err
		}
		if err := src.Close(); err != nil {
			return errors.Join(err, next.Close())
		}
		src = next
	}
	return nil
}

// limit returns how many entries of lists are read at a time.
func (f *Inference) limit() uint64 {
	if f.partEdges > 0 {
		return f.partEdges
	}
	return listEdges
}

// need finds the nodes for which each layer has to be computed, from the last layer backward. A
// layer that is needed for most of the graph is computed for all of it.
func (f *Inference) need(ctx context.Context) error {
	total, top := f.Source.Meta.Nodes, len(f.Model.Dims())-1
	f.sets = make([]*sample.NodeSet, top)
	if f.want == nil || f.Hidden != nil { // all are needed
		return nil
	}
	for i := top - 1; i >= leastSet(f.Model.ExactLayer(0)) && f.rowsOf(i+1) < int(total/2); i-- {
		below, err := sample.NewNodeSet(total, f.Source.Budget)
		if err != nil {
			return err
		}
		f.sets[i] = below
		if i == top-1 {
			below.AddSet(f.want)
		} else {
			copy(below.Words(), f.sets[i+1].Words())
		}
		if len(f.Model.ExactLayer(i).Pulls()) == 0 {
			below.Number()
			continue
		}
		if err := f.addNeighbors(ctx, below, f.nodesOf(i+1)); err != nil {
			return fmt.Errorf("exact: find the nodes that layer %d needs: %w", i+1, err)
		}
		below.Number()
	}
	return nil
}

// leastSet returns the index of the first of Inference.sets that is used. Features are read as they
// are, so which nodes need them only matters where they are transformed first.
func leastSet(first *program.ExactLayer) int {
	if first.Transforms() {
		return 0
	}
	return 1
}

// SetsBytes returns the memory of Inference.sets for a graph of that many nodes, plus what is
// computed for each node of a table in memory, unless that is over an eighth of all memory: then
// the table is read in windows if there is no room.
func SetsBytes(s *model.Spec, nodes uint64, memory int64) int64 {
	columns := int64(0)
	whole := s.ExactLayers()
	if len(whole) == 0 { // Run refuses it
		return 0
	}
	for _, w := range whole {
		columns = max(columns, 4*int64(w.ColumnFloats())*int64(nodes))
	}
	if columns > memory/8 {
		columns = 0
	}
	return int64(s.Layers()-leastSet(whole[0]))*mem.ArenaBytes(sample.NodeSetBytes(nodes)) + columns
}

// nodesOf iterates over the nodes for which a layer is needed, and rowsOf returns how many they
// are. Layer 0 is the input.
func (f *Inference) nodesOf(layer int) sample.NodeIter {
	if layer == len(f.sets) {
		return sample.NodesOf(f.want, f.Source.Meta.Nodes)
	}
	return f.sets[layer].Nodes(f.Source.Meta.Nodes)
}

func (f *Inference) rowsOf(layer int) int {
	if layer == len(f.sets) && f.want != nil {
		return int(f.want.GetCardinality())
	}
	if layer == len(f.sets) {
		return int(f.Source.Meta.Nodes)
	}
	return f.sets[layer].Rows(f.Source.Meta.Nodes)
}

// addNeighbors adds the neighbors of some nodes to a set.
func (f *Inference) addNeighbors(ctx context.Context, to *sample.NodeSet,
	next sample.NodeIter) error {
	buf := make([]sample.NodeID, chunkRowsMax)
	for {
		nodes := next(buf)
		if len(nodes) == 0 {
			return nil
		}
		err := f.lists.read(ctx, nodes, func(_ int, nbrs []uint32) error {
			for _, v := range nbrs {
				to.Add(v)
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
}

func (f *Inference) freeSets() error {
	var err error
	for _, s := range f.sets {
		err = errors.Join(err, s.Free())
	}
	f.sets = nil
	return err
}

// hidden computes the states of layer i and returns them as a table.
func (f *Inference) hidden(ctx context.Context, i int, src table) (table, error) {
	rows := f.rowsOf(i + 1)
	w, err := f.newTable(fmt.Sprintf("states%d", i+1), rows, f.Model.Dims()[i+1])
	if err != nil {
		return nil, err
	}
	err = f.layer(ctx, i, src, func(_ []sample.NodeID, rows []float32) error {
		if err := w.add(rows); err != nil || f.Hidden == nil {
			return err
		}
		return f.Hidden(i, rows)
	})
	if err != nil {
		return nil, errors.Join(err, w.abort())
	}
	return f.finish(ctx, w)
}

func (f *Inference) finish(ctx context.Context, w *tableWriter) (table, error) {
	t, err := w.finish(ctx)
	if err != nil {
		return nil, err
	}
	return f.wrapped(t), nil
}

func (f *Inference) wrapped(t table) table {
	if f.wrap == nil {
		return t
	}
	return f.wrap(t)
}

// layer computes layer i for the nodes that need it, block by block.
func (f *Inference) layer(ctx context.Context, i int, src table, emit Emit) (err error) {
	l := &layerPass{Inference: f, index: i, src: src, from: src, layer: f.Model.ExactLayer(i)}
	if err := f.lists.ask(l.layer); err != nil {
		return err
	}
	if i > 0 {
		l.srcSet, l.fromSet = f.sets[i], f.sets[i]
	}
	if err := l.sizeChunk(); err != nil {
		return fmt.Errorf("exact: layer %d: %w", i+1, err)
	}
	if l.layer.Transforms() {
		l.fromSet = f.sets[i]
		if l.from, err = l.transformAll(ctx); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, l.from.Close()) }()
	}
	l.useWindows()
	if err := l.allocate(); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.free()) }()
	if all := l.from.whole(); all != nil {
		next := l.fromSet.Nodes(l.Source.Meta.Nodes)
		if err := l.fillColumns(ctx, all, l.tableRows(), next); err != nil {
			return err
		}
	}
	left := 0 // nodes of the block before that were left over
	for next := f.nodesOf(i + 1); ; {
		nodes := l.nodes[:left+len(next(l.nodes[left:]))]
		if len(nodes) == 0 {
			return nil
		}
		done, err := l.block(ctx, nodes, emit)
		if err != nil {
			return fmt.Errorf("exact: layer %d: %w", i+1, err)
		}
		left = copy(nodes, nodes[done:])
	}
}

// newTable starts a table of the given number of rows and columns.
func (f *Inference) newTable(name string, rows, width int) (*tableWriter, error) {
	keep := int64(Bytes)
	if f.OnDisk {
		keep = math.MaxInt64 / 2
	}
	w, err := f.tableIn(name, rows, width, keep)
	if err == nil {
		w.half = f.Model.Spec().Half
	}
	f.files = f.files || err != nil || w.file != nil // half a table may be left
	return w, err
}

// clean removes the directory of hidden states, if one was made.
func (f *Inference) clean() error {
	if !f.files {
		return nil
	}
	if f.Dir == "" {
		panic("BUG: exact: hidden states have no directory of their own")
	}
	if err := f.Source.Store.FS().RemoveAll(f.Source.Store.Path(f.Dir)); err != nil {
		return fmt.Errorf("exact: remove hidden states: %w", err)
	}
	return nil
}
