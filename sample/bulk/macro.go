package bulk

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"gdb/internal/bug"
	"gdb/internal/mem"
	"gdb/sample"

	"golang.org/x/sync/errgroup"
)

// MacroConfig configures MacroBatches.
type MacroConfig struct {
	// Sampler returns a new sampler for one of the Workers.
	Sampler func() (*sample.Sampler, error)
	Workers int
	// Order returns the order of an epoch's seeds, and PerEpoch is the number of its batches.
	Order    func(epoch uint64) (*sample.Order, error)
	PerEpoch uint64
	// Batches is the number of batches in a macro-batch; the last of an epoch may have fewer.
	Batches uint64
	// End is the step after the last, where a step is epoch*PerEpoch + batch.
	End uint64
	// Budget counts the memory; nil counts none.
	Budget *mem.Budget
}

// MacroBatches are batches that are sliced from macro-batches. They are a sample.Drawer.
type MacroBatches struct {
	cfg    MacroConfig
	ctx    context.Context // context of macro-batches that are drawn ahead
	cancel context.CancelFunc
	work   sync.WaitGroup
	slices sync.Pool // *slicer

	drawing struct {
		sync.Mutex
		drawer drawer
	}
	mu struct {
		sync.Mutex
		macros map[place]*macro
	}
}

// place says which macro-batch it is: its epoch and its number there.
type place struct{ epoch, number uint64 }

// macro is a macro-batch, drawn or being drawn.
type macro struct {
	place
	done  chan struct{} // closed once it was drawn or drawing failed
	err   error
	dense sample.Dense
	ends  []uint32 // where the seeds of each batch end
	taken []bool   // batches that were sliced
	held  mem.Account
}

// NewMacro returns MacroBatches of which nothing is drawn yet. The caller calls Close.
func NewMacro(cfg MacroConfig) *MacroBatches {
	b := &MacroBatches{cfg: cfg}
	b.ctx, b.cancel = context.WithCancel(context.Background())
	b.slices.New = func() any { return &slicer{} }
	b.mu.macros = map[place]*macro{}
	return b
}

// Begins returns false, since no rows are read ahead.
func (b *MacroBatches) Begins(uint64, uint64) bool { return false }

// Shrink returns false: what draws a macro-batch is no worker's.
func (b *MacroBatches) Shrink(int) bool { return false }

// Draw slices a batch from its macro-batch, which it draws first if nobody did.
func (b *MacroBatches) Draw(ctx context.Context, _ int, to *sample.Batch) error {
	m, mine := b.find(place{to.Epoch, to.Index / b.cfg.Batches})
	if mine {
		b.draw(ctx, m)
		b.drawAhead(m)
	}
	select {
	case <-m.done:
	case <-ctx.Done():
		return ctx.Err()
	}
	if m.err != nil {
		return m.err
	}
	i := to.Index % b.cfg.Batches
	first := uint32(0)
	if i > 0 {
		first = m.ends[i-1]
	}
	s := b.slices.Get().(*slicer)
	s.slice(&m.dense, first, m.ends[i], &to.Dense)
	b.slices.Put(s)
	b.taken(m, i)
	return nil
}

// find returns a macro-batch; mine says that the caller must draw it. It drops macro-batches long
// before it, which are still held if one of their batches was drawn again.
func (b *MacroBatches) find(at place) (m *macro, mine bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if m = b.mu.macros[at]; m != nil {
		return m, false
	}
	for of, old := range b.mu.macros {
		before := of.epoch < at.epoch || of.epoch == at.epoch && of.number+1 < at.number
		if before && old.isDone() {
			delete(b.mu.macros, of)
			old.held.Release()
		}
	}
	m = &macro{place: at, done: make(chan struct{}), held: mem.NewAccount(b.cfg.Budget,
		"a macro-batch")}
	b.mu.macros[at] = m
	return m, true
}

// draw draws a macro-batch. If that fails it is forgotten, so that the next Draw tries again.
func (b *MacroBatches) draw(ctx context.Context, m *macro) {
	b.drawing.Lock()
	defer b.drawing.Unlock()
	m.err = b.drawing.drawer.draw(ctx, &b.cfg, m)
	defer close(m.done)
	if m.err == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.mu.macros, m.place)
	m.held.Release()
}

// drawAhead starts to draw the macro-batch after m, if that is in the same epoch.
func (b *MacroBatches) drawAhead(m *macro) {
	first := (m.number + 1) * b.cfg.Batches
	if m.err != nil || first >= b.cfg.PerEpoch || m.epoch*b.cfg.PerEpoch+first >= b.cfg.End ||
		b.ctx.Err() != nil {
		return
	}
	next, mine := b.find(place{m.epoch, m.number + 1})
	if !mine {
		return
	}
	b.work.Go(func() {
		defer bug.Catch()
		b.draw(b.ctx, next) // on an error, such as no memory for two, Draw tries again
	})
}

// isDone reports whether drawing it has ended, with success or not.
func (m *macro) isDone() bool {
	select {
	case <-m.done:
		return true
	default:
		return false
	}
}

