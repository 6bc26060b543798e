// Package dense holds how the nodes of a mini-batch are connected: the lists of the DENSE encoding
// (Waleffe et al., Marius++, section 4.1) by positions in the batch, without the ids of a graph.
package dense

// Lists are the lists of a multi-hop sample. For k hops the deltas of nodes stand outermost first:
// Δ0 | Δ1 | … | Δk, Δk being the seeds. A node is sampled once, at the hop where it first appears,
// and its list serves all layers.
//
// Layer l (from 0) reads the nodes of Δl … Δk and computes those of Δ(l+1) … Δk. Node
// NodeIDOffsets[1]+i has the entries NbrOffsets[i] to NbrOffsets[i+1] of ReprMap.
type Lists struct {
	// NodeIDOffsets holds where each delta starts, and the number of nodes at the end: k+2 entries.
	NodeIDOffsets []uint32
	// NbrOffsets has one entry for each node of Δ1 … Δk, and len(ReprMap) at the end.
	NbrOffsets []uint32
	// ReprMap holds the position of each neighbor among the nodes.
	ReprMap []uint32
	// Weights are the weights of the edges, parallel to ReprMap, if the sampler was asked for them
	// or draws by them; else it is empty. A sampler of layers always gives them, divided by the
	// probability with which the neighbor was drawn; an edge counts 1 there unless weights were
	// asked for. Types are the numbers of the edges' types, if they were asked for.
	Weights []float32
	Types   []uint32
	// Columns are what models read of each edge besides, as many values for each of ReprMap; empty
	// for none.
	Columns []float32
	// Degrees are the lengths of the whole lists of all nodes, if they were asked for.
	Degrees []uint32
	// WeightSums are the sums of the weights of these lists, if they were asked for.
	WeightSums []float32
	// Ends, of a batch whose seeds are edges, are the places of both ends of each in Δk, one after
	// the other; else it is empty.
	Ends []uint32
}

// Layers returns the number of hops, k.
func (d *Lists) Layers() int { return len(d.NodeIDOffsets) - 2 }

// Nodes returns how many nodes the sample has.
func (d *Lists) Nodes() int { return int(d.NodeIDOffsets[len(d.NodeIDOffsets)-1]) }

// Inner returns how many nodes have a list, though it may be empty; of a batch without hops, the
// number of nodes.
func (d *Lists) Inner() int {
	if d.Layers() == 0 {
		return d.Nodes()
	}
	return d.Nodes() - int(d.NodeIDOffsets[1])
}

// Layer is the view of one layer after the deltas before it were truncated (Marius++, Algorithm 2):
// its inputs are the nodes from Base on, its outputs those from Base+Skip on.
type Layer struct {
	Base uint32 // position of the layer's first input among the nodes
	In   uint32 // number of input nodes
	Skip uint32 // inputs before the first output: size of the layer's first delta
	Out  uint32 // number of output nodes, In - Skip
	// Off are Out+1 offsets into Idx; Idx are input numbers, counted from Base. For layer 0 both
	// alias the Lists; deeper layers are rebased into scratch by the caller of LayerView.
	Off, Idx []uint32
}

// LayerView returns layer l (from 0), with Off and Idx rebased so that they count from the layer's
// first input. It appends to off and idx, which may be nil, and aliases them in the result.
func (d *Lists) LayerView(l int, off, idx []uint32) Layer {
	base, next := d.NodeIDOffsets[l], d.NodeIDOffsets[l+1]
	end := uint32(d.Nodes())
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
