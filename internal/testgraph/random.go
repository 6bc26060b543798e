package testgraph

import (
	"math"
	"math/rand/v2"
)

// Edge is an edge of a random graph.
type Edge struct {
	Src, Dst uint32
}

// Random returns edges between nodes that look like those of real graphs: in-degrees follow a
// power law with a few hubs, a third of the nodes have no in-edges, and there are self loops and
// duplicates. The order is random. Equal arguments give equal edges.
func Random(seed uint64, nodes, edges int) []Edge {
	if nodes == 0 {
		return nil
	}
	r := rand.New(rand.NewPCG(seed, uint64(nodes)))
	rank := r.Perm(nodes)
	draw := func(n int) uint32 {
		// The density of x^-1.5, cut to n ranks: the first ranks are the hubs.
		x := math.Pow(r.Float64(), 3) * float64(n)
		return uint32(rank[min(int(x), n-1)])
	}
	out := make([]Edge, edges)
	for i := range out {
		out[i] = Edge{Src: uint32(r.IntN(nodes)), Dst: draw(max(nodes*2/3, 1))}
		switch r.IntN(50) {
		case 0:
			out[i].Src = out[i].Dst
		case 1:
			if i > 0 {
				out[i] = out[r.IntN(i)]
			}
		}
	}
	return out
}
