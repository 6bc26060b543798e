// Package sample turns seeds into batches: neighbor sampling to DENSE, feature gathering through
// caches, and the bounded pipeline between sampler, gather and step.
package sample

import (
	"context"

	"gdb/internal/bug"
	"gdb/internal/dense"
	"gdb/internal/mem"
	"gdb/layout"
	"gdb/sample/stages"
)

// NodeID is an internal node id.
type NodeID = layout.NodeID

// All as a fanout takes the whole list.
const All = -1

// Dense is the delta encoding of a multi-hop sample (Waleffe et al., Marius++, section 4.1): the
// lists by positions, and the ids of the nodes. Node NodeIDs[NodeIDOffsets[1]+i] has the neighbors
// Nbrs[NbrOffsets[i]:NbrOffsets[i+1]].
type Dense struct {
	dense.Lists
	// NodeIDs are the nodes of the sample, each once: Δ0 | Δ1 | … | Δk, Δk being the seeds.
	NodeIDs []NodeID
	// Nbrs are the sampled neighbors, parallel to ReprMap.
	Nbrs []NodeID
}

// Batch is what one step trains on. All slices belong to the batch and are valid until Release.
type Batch struct {
	Epoch, Index uint64
	// Seeds are the training nodes: the last delta of Dense.
	Seeds []NodeID
	Dense Dense
	// X is (len(Dense.NodeIDs), Dim) row-major: the features of all nodes, or nil without features.
	X   []float32
	Dim int
	// Table is rows of features in the memory of their owner, or nil. If it is there, X has the
	// rows of Δ1 … Δk only, and the first layer takes those of its neighbors from here:
	// TableRows, parallel to Dense.Nbrs, are their row numbers.
	Table     []float32
	TableRows []uint32
	// Labels has one class per seed (-1: none), for class labels.
	Labels []int32
	// Multi is (len(Seeds), Classes) of 0 and 1, for multi-labels; else nil.
	Multi []float32
	// Targets has one number per seed (NaN: none), for labels that are numbers; else nil.
	Targets []float32

	release func(*Batch)
	counted int64          // bytes of HeapBytes that are in the pipeline's budget
	rows    *stages.Buffer // holds X
}

// Batches hands out batches in their order: those of an epoch, or what is left of it. A Pipeline
// makes them as they are due; package superbatch has sampled them ahead.
type Batches interface {
	// Next returns the next batch, io.EOF after the last, or the first error of any stage. The
	// caller releases the batch before it asks for the next one. It is for one goroutine.
	Next(ctx context.Context) (*Batch, error)
	// Stats may be called at any time. Its stages have names; "sample", "gather" and "step", the
	// consumer, are always there.
	Stats() PipelineStats
	// Close ends the work on batches that were not handed out, and frees the memory.
	Close() error
}

// Lend makes the next Release call back, once: for what hands out batches of its own.
func (b *Batch) Lend(release func(*Batch)) { b.release = release }

// Release gives the batch's memory back to where it came from. Further calls do nothing.
func (b *Batch) Release() {
	if r := b.release; r != nil {
		b.release = nil
		b.mangle()
		r(b)
	}
}

// HeapBytes is the memory of the batch but for X.
func (b *Batch) HeapBytes() int64 {
	d := &b.Dense
	return 4 * int64(cap(b.Seeds)+cap(d.NodeIDOffsets)+cap(d.NodeIDs)+cap(d.NbrOffsets)+
		cap(d.Nbrs)+cap(d.ReprMap)+cap(d.Weights)+cap(d.Types)+cap(d.Degrees)+
		cap(d.WeightSums)+cap(b.Labels)+cap(b.Multi)+cap(b.Targets))
}

// mangle makes a use after release visible, in builds with invariants.
func (b *Batch) mangle() {
	d := &b.Dense
	for _, s := range [][]byte{mem.BytesOf(b.Seeds), mem.BytesOf(d.NodeIDOffsets),
		mem.BytesOf(d.NodeIDs), mem.BytesOf(d.NbrOffsets), mem.BytesOf(d.Nbrs),
		mem.BytesOf(d.ReprMap), mem.BytesOf(d.Weights), mem.BytesOf(d.Types),
		mem.BytesOf(d.Degrees), mem.BytesOf(d.WeightSums), mem.BytesOf(b.X), mem.BytesOf(b.Labels),
		mem.BytesOf(b.Multi), mem.BytesOf(b.Targets)} {
		bug.Mangle(s)
	}
}
