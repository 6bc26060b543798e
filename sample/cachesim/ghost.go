package cachesim

import (
	"gdb/layout"
	"gdb/sample/draw"
)

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
