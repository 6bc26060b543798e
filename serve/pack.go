package serve

import (
	"context"
	"fmt"
	"slices"

	"gdb/internal/mem"
	"gdb/sample"
	"gdb/serve/arena"
	"gdb/serve/protocol"
)

// alignBytes is what arrays in an arena are aligned to: a line of the cache.
const alignBytes = 64

// Names of the arrays of a batch. Numbers of nodes are counted in n_id: the seeds stand first, then
// what the first hop adds, and so on.
const (
	arrayRows    = "x"          // (nodes, dim) f4
	arrayNodes   = "n_id"       // (nodes) i8
	arrayEdges   = "edge_index" // (2, edges) i8: neighbor, node whose neighbor it is
	arrayOffsets = "indptr"     // (nodes with a list + 1) i8: where the edges of each begin
	arrayLabels  = "y"          // (seeds) i8 or f4, or (seeds, classes) f4
)

// shelf lays arrays out in an arena.
type shelf struct {
	arrays []protocol.Array
	bytes  int
}

// add takes place for an array.
func (s *shelf) add(name, kind string, width int, shape ...int) {
	n := width
	for _, k := range shape {
		n *= k
	}
	s.arrays = append(s.arrays, protocol.Array{Name: name, Type: kind, Shape: shape,
		Offset: s.bytes})
	s.bytes += (n + alignBytes - 1) &^ (alignBytes - 1)
}

// in is the memory of an array, from its offset on.
func (s *shelf) in(b []byte, name string) []byte {
	i := slices.IndexFunc(s.arrays, func(a protocol.Array) bool { return a.Name == name })
	if i < 0 {
		return nil
	}
	return b[s.arrays[i].Offset:]
}

// packer writes batches into arenas. It is for one goroutine.
type packer struct {
	features sample.Features // nil for none
	classes  int             // of multi-labels
	nodes    []sample.NodeID // scratch
}

// layout says where the arrays of a batch stand.
func (p *packer) layout(b *sample.Batch) *shelf {
	s, d := &shelf{}, &b.Dense
	if p.features != nil {
		s.add(arrayRows, "f4", 4, len(d.NodeIDs), p.features.Dim())
	}
	s.add(arrayNodes, "i8", 8, len(d.NodeIDs))
	s.add(arrayEdges, "i8", 8, 2, len(d.Nbrs))
	s.add(arrayOffsets, "i8", 8, d.Inner()+1)
	switch {
	case len(b.Multi) > 0:
		s.add(arrayLabels, "f4", 4, len(b.Seeds), p.classes)
	case len(b.Targets) > 0:
		s.add(arrayLabels, "f4", 4, len(b.Seeds))
	case len(b.Labels) > 0:
		s.add(arrayLabels, "i8", 8, len(b.Seeds))
	}
	return s
}

// lists writes all of a batch but its features, and describes it.
func (p *packer) lists(b *sample.Batch, s *shelf, a *arena.Arena) *protocol.Batch {
	d, to := &b.Dense, a.Bytes()
	m := &protocol.Batch{Arena: a.ID, Bytes: (len(to) + 4095) &^ 4095, Epoch: b.Epoch,
		Index: b.Index, Seeds: len(b.Seeds), Arrays: s.arrays}
	nodes := mem.View[int64](s.in(to, arrayNodes))
	p.nodes = p.nodes[:0]
	for k := d.Layers(); k >= 0; k-- {
		delta := d.NodeIDs[d.NodeIDOffsets[k]:d.NodeIDOffsets[k+1]]
		for i, v := range delta {
			nodes[len(p.nodes)+i] = int64(v)
		}
		p.nodes = append(p.nodes, delta...)
		m.HopNodes = append(m.HopNodes, len(delta))
	}
	m.HopEdges = writeEdges(d, mem.View[int64](s.in(to, arrayEdges)),
		mem.View[int64](s.in(to, arrayOffsets)))
	switch y := s.in(to, arrayLabels); {
	case len(b.Multi) > 0:
		copy(mem.View[float32](y), b.Multi)
	case len(b.Targets) > 0:
		copy(mem.View[float32](y), b.Targets)
	case len(b.Labels) > 0:
		for i, c := range b.Labels {
			mem.View[int64](y)[i] = int64(c)
		}
	}
	return m
}

// gather writes the features of the nodes of the batch whose lists were written last.
func (p *packer) gather(ctx context.Context, s *shelf, a *arena.Arena) error {
	if p.features == nil {
		return nil
	}
	rows := mem.View[float32](s.in(a.Bytes(), arrayRows))
	if err := p.features.Gather(ctx, p.nodes, rows[:len(p.nodes)*p.features.Dim()]); err != nil {
		return fmt.Errorf("serve: gather features: %w", err)
	}
	return nil
}

// writeEdges writes the edges of a sample hop by hop, with numbers that count the seeds first:
// edges is (2, len(d.Nbrs)), offsets where those of each node begin. It returns how many each hop
// has.
func writeEdges(d *sample.Dense, edges, offsets []int64) (hops []int) {
	all, shift := len(d.Nbrs), turned(d)
	from, to := edges[:all], edges[all:2*all]
	node, at := 0, 0
	offsets[0] = 0
	for k := d.Layers(); k > 0; k-- {
		first := at
		for i := d.NodeIDOffsets[k]; i < d.NodeIDOffsets[k+1]; i++ {
			list := i - d.NodeIDOffsets[1]
			for _, r := range d.ReprMap[d.NbrOffsets[list]:d.NbrOffsets[list+1]] {
				delta := 0
				for r >= d.NodeIDOffsets[delta+1] {
					delta++
				}
				from[at], to[at] = int64(r)+shift[delta], int64(node)
				at++
			}
			node++
			offsets[node] = int64(at)
		}
		hops = append(hops, at-first)
	}
	return hops
}

// turned is what to add to a node's number in each delta, to count the seeds first.
func turned(d *sample.Dense) []int64 {
	shift, at := make([]int64, d.Layers()+1), int64(0)
	for k := d.Layers(); k >= 0; k-- {
		shift[k] = at - int64(d.NodeIDOffsets[k])
		at += int64(d.NodeIDOffsets[k+1] - d.NodeIDOffsets[k])
	}
	return shift
}
