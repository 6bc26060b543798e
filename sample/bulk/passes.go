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

// PassesConfig configures Passes.
type PassesConfig struct {
	// Samplers draw the batches for which there is no room. The Passes close them.
	Samplers *sample.Samplers
	// Windows opens the windows that lists are read through. They are open only while batches are
	// drawn.
	Windows func() (*topology.Windows, error)
	// Sampler returns a new sampler that reads from windows. It is called Workers times per group.
	Sampler func(t topology.Reader) (*sample.Sampler, error)
	// Order returns the order of an epoch's seeds, which are cut into PerEpoch batches.
	Order    func(epoch uint64) (*sample.Order, error)
	PerEpoch uint64
	// First is the first step, counted over all epochs from FirstEpoch on, and End is the step
	// after the last.
	FirstEpoch uint64
	First, End uint64
	// Workers is the number of goroutines that sample.
	Workers int
	// Room is the memory for drawing batches and for batches that are not taken yet, in bytes of
	// the heap: as many batches are drawn together as fit. WindowBytes is the memory of windows,
	// besides Room. See PassRoom.
	Room, WindowBytes int64
	// Stage reads rows of features ahead, in what is free of Room and WindowBytes while no batches
	// are drawn. Nil reads none.
	Stage PassStage
	// Budget counts the memory; nil counts none.
	Budget *mem.Budget
}

// PassWindowsBytes returns how much of the memory for passes is for windows, in bytes. It has an
// upper bound, since larger windows do not make a pass faster.
func PassWindowsBytes(memory int64) int64 {
	const share, most = 3, 128 << 20
	return min(memory/share, most)
}

// PassRoom returns how much of the memory for passes is Room where windows have some bytes: all of
// it is on the heap, whose garbage counts too.
func PassRoom(memory, windows int64) int64 { return memory - mem.HeapGarbage(memory) - windows }

// PassBatchBytes bounds the bytes of the remaining memory that a batch takes while it is drawn. The
// batch has nodes, of which inner have neighbors, and edges; ofNode and ofEdge are the bytes of
// extras per node and edge.
func PassBatchBytes(nodes, inner, edges, ofNode, ofEdge int64) int64 {
	const listed = 12 // per node with neighbors: where its list begins, and its place in the batch
	return (edgeBytes+ofEdge)*edges + (4+ofNode)*nodes + (nodeBytes+listed)*inner
}

// PassHeldBytes returns the bytes that a batch takes once it is drawn; see PassBatchBytes.
func PassHeldBytes(nodes, inner, edges, ofNode, ofEdge int64) int64 {
	return (4+ofEdge)*edges + (4+ofNode)*nodes + 4*inner
}

// Passes samples a run of batches, as many together as there is room for. It is a sample.Drawer.
type Passes struct {
	*sample.Samplers
	cfg PassesConfig

	mu     sync.Mutex
	next   uint64                     // the first step that was not drawn yet
	drawn  map[uint64]*sample.Partial // drawn batches by step, until they are taken
	room   mem.Account
	edges  []float64         // edges per node at each hop, as drawn last
	alone  bool              // there was no room even for a single batch
	staged uint64            // the first step whose rows were not staged yet
	absent [][]sample.NodeID // nodes of each batch from step staged on whose rows to stage
}

// NewPasses returns Passes of which nothing is drawn yet. The caller calls Close.
func NewPasses(cfg PassesConfig) *Passes {
	return &Passes{Samplers: cfg.Samplers, cfg: cfg, next: cfg.First, staged: cfg.First,
		drawn: map[uint64]*sample.Partial{},
		room:  mem.NewAccount(cfg.Budget, "batches drawn in passes")}
}

// Close frees the memory.
func (g *Passes) Close() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.drawn, g.absent = nil, nil
	g.room.Release()
	err := g.Samplers.Close()
	if g.cfg.Stage != nil {
		err = errors.Join(err, g.cfg.Stage.Drop())
	}
	return err
}

// Draw writes a batch. If it does not have the batch, the worker's sampler draws it: it was taken
// before, or there was no room to draw even one.
func (g *Passes) Draw(ctx context.Context, worker int, b *sample.Batch) error {
	ok, err := g.take(ctx, b.Epoch, b.Index, &b.Dense)
	if ok || err != nil {
		return err
	}
	return g.Samplers.Draw(ctx, worker, b)
}

// take writes a batch to d, whose memory it reuses, and forgets it. If the batch was not drawn yet,
// it draws batches up to it and as many after it as there is room for. ok is false if it does not
// have the batch.
func (g *Passes) take(ctx context.Context, epoch, batch uint64, d *sample.Dense) (ok bool,
	err error) {
	p, err := g.find(ctx, g.cfg.step(epoch, batch))
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

// step returns the number of a batch.
func (c *PassesConfig) step(epoch, batch uint64) uint64 {
	return (epoch-c.FirstEpoch)*c.PerEpoch + batch
}

// find takes out the batch at step, after drawing batches up to it. It returns nil if it does not
// have it.
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

// draw draws the next batches. As long as they do not fit in memory, it tries with half as many.
func (g *Passes) draw(ctx context.Context) (err error) {
	if g.cfg.Stage != nil { // it uses the memory that drawing needs
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
