package rowcache

import (
	"context"

	"gdb/layout"
)

// Policy decides which rows a cache holds. The cache has numbered slots, each with the row of one
// node; it looks nodes up and copies rows. The policy only says where a row goes, and so which row
// leaves. All calls come with the cache's lock held, one at a time, and must not block.
//
// For one gather the calls are Begin with all its nodes, Hits with the slots of those found, and
// Place for each row that was read, in the order of the nodes. If gathers run at the same time,
// calls of one may come between calls of another, but not between Begin and Hits. A policy that
// knows the future must be used by one gather at a time, and count Begin calls.
type Policy interface {
	// Name returns the name of the policy in statistics: static, sieve, ….
	Name() string
	// SlotBytes returns the memory that the policy takes for each slot.
	SlotBytes() int
	// Start is called once, before all else. held is the cache's record of the node in each slot,
	// valid only for slots that were used. Start returns the nodes to load first, to slots 0, 1, …:
	// at most len(held), each once; or nil.
	Start(held []layout.NodeID) []layout.NodeID
	// Begin starts a gather.
	Begin(nodes []layout.NodeID)
	// Hits tells the policy that the rows in these slots were asked for, in this order.
	Hits(slots []uint32)
	// Place returns the slot for the row of a node that the cache does not hold; the row in that
	// slot is evicted. A slot never used before must be the lowest of them. keep is false if the
	// row is not kept.
	Place(node layout.NodeID) (slot uint32, keep bool)
}

// Filled waits for rows that are loaded in the background, and returns the error of loading them.
func (f *Cache) Filled(ctx context.Context) error {
	if f.background == nil {
		return ctx.Err()
	}
	select {
	case <-f.background.done:
		return f.background.failed()
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Absent appends those of nodes whose rows have no slot to the list to. The policy must be static,
// and Filled must have returned.
func (f *Cache) Absent(nodes, to []layout.NodeID) []layout.NodeID {
	f.content.RLock() // so slots keep their rows; none is pending any more
	defer f.content.RUnlock()
	for _, v := range nodes {
		if _, ok := f.mu.index.Find(v); !ok {
			to = append(to, v)
		}
	}
	return to
}

// static holds the hottest rows, from the start.
type static struct{ hot []layout.NodeID }

// NewStatic returns the policy that loads the rows of the first nodes of hot, as many as there are
// slots, and keeps them. Each node may stand in hot once. FindHot makes such lists.
func NewStatic(hot []layout.NodeID) Policy { return &static{hot: hot} }

// Name returns "static".
func (s *static) Name() string { return "static" }

// SlotBytes returns 0, since the policy keeps nothing per slot.
func (s *static) SlotBytes() int { return 0 }

// Start returns the hottest nodes, and forgets the list.
func (s *static) Start(held []layout.NodeID) []layout.NodeID {
	hot := s.hot[:min(len(held), len(s.hot))]
	s.hot = nil
	return hot
}

// Begin does nothing.
func (s *static) Begin([]layout.NodeID) {}

// Hits does nothing, since no row leaves.
func (s *static) Hits([]uint32) {}

// Place keeps no row.
func (s *static) Place(layout.NodeID) (uint32, bool) { return 0, false }

// sieve is SIEVE (Y. Zhang, J. Yang, Y. Yue, Y. Vigfusson, K. V. Rashmi, SIEVE is Simpler than
// LRU). As in CLOCK, a hand goes over the rows in the order of arrival, spares those asked for
// since it last came by, and evicts the first other. But new rows do not take the place of the
// evicted: they enter at the new end, while the hand stays among the old rows. So it meets rows
// only after they had time to be asked for again, and then evicts those that were not.
type sieve struct {
	newer          []uint32 // next slot of the queue; none() after the newest
	asked          []bool   // rows asked for since the hand came by
	used           uint32
	oldest, newest uint32
	hand           uint32 // none() means that it begins at the oldest
	behind         uint32 // slot just older than the hand's, or none()
}

// NewSIEVE returns the policy that evicts rows not asked for again. It takes 5 bytes per slot.
func NewSIEVE() Policy { return &sieve{} }

// Name returns "sieve".
func (p *sieve) Name() string { return "sieve" }

// SlotBytes returns the size of a link and a mark.
func (p *sieve) SlotBytes() int { return 5 }

// Start makes the queue, and loads no rows.
func (p *sieve) Start(held []layout.NodeID) []layout.NodeID {
	p.newer, p.asked = make([]uint32, len(held)), make([]bool, len(held))
	none := p.none()
	p.oldest, p.newest, p.hand, p.behind = none, none, none, none
	return nil
}

// none returns the number that stands for no slot.
func (p *sieve) none() uint32 { return uint32(len(p.newer)) }

// Begin does nothing.
func (p *sieve) Begin([]layout.NodeID) {}

// Hits marks slots as asked for.
func (p *sieve) Hits(slots []uint32) {
	for _, s := range slots {
		p.asked[s] = true
	}
}

// Place returns a slot never used, or else the first that the hand finds unmarked.
func (p *sieve) Place(layout.NodeID) (uint32, bool) {
	if p.none() == 0 {
		return 0, false
	}
	s := p.used
	if s < p.none() {
		p.used++
	} else {
		s = p.evict()
	}
	p.asked[s], p.newer[s] = false, p.none()
	if p.newest == p.none() {
		p.oldest = s
	} else {
		p.newer[p.newest] = s
	}
	p.newest = s
	return s, true
}

// evict frees a slot, and moves the hand to the next newer one.
func (p *sieve) evict() uint32 {
	for {
		if p.hand == p.none() {
			p.hand, p.behind = p.oldest, p.none()
		}
		s := p.hand
		p.hand = p.newer[s]
		if !p.asked[s] {
			p.unlink(s)
			return s
		}
		p.asked[s] = false
		p.behind = s
	}
}

// unlink takes slot s, which comes after behind, out of the queue.
func (p *sieve) unlink(s uint32) {
	if p.behind == p.none() {
		p.oldest = p.newer[s]
	} else {
		p.newer[p.behind] = p.newer[s]
	}
	if p.newest == s {
		p.newest = p.behind
	}
}
