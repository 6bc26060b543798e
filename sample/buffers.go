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
	lent  bool // whether the consumer has it
}

// Arena returns the memory, or nil.
func (b *Buffer) Arena() *mem.Arena { return b.arena }

// Floats returns the memory as floats. The buffer must have memory.
func (b *Buffer) Floats() []float32 { return mem.View[float32](b.arena.Bytes()) }

// Free frees the memory. The buffer may be fitted again.
func (b *Buffer) Free() error {
	a := b.arena
	b.arena = nil
	if a == nil {
		return nil
	}
	return a.Free()
}

// Buffers are the buffers of a pipeline. Each gets memory when it is fitted, and belongs to one
// stage, to the consumer, or to nobody.
type Buffers struct {
	what   string
	budget *mem.Budget
	spare  *Spare
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

// From makes the buffers take their memory from spare, and leave it there in the end.
func (p *Buffers) From(spare *Spare) *Buffers {
	p.spare = spare
	return p
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
	if b.arena = p.spare.take(n); b.arena != nil {
		return nil
	}
	var err error
	if b.arena, err = mem.NewArena(p.budget, p.what, begin); err != nil {
		b.arena, err = mem.NewArena(p.budget, p.what, n)
	}
	return err
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
		var err error
		b.arena, err = mem.NewArena(p.budget, p.what, size)
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
		_ = p.leave(b) // unmapping what was mapped cannot fail
		return false
	}
	p.Put(b)
	return true
}

// FreeIdle frees the memory of the buffers that nobody has.
func (p *Buffers) FreeIdle() (freed bool) {
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

// leave gives the memory of a buffer to the spare, or frees it.
func (p *Buffers) leave(b *Buffer) error {
	a := b.arena
	b.arena = nil
	if a == nil {
		return nil
	}
	return p.spare.keep(a)
}

// Close gives the memory of all buffers to the spare, or frees it. Lent buffers stay valid until
// they are returned. The stages must have stopped.
func (p *Buffers) Close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	var err error
	for _, b := range p.owned {
		if !b.lent {
			err = errors.Join(err, p.leave(b))
		}
	}
	return err
}

// Spare keeps the memory of buffers from one pipeline for the next, so that the system need not
// find and clear it again: with R-MAT 2^20 x 128 that took from a thirtieth to a quarter of the
// time of the cores in an epoch of 105 batches, most if memory had been free for long. A budget
// that is short takes back this memory first. A nil Spare keeps nothing.
type Spare struct {
	end func()

	mu     sync.Mutex
	closed bool
	arenas []*mem.Arena
}

// NewSpare returns a spare without memory, for arenas that are counted in budget, which may be nil.
// The caller calls Close.
func NewSpare(budget *mem.Budget) *Spare {
	s := &Spare{end: func() {}}
	if budget != nil {
		s.end = budget.RelieveFirst(func(int64) bool { return s.free() })
	}
	return s
}

// keep keeps an arena, or frees it.
func (s *Spare) keep(a *mem.Arena) error {
	if s == nil {
		return a.Free()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return a.Free()
	}
	s.arenas = append(s.arenas, a)
	return nil
}

// take returns an arena of at least n bytes, or nil. It frees one that is smaller, so that no more
// arenas are kept than there are buffers.
func (s *Spare) take(n int64) *mem.Arena {
	if s == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	last := len(s.arenas) - 1
	if last < 0 {
		return nil
	}
	a := s.arenas[last]
	s.arenas = s.arenas[:last]
	if int64(len(a.Bytes())) >= n {
		return a
	}
	_ = a.Free() // unmapping what was mapped cannot fail
	return nil
}

// free frees all arenas, and returns whether there were any.
func (s *Spare) free() (freed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, a := range s.arenas {
		_ = a.Free() // unmapping what was mapped cannot fail
		freed = true
	}
	s.arenas = nil
	return freed
}

// Close frees all arenas, and makes keep free later ones.
func (s *Spare) Close() error {
	s.end()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	var err error
	for _, a := range s.arenas {
		err = errors.Join(err, a.Free())
	}
	s.arenas = nil
	return err
}
