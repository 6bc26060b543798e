package shared

import (
	"context"
	"errors"
	"slices"
	"time"

	"gdb/sample"
)

// errClosed is returned by batches that were closed.
var errClosed = errors.New("shared: the batches are closed")

// batches hands the batches of an epoch to one member.
type batches struct {
	epoch *epoch
	table []float32

	// These are guarded by the group.
	seen    int // batches that it was handed
	closed  bool
	since   time.Time // when Next returned last
	stepped sample.StageStats
}

// Next returns the next batch, once all who take them have given back the one before.
func (b *batches) Next(ctx context.Context) (*sample.Batch, error) {
	e := b.epoch
	e.group.mu.Lock()
	defer e.group.mu.Unlock()
	asked := time.Now()
	b.stepped.Busy += asked.Sub(b.since)
	defer func() {
		b.since = time.Now()
		b.stepped.Starved += b.since.Sub(asked)
	}()
	for {
		switch {
		case b.closed:
			return nil, errClosed
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case b.seen < e.number && e.end != nil:
			return nil, e.end
		case b.seen < e.number && !e.asking:
			b.seen++
			b.stepped.Done++
			e.holders++
			return view(e.batch, b.table, b.giveBack), nil
		case e.mayAdvance():
			e.advance(ctx)
		default:
			e.group.changed.Wait()
		}
	}
}

// giveBack counts a batch that the member has released.
func (b *batches) giveBack() {
	g := b.epoch.group
	g.mu.Lock()
	defer g.mu.Unlock()
	b.epoch.holders--
	g.changed.Broadcast()
}

// Stats returns what was done to make the batches for all, and to step on them for the member.
func (b *batches) Stats() sample.PipelineStats {
	s := b.epoch.made.Stats()
	b.epoch.group.mu.Lock()
	defer b.epoch.group.mu.Unlock()
	s.Stages = slices.Clone(s.Stages)
	for i := range s.Stages {
		if st := &s.Stages[i]; st.Name == "step" {
			st.Done, st.Busy = b.stepped.Done, b.stepped.Busy
			st.Starved, st.Blocked = b.stepped.Starved, 0
		}
	}
	return s
}

// Close ends the part of the member in the epoch.
func (b *batches) Close() error {
	e := b.epoch
	e.group.mu.Lock()
	defer e.group.mu.Unlock()
	if b.closed {
		return nil
	}
	b.closed = true
	e.takers = slices.DeleteFunc(e.takers, func(other *batches) bool { return other == b })
	return e.close()
}
