package cachesim

import (
	"slices"
	"testing"

	"gdb/layout"
	"gdb/sample/rowcache/policytest"
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
	policytest.Run(t, newLRU, func(slots int) policytest.Twin { return &plainLRU{slots: slots} })
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
	policytest.Run(t, newCLOCK, func(slots int) policytest.Twin {
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
	policytest.Run(t, newS3FIFO, func(slots int) policytest.Twin {
		return &plainS3FIFO{slots: slots, uses: map[layout.NodeID]int{}}
	})
}
