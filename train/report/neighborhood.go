package report

import (
	"fmt"

	"gdb/internal/chart"
	"gdb/internal/dense"
)

// NeighborhoodFanout is how many neighbors of a node are drawn, hop by hop: at most 55 nodes.
var NeighborhoodFanout = []int{9, 5}

// Neighborhood is a sample around a node.
type Neighborhood struct {
	Lists *dense.Lists // of one seed
	// Names are the ids of the nodes, and Of what each is: a class or a type, "" for nothing.
	Names, Of []string
	// Link returns the address of a node's page; nil for none.
	Link func(id string) string
}

// SVG draws the sample: the node is in the middle, its neighbors around it, and theirs outside.
func (n *Neighborhood) SVG() []byte {
	d := n.Lists
	r := &chart.Rings{}
	var group []int
	r.Groups, group = groups(n.Of)
	for i, name := range n.Names {
		node := chart.RingNode{Name: name, Detail: name, Ring: hops(d, uint32(i)), Group: group[i]}
		if n.Of[i] != "" {
			node.Detail += ": " + n.Of[i]
		}
		if n.Link != nil {
			node.Link = n.Link(name)
		}
		r.Nodes = append(r.Nodes, node)
	}
	first := len(n.Names) - d.Inner()
	for i := range d.Inner() {
		for _, from := range d.ReprMap[d.NbrOffsets[i]:d.NbrOffsets[i+1]] {
			r.Edges = append(r.Edges, chart.RingEdge{From: int(from), To: first + i, Weight: 0.4})
		}
	}
	seed := n.Names[len(n.Names)-1]
	r.Title = fmt.Sprintf("Neighborhood of %s", seed)
	r.Note = fmt.Sprintf("%d nodes and %d edges: at most %d neighbors of the node, drawn at "+
		"random, and %d of each of these", len(r.Nodes), len(r.Edges), NeighborhoodFanout[0],
		NeighborhoodFanout[1])
	return r.SVG()
}

// hops returns how far the node at a place of a sample is from its seeds.
func hops(d *dense.Lists, at uint32) int {
	delta := 0
	for delta < d.Layers() && at >= d.NodeIDOffsets[delta+1] {
		delta++
	}
	return d.Layers() - delta
}
