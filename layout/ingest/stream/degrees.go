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

// DegreeCounters count degrees in any order, in 2 bytes a node: the low 16 bits of each degree are
// in an array, and how often they ran over is in a map, which has an entry at most for every 65,536
// edges. Where counters do not fit in a cache, nodes wait in buckets, by their number, until enough
// of a bucket are counted together: counters one by one, in any order, took three times as long.
type DegreeCounters struct {
	arena   *mem.Arena
	low     []uint16
	over    map[uint64]uint64
	waiting []uint16 // the low bits of nodes, waitingMost places a bucket; nil where none wait
	counts  []uint32 // of nodes that wait in each bucket
}

const (
	// bucketBits are the bits of a node's number in its bucket, whose counters take 128 KiB.
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
	all := mem.View[uint16](arena.Bytes())
	return &DegreeCounters{arena: arena, low: all[:nodes], over: map[uint64]uint64{},
		waiting: all[nodes:], counts: make([]uint32, buckets(nodes))}, nil
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
				c.over[uint64(v)]++
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
			c.over[first+uint64(v)]++
		}
	}
	c.counts[bucket] = 0
}

// Hist returns what was counted.
func (c *DegreeCounters) Hist() DegreeHist {
	for b := range c.counts {
		c.empty(uint64(b))
	}
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

// pairsMost is the most pairs, and ends, that a PairWatch keeps.
const pairsMost = 1 << 16

// Roles of the ends, and directions of the pairs, that a PairWatch has seen.
const (
	forward  uint8 = 1 // or: was a source
	backward uint8 = 2 // or: was a destination
)

// PairWatch tells, by a sample of the pairs of nodes, how many edges have their reverse, and by a
// sample of the nodes, whether sources are ever destinations. A pair is in the sample by the hash
// of
// its two ends, so both its edges are, or none. The samples are all there is while they are small;
// each time one is full, half of it is dropped.
type PairWatch struct{ pairs, ends hashSample }

// PairCounts is what a PairWatch has found.
type PairCounts struct {
	Pairs, Both  uint64 // pairs of nodes with an edge, and with edges both ways
	Ends, Shared uint64 // nodes, and those that are sources and destinations
}

// NewPairWatch returns a watch that has seen nothing.
func NewPairWatch() *PairWatch { return &PairWatch{newHashSample(), newHashSample()} }

// hashSample is a table of at most pairsMost hashes that begin with some zero bits, and of what is
// noted of each, in place of its last two bits. It takes 1 MB. Hashes are collected and looked up
// together, so that the cache misses of their slots overlap.
type hashSample struct {
	slots  []uint64 // of hashes with what is noted; 0 where a slot is free
	count  int
	zeros  uint
	kept   []uint64 // while it is halved
	late   []uint64 // what is not in the table yet; at most lateMost
	recent [recentMost]uint64
}

const (
	noteBits = 2
	noteMask = 1<<noteBits - 1
	lateMost = 256
	// recentMost is how many of the last notes are kept, so that they are not looked up again:
	// large nodes are at the ends of many edges.
	recentMost = 1 << 10
)

func newHashSample() hashSample { return hashSample{slots: make([]uint64, 2*pairsMost)} }

// note adds what to a hash, if that is in the sample.
func (s *hashSample) note(h uint64, what uint8) {
	if h>>(64-s.zeros) != 0 {
		return
	}
	noted := h&^noteMask | uint64(what)
	if last := &s.recent[h>>noteBits%recentMost]; *last != noted {
		*last = noted
		if s.late = append(s.late, noted); len(s.late) == lateMost {
			s.addLate()
		}
	}
}

// addLate adds the hashes that were collected to the table.
func (s *hashSample) addLate() {
	for _, noted := range s.late {
		s.add(noted)
	}
	s.late = s.late[:0]
}

// add adds a hash with what is noted to the table, if it is in the sample, and halves a full one.
func (s *hashSample) add(noted uint64) {
	if noted>>(64-s.zeros) != 0 {
		return
	}
	i := noted >> noteBits % uint64(len(s.slots))
	for s.slots[i] != 0 && (s.slots[i]^noted)&^noteMask != 0 {
		i = (i + 1) % uint64(len(s.slots))
	}
	if s.slots[i] == 0 {
		s.count++
	}
	s.slots[i] |= noted
	for s.count > pairsMost {
		s.halve()
	}
}

// halve drops the hashes that do not begin with one zero bit more. It makes no new table: of these
// there would be one for each time that edges double.
func (s *hashSample) halve() {
	s.zeros++
	kept := s.kept[:0]
	for _, noted := range s.slots {
		if noted != 0 && noted>>(64-s.zeros) == 0 {
			kept = append(kept, noted)
		}
	}
	clear(s.slots)
	s.kept, s.count = kept, 0
	for _, noted := range kept {
		s.add(noted)
	}
}

// counts returns how many hashes there are, and of how many both bits are noted.
func (s *hashSample) counts() (all, both uint64) {
	s.addLate()
	for _, noted := range s.slots {
		both += noted >> 1 & noted & 1
	}
	return uint64(s.count), both
}

// scatter mixes bits: each bit of the result depends on all of x.
func scatter(x uint64) uint64 {
	hi, lo := bits.Mul64(x^0x9e3779b97f4a7c15, 0xd6e8feb86659fd93)
	hi, lo = bits.Mul64(hi^lo, 0xa0761d6478bd642f)
	return hi ^ lo
}

// Observe takes the ends of some edges, as any unique numbers.
func (w *PairWatch) Observe(src, dst []uint64) {
	for i, a := range src {
		if b := dst[i]; a != b {
			hb := scatter(b)
			w.ends.note(hb, backward)
			w.edge(a, b, hb)
		}
	}
}

// ObserveList takes the edges from some sources, which ascend, to one node.
func (w *PairWatch) ObserveList(dst uint64, src []uint32) {
	hb := scatter(dst)
	if len(src) > 0 && (uint64(src[0]) != dst || uint64(src[len(src)-1]) != dst) {
		w.ends.note(hb, backward)
	}
	// Nearly no hash is in a sample of a large graph: all others pass these two comparisons.
	endsShift, pairsShift := 64-w.ends.zeros, 64-w.pairs.zeros
	for _, a := range src {
		ha := scatter(uint64(a))
		isEnd, isPair := ha>>endsShift == 0, scatter(ha+hb)>>pairsShift == 0
		if (isEnd || isPair) && uint64(a) != dst {
			w.edge(uint64(a), dst, hb)
			endsShift, pairsShift = 64-w.ends.zeros, 64-w.pairs.zeros
		}
	}
}

// edge takes an edge from a to b, whose hash is hb.
func (w *PairWatch) edge(a, b, hb uint64) {
	ha := scatter(a)
	w.ends.note(ha, forward)
	direction := forward
	if a > b {
		direction = backward
	}
	w.pairs.note(scatter(ha+hb), direction)
}

// Counts returns what was found so far.
func (w *PairWatch) Counts() (c PairCounts) {
	c.Pairs, c.Both = w.pairs.counts()
	c.Ends, c.Shared = w.ends.counts()
	return c
}
