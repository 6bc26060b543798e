package sample

import (
	"errors"
	"fmt"
	"time"

	"gdb/internal/mem"
)

// A batch is due when all batches before it were released. If memory is short, a batch that is not
// due gives up what it holds, and is drawn again when it is due, with the same result. So no batch
// fails because of memory that later batches hold.

// roomPause is how long a stage that is short of memory waits before it tries again.
const roomPause = 2 * time.Millisecond

// draw draws a batch, and prepares it.
func (p *Pipeline) draw(worker int, b *Batch) error {
	b.Seeds = p.cfg.Order.Seeds(b.Index, b.Seeds[:0])
	if err := p.drawer.Draw(p.stages.Context(), worker, b); err != nil {
		return err
	}
	if err := p.count(b); err != nil || p.cfg.Prepare == nil {
		return err
	}
	begun := time.Now()
	err := p.cfg.Prepare(b)
	p.counts.Preparing.Ran(begun)
	if err != nil {
		return fmt.Errorf("sample: prepare batch %d: %w", b.Index+1, err)
	}
	return nil
}

// whenRoomy does a stage's work on a batch, for which a worker draws. If memory is short, a batch
// that is not due is given up until it is. For a batch that is due, other batches and samplers give
// up their memory; if that does not suffice, it starts again with nothing. So the least memory
// holds one batch while it is drawn, and then the batch with its features.
func (p *Pipeline) whenRoomy(stage *Clock, b *Batch, worker int, work func() error) error {
	for alone := false; ; {
		due := p.isDue(b)
		err := work()
		var full *mem.LimitError
		if !errors.As(err, &full) {
			return err
		}
		if due {
			others := p.takeFromOthers(worker)
			if alone && !others {
				return err
			}
			alone = !others
		}
		if alone || !due {
			p.giveUp(b)
			p.drawer.Shrink(worker)
		}
		if !p.pause(stage, b) {
			return err
		}
	}
}

// isDue reports whether all batches before b were released.
func (p *Pipeline) isDue(b *Batch) bool { return p.released.Load() >= b.Index-p.cfg.StartBatch }

// pause waits for roomPause and then until the batch is due; this does not count as work of the
// stage. It returns false if the pipeline stops.
func (p *Pipeline) pause(stage *Clock, b *Batch) bool {
	begun := time.Now()
	p.working.Add(-1)
	defer func() {
		p.working.Add(1)
		waited := int64(time.Since(begun))
		stage.Blocked.Add(waited)
		stage.Busy.Add(-waited) // Ran counts all the time since the batch was begun
	}()
	for {
		select {
		case <-time.After(roomPause):
		case <-p.stages.Done():
			return false
		}
		if p.isDue(b) {
			return true
		}
	}
}

// awaitGathered waits, if Drawer.Begins says so for this batch, until all batches before it are
// gathered. The batch holds nothing meanwhile, because the gatherer may need all memory. It returns
// false if the pipeline stops.
func (p *Pipeline) awaitGathered(b *Batch) bool {
	begun := time.Now()
	defer func() { p.counts.Sampling.Blocked.Add(int64(time.Since(begun))) }()
	for p.drawer.Begins(b.Epoch, b.Index) {
		if p.gathered.Load() == b.Index-p.cfg.StartBatch {
			return true
		}
		p.giveUp(b)
		select {
		case <-time.After(roomPause):
		case <-p.stages.Done():
			return false
		}
	}
	return true
}

// takeFromOthers frees the memory of batches that wait to be gathered, of empty batches, and of all
// workers but one. It returns whether it freed any or other stages are at work: these will free
// memory, or be short of it too.
func (p *Pipeline) takeFromOthers(worker int) (some bool) {
	some = p.working.Load() > 1
	for _, c := range append([]chan *Batch{p.empty}, p.sampled...) {
		for range len(c) {
			select {
			case b := <-c:
				some = p.giveUp(b) || some
				c <- b
			default:
			}
		}
	}
	for other := range p.cfg.Workers {
		if other != worker {
			some = p.drawer.Shrink(other) || some
		}
	}
	return some
}

// giveUp frees the memory of a batch, as if it had not been drawn, and returns whether it held any.
func (p *Pipeline) giveUp(b *Batch) (freed bool) {
	n, r := b.counted, b.rows
	b.Seeds, b.Dense, b.counted = nil, Dense{}, 0
	b.Labels, b.Multi, b.Targets = nil, nil, nil
	b.forgetRows()
	b.places, b.off = nil, nil
	freed = b.Free()
	p.mu.Lock()
	p.mu.held -= n
	p.mu.Unlock()
	if p.cfg.Budget != nil {
		p.cfg.Budget.Release(n)
	}
	if r != nil && r.Arena() != nil {
		_ = r.Free() // unmapping what was mapped cannot fail
		return true
	}
	return freed || n > 0
}

// count adds the heap by which a batch has grown to the budget.
func (p *Pipeline) count(b *Batch) error {
	n := b.HeapBytes() - b.counted
	if p.cfg.Budget == nil || n == 0 {
		return nil
	}
	if err := p.cfg.Budget.Reserve("batches", n); err != nil {
		return err
	}
	b.counted += n
	p.mu.Lock()
	p.mu.held += n
	p.mu.Unlock()
	return nil
}

// freeIdle frees memory of features that no batch uses. The budget calls it when it is short.
func (p *Pipeline) freeIdle(int64) (freed bool) { return p.rows.FreeIdle() }
