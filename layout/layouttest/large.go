package layouttest

import (
	"fmt"

	"gdb/internal/rng"
	"gdb/layout"
)

// Skewed returns a graph in which one batch takes a large part of the features, because rows are
// wide and most edges begin in few nodes.
func Skewed() Graph {
	const nodes, edges, dim, classes = 8000, 400000, 768, 5
	draw := rng.NewStream(3)
	g := Graph{Nodes: nodes, Dim: dim, Labels: make([]int32, nodes),
		Features: make([]float32, nodes*dim), Splits: map[string][]layout.NodeID{}}
	for k := range classes {
		g.Classes = append(g.Classes, fmt.Sprint("c", k))
	}
	for i := range g.Features {
		g.Features[i] = float32(i%17) / 17
	}
	for range edges {
		src := draw.Below(1 + draw.Below(nodes)) // lower nodes are drawn more often
		g.Edges = append(g.Edges, Edge{Src: layout.NodeID(src),
			Dst: layout.NodeID(draw.Below(nodes))})
	}
	for v := range nodes {
		g.Labels[v] = int32(v % classes)
		switch {
		case v%32 == 5:
			g.Splits["train"] = append(g.Splits["train"], layout.NodeID(v))
		case v%64 == 6:
			g.Splits["val"] = append(g.Splits["val"], layout.NodeID(v))
		}
	}
	return g
}

// ManyLists returns a graph whose lists do not fit in the smallest block cache. Most edges begin in
// few nodes.
func ManyLists() Graph {
	const nodes, edges, dim = 60_000, 3_000_000, 8
	draw := rng.NewStream(4)
	g := Graph{Nodes: nodes, Dim: dim, Labels: make([]int32, nodes),
		Classes: []string{"a", "b"}, Features: make([]float32, nodes*dim),
		Splits: map[string][]layout.NodeID{}}
	for range edges {
		g.Edges = append(g.Edges, Edge{
			Src: layout.NodeID(draw.Below(1 + draw.Below(nodes))),
			Dst: layout.NodeID(draw.Below(nodes))})
	}
	for v := range nodes {
		g.Labels[v] = int32(v % 2)
		if v%100 < 2 {
			name := []string{"train", "val"}[v%100]
			g.Splits[name] = append(g.Splits[name], layout.NodeID(v))
		}
	}
	return g
}
