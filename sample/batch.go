// Package sample turns seeds into batches that a training step can use. A Sampler draws the
// neighbors of seeds, hop by hop, and gives the result in the DENSE encoding (Dense); a Pipeline
// samples batches in several goroutines, gathers their features through caches and hands them out
// in order (Batch). A hop is one step away from the seeds, a fanout the number of neighbors drawn
// per node at a hop, and a delta the nodes that a hop adds to a batch.
package sample

import (
	"context"

	"gdb/internal/bug"
	"gdb/internal/dense"
	"gdb/internal/mem"
	"gdb/layout"
	"gdb/layout/rowfile"
)

// NodeID is an internal node id: nodes of a graph are numbered from 0.
type NodeID = layout.NodeID

// All, given as a fanout, takes all neighbors.
const All = -1

// Dense is the delta encoding of a multi-hop sample (Waleffe et al., Marius++, section 4.1): the
// lists of neighbors as positions, and the ids of the nodes. Node NodeIDs[NodeIDOffsets[1]+i] has
// the neighbors Nbrs[NbrOffsets[i]:NbrOffsets[i+1]].
type Dense struct {
	dense.Lists
	// NodeIDs are the nodes of the sample, each once, as deltas: Δ0 | Δ1 | … | Δk. Δk is the seeds
	// and Δ0 the outermost delta. With a Seeding, Times are the times as of which their lists were
	// read, and each pair of node and time stands there once; else Times is empty.
	NodeIDs []NodeID
	Times   []int64
	// Nbrs are the sampled neighbors, parallel to ReprMap. Places are where these stand in their
	// lists, if the sampler has Extras.Places or Extras.Columns.
	Nbrs   []NodeID
	Places []Place
}

// Place is where an entry stands in a list of a node, of a typed store that of its relation: it is
// entry number At of the list, from 0 on. Length is the number of entries that could be drawn, of a
// list as of a time those that count.
type Place struct{ At, Length uint32 }

// placeBytes is the size of a Place, in bytes.
const placeBytes = 8

// Batch is what one training step reads. All slices belong to the batch and are valid until
// Release.
type Batch struct {
	Epoch, Index uint64
	// Seeds are the training nodes: the last delta of Dense, unless a Seeding says with which nodes
	// the batch begins.
	Seeds []NodeID
	// Refresh says that the seeds are not trained on: their hidden states are computed for batches
	// of which they are neighbors outside memory. It has a hop less.
	Refresh bool
	Dense   Dense
	// X is (len(Dense.NodeIDs), Dim) row-major: the features of all nodes, or nil without features.
	X   []float32
	Dim int
	// Table holds rows of features in the memory of their owner, or is nil. If it is set, X has the
	// rows of Δ1 … Δk only, and the first layer reads rows of neighbors here: TableRows, parallel
	// to Dense.Nbrs, are their row numbers.
	Table     []float32
	TableRows []uint32
	// TablePieces is set where rows of Table are pieces, of TableDim values, of the rows of nodes:
	// see rowfile.Split. TableRows are then the row numbers of the pieces of all nodes, those of
	// node i from TablePieces[i] to TablePieces[i+1].
	TablePieces []uint32
	TableDim    int
	// Labels has one class per seed, -1 for no class; nil unless labels are classes.
	Labels []int32
	// Multi is (len(Seeds), Classes) of 0, 1 and NaN for unknown; nil unless nodes have several
	// labels.
	Multi []float32
	// Targets has one number per seed, NaN for no number; nil unless labels are numbers.
	Targets []float32
	// Prepared is what Prepare of a PipelineConfig, or of superbatches, made of the batch; nil for
	// nothing.
	Prepared Prepared

	release func(*Batch)
	shared  bool     // others read the slices too: see Share
	lent    bool     // guarded by the pipeline
	counted int64    // bytes of HeapBytes that are counted in the pipeline's budget
	rows    *Buffer  // the memory of X
	places  []uint32 // memory of TableRows, and off that of TablePieces
	off     []uint32
}

// PieceFloats returns the memory that a batch with its rows in pieces has for them, in values: of
// all pieces, and behind these of the rows of inner nodes, whole.
func PieceFloats(s *rowfile.Split, pieces, inner int) int {
	return max(1, pieces)*s.Dim + inner*s.Wide
}

