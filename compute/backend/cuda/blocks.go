//go:build cuda && cgo && linux

package cuda

import (
	"errors"
	"slices"
	"sync"

	"gdb/compute/backend"
	"gdb/internal/mem"
)

// blocks are page-locked memory for batches that are prepared, used by one after the other. What no
// batch has is freed where the budget is short. It is for any goroutine.
type blocks struct {
	driver    *driver
	budget    *mem.Budget
	endRelief func()

	mu   sync.Mutex
	free []*backend.Block
}

// open prepares for blocks, which are counted in a budget.
func (p *blocks) open(d *driver, budget *mem.Budget) {
	p.driver, p.budget, p.endRelief = d, budget, func() {}
	if budget != nil {
		p.endRelief = budget.Relieve(func(int64) bool {
			freed, _ := p.release() // the run is not the worse for what stays
			return freed
		})
	}
}

// take returns a block of a number of words: a free one, or a new one.
func (p *blocks) take(words int) (*backend.Block, error) {
	words = max(words, backend.BlockAlign)
	p.mu.Lock()
	b, small := p.find(words)
	p.mu.Unlock()
	if small != nil { // one of the same memory takes its place
		if err := p.end(small); err != nil {
			return nil, err
		}
	}
	if b == nil {
		bytes := int64(words) * floatBytes
		a, err := mem.NewArena(p.budget, "prepared batches", bytes+bytes/16)
		if err != nil {
			a, err = mem.NewArena(p.budget, "prepared batches", bytes)
		}
		if err != nil {
			return nil, err
		}
		if _, err := p.driver.lock(a.Bytes()); err != nil {
			return nil, errors.Join(err, a.Free())
		}
		b = &backend.Block{Memory: a}
	}
	b.Words = mem.View[uint32](b.Memory.Bytes())[:words:words]
	return b, nil
}

// find removes a free block of enough words or, if there is none, one that is too small.
func (p *blocks) find(words int) (b, small *backend.Block) {
	i := slices.IndexFunc(p.free, func(b *backend.Block) bool {
		return len(b.Memory.Bytes()) >= words*floatBytes
	})
	found := i >= 0
	if i = max(i, 0); len(p.free) == 0 {
		return nil, nil
	}
	b = p.free[i]
	p.free = slices.Delete(p.free, i, i+1)
	if !found {
		return nil, b
	}
	return b, nil
}

// put takes a block back.
func (p *blocks) put(b *backend.Block) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.free = append(p.free, b)
}

// end frees the memory of a block that nobody has.
func (p *blocks) end(b *backend.Block) error {
	return errors.Join(p.driver.unlock(b.Memory.Bytes()), b.Memory.Free())
}

// release frees all blocks that nobody has.
func (p *blocks) release() (freed bool, err error) {
	p.mu.Lock()
	free := p.free
	p.free = nil
	p.mu.Unlock()
	for _, b := range free {
		err = errors.Join(err, p.end(b))
	}
	return len(free) > 0, err
}

// close frees all blocks; none is taken any more.
func (p *blocks) close() error {
	p.endRelief()
	_, err := p.release()
	return err
}

// TakeBlock returns page-locked memory.
func (g *gpu) TakeBlock(words int) (*backend.Block, error) { return g.blocks.take(words) }

// DropBlock takes it back.
func (g *gpu) DropBlock(b *backend.Block) { g.blocks.put(b) }

// Send copies a block, which is used again once the copy is known to be done: see staging.
func (g *gpu) Send(b *backend.Block) backend.Tensor {
	now := &g.staged.steps[g.staged.now]
	now.blocks = append(now.blocks, b)
	n := len(b.Words)
	if n == 0 || g.err != nil {
		return g.lend(lent{}, 1, n)
	}
	at, err := now.device.take(n * floatBytes)
	if err != nil {
		g.fail("take memory for what a step is given", err)
		return g.lend(lent{}, 1, n)
	}
	g.sent += int64(n * floatBytes)
	g.fail("copy to the device", g.driver.toDevice(at, mem.BytesOf(b.Words)))
	return g.lend(lent{at: at}, 1, n)
}
