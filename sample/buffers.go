package sample

import (
	"errors"
	"sync"
	"sync/atomic"

	"gdb/internal/mem"
)

// Buffer is memory for rows, used by one batch after another.
type Buffer struct {
	arena *mem.Arena
	pages Pages // that the arena is locked for; nil for none
	lent  bool  // whether the consumer has it
}

// Pages locks and unlocks pages of memory, so that a device copies from there beside what the host
// does. Any goroutine may call it.
type Pages interface {
	Lock(x []byte) error
	Unlock(x []byte) error
}

// Arena returns the memory, or nil.
func (b *Buffer) Arena() *mem.Arena { return b.arena }

// Floats returns the memory as floats. The buffer must have memory.
func (b *Buffer) Floats() []float32 { return mem.View[float32](b.arena.Bytes()) }

// Free frees the memory. The buffer may be fitted again.
func (b *Buffer) Free() (err error) {
	a, pages := b.arena, b.pages
	b.arena, b.pages = nil, nil
	if a == nil {
		return nil
	}
	if pages != nil {
		err = pages.Unlock(a.Bytes())
	}
	return errors.Join(err, a.Free())
}

// Buffers are the buffers of a pipeline, or of pipelines that follow each other. Each gets memory
// when it is fitted, and belongs to one stage, to the consumer, or to nobody. Between two pipelines
// the memory stays, so that the system need not find and clear it again: with R-MAT 2^20 x 128 that
// took from a thirtieth to a quarter of the time of the cores in an epoch of 105 batches, most if
// memory had been free for long. A budget that is short takes back this memory first.
type Buffers struct {
	what   string
	budget *mem.Budget
	pages  Pages  // nil leaves memory as it is
	wake   func() // ends the rest between pipelines; nil while one uses the buffers
	free   chan *Buffer
	owned  []*Buffer
	made   int // buffers that TakeMade has given memory

	mu     sync.Mutex
	closed bool
}

// NewBuffers returns n buffers without memory. what is their name in errors of budget, which may be
// nil.
func NewBuffers(n int, what string, budget *mem.Budget) *Buffers {
	p := &Buffers{what: what, budget: budget, free: make(chan *Buffer, n)}
	for range n {
		b := &Buffer{}
		p.owned = append(p.owned, b)
		p.free <- b
	}
	return p
}

// LockIn has the memory of buffers be locked from now on; nil leaves it as it is. It is called
// before any has memory.
func (p *Buffers) LockIn(pages Pages) { p.pages = pages }

// give gives a buffer without memory size bytes.
func (p *Buffers) give(b *Buffer, size int64) error {
	a, err := mem.NewArena(p.budget, p.what, size)
	if err != nil {
		return err
	}
	if p.pages != nil {
		if err := p.pages.Lock(a.Bytes()); err != nil {
			return errors.Join(err, a.Free())
		}
	}
	b.arena, b.pages = a, p.pages
	return nil
}

// Use makes the buffers ready for a pipeline.
func (p *Buffers) Use() {
	if p.wake != nil {
		p.wake()
		p.wake = nil
	}
}

// Rest takes back the buffers that a pipeline held, but for those that its consumer has. The stages
// must have stopped.
func (p *Buffers) Rest() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for len(p.free) > 0 {
		<-p.free
	}
	for _, b := range p.owned {
		if !b.lent {
			p.Put(b)
		}
	}
	p.wake = func() {}
	if p.budget != nil {
		p.wake = p.budget.RelieveFirst(func(int64) bool { return p.FreeIdle() })
	}
}

// Take waits for a buffer that nobody has. It returns false if the stages stop first.
func (p *Buffers) Take(g *StageGroup, wait *atomic.Int64) (*Buffer, bool) {
	return Receive(g, p.free, wait)
}

// Put gives back a buffer that was not lent.
func (p *Buffers) Put(b *Buffer) { p.free <- b } // never blocks: there is a place for each

// Fit makes a buffer hold at least n bytes, and begin bytes if it had no memory. What it held is
// lost. If n is more than begin, it gets a sixteenth to spare.
func (p *Buffers) Fit(b *Buffer, n, begin int64) error {
	if b.arena != nil {
		if int64(len(b.arena.Bytes())) >= n {
			return nil
		}
		if err := b.Free(); err != nil {
			return err
		}
	}
	if begin < n {
		begin = n + n/16 + 4
	}
	if p.give(b, begin) == nil {
		return nil
	}
	return p.give(b, n)
}

// TakeMade waits for a buffer of size bytes, which must be the same in each call. If there is no
// memory for one more buffer, it waits for one that has memory. It returns nil if the stages stop
// first. One goroutine may call it.
func (p *Buffers) TakeMade(g *StageGroup, size int64, wait *atomic.Int64) (*Buffer, error) {
	for {
		b, ok := p.Take(g, wait)
		if !ok || b.arena != nil {
			return b, nil
		}
		err := p.give(b, size)
		var full *mem.LimitError
		switch {
		case err == nil:
			p.made++
		case p.made > 0 && errors.As(err, &full):
			continue // without this one
		}
		return b, err
	}
} // wait for another buffer

// Lend notes that the consumer has a buffer. It returns false if the pipeline is closed.
func (p *Buffers) Lend(b *Buffer) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	b.lent = !p.closed
	return b.lent
}

// Return takes a lent buffer back. If the pipeline was closed, it gives up the buffer's memory and
// returns false.
func (p *Buffers) Return(b *Buffer) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	b.lent = false
	if p.closed {
		_ = b.Free() // that fails only with a device that is lost, which its user is told
		return false
	}
	p.Put(b)
	return true
}

// FreeIdle frees the memory of the buffers that nobody has.
func (p *Buffers) FreeIdle() (freed bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for range len(p.free) {
		select {
		case b := <-p.free:
			freed = freed || b.arena != nil
			_ = b.Free() // unmapping what was mapped cannot fail
			p.Put(b)
		default:
		}
	}
	return freed
}

// Close frees the memory of all buffers. Lent buffers stay valid until they are returned. The
// stages must have stopped.
func (p *Buffers) Close() error {
	p.Use()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	var err error
	for _, b := range p.owned {
		if !b.lent {
			err = errors.Join(err, b.Free())
		}
	}
	return err
}
