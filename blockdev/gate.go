package blockdev

import "sync"

// gate counts who is inside and closes once: after shut returns nobody is inside and nobody
// enters. Entering twice from one goroutine is fine, which a RWMutex would not allow.
type gate struct {
	mu struct {
		sync.Mutex
		inside int
		closed bool
		empty  *sync.Cond // made by shut
	}
}

// enter reports whether the gate is still open; if so leave must follow.
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

// shut closes the gate and waits until it is empty. It reports false if it was closed before.
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
