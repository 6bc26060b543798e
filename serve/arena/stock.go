// Package arena lends memory that other processes map. A Stock has the arenas that the clients of a
// loader share: it makes as many as there may be at a time, uses those again that come back, and
// makes one more where a client asks for a batch and clients keep all of them.
package arena

import (
	"errors"
	"slices"
	"sync"

	"gdb/internal/mem"
)

// ErrHeld says that there is no memory for a batch, because the client keeps those before.
var ErrHeld = errors.New("all memory for batches is with the client")

// ErrClosed is the error of a pool whose client is gone.
var ErrClosed = errors.New("arena: the pool is closed")

// Arena is memory that is filled here and read by a client.
type Arena struct {
	*mem.Shared
	// ID names it to clients, once in a stock.
	ID uint32
	// Known says that the client for whom it was taken has its descriptor.
	Known bool

	with *Pool // the client that has it; nil for none
}

// Stock is the arenas of some clients. All methods may be called from any goroutine.
type Stock struct {
	budget *mem.Budget
	most   int // arenas, as long as clients do not keep them all

	mu struct {
		sync.Mutex
		pools []*Pool // that are open
		made  []*Arena
		idle  []*Arena
		last  uint32        // id
		moved chan struct{} // closed when any of this changes, or what clients do
	}
}

// NewStock returns a stock of up to so many arenas, counted in budget, which may be nil. It is
// empty once all its pools are closed.
func NewStock(budget *mem.Budget, most int) *Stock {
	s := &Stock{budget: budget, most: max(1, most)}
	s.mu.moved = make(chan struct{})
	return s
}

// Pool is the share of one more client. The caller closes it.
func (s *Stock) Pool() *Pool {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := &Pool{stock: s}
	s.mu.pools = append(s.mu.pools, p)
	return p
}

// makeLocked makes an arena, with a sixteenth to spare if there is room. Idle ones, which are too
// small, give way: one in any case, others where the memory is full. full says that it is in spite
// of that; but that is an error where no others will come back.
func (s *Stock) makeLocked(size int64) (a *Arena, full *mem.LimitError, err error) {
	for {
		if n := len(s.mu.idle); n > 0 {
			if err := s.dropLocked(s.mu.idle[n-1]); err != nil {
				return nil, nil, err
			}
		}
		m, err := mem.NewShared(s.budget, "a batch for a client", size+size/16)
		if err != nil {
			m, err = mem.NewShared(s.budget, "a batch for a client", size)
		}
		switch {
		case err == nil:
			s.mu.last++
			a := &Arena{Shared: m, ID: s.mu.last}
			s.mu.made = append(s.mu.made, a)
			return a, nil, nil
		case !errors.As(err, &full) || len(s.mu.made) == 0:
			return nil, nil, err
		case len(s.mu.idle) == 0:
			return nil, full, nil
		}
	}
}

// dropLocked frees arenas. Clients that know them hear that they may forget them, with their next
// batch: until then they have them mapped, which takes memory only of those that a client has.
func (s *Stock) dropLocked(arenas ...*Arena) (err error) {
	for _, a := range arenas {
		same := func(b *Arena) bool { return b == a }
		s.mu.made = slices.DeleteFunc(s.mu.made, same)
		s.mu.idle = slices.DeleteFunc(s.mu.idle, same)
		for _, p := range s.mu.pools {
			if i := slices.Index(p.known, a.ID); i >= 0 {
				p.known = slices.Delete(p.known, i, i+1)
				p.gone = append(p.gone, a.ID)
			}
		}
		if a.with == nil {
			err = errors.Join(err, a.Empty())
		}
		err = errors.Join(err, a.Free())
	}
	return err
}

// keepLocked keeps an arena that nobody has, unless all clients are gone.
func (s *Stock) keepLocked(a *Arena) {
	s.mu.idle = append(s.mu.idle, a)
	if len(s.mu.pools) == 0 {
		_ = s.dropLocked(a) // unmapping what was mapped cannot fail
	}
}

func (s *Stock) movedLocked() {
	close(s.mu.moved)
	s.mu.moved = make(chan struct{})
}
