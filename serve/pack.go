package serve

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"gdb/internal/bug"
	"gdb/internal/mem"
	"gdb/sample"
	"gdb/sample/loader"
	"gdb/sample/rowcache"
	"gdb/serve/protocol"
)

// alignBytes is the alignment of arrays in an arena: one line of the processor's cache.
const alignBytes = 64

// The names of the arrays of a batch. The numbers of nodes are positions in n_id, where the seeds
// stand first, then the nodes that the first hop adds, and so on.
const (
	arrayRows      = "x"           // (nodes, dim) f4
	arrayNodes     = "n_id"        // (nodes) i8
	arrayEdges     = "edge_index"  // (2, edges) i8: neighbor, node whose neighbor it is
	arrayOffsets   = "indptr"      // (nodes with a list + 1) i8: where the edges of each begin
	arrayTypes     = "edge_type"   // (edges) i8
	arrayWeights   = "edge_weight" // (edges) f4
	arrayPlaces    = "edge_place"  // (edges) i8, if asked for: the number in the list of the node
	arrayNodeTypes = "node_type"   // (nodes) i8, of a lookup
	arrayLabels    = "y"           // (seeds) i8 or f4, or (seeds, classes) f4
)

// shelf lays arrays out in an arena, one behind the other.
type shelf struct {
	arrays []protocol.Array
	bytes  int
}

// add places an array and rounds its size up to whole cache lines.
func (s *shelf) add(name, kind string, width int, shape ...int) {
	s.addTight(name, kind, width, shape...)
	s.bytes = (s.bytes + alignBytes - 1) &^ (alignBytes - 1)
}

// addTight places an array right behind the one before, with no gap after it.
func (s *shelf) addTight(name, kind string, width int, shape ...int) {
	n := width
	for _, k := range shape {
		n *= k
	}
	s.arrays = append(s.arrays, protocol.Array{Name: name, Type: kind, Shape: shape,
		Offset: s.bytes})
	s.bytes += n
}

// in returns the memory of an arena from the offset of an array on; nil if there is no such array.
func (s *shelf) in(b []byte, name string) []byte {
	i := slices.IndexFunc(s.arrays, func(a protocol.Array) bool { return a.Name == name })
	if i < 0 {
		return nil
	}
	return b[s.arrays[i].Offset:]
}

// packer writes batches into arenas. Only one goroutine may use it.
type packer struct {
	features rowcache.Features // nil for none
	classes  int               // of multi-labels
	nodes    []sample.NodeID   // of the batch being packed, the seeds first
	numbers  []uint32          // the place in nodes of each node of Dense
}

// newPacker returns a packer for the batches of a source.
func newPacker(src *loader.Source) packer {
	p := packer{features: src.Features}
	if src.Labels != nil {
		p.classes = src.Labels.Classes()
	}
	return p
}

// pack writes a batch into an arena that it takes from a pool.
func (p *packer) pack(ctx context.Context, b *sample.Batch, pool *pool,
	took *times) (item, error) {
	on := p.layout(b)
	a, err := pool.Take(ctx, int64(on.bytes))
	if err != nil {
		return item{}, err
	}
	m, err := p.write(ctx, b, on, a, took)
	if err != nil {
		pool.Put(a)
		return item{}, err
	}
	took.batches.Add(1)
	return item{arena: a, batch: m}, nil
}

