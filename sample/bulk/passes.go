package bulk

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"gdb/internal/mem"
	"gdb/layout/topology"
	"gdb/sample"
)

// PassesConfig says what is sampled.
type PassesConfig struct {
	// Windows opens what lists are read through, while batches are drawn.
	Windows func() (*topology.Windows, error)
	// Sampler makes a sampler that reads from windows; it is called Workers times for each group.
	Sampler func(t topology.Reader) (*sample.Sampler, error)
	// Order is that of the batches of an epoch, of which each has PerEpoch.
	Order    func(epoch uint64) (*sample.Order, error)
	PerEpoch uint64
	// First is the first step, counted over all epochs, and End the one after the last.
	First, End uint64
	// Workers is the number of goroutines that sample.
	Workers int
	// Room is the memory for batches that were drawn and are not taken yet, and for drawing them:
	// as many are drawn together as it has room for. WindowBytes is what windows take besides.
	Room, WindowBytes int64
	// Stage reads rows of features ahead, in what is left of both while no batches are drawn; nil
	// for none.
	Stage PassStage
	// Budget counts the memory.
	Budget *mem.Budget
}

// PassWindowsBytes is what windows get of the memory for passes: larger ones than the most do not
// make a pass faster.
func PassWindowsBytes(memory int64) int64 {
	const share, most = 3, 128 << 20
	return min(memory/share, most)
}

// PassBatchBytes is what a batch takes of the rest of it at most, with so many nodes, of which so
// many have neighbors, and edges; nodes and edges have so many bytes besides.
func PassBatchBytes(nodes, inner, edges, ofNode, ofEdge int64) int64 {
	const listed = 12 // of a node with neighbors: where its own begin, and its place in the batch
	return (edgeBytes+ofEdge)*edges + (4+ofNode)*nodes + (nodeBytes+listed)*inner
}

// PassHeldBytes is what a batch takes once it is drawn.
func PassHeldBytes(nodes, inner, edges, ofNode, ofEdge int64) int64 {
	return (4+ofEdge)*edges + (4+ofNode)*nodes + 4*inner
}

// Passes samples a run of batches, as many at a time as there is room for. It may be used from any
// goroutine.
type Passes struct {
	cfg PassesConfig

	mu     sync.Mutex
	next   uint64 // the first step that was not drawn
	drawn  map[uint64]*sample.Partial
	room   mem.Account
	edges  []float64         // of a node of each hop, in what was drawn last
	alone  bool              // there was no room for a single batch
	staged uint64            // the first step whose rows were not staged
	absent [][]sample.NodeID // whose rows are to be staged, of each batch from that one on
}

// NewPasses returns a group. The caller closes it.
func NewPasses(cfg PassesConfig) *Passes {
	return &Passes{cfg: cfg, next: cfg.First, staged: cfg.First,
		drawn: map[uint64]*sample.Partial{},
		room:  mem.NewAccount(cfg.Budget, "batches drawn in passes")}
}

// Close frees the memory.
func (g *Passes) Close() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.drawn, g.absent = nil, nil
	g.room.Release()
	if g.cfg.Stage == nil {
		return nil
	}
	return g.cfg.Stage.Drop()
}

// Take writes a batch to d, whose memory it reuses, and forgets it. It draws those that follow, if
// the batch was not drawn yet. ok is false if it does not have the batch: it was taken before, or
// there was no room to draw even one.
func (g *Passes) Take(ctx context.Context, epoch, batch uint64, d *sample.Dense) (ok bool,
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
func (g *Passes) find(ctx context.Context, step uint64) (*sample.Partial, error) {
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
	if err := g.stageTo(ctx, step); err != nil {
		return nil, err
	}
	p := g.drawn[step]
	delete(g.drawn, step)
	return p, nil
}

// draw draws the next batches: fewer, as long as there is no room for them.
func (g *Passes) draw(ctx context.Context) (err error) {
	if g.cfg.Stage != nil { // its memory is that of windows
		if err := g.cfg.Stage.Drop(); err != nil {
			return err
		}
	}
	d := &drawing{Passes: g, before: g.room.Bytes()}
	defer func() { err = errors.Join(err, d.close()) }()
	if err := d.open(); err != nil {
		return err
	}
	for most := g.cfg.End - g.next; ; {
		err := d.run(ctx, most)
		if err == nil {
			d.hand()
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
