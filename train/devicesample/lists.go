package devicesample

import (
	"context"
	"fmt"

	"gdb/compute/backend"
	"gdb/internal/mem"
	"gdb/layout"
	"gdb/layout/topology"
)

const (
	// partNodes and partEntries bound what is read of lists at a time.
	partNodes, partEntries = 1 << 14, 1 << 16
	// readBytes is the memory for that: numbers of nodes, lengths, offsets, positions, entries,
	// and what a paged reader takes for them.
	readBytes = partNodes*(3*4+16) + partEntries*(2*4+16)
)

// neighbors are the lists of a topology, as a device reads them in. They are read in parts, so that
// no hub's list is in memory as a whole, whatever the form of the topology.
func neighbors(ctx context.Context, t topology.Reader, budget *mem.Budget) backend.Neighbors {
	n := backend.NeighborsOf(t.Nodes(), t.Edges())
	n.Each = func(degrees, entries func([]uint32) error) error {
		held := mem.NewAccount(budget, "lists for the device")
		if err := held.Add(readBytes); err != nil {
			return err
		}
		defer held.Release()
		r := listReader{session: t.NewSession(), total: t.Nodes(), entries: entries}
		defer r.session.Release()
		for first := uint64(0); first < r.total; first += partNodes {
			if err := r.read(ctx, first, min(r.total, first+partNodes), degrees); err != nil {
				return err
			}
		}
		return nil
	}
	return n
}

// listReader reads lists of nodes one after the other.
type listReader struct {
	session  topology.Session
	total    uint64
	entries  func([]uint32) error
	nodes    []layout.NodeID
	degrees  []uint32
	off, pos []uint32
	nbrs     []layout.NodeID
}

// read reads the lists of nodes first … end-1.
func (r *listReader) read(ctx context.Context, first, end uint64,
	degrees func([]uint32) error) error {
	r.nodes, r.degrees = r.nodes[:0], mem.Resize(r.degrees, int(end-first))
	for v := first; v < end; v++ {
		r.nodes = append(r.nodes, layout.NodeID(v))
	}
	if err := r.session.Degrees(ctx, r.nodes, r.degrees); err != nil {
		return err
	}
	if err := degrees(r.degrees); err != nil {
		return err
	}
	total := uint64(0)
	for _, d := range r.degrees {
		total += uint64(d)
	}
	for from := uint64(0); from < total; from += partEntries {
		if err := r.gather(ctx, from, min(total, from+partEntries)); err != nil {
			return err
		}
	}
	return nil
}

// gather reads entries from … end-1 of these lists, counted over all of them.
func (r *listReader) gather(ctx context.Context, from, end uint64) error {
	r.off, r.pos = append(r.off[:0], 0), r.pos[:0]
	before := uint64(0)
	for _, d := range r.degrees {
		last := before + uint64(d)
		for e := max(from, before); e < min(end, last); e++ {
			r.pos = append(r.pos, uint32(e-before))
		}
		r.off, before = append(r.off, uint32(len(r.pos))), last
	}
	r.nbrs = mem.Resize(r.nbrs, len(r.pos))
	if err := r.session.Gather(ctx, r.off, r.pos, r.nbrs); err != nil {
		return err
	}
	for _, v := range r.nbrs {
		if uint64(v) >= r.total {
			return fmt.Errorf("an edge leads to node %d: the graph has %d nodes", v, r.total)
		}
	}
	return r.entries(mem.View[uint32](mem.BytesOf(r.nbrs)))
}