// layout returns where the arrays of a batch stand in an arena.
func (p *packer) layout(b *sample.Batch) *shelf {
	s, d := &shelf{}, &b.Dense
	if p.features != nil {
		s.add(arrayRows, "f4", 4, len(d.NodeIDs), p.features.Dim())
	}
	s.add(arrayNodes, "i8", 8, len(d.NodeIDs))
	s.add(arrayEdges, "i8", 8, 2, len(d.Nbrs))
	s.add(arrayOffsets, "i8", 8, d.Inner()+1)
	if len(d.Types) > 0 {
		s.add(arrayTypes, "i8", 8, len(d.Nbrs))
	}
	if len(d.Weights) > 0 {
		s.add(arrayWeights, "f4", 4, len(d.Nbrs))
	}
	if len(d.Places) > 0 {
		s.add(arrayPlaces, "i8", 8, len(d.Nbrs))
	}
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

// lentBytes returns the bytes that a node of a batch, without its features, and an edge take in an
// arena: see packer.layout. types, weights and places say whether edges have them.
func lentBytes(types, weights, places bool) (node, edge int64) {
	node, edge = 8+8, 2*8 // the node and where its list begins; the two ends of the edge
	if types {
		edge += 8
	}
	if weights {
		edge += 4
	}
	if places {
		edge += 8
	}
	return node, edge
}

// write fills an arena with a batch and returns its description. The lists are written while the
// features are gathered.
func (p *packer) write(ctx context.Context, b *sample.Batch, s *shelf, a *arena,
	took *times) (m *protocol.Batch, err error) {
	p.turn(&b.Dense)
	var lists sync.WaitGroup
	lists.Go(func() {
		defer bug.Catch()
		begun := time.Now()
		m = p.lists(b, s, a)
		since(&took.pack, begun)
	})
	if p.features != nil {
		begun, rows := time.Now(), mem.View[float32](s.in(a.Bytes(), arrayRows))
		if rows = rows[:len(p.nodes)*p.features.Dim()]; b.X != nil {
			copyTurned(rows, b)
		} else {
			err = p.features.Gather(ctx, p.nodes, rows)
		}
		since(&took.gather, begun)
	}
	lists.Wait()
	if err != nil {
		return nil, fmt.Errorf("serve: gather features: %w", err)
	}
	return m, nil
}

// turn lists the nodes of a sample with the seeds first, and finds the new number of each.
func (p *packer) turn(d *sample.Dense) {
	p.nodes, p.numbers = p.nodes[:0], mem.Resize(p.numbers, len(d.NodeIDs))
	for k := d.Layers(); k >= 0; k-- {
		first, end := d.NodeIDOffsets[k], d.NodeIDOffsets[k+1]
		for i := range p.numbers[first:end] {
			p.numbers[first:end][i] = uint32(len(p.nodes) + i)
		}
		p.nodes = append(p.nodes, d.NodeIDs[first:end]...)
	}
}

// copyTurned copies the rows of a batch, the seeds' first.
func copyTurned(to []float32, b *sample.Batch) {
	d := &b.Dense
	for k := d.Layers(); k >= 0; k-- {
		first, end := int(d.NodeIDOffsets[k])*b.Dim, int(d.NodeIDOffsets[k+1])*b.Dim
		to = to[copy(to, b.X[first:end]):]
	}
}

// lists writes all arrays of a batch except its features, and returns the description of the batch.
func (p *packer) lists(b *sample.Batch, s *shelf, a *arena) *protocol.Batch {
	d, to := &b.Dense, a.Bytes()
	m := &protocol.Batch{Arena: a.ID, Bytes: (len(to) + 4095) &^ 4095, Epoch: b.Epoch,
		Index: b.Index, Seeds: len(b.Seeds), Arrays: s.arrays}
	for k := d.Layers(); k >= 0; k-- {
		m.HopNodes = append(m.HopNodes, int(d.NodeIDOffsets[k+1]-d.NodeIDOffsets[k]))
	}
	widen(mem.View[int64](s.in(to, arrayNodes)), p.nodes)
	m.HopEdges = writeEdges(d, p.numbers, mem.View[int64](s.in(to, arrayEdges)),
		mem.View[int64](s.in(to, arrayOffsets)))
	if len(d.Types) > 0 {
		types := mem.View[int64](s.in(to, arrayTypes))
		byHop(d, func(at, first, end uint32) { widen(types[at:], d.Types[first:end]) })
	}
	if len(d.Weights) > 0 {
		weights := mem.View[float32](s.in(to, arrayWeights))
		byHop(d, func(at, first, end uint32) { copy(weights[at:], d.Weights[first:end]) })
	}
	if len(d.Places) > 0 {
		places := mem.View[int64](s.in(to, arrayPlaces))
		byHop(d, func(at, first, end uint32) {
			for i, p := range d.Places[first:end] {
				places[int(at)+i] = int64(p.At)
			}
		})
	}
	switch y := s.in(to, arrayLabels); {
	case len(b.Multi) > 0:
		copy(mem.View[float32](y), b.Multi)
	case len(b.Targets) > 0:
		copy(mem.View[float32](y), b.Targets)
	case len(b.Labels) > 0:
		widen(mem.View[int64](y), b.Labels)
	}
	return m
}

// widen converts numbers to 64 bits.
func widen[T ~uint32 | ~int32](to []int64, from []T) {
	to = to[:len(from)]
	for i, v := range from {
		to[i] = int64(v)
	}
}

// writeEdges writes the edges of a sample hop by hop, with the new numbers of the nodes. edges has
// the shape (2, len(d.Nbrs)); offsets receives where the edges of each node begin. It returns the
// number of edges of each hop.
func writeEdges(d *sample.Dense, numbers []uint32, edges, offsets []int64) (hops []int) {
	all := len(d.Nbrs)
	from, to := edges[:all], edges[all:2*all]
	node, at := 0, 0
	offsets[0] = 0
	for k := d.Layers(); k > 0; k-- {
		first := at
		list := d.NbrOffsets[d.NodeIDOffsets[k]-d.NodeIDOffsets[1]:]
		reprs := d.ReprMap[list[0]:list[d.NodeIDOffsets[k+1]-d.NodeIDOffsets[k]]]
		part := from[at : at+len(reprs)]
		for i, r := range reprs {
			part[i] = int64(numbers[r])
		}
		for i := range d.NodeIDOffsets[k+1] - d.NodeIDOffsets[k] {
			column := to[at : at+int(list[i+1]-list[i])]
			for j := range column {
				column[j] = int64(node)
			}
			at += len(column)
			node++
			offsets[node] = int64(at)
		}
		hops = append(hops, at-first)
	}
	return hops
}

// byHop calls fn once for each hop: the edges that stand from first to end in the sample stand from
// at on in the batch.
func byHop(d *sample.Dense, fn func(at, first, end uint32)) {
	at := uint32(0)
	for k := d.Layers(); k > 0; k-- {
		base := d.NodeIDOffsets[1]
		first, end := d.NbrOffsets[d.NodeIDOffsets[k]-base], d.NbrOffsets[d.NodeIDOffsets[k+1]-base]
		fn(at, first, end)
		at += end - first
	}
}
