package stream

import "math/bits"

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

// SetRest counts as many nodes of degree 0 as make all of them nodes.
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

// Add takes the nodes of some edges, which are not before those of the last call.
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

// Hist is what was counted, where there are so many nodes in all.
func (s *SortedDegrees) Hist(nodes uint64) DegreeHist {
	s.end()
	s.hist.SetRest(nodes)
	return s.hist
}
