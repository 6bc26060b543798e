package stream

import (
	"math/bits"

	"gdb/internal/mem"
)

// DegreeHist says how many nodes have which degree: place 0 of Nodes is of degree 0, place i of
// degrees from 2^(i-1) to 2^i - 1. It ends with the place of Max, the largest degree.
type DegreeHist struct {
	Nodes []uint64
	Max   uint64
}

// Add counts n nodes of a degree.
func (h *DegreeHist) Add(degree, n uint64) {
	at := bits.Len64(degree)
	for len(h.Nodes) <= at {
		h.Nodes = append(h.Nodes, 0)
	}
	h.Nodes[at] += n
	h.Max = max(h.Max, degree)
}

// SetRest counts the nodes that were not added, of nodes in all, as nodes of degree 0.
func (h *DegreeHist) SetRest(nodes uint64) {
	h.Add(0, 0)
	h.Nodes[0] = nodes
	for _, n := range h.Nodes[1:] {
		h.Nodes[0] -= n
	}
}

// SortedDegrees counts degrees where nodes come in order, one for each edge. The zero value is
// ready.
type SortedDegrees struct {
	hist   DegreeHist
	node   uint64 // of the edges under way
	degree uint64
}

// Add takes the nodes of some edges, none of which is before a node of the last call.
func (s *SortedDegrees) Add(nodes []uint64) {
	for _, v := range nodes {
		if v != s.node {
			s.end()
			s.node = v
		}
		s.degree++
	}
}

// end counts the node under way.
func (s *SortedDegrees) end() {
	if s.degree > 0 {
		s.hist.Add(s.degree, 1)
	}
	s.degree = 0
}

// Hist returns what was counted; nodes is the number of all nodes.
func (s *SortedDegrees) Hist(nodes uint64) DegreeHist {
	s.end()
	s.hist.SetRest(nodes)
	return s.hist
}

// DegreeCounters count degrees in any order, in 2 bytes a node: the low 8 bits of each degree are
// in an array, the next 8 in another, which is seldom met, and how often these ran over is in a
// map, which has an entry at most for every 65,536 edges. Where counters do not fit in a cache,
// nodes wait in buckets, by their number, until enough of a bucket are counted together: counters
// one by one, in any order, took three times as long.
type DegreeCounters struct {
	arena   *mem.Arena
	low     []uint8
	high    []uint8
	over    map[uint64]uint64
	waiting []uint16 // the low bits of nodes, waitingMost places a bucket; nil where none wait
	counts  []uint32 // of nodes that wait in each bucket
}

const (
	// bucketBits are the bits of a node's number in its bucket, whose low bits take 64 KiB.
	bucketBits  = 16
	waitingMost = 1 << 13
	// cachedNodes is how many counters are taken to be in a cache.
	cachedNodes = 1 << 19
)

// buckets returns the number of buckets for counters of nodes.
func buckets(nodes uint64) int {
	if nodes <= cachedNodes {
		return 0
	}
	return int((nodes + 1<<bucketBits - 1) >> bucketBits)
}

// DegreeCounterBytes returns the bytes of the counters of nodes, without the map: 2 a node, and a
// quarter more where nodes wait.
func DegreeCounterBytes(nodes uint64) int64 {
	return int64(nodes)*2 + int64(buckets(nodes))*2*waitingMost
}

// NewDegreeCounters takes the memory for counters of nodes 0 to nodes-1, all 0.
func NewDegreeCounters(budget *mem.Budget, nodes uint64) (*DegreeCounters, error) {
	arena, err := mem.NewArena(budget, "out-degrees", DegreeCounterBytes(nodes))
	if err != nil {
		return nil, err
	}
	all := arena.Bytes()
	return &DegreeCounters{arena: arena, low: all[:nodes], high: all[nodes : 2*nodes],
		over: map[uint64]uint64{}, waiting: mem.View[uint16](all[2*nodes:]),
		counts: make([]uint32, buckets(nodes))}, nil
}

// Add counts an edge for each of nodes.
func (c *DegreeCounters) Add(nodes []uint64) { addNodes(c, nodes) }

// AddIDs is Add of nodes of 32 bits.
func (c *DegreeCounters) AddIDs(nodes []uint32) { addNodes(c, nodes) }

func addNodes[V uint32 | uint64](c *DegreeCounters, nodes []V) {
	if len(c.counts) == 0 {
		for _, v := range nodes {
			c.low[v]++
			if c.low[v] == 0 {
				c.carry(uint64(v))
			}
		}
		return
	}
	counts, waiting := c.counts, c.waiting
	for _, v := range nodes {
		b := uint64(v >> bucketBits)
		n := counts[b]
		waiting[b*waitingMost+uint64(n)] = uint16(v)
		if counts[b] = n + 1; n+1 == waitingMost {
			c.empty(b)
		}
	}
}

// empty counts the nodes that wait in a bucket.
func (c *DegreeCounters) empty(bucket uint64) {
	first, at := bucket<<bucketBits, bucket*waitingMost
	low := c.low[first:min(first+1<<bucketBits, uint64(len(c.low)))]
	for _, v := range c.waiting[at : at+uint64(c.counts[bucket])] {
		low[v]++
		if low[v] == 0 {
			c.carry(first + uint64(v))
		}
	}
	c.counts[bucket] = 0
}

// carry counts that the low bits of a node ran over.
func (c *DegreeCounters) carry(v uint64) {
	c.high[v]++
	if c.high[v] == 0 {
		c.over[v]++
	}
}

// Hist returns what was counted.
func (c *DegreeCounters) Hist() DegreeHist {
	for b := range c.counts {
		c.empty(uint64(b))
	}
	h := DegreeHist{Nodes: make([]uint64, 1, 64)}
	var lows [17]uint64
	for v, low := range c.low {
		low := uint16(c.high[v])<<8 | uint16(low)
		lows[bits.Len16(low)]++
		h.Max = max(h.Max, uint64(low))
	}
	for v, n := range c.over {
		low := uint16(c.high[v])<<8 | uint16(c.low[v])
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
