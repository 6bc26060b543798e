// Package arena lends memory that another process maps. A Pool belongs to one client: it makes as
// many arenas as there may be at a time, uses those again that come back, and makes one more where
// the client keeps all of them and asks for the next.
package arena

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"gdb/internal/mem"
)

// ErrHeld says that there is no memory for a batch, because the client keeps those before.
var ErrHeld = errors.New("all memory for batches is with the client")

// ErrClosed is the error of a pool whose client is gone.
var ErrClosed = errors.New("arena: the pool is closed")

// Arena is memory that is filled here and read by the client.
type Arena struct {
	*mem.Shared
	// ID names it to the client, once in a pool.
	ID uint32
	// Known says that the client has its descriptor.
	Known bool

	lent bool
}

// Pool is the arenas of one client. All methods may be called from any goroutine.
type Pool struct {
	budget *mem.Budget
	most   int // arenas, as long as the client does not keep them all

	mu struct {
		sync.Mutex
		made   []*Arena
		idle   []*Arena
		last   uint32        // id
		gone   []uint32      // ids that the client has and may forget
		asking bool          // the client waits for a batch
		moved  chan struct{} // closed when any of this changes
		closed bool
	}
}

// NewPool returns a pool of up to so many arenas, counted in budget, which may be nil.
func NewPool(budget *mem.Budget, most int) *Pool {
	p := &Pool{budget: budget, most: max(1, most)}
	p.mu.moved = make(chan struct{})
	return p
}

// Take waits for an arena of size bytes that nobody has. What it held is lost.
func (p *Pool) Take(ctx context.Context, size int64) (*Arena, error) {
	for {
		a, wait, err := p.try(size)
		if a != nil || err != nil {
			return a, err
		}
		select {
		case <-wait:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// try takes an arena, or says when to try again.
func (p *Pool) try(size int64) (a *Arena, wait <-chan struct{}, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.mu.closed {
		return nil, nil, ErrClosed
	}
	fits := func(a *Arena) bool { return int64(len(a.Bytes())) >= size }
	if i := slices.IndexFunc(p.mu.idle, fits); i >= 0 {
		a = p.mu.idle[i]
		p.mu.idle = slices.Delete(p.mu.idle, i, i+1)
		return a, nil, nil
	}
	kept := p.mu.asking && !slices.ContainsFunc(p.mu.made, func(a *Arena) bool { return !a.lent })
	for {
		if n := len(p.mu.idle); n > 0 { // one that is too small
			if err := p.dropLocked(p.mu.idle[n-1]); err != nil {
				return nil, nil, err
			}
			p.mu.idle = p.mu.idle[:n-1]
		} else if len(p.mu.made) >= p.most && !kept {
			return nil, p.mu.moved, nil
		}
		a, err = p.makeLocked(size)
		var full *mem.LimitError
		switch {
		case err == nil || !errors.As(err, &full) || len(p.mu.made) == 0:
			return a, nil, err
		case len(p.mu.idle) > 0: // and again without it
		case kept:
			return nil, nil, fmt.Errorf("%w: it has %d: %w", ErrHeld, len(p.mu.made), err)
		default:
			return nil, p.mu.moved, nil // until one comes back
		}
	}
}

// makeLocked makes an arena, with a sixteenth to spare if there is room.
func (p *Pool) makeLocked(size int64) (*Arena, error) {
	s, err := mem.NewShared(p.budget, "a batch for a client", size+size/16)
	if err != nil {
		s, err = mem.NewShared(p.budget, "a batch for a client", size)
	}
	if err != nil {
		return nil, err
	}
	p.mu.last++
	a := &Arena{Shared: s, ID: p.mu.last}
	p.mu.made = append(p.mu.made, a)
	return a, nil
}

// dropLocked frees an arena that nobody has.
func (p *Pool) dropLocked(a *Arena) error {
	p.mu.made = slices.DeleteFunc(p.mu.made, func(b *Arena) bool { return b == a })
	if a.Known {
		p.mu.gone = append(p.mu.gone, a.ID)
	}
	return a.Free()
}

// Put gives back an arena that was taken and not lent.
func (p *Pool) Put(a *Arena) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.mu.closed {
		_ = a.Free() // unmapping what was mapped cannot fail
		return
	}
	p.mu.idle = append(p.mu.idle, a)
	p.movedLocked()
}

// Lend notes that the client has an arena, and returns those that it may forget.
func (p *Pool) Lend(a *Arena) (gone []uint32) {
	p.mu.Lock()
	defer p.mu.Unlock()
	a.lent, a.Known = true, true
	gone, p.mu.gone = p.mu.gone, nil
	p.movedLocked()
	return gone
}

// Return takes back arenas that the client has. One that it does not have is an error.
func (p *Pool) Return(ids []uint32) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, id := range ids {
		i := slices.IndexFunc(p.mu.made, func(a *Arena) bool { return a.ID == id && a.lent })
		if i < 0 {
			return fmt.Errorf("arena: the client gives back arena %d, which it does not have", id)
		}
		p.mu.made[i].lent = false
		p.mu.idle = append(p.mu.idle, p.mu.made[i])
	}
	p.movedLocked()
	return nil
}

// Ask notes whether the client waits for a batch.
func (p *Pool) Ask(waits bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.mu.asking = waits
	p.movedLocked()
}

func (p *Pool) movedLocked() {
	close(p.mu.moved)
	p.mu.moved = make(chan struct{})
}

// Close frees all arenas here, those that the client has too: it is gone, or keeps its own mapping.
// An arena that is being filled is freed when it is given back.
func (p *Pool) Close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.mu.closed = true
	var err error
	for _, a := range p.mu.made {
		if a.lent || slices.Contains(p.mu.idle, a) {
			err = errors.Join(err, a.Free())
		}
	}
	p.mu.made, p.mu.idle = nil, nil
	p.movedLocked()
	return err
}
