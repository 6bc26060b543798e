// Package passes samples many batches at a time from a topology that does not fit in memory. A hop
// of all of them is one pass through the file of lists, in its order: each block is read at most
// once a hop, in large reads, where batches by themselves would read it once for each of them, in
// small ones. Draws are functions of batch, hop and node, so that batches are the same.
package passes

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"gdb/internal/mem"
	"gdb/layout/topology"
	"gdb/sample"
)

// Config says what is sampled.
type Config struct {
	// Windows are what lists are read through. The group has them for itself, and closes them.
	Windows *topology.Windows
	// Sampler makes a sampler that reads from Windows; it is called Workers times.
	Sampler func(t topology.Reader) (*sample.Sampler, error)
	// Order is that of the batches of an epoch, of which each has PerEpoch.
	Order    func(epoch uint64) (*sample.Order, error)
	PerEpoch uint64
	// First is the first step, counted over all epochs, and End the one after the last.
	First, End uint64
	// Workers is the number of goroutines that sample.
	Workers int
	// Room is the memory for batches that were drawn and are not taken yet, and for drawing them:
	// as many are drawn together as it has room for.
	Room int64
	// Budget counts the memory.
	Budget *mem.Budget
}

// WindowsBytes is what windows get of the memory for passes: larger ones than the most do not make
// a pass faster.
func WindowsBytes(memory int64) int64 {
	const share, most = 3, 128 << 20
	return min(memory/share, most)
}

// BatchBytes is what a batch takes of the rest of it at most, with so many nodes, of which so many
// have neighbors, and edges; nodes and edges have so many bytes besides.
func BatchBytes(nodes, inner, edges, ofNode, ofEdge int64) int64 {
	const listed = 12 // of a node with neighbors: where its own begin, and its place in the batch
	return (edgeBytes+ofEdge)*edges + (4+ofNode)*nodes + (nodeBytes+listed)*inner
}

// Group samples a run of batches, as many at a time as there is room for. It may be used from any
// goroutine.
type Group struct {
	cfg      Config
	samplers []*sample.Sampler

	mu    sync.Mutex
	next  uint64 // the first step that was not drawn
	drawn map[uint64]*sample.Partial
	room  mem.Account
	edges []float64 // of a node of each hop, in what was drawn last
	alone bool      // there was no room for a single batch
}

// New returns a group. The caller closes it.
func New(cfg Config) (*Group, error) {
	g := &Group{cfg: cfg, next: cfg.First, drawn: map[uint64]*sample.Partial{},
		room: mem.NewAccount(cfg.Budget, "batches drawn in passes")}
	for range max(1, cfg.Workers) {
		s, err := cfg.Sampler(cfg.Windows)
		if err != nil {
			return nil, errors.Join(err, g.Close())
		}
		g.samplers = append(g.samplers, s)
	}
	return g, nil
}

// Close frees the memory.
func (g *Group) Close() error {
	for _, s := range g.samplers {
		s.Close()
	}
	g.samplers, g.drawn = nil, nil
	g.room.Release()
	return g.cfg.Windows.Close()
}

// Take writes a batch to d, whose memory it reuses, and forgets it. It draws those that follow, if
// the batch was not drawn yet. ok is false if it does not have the batch: it was taken before, or
// there was no room to draw even one.
func (g *Group) Take(ctx context.Context, epoch, batch uint64, d *sample.Dense) (ok bool,
	err error) {
	p, err := g.find(ctx, epoch*g.cfg.PerEpoch+batch)
	if p == nil || err != nil {
		return false, err
	}
	if err := p.Write(ctx, d); err != nil {
		return false, err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	return true, g.room.Add(-p.Bytes())
}

// find takes a batch out, after drawing those up to it; nil if it is not there.
func (g *Group) find(ctx context.Context, step uint64) (*sample.Partial, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for step >= g.next && step < g.cfg.End && !g.alone {
		if err := g.draw(ctx); err != nil {
			var full *mem.LimitError
			if !errors.As(err, &full) {
				return nil, fmt.Errorf("passes: sample from step %d: %w", g.next, err)
			}
			g.alone = true
		}
	}
	p := g.drawn[step]
	delete(g.drawn, step)
	return p, nil
}

// draw draws the next batches: fewer, as long as there is no room for them.
func (g *Group) draw(ctx context.Context) error {
	for most := g.cfg.End - g.next; ; {
		d := &drawing{Group: g, before: g.room.Bytes()}
		err := d.run(ctx, most)
		if err == nil {
			for _, m := range d.members {
				g.drawn[m.Epoch*g.cfg.PerEpoch+m.Batch] = &m.Partial
			}
			g.next += uint64(len(d.members))
			return nil
		}
		var full *mem.LimitError
		n := uint64(len(d.members))
		d.members = nil
		if counted := d.count(); !errors.As(err, &full) || n < 2 || counted != nil {
			return errors.Join(err, counted)
		}
		most = n / 2
	}
}
