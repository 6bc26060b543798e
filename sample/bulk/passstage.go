package bulk

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"gdb/internal/mem"
	"gdb/sample"
)

// PassStage reads rows of features before batches ask for them. loader.Source has one:
// rowcache.Staged behind a cache.
type PassStage interface {
	// Ready waits until it can be told which rows have to be read ahead.
	Ready(ctx context.Context) error
	// Absent appends those of nodes whose rows have to be read to the list to.
	Absent(nodes, to []sample.NodeID) []sample.NodeID
	// Fit returns how many rows fit in this many bytes of memory.
	Fit(bytes int64) int
	// Stage reads the rows of the nodes in lists, in place of the rows staged before. If there is
	// no memory for them, it returns a mem.LimitError and nothing is staged.
	Stage(ctx context.Context, lists [][]sample.NodeID) error
	// Drop frees the memory of staged rows.
	Drop() error
}

// Begins reports whether the next Draw of a batch replaces the rows that are staged.
func (g *Passes) Begins(epoch, batch uint64) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	step := g.cfg.step(epoch, batch)
	return g.cfg.Stage != nil && !g.alone && step >= g.staged && step < g.cfg.End
}

// listAbsent lists, for each batch just drawn, the nodes whose rows have to be read.
func (d *drawing) listAbsent(ctx context.Context) error {
	if d.cfg.Stage == nil {
		return nil
	}
	if err := d.cfg.Stage.Ready(ctx); err != nil {
		return err
	}
	return d.each(ctx, func(_ context.Context, _ *sample.Sampler, m *member) error {
		m.absent = slices.Clone(d.cfg.Stage.Absent(m.Nodes(), nil)) // without spare capacity
		return nil
	})
}

// stageTo stages rows until those of the batch at step are staged.
func (g *Passes) stageTo(ctx context.Context, step uint64) error {
	for g.cfg.Stage != nil && step >= g.staged && g.staged < g.next {
		g.cfg.Budget.CollectHeap() // rows take the place of what was drawn and is gone
		lists := g.part()          // none if the batch is too large: it reads its rows by itself
		err := g.cfg.Stage.Stage(ctx, lists)
		var full *mem.LimitError
		if err != nil && !errors.As(err, &full) {
			return fmt.Errorf("passes: read ahead for batches from step %d on: %w", g.staged, err)
		}
		bytes := int64(0)
		for _, l := range g.absent[:max(1, len(lists))] {
			bytes += 4 * int64(cap(l))
		}
		g.absent = g.absent[max(1, len(lists)):]
		g.staged += uint64(max(1, len(lists)))
		if err := g.room.Add(-bytes); err != nil {
			return err
		}
	}
	return nil
}

// part returns the lists of nodes to stage next: those of as many batches as there is room for. If
// these are not all drawn batches, the parts are about equal. It returns none if a single batch
// does not fit.
func (g *Passes) part() [][]sample.NodeID {
	all := 0
	for _, l := range g.absent {
		all += len(l)
	}
	free := mem.HeapCost(g.cfg.Room + g.cfg.WindowBytes - g.room.Bytes())
	most := max(1, g.cfg.Stage.Fit(free))
	share := all / max(1, (all+most-1)/most)
	n, rows := 0, 0
	for ; n < len(g.absent) && rows+len(g.absent[n]) <= most && (n == 0 || rows < share); n++ {
		rows += len(g.absent[n])
	}
	return g.absent[:n]
}
