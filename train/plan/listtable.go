package plan

import "slices"

// ListReads counts what sampling a batch asks of the caches of lists: Lists are asked for, Hits of
// them are found in the neighbor cache, and Reads blocks are read for the others.
type ListReads struct {
	Lists float64 `json:"lists"`
	Hits  float64 `json:"hits"`
	Reads float64 `json:"reads"`
}

// ListCaches are the sizes, in bytes, of the caches of a paged topology.
type ListCaches struct{ Blocks, Neighbors int64 }

// ListTable holds what sampling reads at some sizes of the two caches of lists. In between it
// interpolates linearly.
type ListTable struct {
	Blocks, Neighbors []int64 // sizes of caches, ascending
	BlockBytes        float64
	Reads             map[ListCaches]ListReads
}

// TriedSizes is how many sizes of each cache are tried.
const TriedSizes = 4

// WorthTrying returns the splits with a neighbor cache that would be the fastest if reading lists
// cost nothing, and the most seconds that the run would save in that case.
func (s *Costs) WorthTrying(splits []*Split) (wanted []*Split, saved float64) {
	if s.NoPaged {
		return nil, 0
	}
	best := 0.0
	for _, p := range splits {
		if time := s.forecast(p).Time; p.quarters == 0 && (best == 0 || time < best) {
			best = time
		}
	}
	best *= worthALook
	free := *s
	free.Tried = nil
	for _, p := range splits {
		if p.Resident || p.quarters == 0 {
			continue
		}
		free.Paged = []PagedPrice{{Price: Price{Own: s.ownLeast(p)}}}
		if time := free.forecast(p).Time; time < best {
			wanted = append(wanted, p)
			saved = max(saved, (best-time)*float64(p.Facts.Epochs))
		}
	}
	return wanted, saved
}

// Thinned picks at most TriedSizes of the sizes, evenly spaced by rank, with the smallest and the
// largest among them.
func Thinned(sizes []int64) (picked []int64) {
	sizes = slices.Compact(slices.Sorted(slices.Values(sizes)))
	for i := range TriedSizes {
		picked = append(picked, sizes[i*(len(sizes)-1)/(TriedSizes-1)])
	}
	return slices.Compact(picked)
}

// at returns what a batch reads with caches of any sizes, interpolated between the tried ones.
func (l *ListTable) at(blocks, neighbors int64) ListReads {
	if r, ok := l.Reads[ListCaches{blocks, neighbors}]; ok {
		return r
	}
	b0, b1, x := around(l.Blocks, blocks)
	n0, n1, y := around(l.Neighbors, neighbors)
	at := func(b, n int64) ListReads { return l.Reads[ListCaches{b, n}] }
	return at(b0, n0).mix(at(b1, n0), x).mix(at(b0, n1).mix(at(b1, n1), x), y)
}

// around finds the two neighbors of a size in an ascending list, and where it lies between
// them, from 0 to 1.
func around(sizes []int64, size int64) (a, b int64, at float64) {
	i, _ := slices.BinarySearch(sizes, size)
	a, b = sizes[max(0, i-1)], sizes[min(i, len(sizes)-1)]
	if a >= b || size <= a {
		return a, b, 0
	}
	return a, b, min(1, float64(size-a)/float64(b-a))
}

// mix interpolates from r, at 0, to o, at 1.
func (r ListReads) mix(o ListReads, at float64) ListReads {
	mix := func(a, b float64) float64 { return a + at*(b-a) }
	return ListReads{Lists: mix(r.Lists, o.Lists), Hits: mix(r.Hits, o.Hits),
		Reads: mix(r.Reads, o.Reads)}
}

// price returns what lists cost a batch with the caches of a split. The core time of sampling
// depends on the blocks read; it was measured with the smallest and the largest block cache, and a
// list is assumed to take the same time wherever it is found.
func (l *ListTable) price(s *Costs, p *Split) Price {
	reads := l.at(p.BlockCache, p.NeighborCache).Reads
	c := s.Device.Reading(reads, reads*l.BlockBytes)
	least, most := s.Paged[0], s.Paged[len(s.Paged)-1]
	many, few := l.at(least.Blocks, 0).Reads, l.at(most.Blocks, 0).Reads
	c.Own = most.Own
	if many > few {
		c.Own += (reads - few) * max(0, least.Own-most.Own) / (many - few)
	}
	c.Own = max(c.Own, s.ownLeast(p))
	return c
}

// ownLeast returns the least core time that sampling a batch takes with a split, in seconds.
func (s *Costs) ownLeast(p *Split) float64 {
	least := s.Resident.Own * p.slowdown()
	for _, paged := range s.Paged {
		least = min(least, paged.Own)
	}
	return least
}

// ReadFloor is a lower bound of the blocks that a batch reads, for some sizes of the block cache.
type ReadFloor struct {
	Blocks     []int64 // sizes of caches, ascending
	Reads      []float64
	BlockBytes float64
}

// neighborsAtBest is how many times as many hits as a block cache of its size a neighbor cache may
// bring. On R-MAT graphs it brings about as many.
const neighborsAtBest = 4

// FloorSize returns the size of a block cache that brings at least as many hits as the
// caches of a split.
func FloorSize(p *Split) int64 { return p.BlockCache + neighborsAtBest*p.NeighborCache }

// price returns a lower bound of what the reads of a split cost: the cost with the next larger
// cache of the table, or nothing beyond the largest.
func (f *ReadFloor) price(s *Costs, p *Split) Price {
	if f == nil {
		return Price{}
	}
	i, _ := slices.BinarySearch(f.Blocks, FloorSize(p))
	if i == len(f.Blocks) {
		return Price{}
	}
	return s.Device.Reading(f.Reads[i], f.Reads[i]*f.BlockBytes)
}
