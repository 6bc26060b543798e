package rowcache

import (
	"gdb/layout"
)

const (
	// s3SmallShare is the part of the slots that new rows pass through: one in so many.
	s3SmallShare = 10
	// s3UsesMax is up to where requests of a row are counted: two bits, as published.
	s3UsesMax = 3
)

// s3fifo is S3-FIFO (J. Yang, Y. Zhang, Z. Qiu, Y. Yue, K. V. Rashmi, FIFO Queues are All You Need
// for Cache Eviction). A new row comes into a small queue; if it is asked for twice before it has
// gone through, it moves to the main queue, else it is evicted, and remembered in the ghost queue.
// A node found there goes to the main queue at once. There the oldest row is evicted if it was not
// asked for since it came; else it goes around again, one request the poorer.
type s3fifo struct {
	held        []layout.NodeID
	newer       []uint32 // links of both queues
	uses        []uint8  // requests since a row came into its queue, s3UsesMax at most
	small, main fifo
	ghost       ghostNodes
	used        uint32
}

// NewS3FIFO returns the policy that keeps rows asked for once from driving out others: 14 bytes a
// slot.
func NewS3FIFO() Policy { return &s3fifo{} }

// Name is "s3fifo".
func (p *s3fifo) Name() string { return "s3fifo" }

// SlotBytes is the size of a link and a count, and 9/10 of that of a node in the ghost queue, which
// has as many as the main queue. All of it is less than 16 bytes more.
func (p *s3fifo) SlotBytes() int { return 14 }

// Start makes the queues.
func (p *s3fifo) Start(held []layout.NodeID) []layout.NodeID {
	p.held = held
	p.newer, p.uses = make([]uint32, len(held)), make([]uint8, len(held))
	p.ghost = newGhostNodes(len(held) - len(held)/s3SmallShare)
	return nil
}

// Begin does nothing.
func (p *s3fifo) Begin([]layout.NodeID) {}

// Hits counts requests.
func (p *s3fifo) Hits(slots []uint32) {
	for _, s := range slots {
		p.uses[s] = min(p.uses[s]+1, s3UsesMax)
	}
}

// Place puts the row in the main queue if its node is remembered, else in the small one. That is
// found out before a row is evicted, which may push the node out of the ghost queue.
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
// one.
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
