package bulk

import (
	"gdb/internal/mem"
	"gdb/sample"
)

// held is how many macro-batches are in memory: the one that is sliced, and the next.
const held = 2

// MacroBytes bounds the memory of macro-batches of count batches, scaled from a sampled batch d to
// batches with inner nodes that have lists. It counts each macro-batch while it is drawn, as
// workers' samplers hold it, as it is kept and as it is written. Macro-batches have no more nodes
// than their batches together, nor than the graph.
func MacroBytes(count int, d *sample.Dense, inner int64, graphNodes uint64) int64 {
	if count <= 1 {
		return 0
	}
	have := max(1, int64(d.Inner()))
	scale := func(n int) float64 { return float64(n) * float64(inner) / float64(have) }
	batches := float64(count)
	nodes := min(batches*scale(len(d.NodeIDs)), float64(graphNodes))
	entries := batches * scale(len(d.Nbrs))
	if degree := float64(len(d.Nbrs)) / float64(have); nodes*degree < entries {
		entries = nodes * degree // each node has one list
	}
	perEntry := float64(len(d.Weights)+len(d.Types)) / float64(max(1, len(d.Nbrs)))
	perNode := float64(len(d.Degrees)+len(d.WeightSums)) / float64(max(1, len(d.NodeIDs)))
	// A macro-batch has a partial batch, a Dense of at most twice its size, and the lists of a hop;
	// the sampler has ids, places and extras of a hop, and a table of nodes.
	kept := nodes*(7+4*perNode) + entries*(4+4*perEntry)
	drawing := nodes*(4+perNode) + entries*(2+perEntry)
	words := (held*kept + drawing) * 5 / 4 // lists grow by a quarter
	return mem.HeapCost(int64(4 * words))
}
