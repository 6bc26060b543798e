package bulk

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"gdb/internal/mem"
	"gdb/sample"
)

// PassStage reads rows of features before batches ask for them; rowcache.Staged behind a cache is
// one.
type PassStage interface {
	// Ready waits until it is known what is to be read ahead.
	Ready(ctx context.Context) error
	// Absent appends the nodes whose rows are to be read to a list.
	Absent(nodes, to []sample.NodeID) []sample.NodeID
	// Fit is how many rows there is room for in so much memory.
	Fit(bytes int64) int
	// Stage reads the rows of some lists of nodes, in the place of those before. It fails with a
	// mem.LimitError, and nothing staged, if there is no memory.
	Stage(ctx context.Context, lists [][]sample.NodeID) error
	// Drop frees the memory.
	Drop() error
}

// Begins says whether the next Take of a batch gives up the rows that are staged.
func (g *Passes) Begins(epoch, batch uint64) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	step := epoch*g.cfg.PerEpoch + batch
	return g.cfg.Stage != nil && !g.alone && step >= g.staged && step < g.cfg.End
}

// listAbsent lists the rows to be read of the batches that were just drawn.
func (d *drawing) listAbsent(ctx context.Context) error {
	if d.cfg.Stage == nil {
		return nil
	}
	if err := d.cfg.Stage.Ready(ctx); err != nil {
		return err
	}
	return d.each(ctx, func(_ context.Context, _ *sample.Sampler, m *member) error {
		m.absent = slices.Clone(d.cfg.Stage.Absent(m.Nodes(), nil)) // no larger than it has to be
		return nil
	})
}

// stageTo stages the rows of batches up to one that was drawn.
func (g *Passes) stageTo(ctx context.Context, step uint64) error {
	for g.cfg.Stage != nil && step >= g.staged && g.staged < g.next {
		lists, fit := g.part()
		if !fit { // these are read by themselves
			lists = nil
		}
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

// part is what is staged next: as many batches as there is room for, and if it is not all that are
// drawn, about the same with each time. It does not fit if a single batch has more.
func (g *Passes) part() (lists [][]sample.NodeID, fit bool) {
	all := 0
	for _, l := range g.absent {
		all += len(l)
	}
	most := max(1, g.cfg.Stage.Fit(g.cfg.Room+g.cfg.WindowBytes-g.room.Bytes()))
	share := all / max(1, (all+most-1)/most)
	n, rows := 0, 0
	for ; n < len(g.absent) && rows+len(g.absent[n]) <= most && (n == 0 || rows < share); n++ {
		rows += len(g.absent[n])
	}
	return g.absent[:n], n > 0
}
