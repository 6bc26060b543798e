package cachesim

import (
	"slices"
	"testing"

	"gdb/layout"
	"gdb/sample/rowcache"
)

// plainLRU is a list of nodes, the most recent last.
type plainLRU struct {
	slots int
	held  []layout.NodeID
}

func (l *plainLRU) Holds(v layout.NodeID) bool { return slices.Contains(l.held, v) }

func (l *plainLRU) Hit(v layout.NodeID) {
	i := slices.Index(l.held, v)
	l.held = append(slices.Delete(l.held, i, i+1), v)
}

func (l *plainLRU) Place(v layout.NodeID) {
	if len(l.held) == l.slots {
		l.held = l.held[1:]
	}
	l.held = append(l.held, v)
}

func TestLRU(t *testing.T) {
	checkPolicy(t, newLRU, func(slots int) twin { return &plainLRU{slots: slots} })
}

// plainCLOCK is second chance without a hand: the slots are a queue, the next to look at first;
// what is spared or new goes to its end.
type plainCLOCK struct {
	slots int
	queue []layout.NodeID
	asked map[layout.NodeID]bool
}

func (c *plainCLOCK) Holds(v layout.NodeID) bool { return slices.Contains(c.queue, v) }
func (c *plainCLOCK) Hit(v layout.NodeID)        { c.asked[v] = true }

func (c *plainCLOCK) Place(v layout.NodeID) {
	for len(c.queue) == c.slots {
		first := c.queue[0]
		c.queue = c.queue[1:]
		if c.asked[first] {
			c.queue = append(c.queue, first)
		}
		delete(c.asked, first)
	}
	c.queue = append(c.queue, v)
}

func TestCLOCK(t *testing.T) {
	checkPolicy(t, newCLOCK, func(slots int) twin {
		return &plainCLOCK{slots: slots, asked: map[layout.NodeID]bool{}}
	})
}

// plainS3FIFO has three queues, the oldest first.
type plainS3FIFO struct {
	slots              int
	small, main, ghost []layout.NodeID
	uses               map[layout.NodeID]int
}

func (p *plainS3FIFO) Holds(v layout.NodeID) bool {
	return slices.Contains(p.small, v) || slices.Contains(p.main, v)
}

func (p *plainS3FIFO) Hit(v layout.NodeID) { p.uses[v] = min(p.uses[v]+1, 3) }

func (p *plainS3FIFO) Place(v layout.NodeID) {
	known := slices.Contains(p.ghost, v)
	for len(p.small)+len(p.main) == p.slots {
		p.evict()
	}
	p.uses[v] = 0
	if known {
		p.main = append(p.main, v)
	} else {
		p.small = append(p.small, v)
	}
}

// evict moves one row on, or out.
func (p *plainS3FIFO) evict() {
	if len(p.small) >= max(1, p.slots/10) {
		v := p.small[0]
		p.small = p.small[1:]
		if p.uses[v] > 1 {
			p.uses[v] = 0
			p.main = append(p.main, v)
			return
		}
		p.ghost = append(p.ghost, v)
		if len(p.ghost) > p.slots-p.slots/10 {
			p.ghost = p.ghost[1:]
		}
		return
	}
	v := p.main[0]
	p.main = p.main[1:]
	if p.uses[v] > 0 {
		p.uses[v]--
		p.main = append(p.main, v)
	}
}

func TestS3FIFO(t *testing.T) {
	checkPolicy(t, newS3FIFO, func(slots int) twin {
		return &plainS3FIFO{slots: slots, uses: map[layout.NodeID]int{}}
	})
}

// hot is every third node.
func hot() (out []layout.NodeID) {
	for v := layout.NodeID(0); v < 300; v += 3 {
		out = append(out, v)
	}
	return out
}

type plainStatic []layout.NodeID

func (s plainStatic) Holds(v layout.NodeID) bool { return slices.Contains(s, v) }
func (s plainStatic) Hit(layout.NodeID)          {}
func (s plainStatic) Place(layout.NodeID)        {}

func TestStatic(t *testing.T) {
	checkPolicy(t, func() rowcache.Policy { return rowcache.NewStatic(hot()) },
		func(slots int) twin { return plainStatic(hot()[:min(slots, len(hot()))]) })
}

// plainSIEVE is a queue, the newest last, and the node that the hand points at, or none.
type plainSIEVE struct {
	slots int
	queue []layout.NodeID
	asked map[layout.NodeID]bool
	hand  *layout.NodeID
}

func (s *plainSIEVE) Holds(v layout.NodeID) bool { return slices.Contains(s.queue, v) }
func (s *plainSIEVE) Hit(v layout.NodeID)        { s.asked[v] = true }

func (s *plainSIEVE) Place(v layout.NodeID) {
	if len(s.queue) == s.slots {
		i := 0
		if s.hand != nil {
			i = slices.Index(s.queue, *s.hand)
		}
		for s.asked[s.queue[i]] {
			delete(s.asked, s.queue[i])
			i = (i + 1) % len(s.queue)
		}
		s.queue, s.hand = slices.Delete(s.queue, i, i+1), nil
		if i < len(s.queue) {
			next := s.queue[i]
			s.hand = &next
		}
	}
	s.queue = append(s.queue, v)
}

func TestSIEVE(t *testing.T) {
	checkPolicy(t, rowcache.NewSIEVE, func(slots int) twin {
		return &plainSIEVE{slots: slots, asked: map[layout.NodeID]bool{}}
	})
}
