package exec

import (
	"math"

	"gdb/kv"
	"gdb/kv/ids"
	"gdb/layout"
)

// Estimates guesses what operators will do from the counts of ingest; it reads nothing. It assumes
// that lists are spread evenly over blocks, and that neighbors are drawn independently.
type Estimates struct{ meta *kv.Meta }

// Estimates returns the estimates for the store of the statement.
func (x *Execution) Estimates() Estimates { return Estimates{x.Graph.Meta()} }

// Degree returns two mean lengths of lists: mean is the mean over all nodes, and met is the mean
// over nodes that are met as neighbors. A node is met as often as it has neighbors, so met gives
// more weight to long lists.
func (e Estimates) Degree(dir layout.Direction) (mean, met float64) {
	hist := e.meta.Stats.InHist
	if dir == layout.Out && len(e.meta.Stats.OutHist) > 0 {
		hist = e.meta.Stats.OutHist
	}
	var sum, squares float64
	for i, n := range hist {
		d := 0.0
		if i > 0 {
			d = 0.75 * math.Exp2(float64(i)) // the middle of 2^(i-1) … 2^i
		}
		if i == 1 {
			d = 1
		}
		sum += d * float64(n)
		squares += d * d * float64(n)
	}
	mean = float64(e.meta.Edges) / float64(max(e.meta.Nodes, 1))
	if sum == 0 {
		return mean, mean
	}
	return mean, squares / sum
}

// share returns the share of edges that have a type; type -1 stands for all types.
func (e Estimates) share(edgeType int) float64 {
	counts := e.meta.Stats.TypeCounts
	if edgeType < 0 || edgeType >= len(counts) {
		return 1
	}
	return float64(counts[edgeType]) / float64(max(e.meta.Edges, 1))
}

// Distinct returns the expected number of different items that n draws from total items meet.
func Distinct(n, total float64) float64 {
	if total <= 0 {
		return 0
	}
	return total * -math.Expm1(-n/total)
}

// fileBlocks returns the number of blocks of a file without its header.
func (e Estimates) fileBlocks(path string, blockBytes int) float64 {
	f, _ := e.meta.File(path)
	return max(float64(f.Size)/float64(max(blockBytes, 1))-1, 0)
}

// ListBlocks estimates how many blocks hold the lists of nodes nodes, which have entries entries
// together.
func (e Estimates) ListBlocks(dir layout.Direction, nodes, entries float64) float64 {
	path, _ := layout.TopologyPaths(dir)
	all := e.fileBlocks(path, e.meta.BlockBytes)
	bytes := entries * float64(e.EntryBytes())
	return min(Distinct(nodes, all)+bytes/float64(max(e.meta.BlockBytes, 1)), all)
}

// EntryBytes returns the size of one entry of a list on disk.
func (e Estimates) EntryBytes() int {
	n := 4
	if len(e.meta.EdgeTypes) > 0 {
		n += 2
	}
	if e.meta.Weighted {
		n += 4
	}
	if e.meta.Timestamped {
		n += 8
	}
	return n
}

// nameBlocks estimates how many blocks hold the external ids of some number of nodes.
func (e Estimates) nameBlocks(nodes float64) float64 {
	return Distinct(nodes, e.fileBlocks(ids.ReversePath, ids.BlockBytes))
}

// RowReads estimates how many reads the rows of some number of nodes take at most: one for each
// row, or one for each page of the file.
func (e Estimates) RowReads(m kv.RowsMeta, nodes float64) float64 {
	return Distinct(nodes, e.fileBlocks(m.Path, m.PageBytes)+1)
}

// hop estimates the edges and the blocks that drawing neighbors for nodes takes. met says that the
// nodes were met as neighbors themselves.
func (e Estimates) hop(dir layout.Direction, nodes float64, fanout int,
	met bool) (edges, blocks float64) {
	mean, ofMet := e.Degree(dir)
	if met {
		mean = ofMet
	}
	edges = nodes * mean
	if fanout > 0 {
		edges = min(edges, nodes*float64(fanout))
	}
	return edges, e.ListBlocks(dir, nodes, 0)
}

// Batch estimates the nodes of a batch of seeds and the blocks that it takes. The batch is sampled
// from in-lists with fanouts or by layers.
func (e Estimates) Batch(seeds float64, fanout, layers []int) (nodes, blocks float64) {
	nodes, frontier := seeds, seeds
	for i := range max(len(fanout), len(layers)) {
		f := 0 // whole lists
		if len(layers) == 0 {
			f = fanout[i]
		}
		edges, read := e.hop(layout.In, frontier, f, i > 0)
		frontier = Distinct(edges, float64(e.meta.Nodes))
		if len(layers) > 0 {
			frontier = min(frontier, float64(layers[i]))
		}
		nodes += frontier
		blocks += read
	}
	return min(nodes, float64(e.meta.Nodes)), blocks
}
