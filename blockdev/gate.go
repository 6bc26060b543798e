package blockdev

import "sync"

// gate counts who is inside and can be closed once: after shut returns, nobody is inside and nobody
// can enter. Unlike with a RWMutex, one goroutine may enter twice.
type gate struct {
	mu struct {
		sync.Mutex
		inside int
		closed bool
		empty  *sync.Cond // set by shut
	}
}

// enter reports whether the gate is still open. If it is, the caller must call leave later.
func (g *gate) enter() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.mu.closed {
		return false
	}
	g.mu.inside++
	return true
}

func (g *gate) leave() {
	g.mu.Lock()
	g.mu.inside--
	if g.mu.inside == 0 && g.mu.empty != nil {
		g.mu.empty.Broadcast()
	}
	g.mu.Unlock()
}

// shut closes the gate and waits until nobody is inside. It returns false if the gate was closed
// before.
func (g *gate) shut() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.mu.closed {
		return false
	}
	g.mu.closed = true
	g.mu.empty = sync.NewCond(&g.mu)
	for g.mu.inside > 0 {
		g.mu.empty.Wait()
	}
	return true
}
