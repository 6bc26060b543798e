package partition

import (
	"fmt"
	"slices"

	"gdb/kv"
)

// DealSpec says how the nodes of a graph are dealt to partitions.
type DealSpec struct {
	Nodes uint64
	Parts int
	// Piece is how many consecutive nodes stay together, so that they are read together. Pieces are
	// dealt at random, by Seed.
	Piece uint64
	Seed  uint64
	// First lists nodes, ascending, that fill the first partitions, as training nodes do in
	// Sequential of Marius++; nil for none. They must not change.
	First []kv.NodeID
	// Bounds, if it is not nil, makes partition p the nodes Bounds[p] … Bounds[p+1]-1. Parts,
	// Piece, Seed and First are not read then. It must not change.
	Bounds []kv.NodeID
}

// Deal says which partition each node is in. It is computed, not stored, except for the sizes of
// partitions. Any goroutine may call its methods.
type Deal struct {
	spec  DealSpec
	full  uint64 // nodes of a partition that First fills
	first int    // number of partitions that First fills, the last perhaps in part
	rest  Map
	sizes []uint64
	// guide has, for each run of 1<<shift nodes, the partition of the first of them; for Bounds.
	guide []uint16
	shift uint
}

// NewDeal deals nodes out. It visits every piece once, and every node of First.
func NewDeal(spec DealSpec) (*Deal, error) {
	if spec.Bounds != nil {
		return newRanges(spec)
	}
	if spec.Piece < 1 || spec.Nodes < 1 || spec.Parts < 1 {
		return nil, fmt.Errorf("layout: %d nodes in pieces of %d for %d partitions", spec.Nodes,
			spec.Piece, spec.Parts)
	}
	d := &Deal{spec: spec, full: (spec.Nodes + uint64(spec.Parts) - 1) / uint64(spec.Parts),
		sizes: make([]uint64, spec.Parts)}
	d.first = TrainParts(spec.Nodes, spec.Parts, len(spec.First))
	var err error
	d.rest, err = New(Spec{Nodes: (spec.Nodes + spec.Piece - 1) / spec.Piece,
		Parts: max(1, spec.Parts-d.first), Random: true, Seed: spec.Seed})
	if err != nil {
		return nil, err
	}
	all := slices.Repeat([]bool{true}, spec.Parts)
	d.each(all, func(part int, nodes []kv.NodeID, from, to uint64) {
		d.sizes[part] += uint64(len(nodes)) + to - from
	})
	return d, nil
}

// newRanges returns partitions that are ranges of nodes.
func newRanges(spec DealSpec) (*Deal, error) {
	parts, bounds := len(spec.Bounds)-1, spec.Bounds
	if parts < 1 || parts > Most || bounds[0] != 0 || uint64(bounds[parts]) != spec.Nodes {
		return nil, fmt.Errorf("layout: bounds of %d partitions of %d nodes: want 1 to %d that "+
			"begin with 0 and end with the number of nodes", parts, spec.Nodes, Most)
	}
	spec.Parts = parts
	d := &Deal{spec: spec, sizes: make([]uint64, parts)}
	for p := range parts {
		if bounds[p] >= bounds[p+1] {
			return nil, fmt.Errorf("layout: partition %d begins with node %d and ends before %d", p,
				bounds[p], bounds[p+1])
		}
		d.sizes[p] = uint64(bounds[p+1] - bounds[p])
	}
	for spec.Nodes>>d.shift > guideRuns*uint64(parts) {
		d.shift++
	}
	part := 0
	for v := uint64(0); v < spec.Nodes; v += 1 << d.shift {
		for uint64(bounds[part+1]) <= v {
			part++
		}
		d.guide = append(d.guide, uint16(part))
	}
	return d, nil
}

// guideRuns is how many runs of nodes a guide has for each partition: most runs are in one
// partition then.
const guideRuns = 8

// Range returns the nodes from … to-1 of a partition that is a range.
func (d *Deal) Range(part int) (from, to kv.NodeID) {
	return d.spec.Bounds[part], d.spec.Bounds[part+1]
}

// Ranges says whether partitions are ranges of nodes.
func (d *Deal) Ranges() bool { return d.spec.Bounds != nil }

// TrainParts returns how many of the partitions the training nodes fill: k = ⌈T / (|V|/p)⌉ (Waleffe
// et al., "Marius++", section 5.3).
func TrainParts(nodes uint64, parts, train int) int {
	full := (nodes + uint64(parts) - 1) / uint64(parts)
	return int((uint64(train) + full - 1) / full)
}

// Nodes returns the number of nodes of the graph.
func (d *Deal) Nodes() uint64 { return d.spec.Nodes }

// Parts returns the number of partitions.
func (d *Deal) Parts() int { return d.spec.Parts }

// Size returns the number of nodes of a partition.
func (d *Deal) Size(part int) uint64 { return d.sizes[part] }

// Most returns the largest number of nodes that this number of partitions has together.
func (d *Deal) Most(parts int) (n uint64) {
	sorted := slices.Sorted(slices.Values(d.sizes))
	for _, size := range sorted[len(sorted)-min(parts, len(sorted)):] {
		n += size
	}
	return n
}

// Part returns the partition of a node.
func (d *Deal) Part(v kv.NodeID) int {
	if d.guide != nil {
		p := int(d.guide[v>>d.shift])
		for d.spec.Bounds[p+1] <= v {
			p++
		}
		return p
	}
	if i, found := slices.BinarySearch(d.spec.First, v); found {
		return int(uint64(i) / d.full)
	}
	return d.piecePart(uint64(v) / d.spec.Piece)
}

// piecePart returns the partition of the nodes of a piece that are not in First.
func (d *Deal) piecePart(piece uint64) int {
	part, _ := d.rest.Place(kv.NodeID(piece))
	return min(d.first+part, d.spec.Parts-1)
}

// EachNode calls fn with the nodes of the partitions p for which in[p] is true, ascending, and with
// the partition of each.
func (d *Deal) EachNode(in []bool, fn func(part int, v kv.NodeID)) {
	d.each(in, func(part int, nodes []kv.NodeID, from, to uint64) {
		for _, v := range nodes {
			fn(part, v)
		}
		for v := from; v < to; v++ {
			fn(part, kv.NodeID(v))
		}
	})
}

// each calls fn with the nodes of the partitions p for which in[p] is true, ascending: either the
// nodes listed, or from … to-1.
func (d *Deal) each(in []bool, fn func(part int, nodes []kv.NodeID, from, to uint64)) {
	if d.Ranges() {
		for p, from := range d.spec.Bounds[:d.spec.Parts] {
			if in[p] {
				fn(p, nil, uint64(from), uint64(d.spec.Bounds[p+1]))
			}
		}
		return
	}
	first, rank := d.spec.First, uint64(0)
	pieces := (d.spec.Nodes + d.spec.Piece - 1) / d.spec.Piece
	for piece := range pieces {
		part := d.piecePart(piece)
		from := piece * d.spec.Piece
		to := min(from+d.spec.Piece, d.spec.Nodes)
		for rank < uint64(len(first)) && uint64(first[rank]) < to {
			v := uint64(first[rank])
			if in[part] && from < v {
				fn(part, nil, from, v)
			}
			if own := int(rank / d.full); in[own] {
				fn(own, first[rank:rank+1], 0, 0)
			}
			from = v + 1
			rank++
		}
		if in[part] && from < to {
			fn(part, nil, from, to)
		}
	}
}
