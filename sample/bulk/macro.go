package bulk

import (
	"context"
	"errors"
	"sync"

	"gdb/internal/bug"
	"gdb/internal/mem"
	"gdb/sample"
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
