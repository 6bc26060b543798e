package layouttest

import (
	"gdb/internal/rng"
	"gdb/layout"
)

// Learnable returns a graph of which labels can be learned: nodes have the classes by turns, and
// larger values in the column of their class than in others. Each has degree in-edges from nodes
// that are drawn. Half of the nodes are in train, and a quarter each in val and test.
func Learnable(nodes, dim, degree int, classes ...string) Graph {
	draw := rng.NewStream(4)
	g := Graph{Nodes: nodes, Dim: dim, Classes: classes, Splits: map[string][]layout.NodeID{}}
	for v := range nodes {
		class := v % len(classes)
		g.Labels = append(g.Labels, int32(class))
		for k := range dim {
			x := float32(draw.Float64())
			if k == class {
				x++
			}
			g.Features = append(g.Features, x)
		}
		for range degree {
			g.Edges = append(g.Edges, Edge{Src: layout.NodeID(draw.Below(uint64(nodes))),
				Dst: layout.NodeID(v)})
		}
		split := []string{"train", "train", "val", "test"}[v%4]
		g.Splits[split] = append(g.Splits[split], layout.NodeID(v))
	}
	return g
}
