package superbatch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"gdb/internal/mem"
	"gdb/sample"
	"gdb/sample/rowcache"
)

// errClosed is returned by a loader that was closed, or that ended in the middle of an epoch.
var errClosed = errors.New("superbatch: the loader is closed")

// Loader hands out the batches of a training, epoch by epoch, from superbatches. Unless these
// overlap, the phases take turns: memory that training holds, besides the cache, is freed while the
// next superbatch is sampled and planned. One goroutine may use it; statistics may be read by any.
type Loader struct {
	cfg     Config
	dim     int
	builder builder
	dir     *workDir
	slots   slotRows

	first    uint64 // the first step
	due      uint64 // the next step to hand out
	phase    phase
	current  *superbatch       // nil in phase empty
	assembly *assembly         // nil except in phase handing
	upcoming *job[*superbatch] // the superbatch after current, if it is being made
	outgoing *span             // its rows are removed after some batches of the next span
	err      error             // the first error; nothing works afterwards
	since    time.Time

	reading, gathering, stepping sample.Clock
}

// phase is where a Loader stands between two batches.
//
//	empty --advance--> waiting --assemble--> handing
//	  ^                 |   ^                  |
//	  +------drop-------+   +---endAssembly----+
type phase uint8

const (
	empty   phase = iota // no superbatch is at hand: the next one is to be made
	waiting              // a superbatch is at hand, and no batch of it is being assembled
	handing              // batches are assembled, and handed out
)

// Open takes the memory of the cache and makes the directory of runtime files, after removing
// directories of processes that died. The caller calls Close.
func Open(cfg Config) (*Loader, error) {
	if err := cfg.check(); err != nil {
		return nil, err
	}
	order, err := cfg.Order(cfg.Epoch)
	if err != nil {
		return nil, err
	}
	per := order.Batches()
	if cfg.StartBatch > per || cfg.Epochs < cfg.Epoch {
		return nil, fmt.Errorf("superbatch: start at batch %d of epoch %d: there are %d batches, "+
			"%d epochs", cfg.StartBatch, cfg.Epoch, per, cfg.Epochs)
	}
	l := &Loader{cfg: cfg, dim: cfg.Rows.Meta().Dim, first: cfg.Epoch*per + cfg.StartBatch}
	l.due = l.first
	l.builder = builder{cfg: &l.cfg, perEpoch: per, end: cfg.Epochs * per,
		storage: cfg.StorageBytes}
	if cfg.Overlap {
		l.builder.storage /= 2
	}
	l.builder.storage -= cfg.spillBytes(l.dim)
	if err := l.open(); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return l, nil
}

func (l *Loader) open() (err error) {
	if l.builder.ranges, err = planRanges(l.cfg.rowCount(), l.cfg.PlanBytes); err != nil {
		return err
	}
	if err := RemoveDead(l.cfg.FS, l.cfg.Prep); err != nil {
		return err
	}
	if l.dir, err = openDir(l.cfg.FS, l.cfg.Prep, l.cfg.Name); err != nil {
		return err
	}
	l.builder.dir = l.dir.Path
	if l.builder.cache, err = newCacheState(l.cfg.Slots, l.cfg.Budget); err != nil {
		return err
	}
	l.builder.cache.InPlace = l.cfg.InPlace
	l.slots.cfg, l.slots.dim = &l.cfg, l.dim
	if err := l.slots.open(); err != nil {
		return err
	}
	return l.shrink()
}

// shrink gives back the memory of the slots that are not kept, and forgets their rows.
func (l *Loader) shrink() error {
	lost, err := l.slots.trim()
	if lost {
		l.builder.cache.Trim(l.cfg.SlotsKept)
	}
	return err
}

// Epoch returns the batches of an epoch, or of the first epoch those from StartBatch on. Epochs
// come in order, each after all batches of the one before were handed out. Closing an epoch frees
// the memory of batches, and keeps the cache and the superbatch.
func (l *Loader) Epoch(epoch uint64) (sample.Batches, error) {
	if l.err != nil {
		return nil, l.err
	}
	per := l.builder.perEpoch
	if at := l.due / per; at != epoch && l.due != (epoch+1)*per || epoch >= l.cfg.Epochs {
		return nil, fmt.Errorf("superbatch: epoch %d of %d was asked for; the next batch is %d of "+
			"epoch %d", epoch, l.cfg.Epochs, l.due%per, at)
	}
	l.since = time.Now()
	return &epochBatches{l: l, end: (epoch + 1) * per}, nil
}

