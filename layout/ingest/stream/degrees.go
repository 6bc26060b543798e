package stream

import (
	"math/bits"

	"gdb/internal/mem"
)

// DegreeCounters count degrees in any order, in 2 bytes a node: the low 16 bits of each degree are
// in an array, and how often they ran over is in a map, which has an entry at most for every 65,536
// edges.
type DegreeCounters struct {
	arena *mem.Arena
	low   []uint16
	over  map[uint64]uint64
}

// DegreeCounterBytes is what counters of so many nodes take, without the map.
func DegreeCounterBytes(nodes uint64) int64 { return int64(nodes) * 2 }

// NewDegreeCounters takes the memory for counters of nodes 0 to nodes-1, all 0.
func NewDegreeCounters(budget *mem.Budget, nodes uint64) (*DegreeCounters, error) {
	arena, err := mem.NewArena(budget, "out-degrees", DegreeCounterBytes(nodes))
	if err != nil {
		return nil, err
	}
	return &DegreeCounters{arena: arena, low: mem.View[uint16](arena.Bytes()),
		over: map[uint64]uint64{}}, nil
}

// Add counts an edge for each of nodes. Many are taken at a time so that the cache misses of their
// counters overlap: one by one between other work, it took three times as long.
func (c *DegreeCounters) Add(nodes []uint64) {
	for _, v := range nodes {
		c.low[v]++
		if c.low[v] == 0 {
			c.over[v]++
		}
	}
}

// Hist is what was counted.
func (c *DegreeCounters) Hist() DegreeHist {
	h := DegreeHist{Nodes: make([]uint64, 1, 64)}
	var lows [17]uint64
	for _, low := range c.low {
		lows[bits.Len16(low)]++
		h.Max = max(h.Max, uint64(low))
	}
	for v, n := range c.over {
		low := c.low[v]
		lows[bits.Len16(low)]--
		h.Add(n<<16|uint64(low), 1)
	}
	for at, n := range lows {
		if n > 0 {
			h.Add(1<<at>>1, n)
		}
	}
	return h
}

// Free gives the memory back.
func (c *DegreeCounters) Free() error { return c.arena.Free() }