// taken notes that batch i was sliced. After the last one, the macro-batch is dropped.
func (b *MacroBatches) taken(m *macro, i uint64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	m.taken[i] = true
	for _, t := range m.taken {
		if !t {
			return
		}
	}
	if b.mu.macros[m.place] == m {
		delete(b.mu.macros, m.place)
		m.held.Release()
	}
}

// Close stops what is drawn ahead, and frees the memory.
func (b *MacroBatches) Close() error {
	b.cancel()
	b.work.Wait()
	b.drawing.Lock()
	defer b.drawing.Unlock()
	b.drawing.drawer.close()
	b.mu.Lock()
	defer b.mu.Unlock()
	for at, m := range b.mu.macros {
		m.held.Release()
		delete(b.mu.macros, at)
	}
	return nil
}

// errNoRoom is returned if a macro-batch does not fit in memory.
var errNoRoom = errors.New("macro-batches take more memory than there is: lower --macro-batch, " +
	"--batch or --fanout, or raise --memory")

// partLeast is the least number of frontier nodes for which another worker is worth it.
const partLeast = 256

// drawer draws macro-batches, one after the other.
type drawer struct {
	samplers []*sample.Sampler // one per worker
	all      sample.Drawn      // what was drawn of a whole frontier
}

// close frees the samplers and the memory.
func (w *drawer) close() {
	for _, s := range w.samplers {
		s.Close()
	}
	*w = drawer{}
}

// draw draws macro-batch m.
func (w *drawer) draw(ctx context.Context, c *MacroConfig, m *macro) error {
	for len(w.samplers) < max(1, c.Workers) {
		s, err := c.Sampler()
		if err != nil {
			return err
		}
		w.samplers = append(w.samplers, s)
	}
	order, err := c.Order(m.epoch)
	if err != nil {
		return err
	}
	var seeds []sample.NodeID
	m.ends = m.ends[:0]
	first := m.number * c.Batches
	for i := first; i < min(first+c.Batches, c.PerEpoch); i++ {
		seeds = order.Seeds(i, seeds)
		m.ends = append(m.ends, uint32(len(seeds)))
	}
	m.taken = make([]bool, len(m.ends))
	err = w.hops(ctx, m, seeds)
	var full *mem.LimitError
	if errors.As(err, &full) {
		return fmt.Errorf("%w: %w", errNoRoom, err)
	}
	return err
}

// hops draws all hops of m from its seeds.
func (w *drawer) hops(ctx context.Context, m *macro, seeds []sample.NodeID) error {
	first := w.samplers[0]
	var p sample.Partial
	if err := first.Start(ctx, m.epoch, m.number, seeds, &p); err != nil {
		return err
	}
	hops, last := first.Hops()
	if last {
		hops++
	}
	for range hops {
		if err := w.frontier(ctx, &p); err != nil {
			return err
		}
		if err := first.Extend(ctx, &p, &w.all); err != nil {
			return err
		}
		if err := m.held.AtLeast(p.Bytes() + w.all.Bytes()); err != nil {
			return err
		}
	}
	if err := m.held.AtLeast(p.Bytes() + w.all.Bytes() + denseBytes(&p)); err != nil {
		return err
	}
	return p.Write(ctx, &m.dense)
}

// denseBytes bounds the memory of the Dense that a Partial is written to, which has neighbors both
// by node and by number.
func denseBytes(p *sample.Partial) int64 { return 2 * p.Bytes() }

// frontier draws the neighbors of the whole frontier; each worker draws for a part of it.
func (w *drawer) frontier(ctx context.Context, p *sample.Partial) error {
	nodes, err := w.samplers[0].Lists(p)
	if err != nil {
		return err
	}
	count := min(len(w.samplers), max(1, len(nodes)/partLeast))
	parts := make([]sample.Drawn, count)
	group, ctx := errgroup.WithContext(ctx)
	for i := range parts {
		part := nodes[i*len(nodes)/count : (i+1)*len(nodes)/count]
		group.Go(func() (err error) {
			defer bug.Catch()
			parts[i], err = w.samplers[i].Draw(ctx, p, part)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	w.join(parts)
	return nil
}

// join joins what was drawn of the parts of a frontier, in their order.
func (w *drawer) join(parts []sample.Drawn) {
	a := &w.all
	*a = sample.Drawn{Off: append(a.Off[:0], 0), Nbrs: a.Nbrs[:0], Weights: a.Weights[:0],
		Types: a.Types[:0], Degrees: a.Degrees[:0], Sums: a.Sums[:0]}
	for _, d := range parts {
		base := a.Off[len(a.Off)-1]
		for _, o := range d.Off[min(1, len(d.Off)):] {
			a.Off = append(a.Off, base+o)
		}
		a.Nbrs = append(a.Nbrs, d.Nbrs...)
		a.Weights, a.Types = append(a.Weights, d.Weights...), append(a.Types, d.Types...)
		a.Degrees, a.Sums = append(a.Degrees, d.Degrees...), append(a.Sums, d.Sums...)
	}
}
