package cachesim

import (
	"gdb/layout"
	"gdb/sample/rowcache"
)

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
