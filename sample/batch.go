// Package sample turns seeds into batches: neighbor sampling to DENSE, feature gathering through
// caches, and the bounded pipeline between sampler, gather and step.
package sample

import (
	"context"

	"gdb/internal/invariants"
	"gdb/internal/mem"
	"gdb/layout"
	"gdb/sample/stages"
)

// NodeID is an internal node id.
type NodeID = layout.NodeID

// All as a fanout takes the whole list.
const All = -1

// Dense is the delta encoding of a multi-hop sample (Waleffe et al., Marius++, section 4.1). For k
// hops the deltas stand outermost first: NodeIDs = Δ0 | Δ1 | … | Δk, Δk being the seeds. A node is
// sampled once, at the hop where it first appears, and its sample serves all layers.
//
// Layer l (from 0) reads the nodes of Δl … Δk and computes those of Δ(l+1) … Δk. Node
// NodeIDs[NodeIDOffsets[1]+i] has the neighbors Nbrs[NbrOffsets[i]:NbrOffsets[i+1]].
type Dense struct {
	// NodeIDOffsets holds where each delta starts in NodeIDs, and len(NodeIDs) at the end: k+2
	// entries.
	NodeIDOffsets []uint32
	// NodeIDs are the nodes of the sample, each once.
	NodeIDs []NodeID
	// NbrOffsets has one entry for each node of Δ1 … Δk, and len(Nbrs) at the end.
	NbrOffsets []uint32
	// Nbrs are the sampled neighbors.
	Nbrs []NodeID
	// ReprMap is parallel to Nbrs: the index of each neighbor in NodeIDs.
	ReprMap []uint32
	// Weights are the weights of the edges to Nbrs, parallel to these, of a sampler that was asked
	// for them or draws by them; else it is empty. Of a sampler of layers they are always there,
	// over the probability with which the neighbor was drawn, and those of edges are 1 unless they
	// were asked for. Types are the numbers of their types, of one that was asked for them.
	Weights []float32
	Types   []uint32
	// Degrees are the lengths of the whole lists of NodeIDs, of a sampler that was asked for them.
	Degrees []uint32
	// WeightSums are the sums of the weights of these lists, of a sampler that was asked for them.
	WeightSums []float32
}

// Layers is the number of hops, k.
func (d *Dense) Layers() int { return len(d.NodeIDOffsets) - 2 }

// Inner is how many nodes have a list, though it may be empty; of a batch without hops, how many
// there are.
func (d *Dense) Inner() int {
	if d.Layers() == 0 {
		return len(d.NodeIDs)
	}
	return len(d.NodeIDs) - int(d.NodeIDOffsets[1])
}

// Layer is the view of one layer after the deltas before it were truncated (Marius++, Algorithm 2):
// its inputs are the nodes from Base on, its outputs those from Base+Skip on.
type Layer struct {
	Base uint32 // index in NodeIDs of the layer's first input
	In   uint32 // number of input nodes
	Skip uint32 // inputs before the first output: size of the layer's first delta
	Out  uint32 // number of output nodes, In - Skip
	// Off are Out+1 offsets into Idx; Idx are input numbers, counted from Base. For layer 0 both
	// alias the Dense; deeper layers are rebased into scratch by the caller of LayerView.
	Off, Idx []uint32
}

// LayerView returns layer l (from 0), with Off and Idx rebased so that they count from the layer's
// first input. It appends to off and idx, which may be nil, and aliases them in the result.
func (d *Dense) LayerView(l int, off, idx []uint32) Layer {
	base, next := d.NodeIDOffsets[l], d.NodeIDOffsets[l+1]
	end := d.NodeIDOffsets[len(d.NodeIDOffsets)-1]
	v := Layer{Base: base, In: end - base, Skip: next - base, Out: end - next}
	src := d.NbrOffsets[next-d.NodeIDOffsets[1]:]
	if l == 0 {
		v.Off, v.Idx = src, d.ReprMap
		return v
	}
	first := src[0]
	for _, o := range src {
		off = append(off, o-first)
	}
	for _, r := range d.ReprMap[first:] {
		idx = append(idx, r-base)
	}
	v.Off, v.Idx = off, idx
	return v
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
		invariants.Mangle(s)
	}
}
