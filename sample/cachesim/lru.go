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

// clockPolicy is CLOCK, or second chance (F. J. Corbató, A Paging Experiment with the Multics
// System). A hand goes around the slots; it spares each row that was asked for since it last came
// by, and evicts the first other. It behaves about as LRU with one byte per slot, and a hit moves
// nothing.
type clockPolicy struct {
	asked []bool // rows asked for since the hand came by
	used  uint32
	hand  uint32
}

// newCLOCK returns the policy that evicts, in the order of arrival, rows that were not asked for
// lately. It takes 1 byte per slot.
func newCLOCK() rowcache.Policy { return &clockPolicy{} }

// Name returns "clock".
func (c *clockPolicy) Name() string { return "clock" }

// SlotBytes returns the size of a slot's mark.
func (c *clockPolicy) SlotBytes() int { return 1 }

// Start makes the marks, and loads no rows.
func (c *clockPolicy) Start(held []layout.NodeID) []layout.NodeID {
	c.asked = make([]bool, len(held))
	return nil
}

// Begin does nothing.
func (c *clockPolicy) Begin([]layout.NodeID) {}

// Hits marks slots as asked for.
func (c *clockPolicy) Hits(slots []uint32) {
	for _, s := range slots {
		c.asked[s] = true
	}
}

// Place returns a slot never used, or else the first that the hand finds unmarked. A new row has no
// mark: the request that brought it does not count.
func (c *clockPolicy) Place(layout.NodeID) (uint32, bool) {
	slots := uint32(len(c.asked))
	if slots == 0 {
		return 0, false
	}
	if c.used < slots {
		c.used++
		return c.used - 1, true
	}
	for {
		s := c.hand
		if c.hand++; c.hand == slots {
			c.hand = 0
		}
		if !c.asked[s] {
			return s, true
		}
		c.asked[s] = false
	}
}
