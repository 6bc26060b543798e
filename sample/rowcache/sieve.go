package rowcache

import "gdb/layout"

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
