package serve

import (
	"errors"
	"slices"
	"sync"

	"gdb/internal/mem"
)

// errHeld says that there is no memory for a batch because the client keeps earlier ones.
var errHeld = errors.New("all memory for batches is with the client")

// errClosed says that the pool is closed, because its client is gone.
var errClosed = errors.New("arena: the pool is closed")

// arena is shared memory that the server fills with a batch, and that a client maps and reads.
type arena struct {
	*mem.Shared
	// ID names the arena to clients. A stock uses each id once.
	ID uint32
	// Known says that the client for which the arena was taken has its descriptor.
	Known bool

	with *pool // the pool whose client has the arena; nil if no client has it
}

// stock has the arenas that the clients of one loader share, and a pool lends them to one client.
// It makes arenas up to its usual number, uses those again that come back, and makes one more where
// a client asks for a batch while clients keep all of them. All methods may be called from any
// goroutine.
type stock struct {
	budget *mem.Budget
	most   int // the number of arenas that is exceeded only while clients keep all of them

	mu struct {
		sync.Mutex
		pools []*pool // the open pools
		made  []*arena
		idle  []*arena
		last  uint32        // the id of the newest arena
		moved chan struct{} // closed and replaced when this or what a client waits for changes
	}
}

// newStock returns a stock of up to most arenas, counted in budget, which may be nil. The stock is
// empty once all its pools are closed.
func newStock(budget *mem.Budget, most int) *stock {
	s := &stock{budget: budget, most: max(1, most)}
	s.mu.moved = make(chan struct{})
	return s
}

// pool opens a pool for one more client. The caller closes it.
func (s *stock) Pool() *pool {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := &pool{stock: s}
	s.mu.pools = append(s.mu.pools, p)
	return p
}

// makeLocked makes an arena, with a sixteenth to spare if there is memory for it. Idle arenas,
// which are too small, make way: one in any case, and more while the memory is full. full is not
// nil if the memory is full even then and arenas may still come back; if none may, err says it.
func (s *stock) makeLocked(size int64) (a *arena, full *mem.LimitError, err error) {
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
			a := &arena{Shared: m, ID: s.mu.last}
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
func (s *stock) dropLocked(arenas ...*arena) (err error) {
	for _, a := range arenas {
		same := func(b *arena) bool { return b == a }
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
func (s *stock) keepLocked(a *arena) {
	s.mu.idle = append(s.mu.idle, a)
	if len(s.mu.pools) == 0 {
		_ = s.dropLocked(a) // unmapping mapped memory cannot fail
	}
}

func (s *stock) movedLocked() {
	close(s.mu.moved)
	s.mu.moved = make(chan struct{})
}
