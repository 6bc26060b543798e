package cachesim

import (
	"gdb/layout"
	"gdb/sample/rowcache"
)

// lru evicts the row that was not asked for the longest. The slots form a ring through next and
// prev, from the most recent on. The entry after the last slot is the root of the ring: its next is
// the most recent slot, its prev the least recent.
type lru struct {
	next, prev []uint32
	used       uint32
}

// newLRU returns the policy that evicts the least recently used row. It takes 8 bytes per slot.
func newLRU() rowcache.Policy { return &lru{} }

// Name returns "lru".
func (l *lru) Name() string { return "lru" }

// SlotBytes returns the size of two links.
func (l *lru) SlotBytes() int { return 8 }

// Start makes the ring, and loads no rows.
func (l *lru) Start(held []layout.NodeID) []layout.NodeID {
	l.next, l.prev = make([]uint32, len(held)+1), make([]uint32, len(held)+1)
	root := uint32(len(held))
	l.next[root], l.prev[root] = root, root
	return nil
}

// Begin does nothing.
func (l *lru) Begin([]layout.NodeID) {}

// Hits moves slots to the front of the ring.
func (l *lru) Hits(slots []uint32) {
	for _, s := range slots {
		l.unlink(s)
		l.push(s)
	}
}

// Place returns a slot never used, or else the slot at the back of the ring.
func (l *lru) Place(layout.NodeID) (uint32, bool) {
	root := uint32(len(l.next) - 1)
	if root == 0 {
		return 0, false
	}
	s := l.used
	if s < root {
		l.used++
	} else {
		s = l.prev[root]
		l.unlink(s)
	}
	l.push(s)
	return s, true
}

func (l *lru) unlink(s uint32) {
	n, p := l.next[s], l.prev[s]
	l.next[p], l.prev[n] = n, p
}

func (l *lru) push(s uint32) {
	root := uint32(len(l.next) - 1)
	n := l.next[root]
	l.next[s], l.prev[s] = n, root
	l.prev[n], l.next[root] = s, s
}
