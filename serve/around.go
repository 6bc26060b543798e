package serve

import (
	"context"
	"time"

	"gdb/internal/mem"
	"gdb/sample"
	"gdb/sample/loader"
	"gdb/serve/protocol"
)

// around makes batches around seeds that a client names, such as the ends of edges: one batch for
// each request. It draws from the graph of a loader, with the seed and the fanout of that loader.
// Only one goroutine may use it.
type around struct {
	feed    *feed
	pool    *pool
	sampler *sample.Sampler
	batch   sample.Batch
	pack    packer
	budget  *mem.Budget
	counted int64 // bytes of batch that are reserved in budget
}

// newAround returns an around that takes its arenas from pool. With places its batches have the
// places of edges. The caller closes it.
func newAround(f *feed, pool *pool, places bool) (*around, error) {
	s, err := f.src.Sampler(&loader.Config{Fanout: f.open.Fanout, ByRelation: f.byRelation,
		Seed: f.open.Seed, Places: places})
	if err != nil {
		return nil, err
	}
	return &around{feed: f, pool: pool, sampler: s, pack: newPacker(f.src),
		budget: f.src.Budget}, nil
}

// make samples the batch around seeds and packs it into an arena.
func (a *around) make(ctx context.Context, m *protocol.Sample, seeds []sample.NodeID) (item,
	error) {
	a.pool.Ask(true)
	defer a.pool.Ask(false)
	b, begun := &a.batch, time.Now()
	b.Epoch, b.Index, b.Seeds = m.Epoch, m.Index, append(b.Seeds[:0], seeds...)
	if err := a.sampler.Sample(ctx, m.Epoch, m.Index, b.Seeds, &b.Dense); err != nil {
		return item{}, err
	}
	if a.feed.src.Labels != nil {
		if err := a.feed.src.Labels.Fill(ctx, b); err != nil {
			return item{}, err
		}
	}
	since(&a.feed.times.sample, begun)
	if n := b.HeapBytes() - a.counted; n > 0 {
		if err := a.budget.Reserve("a batch around seeds of a client", n); err != nil {
			return item{}, err
		}
		a.counted += n
	}
	return a.pack.pack(ctx, b, a.pool, a.feed.times)
}

// close frees the memory of the sampler and returns what was reserved for batches.
func (a *around) close() {
	a.sampler.Close()
	a.budget.Release(a.counted)
}
