package rowcache

import (
	"gdb/layout"
	"gdb/sample/draw"
)

// ghostNodes remembers the last nodes that were added, without their rows: a ring in the order of
// adding, and a table by node with open addressing, three quarters full at most. 9 1/3 bytes a
// node.
type ghostNodes struct {
	ring  []layout.NodeID
	added uint64   // nodes added so far
	table []uint32 // 1 + a place in the ring; 0 is empty
}

// newGhostNodes returns one of so many nodes.
func newGhostNodes(nodes int) ghostNodes {
	if nodes == 0 {
		return ghostNodes{}
	}
	return ghostNodes{ring: make([]layout.NodeID, nodes), table: make([]uint32, nodes+nodes/3+1)}
}

// Bytes is its memory.
func (g *ghostNodes) Bytes() int { return 4 * (len(g.ring) + len(g.table)) }

// home is where the search for v begins.
func (g *ghostNodes) home(v layout.NodeID) uint64 {
	return uint64(v) * draw.Golden64 >> 32 * uint64(len(g.table)) >> 32
}

// after is the entry of the table that follows.
func (g *ghostNodes) after(h uint64) uint64 {
	if h++; h == uint64(len(g.table)) {
		return 0
	}
	return h
}

// Has says whether v is remembered.
func (g *ghostNodes) Has(v layout.NodeID) bool {
	for h := g.home(v); g.table[h] != 0; h = g.after(h) {
		if g.ring[g.table[h]-1] == v {
			return true
		}
	}
	return false
}

// Add remembers v, which is not remembered, in place of the node that was added first.
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

// distance is how many steps lead from one entry to another.
func (g *ghostNodes) distance(from, to uint64) uint64 {
	if to < from {
		to += uint64(len(g.table))
	}
	return to - from
}
