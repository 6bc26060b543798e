package serve

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// A client that asks for a batch waits while clients have all arenas: a client that has just
// received a batch gives the one before back within about a millisecond. But a client that keeps
// both may itself wait for the client that asks, as the ranks of one training step do.
const (
	// patience is how long a client waits before one more arena is made for it.
	patience = 20 * time.Millisecond
	// patienceMost is how long a client waits if there is no memory for one more arena. After that,
	// Take fails.
	patienceMost = 20 * time.Second
)

// pool lends the arenas of a stock to one client. All methods may be called from any goroutine.
type pool struct {
	stock *stock

	// stock.mu guards all fields below.
	known  []uint32 // ids of the arenas whose descriptor the client has
	gone   []uint32 // ids of freed arenas that the client may forget; it was not told yet
	asking bool     // whether the client waits for a batch
	closed bool
}

// Take waits for an arena of at least size bytes that no client has. The arena's former content is
// lost.
func (p *pool) Take(ctx context.Context, size int64) (*arena, error) {
	var begun time.Time // when clients were first found to have all arenas while this one waits
	for {
		var waited time.Duration
		if !begun.IsZero() {
			waited = time.Since(begun)
		}
		a, next, err := p.try(size, waited)
		if a != nil || err != nil {
			return a, err
		}
		var again <-chan time.Time
		switch {
		case !next.others:
			begun = time.Time{}
		case begun.IsZero():
			begun, again = time.Now(), time.After(patience)
		case waited < patience:
			again = time.After(patience - waited)
		default:
			again = time.After(max(patience, patienceMost-waited))
		}
		select {
		case <-next.moved:
		case <-again:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// later says when it is worth trying again.
type later struct {
	moved  <-chan struct{} // closed when an arena may have become free
	others bool            // the client waits while clients have all arenas, others some of them
}

// try takes an arena, or says when to try again. waited is how long the client has waited for
// others.
func (p *pool) try(size int64, waited time.Duration) (*arena, later, error) {
	s := p.stock
	s.mu.Lock()
	defer s.mu.Unlock()
	if p.closed {
		return nil, later{}, errClosed
	}
	if a := p.idleLocked(size); a != nil {
		a.Known = slices.Contains(p.known, a.ID)
		return a, later{}, nil
	}
	all := p.asking && !slices.ContainsFunc(s.mu.made, func(a *arena) bool { return a.with == nil })
	others := slices.ContainsFunc(s.mu.made, func(a *arena) bool { return a.with != p })
	next := later{moved: s.mu.moved, others: all && others}
	kept := all && (waited >= patience || !others)
	if len(s.mu.idle) == 0 && len(s.mu.made) >= s.most && !kept {
		return nil, next, nil
	}
	a, full, err := s.makeLocked(size)
	if full == nil || err != nil {
		return a, later{}, err
	}
	if all && (waited >= patienceMost || !others) {
		return nil, later{}, fmt.Errorf("%w: it has %d: %w", errHeld, p.lentLocked(), full)
	}
	return nil, next, nil // the caller waits until an arena comes back
}

// idleLocked takes an idle arena that is large enough, and prefers one that the client knows. It
// returns nil if there is none.
func (p *pool) idleLocked(size int64) *arena {
	s, best := p.stock, -1
	for i, a := range s.mu.idle {
		if int64(len(a.Bytes())) >= size && (best < 0 || slices.Contains(p.known, a.ID)) {
			best = i
		}
	}
	if best < 0 {
		return nil
	}
	a := s.mu.idle[best]
	s.mu.idle = slices.Delete(s.mu.idle, best, best+1)
	return a
}

// lentLocked returns how many arenas the client has.
func (p *pool) lentLocked() (n int) {
	for _, a := range p.stock.mu.made {
		if a.with == p {
			n++
		}
	}
	return n
}

// Put gives back an arena that was taken and was not lent to the client.
func (p *pool) Put(a *arena) {
	s := p.stock
	s.mu.Lock()
	defer s.mu.Unlock()
	s.keepLocked(a)
	s.movedLocked()
}

// Lend notes that the client has an arena. It returns the ids of arenas that the client may forget.
func (p *pool) Lend(a *arena) (gone []uint32) {
	p.stock.mu.Lock()
	defer p.stock.mu.Unlock()
	a.with = p
	if !slices.Contains(p.known, a.ID) {
		p.known = append(p.known, a.ID)
	}
	gone, p.gone = p.gone, nil
	p.stock.movedLocked()
	return gone
}

// Return takes back arenas that the client has. It fails at an arena that the client does not have.
func (p *pool) Return(ids []uint32) error {
	s := p.stock
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, id := range ids {
		i := slices.IndexFunc(s.mu.made, func(a *arena) bool { return a.ID == id && a.with == p })
		if i < 0 {
			return fmt.Errorf("arena: the client gives back arena %d, which it does not have", id)
		}
		s.mu.made[i].with = nil
		s.keepLocked(s.mu.made[i])
	}
	s.movedLocked()
	return nil
}

// Ask notes whether the client is waiting for a batch.
func (p *pool) Ask(waits bool) {
	p.stock.mu.Lock()
	defer p.stock.mu.Unlock()
	p.asking = waits
	p.stock.movedLocked()
}

// Close frees the arenas that the client has. They are not used again, because the client may keep
// its own mapping of them. An arena that is being filled for the client is given back later, by
// Put. Closing the last pool of a stock frees the idle arenas too.
func (p *pool) Close() error {
	s := p.stock
	s.mu.Lock()
	defer s.mu.Unlock()
	if p.closed {
		return nil
	}
	p.closed = true
	s.mu.pools = slices.DeleteFunc(s.mu.pools, func(other *pool) bool { return other == p })
	var free []*arena
	for _, a := range s.mu.made {
		idle := slices.Contains(s.mu.idle, a)
		if a.with == p || idle && len(s.mu.pools) == 0 {
			free = append(free, a)
		}
	}
	err := s.dropLocked(free...)
	s.movedLocked()
	return err
}