// Again goes back to the first batch, once all were handed out. Those of a superbatch that was
// kept, and rows that were swept for all of them, are not made again.
func (l *Loader) Again() error {
	if l.err != nil {
		return l.err
	}
	if l.due != l.builder.end || l.phase == handing {
		return fmt.Errorf("superbatch: begin again after step %d of %d", l.due, l.builder.end)
	}
	l.due = l.first
	return nil
}

// keeps reports whether the superbatch at hand is kept once its batches were handed out: it has
// all, and was planned for an empty cache.
func (l *Loader) keeps() bool {
	s := l.current
	return l.cfg.Repeats && s != nil && s.id.Seq == firstSeq && s.end == l.builder.end
}

// epochBatches hands out the batches of one epoch.
type epochBatches struct {
	l   *Loader
	end uint64
}

// Next returns the next batch of the epoch.
func (e *epochBatches) Next(ctx context.Context) (*sample.Batch, error) {
	return e.l.next(ctx, e.end)
}

// Stats returns the statistics of the loader, over all epochs.
func (e *epochBatches) Stats() sample.PipelineStats { return e.l.Stats() }

// Close frees the memory of batches. It also frees that of the slots that are not kept, if a
// superbatch ends here and no next one was begun, or if Config.Spill wants them.
func (e *epochBatches) Close() error {
	l := e.l
	err := l.endAssembly()
	if l.phase == empty || l.slots.held() {
		return err
	}
	switch {
	case l.due == l.current.end && !l.keeps():
		err = errors.Join(err, l.drop())
	case l.due == l.current.end && l.current.span != nil && l.current.span.first > 0:
		l.current.endSpan() // it is the last of several
	}
	if l.phase == empty && l.upcoming == nil {
		return err
	}
	if l.err != nil {
		return err
	}
	epoch := l.due/l.builder.perEpoch - 1
	return errors.Join(err, l.slots.spill(l.builder.identity(l.due), epoch))
}

// next hands out the batch of the next step, or io.EOF once the next step is end.
func (l *Loader) next(ctx context.Context, end uint64) (*sample.Batch, error) {
	asked := time.Now()
	l.stepping.Busy.Add(int64(asked.Sub(l.since)))
	defer func() {
		l.since = time.Now()
		l.stepping.Starved.Add(int64(l.since.Sub(asked)))
	}()
	if l.err != nil {
		return nil, l.err
	}
	if l.due == end {
		return nil, l.ended(ctx)
	}
	b, err := l.take(ctx, end)
	if err != nil {
		if ctx.Err() == nil || !errors.Is(err, ctx.Err()) {
			l.err = err // a wait may be given up and begun again
		}
		return nil, err
	}
	l.due++
	l.stepping.Done.Add(1)
	return b, nil
}

// ended returns io.EOF, after any superbatch or span that is being made has taken its memory: what
// runs between epochs takes the memory that is free, and must not take what these still need.
func (l *Loader) ended(ctx context.Context) error {
	if l.upcoming != nil {
		if err := await(ctx, l.upcoming.done); err != nil {
			return err
		}
	}
	for _, s := range []*superbatch{l.current, l.following()} {
		if s != nil && s.upcoming != nil {
			if err := await(ctx, s.upcoming.fitted); err != nil {
				return err
			}
		}
	}
	return io.EOF
}

// take returns the next batch, after making the superbatch, span and assembly that it comes from.
func (l *Loader) take(ctx context.Context, end uint64) (*sample.Batch, error) {
	for {
		var err error
		switch {
		case l.phase == handing && l.due < l.assembly.end:
			l.sweepAhead()
			return l.assembly.next(ctx)
		case l.phase == handing:
			err = l.endAssembly()
		case l.slots.held():
			err = errors.New("superbatch: a batch is held whose rows are in the cache: release " +
				"it first")
		case l.phase == waiting && l.due == l.current.end:
			err = l.drop()
		case l.phase == waiting:
			err = l.assemble(ctx, end)
		default:
			err = l.advance(ctx)
		}
		if err != nil {
			return nil, err
		}
	}
}

