package rowcache

import "gdb/layout"

// clockPolicy is CLOCK, or second chance (F. J. Corbató, A Paging Experiment with the Multics
// System): a hand goes around the slots, spares the rows that were asked for since it last came by,
// once each, and evicts the first other. It is about LRU in one byte a slot, and a hit moves
// nothing.
type clockPolicy struct {
	asked []bool // since the hand came by
	used  uint32
	hand  uint32
}

// NewCLOCK returns the policy that evicts in the order of arrival the rows that were not asked for
// lately: 1 byte a slot.
func NewCLOCK() Policy { return &clockPolicy{} }

// Name is "clock".
func (c *clockPolicy) Name() string { return "clock" }

// SlotBytes is the size of a mark.
func (c *clockPolicy) SlotBytes() int { return 1 }

// Start makes the marks.
func (c *clockPolicy) Start(held []layout.NodeID) []layout.NodeID {
	c.asked = make([]bool, len(held))
	return nil
}

// Begin does nothing.
func (c *clockPolicy) Begin([]layout.NodeID) {}

// Hits marks slots.
func (c *clockPolicy) Hits(slots []uint32) {
	for _, s := range slots {
		c.asked[s] = true
	}
}

// Place takes a slot never used, or else the first that the hand finds unmarked. A new row has no
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
