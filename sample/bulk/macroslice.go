package bulk

import (
	"slices"

	"gdb/sample"
)

// slicer slices batches from macro-batches. One goroutine at a time may use it.
type slicer struct {
	at     []uint32 // for each node of the macro-batch, 1 + its number in the batch, or 0
	nodes  []uint32 // nodes of the batch by discovery, as numbers in the macro-batch
	starts []uint32 // where each delta starts in nodes
	loc    []uint32 // neighbors, as numbers by discovery
	shift  []uint32 // by delta: a node's index in the Dense minus its number by discovery
}

// slice writes the batch with the seeds first … end-1 of a macro-batch to d, whose memory it
// reuses. Each node gets the whole list that it has in the macro-batch. Such a list is always
// there: a node that the batch reaches in h hops was reached by the macro-batch in h hops or fewer.
func (s *slicer) slice(m *sample.Dense, first, end uint32, d *sample.Dense) {
	s.discover(m, first, end)
	s.arrange(m, d)
	for _, v := range s.nodes {
		s.at[v] = 0
	}
}

// list returns where the list of a node of the macro-batch begins and ends.
func list(m *sample.Dense, v uint32) (first, end uint32) {
	row := v - m.NodeIDOffsets[1]
	return m.NbrOffsets[row], m.NbrOffsets[row+1]
}

// discover finds the nodes of the batch, seeds first, hop by hop.
func (s *slicer) discover(m *sample.Dense, first, end uint32) {
	if n := len(m.NodeIDs); len(s.at) < n {
		s.at = make([]uint32, n+n/8)
	}
	hops := m.Layers()
	s.nodes, s.loc = s.nodes[:0], s.loc[:0]
	for v := m.NodeIDOffsets[hops] + first; v < m.NodeIDOffsets[hops]+end; v++ {
		s.nodes = append(s.nodes, v)
		s.at[v] = uint32(len(s.nodes))
	}
	s.starts = append(s.starts[:0], 0, uint32(len(s.nodes)))
	for h := range hops {
		for i := s.starts[h]; i < s.starts[h+1]; i++ {
			from, to := list(m, s.nodes[i])
			for _, u := range m.ReprMap[from:to] {
				if s.at[u] == 0 {
					s.nodes = append(s.nodes, u)
					s.at[u] = uint32(len(s.nodes))
				}
				s.loc = append(s.loc, s.at[u]-1)
			}
		}
		s.starts = append(s.starts, uint32(len(s.nodes)))
	}
}

// arrange writes the batch to d, outermost delta first.
func (s *slicer) arrange(m, d *sample.Dense) {
	hops := m.Layers()
	s.shift = append(s.shift[:0], make([]uint32, hops+1)...)
	d.NodeIDOffsets, d.NodeIDs = d.NodeIDOffsets[:0], d.NodeIDs[:0]
	d.Degrees, d.WeightSums = d.Degrees[:0], d.WeightSums[:0]
	for h := hops; h >= 0; h-- {
		d.NodeIDOffsets = append(d.NodeIDOffsets, uint32(len(d.NodeIDs)))
		s.shift[h] = uint32(len(d.NodeIDs)) - s.starts[h]
		for _, v := range s.nodes[s.starts[h]:s.starts[h+1]] {
			d.NodeIDs = append(d.NodeIDs, m.NodeIDs[v])
			if len(m.Degrees) > 0 {
				d.Degrees = append(d.Degrees, m.Degrees[v])
			}
			if len(m.WeightSums) > 0 {
				d.WeightSums = append(d.WeightSums, m.WeightSums[v])
			}
		}
	}
	d.NodeIDOffsets = append(d.NodeIDOffsets, uint32(len(d.NodeIDs)))
	s.lists(m, d)
}

// lists writes the lists of the batch to d, in the order of its nodes.
func (s *slicer) lists(m, d *sample.Dense) {
	d.NbrOffsets, d.Nbrs, d.ReprMap = append(d.NbrOffsets[:0], 0), d.Nbrs[:0], d.ReprMap[:0]
	d.Weights, d.Types = d.Weights[:0], d.Types[:0]
	d.Nbrs = slices.Grow(d.Nbrs, len(s.loc))
	d.ReprMap = slices.Grow(d.ReprMap, len(s.loc))
	hops := m.Layers()
	ends := make([]int, hops+1) // where each hop ends in loc
	for h := range hops {
		ends[h+1] = ends[h]
		for _, v := range s.nodes[s.starts[h]:s.starts[h+1]] {
			from, to := list(m, v)
			ends[h+1] += int(to - from)
		}
	}
	for h := hops - 1; h >= 0; h-- {
		for _, l := range s.loc[ends[h]:ends[h+1]] {
			d.ReprMap = append(d.ReprMap, l+s.shift[s.deltaOf(l)])
		}
		for _, v := range s.nodes[s.starts[h]:s.starts[h+1]] {
			from, to := list(m, v)
			d.Nbrs = append(d.Nbrs, m.Nbrs[from:to]...)
			if len(m.Weights) > 0 {
				d.Weights = append(d.Weights, m.Weights[from:to]...)
			}
			if len(m.Types) > 0 {
				d.Types = append(d.Types, m.Types[from:to]...)
			}
			d.NbrOffsets = append(d.NbrOffsets, uint32(len(d.Nbrs)))
		}
	}
}

// deltaOf returns the delta of a node, given its number by discovery.
func (s *slicer) deltaOf(l uint32) (h int) {
	for l >= s.starts[h+1] {
		h++
	}
	return h
}
