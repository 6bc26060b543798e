// Package arena lends memory to other processes, which map it. An Arena is one piece of such memory
// and holds one batch. A Stock has the arenas that the clients of a loader share, and a Pool lends
// them to one client. The stock makes arenas up to its usual number, uses those again that come
// back, and makes one more where a client asks for a batch while clients keep all of them.
package arena

import (
	"errors"
	"slices"
	"sync"

	"gdb/internal/mem"
)

// ErrHeld says that there is no memory for a batch because the client keeps earlier ones.
var ErrHeld = errors.New("all memory for batches is with the client")

// ErrClosed says that the pool is closed, because its client is gone.
var ErrClosed = errors.New("arena: the pool is closed")

// Arena is shared memory that the server fills and a client reads.
type Arena struct {
	*mem.Shared
	// ID names the arena to clients. A stock uses each id once.
	ID uint32
	// Known says that the client for which the arena was taken has its descriptor.
	Known bool

	with *Pool // the pool whose client has the arena; nil if no client has it
}

// Stock has the arenas of the clients of one loader. All methods may be called from any goroutine.
type Stock struct {
	budget *mem.Budget
	most   int // the number of arenas that is exceeded only while clients keep all of them

	mu struct {
		sync.Mutex
		pools []*Pool // the open pools
		made  []*Arena
		idle  []*Arena
		last  uint32        // the id of the newest arena
		moved chan struct{} // closed and replaced when this or what a client waits for changes
	}
}

// NewStock returns a stock of up to most arenas, counted in budget, which may be nil. The stock is
// empty once all its pools are closed.
func NewStock(budget *mem.Budget, most int) *Stock {
	s := &Stock{budget: budget, most: max(1, most)}
	s.mu.moved = make(chan struct{})
	return s
}

// Pool opens a pool for one more client. The caller closes it.
func (s *Stock) Pool() *Pool {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := &Pool{stock: s}
	s.mu.pools = append(s.mu.pools, p)
	return p
}

// makeLocked makes an arena, with a sixteenth to spare if there is memory for it. Idle arenas,
// which are too small, make way: one in any case, and more while the memory is full. full is not
// nil if the memory is full even then and arenas may still come back; if none may, err says it.
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

// dropLocked frees arenas. Clients that know them are told with their next batch that they may
// forget them. Until then they keep them mapped, which takes memory only for arenas that a client
// has.
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

// keepLocked keeps an arena that no client has, unless all clients are gone.
func (s *Stock) keepLocked(a *Arena) {
	s.mu.idle = append(s.mu.idle, a)
	if len(s.mu.pools) == 0 {
		_ = s.dropLocked(a) // unmapping mapped memory cannot fail
	}
}

func (s *Stock) movedLocked() {
	close(s.mu.moved)
	s.mu.moved = make(chan struct{})
}
