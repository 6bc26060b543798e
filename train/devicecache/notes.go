package devicecache

import "sync"

// notes keep what is known of batches whose X does not have all rows, by its first value.
type notes[T any] struct {
	fresh func() *T

	mu     sync.Mutex
	placed map[*float32]*T
	free   []*T
}

func newNotes[T any](fresh func() *T) notes[T] {
	return notes[T]{fresh: fresh, placed: map[*float32]*T{}}
}

// spare is a note that is not in use.
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

// put notes a batch.
func (n *notes[T]) put(x *float32, p *T) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.placed[x] = p
}

// take removes what is noted of a batch: nil for nothing.
func (n *notes[T]) take(x *float32) *T {
	n.mu.Lock()
	defer n.mu.Unlock()
	p := n.placed[x]
	delete(n.placed, x)
	return p
}

// give has a note used again, if there is one.
func (n *notes[T]) give(p *T) {
	if p == nil {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.free = append(n.free, p)
}

// end gives up all notes, which it returns.
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
