package cachesim

import (
	"gdb/layout"
	"gdb/sample/draw"
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

// fifo is a queue of slots, linked through newer, which the queues of a policy share since a slot
// is in only one of them. The zero value is an empty queue.
type fifo struct {
	oldest, newest uint32
	length         int
}

// push adds slot s as the newest.
func (q *fifo) push(newer []uint32, s uint32) {
	if q.length == 0 {
		q.oldest = s
	} else {
		newer[q.newest] = s
	}
	q.newest = s
	q.length++
}

// pop removes and returns the oldest slot. The queue must not be empty.
func (q *fifo) pop(newer []uint32) uint32 {
	s := q.oldest
	q.oldest = newer[s]
	q.length--
	return s
}

// ghostNodes remembers the last nodes that were added, without their rows. It has a ring in the
// order of adding, and a table by node with open addressing, at most three quarters full. It takes
// 9 1/3 bytes per node.
type ghostNodes struct {
	ring  []layout.NodeID
	added uint64   // number of nodes added so far
	table []uint32 // 1 + a place in the ring; 0 if empty
}

// newGhostNodes returns ghostNodes that remember this number of nodes.
func newGhostNodes(nodes int) ghostNodes {
	if nodes == 0 {
		return ghostNodes{}
	}
	return ghostNodes{ring: make([]layout.NodeID, nodes), table: make([]uint32, nodes+nodes/3+1)}
}

// Bytes returns the memory of the ring and the table, in bytes.
func (g *ghostNodes) Bytes() int { return 4 * (len(g.ring) + len(g.table)) }

// home returns the entry of the table where the search for v begins.
func (g *ghostNodes) home(v layout.NodeID) uint64 {
	return uint64(v) * draw.Golden64 >> 32 * uint64(len(g.table)) >> 32
}

// after returns the entry of the table after h, which may be the first.
func (g *ghostNodes) after(h uint64) uint64 {
	if h++; h == uint64(len(g.table)) {
		return 0
	}
	return h
}

// Has reports whether v is remembered.
func (g *ghostNodes) Has(v layout.NodeID) bool {
	for h := g.home(v); g.table[h] != 0; h = g.after(h) {
		if g.ring[g.table[h]-1] == v {
			return true
		}
	}
	return false
}

// Add remembers v, which must not be remembered yet, in place of the node added longest ago.
func (g *ghostNodes) Add(v layout.NodeID) {
	at := g.added % uint64(len(g.ring))
	if g.added >= uint64(len(g.ring)) {
		g.remove(uint32(at) + 1)
	}
	g.added++
	g.ring[at] = v
	h := g.home(v)
	for g.table[h] != 0 {
		h = g.after(h)
	}
	g.table[h] = uint32(at) + 1
}

// remove deletes an entry from the table, and moves later entries of the run back.
func (g *ghostNodes) remove(entry uint32) {
	gap := g.home(g.ring[entry-1])
	for g.table[gap] != entry {
		gap = g.after(gap)
	}
	for h := g.after(gap); g.table[h] != 0; h = g.after(h) {
		// An entry may move to the gap unless its home lies behind it.
		home := g.home(g.ring[g.table[h]-1])
		if g.distance(home, h) >= g.distance(gap, h) {
			g.table[gap] = g.table[h]
			gap = h
		}
	}
	g.table[gap] = 0
}

// distance returns how many steps lead from one entry of the table to another.
func (g *ghostNodes) distance(from, to uint64) uint64 {
	if to < from {
		to += uint64(len(g.table))
	}
	return to - from
}
