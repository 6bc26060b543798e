// Package devicesample draws batches on the device that a model computes on, which has the lists of
// the graph in its memory. Every draw is a function of the seed, epoch, batch, hop and node, so
// batches have the same bits as those of package sample: who draws one changes nothing.
package devicesample

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"

	"gdb/compute/backend"
	"gdb/internal/mem"
	"gdb/internal/rng"
	"gdb/layout/topology"
	"gdb/sample"
)

// Workers is how many batches are drawn at a time: the host copies one while another is drawn.
const Workers = 2

// Bytes returns about how much memory the batches of a Graph take of the device, beside its lists,
// and of the host.
func Bytes(c backend.DrawConfig) (device, host int64) {
	device, host = c.Bytes()
	return Workers * device, Workers * mem.ArenaBytes(host)
}

// Graph is lists in the memory of a device, and what draws from them. The caller calls Close, after
// all of its drawers are closed.
type Graph struct {
	nodes uint64
	seed  uint64
	hops  int
	lists backend.NeighborLists
	units [Workers]unit
	// drawn and again count the batches that the device drew, and those that the host drew after
	// it.
	drawn, again atomic.Uint64
}

// unit draws one batch at a time.
type unit struct {
	mu     sync.Mutex
	drawer backend.NeighborDrawer
	keys   []uint64
}

// Open copies the lists of one topology, or of two directions, to a device. c says what is drawn
// and how large batches may be there, and seed is the number that draws depend on.
func Open(ctx context.Context, on backend.Device, topos []topology.Reader, c backend.DrawConfig,
	seed uint64, budget *mem.Budget) (*Graph, error) {
	var all []backend.Neighbors
	for _, t := range topos {
		all = append(all, neighbors(ctx, t, budget))
	}
	lists, err := on.Neighbors(all)
	if err != nil {
		return nil, err
	}
	g := &Graph{nodes: topos[0].Nodes(), seed: seed, hops: len(c.Fanout), lists: lists}
	for i := range g.units {
		if g.units[i].drawer, err = lists.Drawer(c); err != nil {
			return nil, errors.Join(err, g.Close())
		}
	}
	return g, nil
}

// Close frees the memory of the device.
func (g *Graph) Close() (err error) {
	for i := range g.units {
		if d := g.units[i].drawer; d != nil {
			err = errors.Join(err, d.Close())
		}
	}
	return errors.Join(err, g.lists.Close())
}

// Lap returns how many batches were drawn on the device since the last call, and how many the host
// drew again since they were larger than planned. Without a graph there are none.
func (g *Graph) Lap() (drawn, again uint64) {
	if g == nil {
		return 0, 0
	}
	return g.drawn.Swap(0), g.again.Swap(0)
}

// Drawer returns what draws on the device, and with samplers of the host what has no room there.
// Its Close closes the samplers.
func (g *Graph) Drawer(host *sample.Samplers) sample.Drawer {
	return &drawer{Samplers: host, graph: g}
}

// drawer draws on the device, and what it cannot draw with samplers of the host.
type drawer struct {
	*sample.Samplers
	graph *Graph
}

// Draw draws the neighborhood of the seeds of a batch.
func (d *drawer) Draw(ctx context.Context, worker int, b *sample.Batch) error {
	drawn, err := d.graph.draw(worker, b)
	if err != nil {
		return err
	}
	if drawn {
		d.graph.drawn.Add(1)
		return nil
	}
	if err := d.Samplers.Draw(ctx, worker, b); err != nil {
		return err
	}
	d.graph.again.Add(1)
	return nil
}

// Try draws a batch on the device if it can, and counts nothing.
func (g *Graph) Try(b *sample.Batch) (drawn bool, err error) { return g.draw(0, b) }

// draw draws on the device. drawn is false if it cannot, as if seeds are not of the graph.
func (g *Graph) draw(worker int, b *sample.Batch) (drawn bool, err error) {
	for _, v := range b.Seeds {
		if uint64(v) >= g.nodes {
			return false, nil
		}
	}
	u := &g.units[worker%Workers]
	u.mu.Lock()
	defer u.mu.Unlock()
	u.keys = u.keys[:0]
	for h := range g.hops {
		u.keys = append(u.keys, rng.Key(g.seed, b.Epoch, b.Index, uint64(h)))
	}
	s, drawn, err := u.drawer.Draw(u.keys, mem.View[uint32](mem.BytesOf(b.Seeds)))
	if err != nil || !drawn {
		return false, err
	}
	take(&b.Dense, &s)
	return true, nil
}

// take copies a sample to d, whose memory it reuses.
func take(d *sample.Dense, s *backend.Sample) {
	d.NodeIDOffsets = append(d.NodeIDOffsets[:0], s.NodeIDOffsets...)
	d.NodeIDs = mem.Resize(d.NodeIDs, len(s.Nodes))
	copy(mem.View[uint32](mem.BytesOf(d.NodeIDs)), s.Nodes)
	d.NbrOffsets = copied(d.NbrOffsets, s.NbrOffsets)
	d.Nbrs = mem.Resize(d.Nbrs, len(s.Neighbors))
	copy(mem.View[uint32](mem.BytesOf(d.Nbrs)), s.Neighbors)
	d.ReprMap = copied(d.ReprMap, s.ReprMap)
	d.Degrees = copied(d.Degrees, s.Degrees)
	d.Weights, d.Types, d.WeightSums = d.Weights[:0], d.Types[:0], d.WeightSums[:0]
}

// copied copies src to dst, or to new memory if it has no room.
func copied(dst, src []uint32) []uint32 {
	dst = mem.Resize(dst, len(src))
	copy(dst, src)
	return dst
}
