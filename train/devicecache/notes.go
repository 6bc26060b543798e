package devicecache

import "sync"

// notes remembers where rows are of batches whose X does not have all of them. A batch is
// identified by the address of the first value of X. Its methods may be called from any goroutine.
type notes[T any] struct {
	fresh func() *T

	mu     sync.Mutex
	placed map[*float32]*T
	free   []*T
}

func newNotes[T any](fresh func() *T) notes[T] {
	return notes[T]{fresh: fresh, placed: map[*float32]*T{}}
}

// spare returns a note that is not in use.
func (n *notes[T]) spare() *T {
	n.mu.Lock()
	defer n.mu.Unlock()
	if last := len(n.free) - 1; last >= 0 {
		p := n.free[last]
		n.free = n.free[:last]
		return p
	}
	return n.fresh()
}

// put remembers the note of a batch.
func (n *notes[T]) put(x *float32, p *T) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.placed[x] = p
}

// take returns the note of a batch and forgets it; nil if there is none.
func (n *notes[T]) take(x *float32) *T {
	n.mu.Lock()
	defer n.mu.Unlock()
	p := n.placed[x]
	delete(n.placed, x)
	return p
}

// give makes a note available to spare. It does nothing for nil.
func (n *notes[T]) give(p *T) {
	if p == nil {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.free = append(n.free, p)
}

// idle returns the notes that are not in use, and forgets them until they are given back.
func (n *notes[T]) idle() []*T {
	n.mu.Lock()
	defer n.mu.Unlock()
	all := n.free
	n.free = nil
	return all
}

// end forgets all notes and returns them.
func (n *notes[T]) end() []*T {
	n.mu.Lock()
	defer n.mu.Unlock()
	all := n.free
	for _, p := range n.placed {
		all = append(all, p)
	}
	n.placed, n.free = nil, nil
	return all
}