// assemble starts to assemble batches of the current superbatch: those before step end whose rows
// are read in the same way.
func (l *Loader) assemble(ctx context.Context, end uint64) error {
	if s := l.current.span; s == nil || l.due == s.end {
		if err := l.nextSpan(ctx); err != nil {
			return err
		}
	}
	if err := l.tailMade(ctx); err != nil {
		return err
	}
	if err := l.slots.grow(ctx); err != nil {
		return err
	}
	l.assembly = newAssembly(l, l.current, l.due, min(end, l.current.span.end))
	l.phase = handing
	return nil
}

// outgoingBatches is how many batches of a span are handed out before the rows of the previous span
// are removed: while a file system frees some GiB, reads may have to wait.
const outgoingBatches = 2

// endOutgoing removes the rows of the previous span.
func (l *Loader) endOutgoing() {
	l.outgoing.close()
	l.outgoing = nil
}

// nextSpan waits for the span that begins with the next step, and makes it the current one.
func (l *Loader) nextSpan(ctx context.Context) error {
	s := l.current
	if !l.cfg.sweeps() {
		s.span = &span{end: s.end}
		return nil
	}
	if s.upcoming == nil {
		s.endSpan()
		s.upcoming = l.builder.beginSpan(s, l.due, alongside{})
	}
	if err := await(ctx, s.upcoming.done); err != nil {
		return err
	}
	next, err := s.upcoming.wait(ctx)
	s.upcoming = nil
	if err != nil {
		return err
	}
	l.endOutgoing()
	l.outgoing, s.span = s.span, next
	if l.cfg.Decided != nil {
		l.cfg.Decided(s.span.reading)
	}
	return nil
}

// sweepAhead starts a goroutine on the span after the current one. That span may be of the next
// superbatch, once this one is made.
func (l *Loader) sweepAhead() {
	s, step := l.current, l.current.span.end
	if l.outgoing != nil && l.due < l.assembly.first+outgoingBatches {
		return
	}
	l.endOutgoing()
	if !l.cfg.SweepAhead || !l.cfg.sweeps() {
		return
	}
	if step == s.end {
		s = l.following()
	}
	if s == nil || s.upcoming != nil {
		return
	}
	left := float64(step-l.due) / float64(max(1, l.current.span.reading.Batches))
	m := alongside{free: left * l.current.span.reading.idle}
	if s == l.current || l.current.want.head {
		m.bytes = l.current.span.bytes()
	}
	if s != l.current && l.current.want.head {
		m.bytes += l.current.batches.File.Size() + l.current.plans.File.Size()
	}
	s.upcoming = l.builder.beginSpan(s, step, m)
}

// following returns the superbatch after the current one, or nil while that is not made.
func (l *Loader) following() *superbatch {
	if l.upcoming == nil {
		return nil
	}
	select {
	case <-l.upcoming.done:
		return l.upcoming.result
	default:
		return nil
	}
}

// advance waits for the superbatch that begins with the next step, and starts on the one after it
// if they overlap or come in pairs.
func (l *Loader) advance(ctx context.Context) error {
	if l.upcoming == nil {
		if l.cfg.Rest != nil && !l.cfg.Overlap {
			if err := l.cfg.Rest(); err != nil {
				return err
			}
		}
		l.cfg.giveHeapBack()
		l.build(l.due, nil)
	}
	s, err := l.upcoming.wait(ctx)
	if err != nil {
		return err
	}
	l.cfg.giveHeapBack()
	l.current, l.upcoming, l.phase = s, nil, waiting
	if err := l.slots.limit(s.slots); err != nil {
		return err
	}
	switch {
	case s.end == l.builder.end:
	case s.want.head:
		l.build(s.end, s)
	case l.cfg.Overlap:
		l.build(s.end, nil)
	}
	return nil
}

// build starts a goroutine that builds the superbatch that begins with step first and follows the
// head before, or none. Only one may be under way at a time, because all of them use the builder's
// cache state.
func (l *Loader) build(first uint64, before *superbatch) {
	w := l.builder.want(first, before)
	l.upcoming = begin(func(ctx context.Context) (*superbatch, error) {
		return l.builder.build(ctx, w)
	})
}

// tailMade waits for the second superbatch of a pair, so that training on the head can take the
// memory of making it. An error of it is reported when its batches are due.
func (l *Loader) tailMade(ctx context.Context) error {
	if l.cfg.Overlap || l.upcoming == nil || !l.slots.trimmed {
		return nil
	}
	if err := await(ctx, l.upcoming.done); err != nil {
		return err
	}
	l.cfg.giveHeapBack()
	return nil
}