// HoldPieces has the rows of features be pieces of a table. at returns the row number there of a
// piece, of all that the batch's nodes have, in their order. The rows of Δ1 … Δk are put together
// in the memory of x.
func (b *Batch) HoldPieces(s *rowfile.Split, table, x []float32, at func(i int) uint32) {
	nodes := b.Dense.NodeIDs
	b.off = mem.Resized(b.off, len(nodes)+1)
	s.Offsets(nodes, b.off)
	b.places = mem.Resized(b.places, int(b.off[len(nodes)]))
	for i := range b.places {
		b.places[i] = at(i)
	}
	first := int(b.Dense.NodeIDOffsets[1])
	n := (len(nodes) - first) * s.Wide
	s.Join(b.off[first:], b.places, table, x[:n])
	b.X, b.Dim = x[:n:n], s.Wide
	b.Table, b.TableDim, b.TableRows, b.TablePieces = table, s.Dim, b.places, b.off
}

// forgetRows has the batch have no rows.
func (b *Batch) forgetRows() {
	b.X, b.Table, b.TableRows, b.TablePieces = nil, nil, nil, nil
}

// Prepared is what was made of a batch beside sampling, for its step.
type Prepared interface {
	// Drop gives up what no step took, and keeps memory for the next batch.
	Drop()
	// Free gives up all memory, and returns whether there was any.
	Free() (freed bool)
}

// Batches hands out the batches of an epoch, or the rest of them, in order. A Pipeline samples them
// when they are due; package superbatch samples them ahead.
type Batches interface {
	// Next returns the next batch, io.EOF after the last, or the first error of any stage. The
	// caller releases the batch before it asks for the next. One goroutine may call it.
	Next(ctx context.Context) (*Batch, error)
	// Stats returns what was done so far; it may be called at any time. Its stages include
	// "sample", "gather" and "step", the consumer.
	Stats() PipelineStats
	// Close stops the work on batches that were not handed out, and frees the memory.
	Close() error
}

// Lend makes the next Release call release, once. It is for those who hand out batches that they
// own.
func (b *Batch) Lend(release func(*Batch)) { b.release = release }

// Share returns a view of the batch, for one of several who read it at the same time and write to
// nothing of it. Its Release calls release, once, and leaves the memory to the batch.
func (b *Batch) Share(release func()) *Batch {
	view := *b
	view.shared, view.release = true, func(*Batch) { release() }
	return &view
}

// Release returns the batch's memory to its owner; nothing of the batch may be used afterwards.
// Further calls do nothing.
func (b *Batch) Release() {
	if r := b.release; r != nil {
		b.release = nil
		if !b.shared {
			b.mangle()
		}
		r(b)
	}
}

// Free gives up what was prepared of the batch, and returns whether that had memory. Nothing may be
// computed from it then.
func (b *Batch) Free() (freed bool) { return b.Prepared != nil && b.Prepared.Free() }

// HeapBytes returns the memory of the batch's slices except X, in bytes.
func (b *Batch) HeapBytes() int64 {
	d := &b.Dense
	return 4 * int64(cap(b.Seeds)+cap(d.NodeIDOffsets)+cap(d.NodeIDs)+cap(d.NbrOffsets)+
		cap(d.Nbrs)+cap(d.ReprMap)+cap(d.Weights)+cap(d.Types)+cap(d.Degrees)+
		cap(d.WeightSums)+cap(b.Labels)+cap(b.Multi)+cap(b.Targets)+cap(d.Ends)+2*cap(d.Times)+
		2*cap(d.Places)+cap(d.Columns)+cap(b.places)+cap(b.off))
}

// mangle overwrites the batch in builds with invariants, so that a use after Release shows.
func (b *Batch) mangle() {
	d := &b.Dense
	for _, s := range [][]byte{mem.BytesOf(b.Seeds), mem.BytesOf(d.NodeIDOffsets),
		mem.BytesOf(d.NodeIDs), mem.BytesOf(d.NbrOffsets), mem.BytesOf(d.Nbrs),
		mem.BytesOf(d.ReprMap), mem.BytesOf(d.Weights), mem.BytesOf(d.Types),
		mem.BytesOf(d.Degrees), mem.BytesOf(d.WeightSums), mem.BytesOf(d.Times),
		mem.BytesOf(d.Ends), mem.BytesOf(d.Columns), mem.BytesOf(b.X), mem.BytesOf(b.Labels),
		mem.BytesOf(b.Multi), mem.BytesOf(b.Targets)} {
		bug.Mangle(s)
	}
}
