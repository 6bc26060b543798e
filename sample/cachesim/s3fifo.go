package cachesim

import (
	"gdb/layout"
	"gdb/sample/rowcache"
)

const (
	// s3SmallShare says how large the queue is that new rows pass through: one slot in
	// s3SmallShare.
	s3SmallShare = 10
	// s3UsesMax bounds the count of requests of a row: two bits, as published.
	s3UsesMax = 3
)

// s3fifo is S3-FIFO (J. Yang, Y. Zhang, Z. Qiu, Y. Yue, K. V. Rashmi, FIFO Queues are All You Need
// for Cache Eviction). A new row enters a small queue. If it is asked for twice before it leaves,
// it moves to the main queue, else it is evicted and its node is remembered in the ghost queue. A
// row whose node is remembered there enters the main queue at once. From the main queue, the oldest
// row is evicted if it was not asked for since it came; else it goes around again, and its count
// drops by one.
type s3fifo struct {
	held        []layout.NodeID
	newer       []uint32 // links of both queues
	uses        []uint8  // requests since the row came into its queue, at most s3UsesMax
	small, main fifo
	ghost       ghostNodes
	used        uint32
}

// newS3FIFO returns the policy that keeps rows asked for once from driving out others. It takes 14
// bytes per slot.
func newS3FIFO() rowcache.Policy { return &s3fifo{} }

// Name returns "s3fifo".
func (p *s3fifo) Name() string { return "s3fifo" }

// SlotBytes returns the size of a link, a count and 9/10 of a node in the ghost queue, which has as
// many nodes as the main queue. What rounding adds is less than 16 bytes in all.
func (p *s3fifo) SlotBytes() int { return 14 }

// Start makes the queues, and loads no rows.
func (p *s3fifo) Start(held []layout.NodeID) []layout.NodeID {
	p.held = held
	p.newer, p.uses = make([]uint32, len(held)), make([]uint8, len(held))
	p.ghost = newGhostNodes(len(held) - len(held)/s3SmallShare)
	return nil
}

// Begin does nothing.
func (p *s3fifo) Begin([]layout.NodeID) {}

// Hits counts requests of the rows in slots.
func (p *s3fifo) Hits(slots []uint32) {
	for _, s := range slots {
		p.uses[s] = min(p.uses[s]+1, s3UsesMax)
	}
}

// Place puts the row in the main queue if its node is remembered, else in the small one. It looks
// that up before it evicts a row, which may push the node out of the ghost queue.
func (p *s3fifo) Place(v layout.NodeID) (uint32, bool) {
	if len(p.held) == 0 {
		return 0, false
	}
	q := &p.small
	if p.ghost.Has(v) {
		q = &p.main
	}
	s := p.used
	if int(s) < len(p.held) {
		p.used++
	} else {
		s = p.evict()
	}
	p.uses[s] = 0
	q.push(p.newer, s)
	return s, true
}

// evict frees a slot: from the small queue if that has its share of the slots, else from the main
// queue.
func (p *s3fifo) evict() uint32 {
	for p.small.length >= max(1, len(p.held)/s3SmallShare) {
		s := p.small.pop(p.newer)
		if p.uses[s] <= 1 {
			p.ghost.Add(p.held[s])
			return s
		}
		p.uses[s] = 0
		p.main.push(p.newer, s)
	}
	for {
		s := p.main.pop(p.newer)
		if p.uses[s] == 0 {
			return s
		}
		p.uses[s]--
		p.main.push(p.newer, s)
	}
}