// giveHeapBack collects the heap of one phase before the next phase takes its own. Where
// superbatches overlap, it does nothing.
func (c *Config) giveHeapBack() {
	if !c.Overlap {
		c.Budget.CollectHeap()
	}
}

// endAssembly ends the assembly of batches. If some were not handed out, no batch can follow,
// because the slots then hold rows of batches that never came out.
func (l *Loader) endAssembly() error {
	if l.phase != handing {
		return nil
	}
	if l.due != l.assembly.end && l.err == nil {
		l.err = errClosed
	}
	err := l.assembly.close()
	l.assembly, l.phase = nil, waiting
	l.endOutgoing()
	return err
}

// drop closes the current superbatch and removes its files.
func (l *Loader) drop() error {
	l.current.close()
	l.current, l.phase = nil, empty
	if l.upcoming != nil { // the next one is planned with all slots
		return nil
	}
	return l.shrink()
}

// Stats returns the statistics of all stages. It may be called at any time.
func (l *Loader) Stats() sample.PipelineStats {
	s := l.builder.sampled.Stats(l.cfg.Workers)
	s.Stages = append(s.Stages[:1], l.builder.planning.Stats("plan", 1)) // the first samples
	if l.cfg.sweeps() {
		s.Stages = append(s.Stages, l.builder.sweeping.Stats("sweep", 1))
	}
	s.Stages = append(s.Stages, l.reading.Stats("read", 1), l.gathering.Stats("gather", 1),
		l.stepping.Stats("step", 1))
	return s
}

// CacheStats returns the statistics of the cache. Its Evicted counts rows that were copied to a
// slot in place of another. It may be called at any time.
func (l *Loader) CacheStats() rowcache.Stats { return l.slots.stats() }

// Close stops all work, frees the memory and removes the runtime files. Batches that the consumer
// still holds stay valid until their Release. Further calls do nothing.
func (l *Loader) Close() error {
	if l.err == nil {
		l.err = errClosed
	}
	err := l.endAssembly()
	l.endOutgoing()
	if l.upcoming != nil {
		if s := l.upcoming.stop(); s != nil {
			s.close()
		}
		l.upcoming = nil
	}
	if l.phase == waiting {
		err = errors.Join(err, l.drop())
	}
	err = errors.Join(err, l.builder.gone.Wait())
	if l.builder.cache != nil {
		err = errors.Join(err, l.builder.cache.Close())
		l.builder.cache = nil
	}
	err = errors.Join(err, l.slots.close())
	if l.dir != nil {
		err = errors.Join(err, l.dir.Remove())
		l.dir = nil
	}
	return err
}

// slotsFor returns how many slots have memory beside the batches of s: all of them, unless some of
// its batches are larger than was planned for.
func (c *Config) slotsFor(s *superbatch, dim int) int {
	p := c.Planned
	if p.Nodes == 0 || p.Inner == 0 {
		return c.Slots
	}
	nodes, edges := max(0, int64(s.nodesMost)-p.Nodes), max(0, int64(s.edgesMost)-p.Edges)
	inner := max(0, int64(s.innerMost)-p.Inner)
	row, frames := 4*int64(dim), int64(c.frames())
	x := int64(c.Ready+1) * nodes * row
	switch {
	case c.InPlace && c.Split != nil:
		x = framesInPlace * inner * 4 * int64(c.Split.Wide)
		nodes = max(nodes, int64(s.rowsMost)-p.Rows)
	case c.InPlace:
		x = framesInPlace * inner * row
	case c.Cut:
		nodes = max(nodes, int64(s.rowsMost)-p.Rows)
		x = int64(c.Ready+1) * (nodes*row + inner*4*int64(c.Split.Wide))
	case c.Split != nil:
		x = 4 * int64(c.Ready+1) * int64(c.Split.Floats(int(nodes)))
		nodes = max(nodes, int64(s.rowsMost)-p.Rows)
	}
	// The records are read ahead, and lists grow by a quarter.
	lists := frames*(12*edges+28*nodes) + 16*nodes
	need := x + mem.HeapCost(lists*5/4) + 2*(9*nodes+4*edges) + p.StepBytes*inner/p.Inner
	return int(max(0, int64(c.Slots)-(need+row-1)/row))
}
