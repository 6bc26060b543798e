package plan

import (
	"fmt"
	"math/bits"

	"gdb/internal/mem"
	"gdb/train/setting"
)

// ListPlan is how the memory of a paged topology is split between its caches.
type ListPlan struct {
	Blocks    int64 `json:"block_cache_bytes"`
	Neighbors int64 `json:"neighbor_cache_bytes"`
	// Passes is for batches that are drawn together; 0 has each drawn by itself.
	Passes int64 `json:"pass_bytes,omitempty"`
	// Staged says that these have the rows that a static cache does not keep read ahead, for many
	// of them at a time, in what of that memory drawing does not take then.
	Staged bool `json:"staged,omitempty"`
	// Hit is the share of lists that is expected in the neighbor cache, where it was chosen.
	Hit float64 `json:"neighbor_hit"`
	// Make is how long it takes to make it before the first epoch, in seconds: 0 if it is kept.
	Make float64 `json:"make_s"`
	// Why says why this size was chosen, or none.
	Why string `json:"why,omitempty"`
}

// neighborsLeast is the smallest neighbor cache that is chosen.
const neighborsLeast = 256 << 10

// neighborQuarters are the shares of a paged topology's memory that its neighbor cache may get.
func (p *Split) neighborQuarters() []int64 {
	if p.Facts.NeighborCache != setting.NeighborAuto {
		return []int64{0}
	}
	return []int64{0, 1, 2, 3}
}

// setLists splits what the caches of a paged topology have, whatever the shares: a neighbor cache
// whose size was given is besides. Blocks lie in whole arenas.
func (p *Split) setLists(sum int64) {
	whole := func(n int64) int64 {
		if n > mem.HugePageBytes {
			n &^= mem.HugePageBytes - 1
		}
		return n
	}
	sum = whole(sum)
	p.listCaches, p.BlockCache = sum, sum
	p.Topology = p.Facts.PagedBytes(sum)
	passes := int64(0)
	if p.passes {
		p.BlockCache = min(sum, pagedCacheLeast)
		passes = sum - p.BlockCache
		p.Topology = p.Facts.PagedBytes(p.BlockCache) + passes
	} else if p.Facts.NeighborCache == setting.NeighborAuto {
		p.NeighborCache = neighborSize(sum * p.quarters / 4)
		taken := neighborBytes(p.NeighborCache)
		p.BlockCache, p.Topology = whole(sum-taken), p.Topology-taken
	}
	p.Neighbor = neighborBytes(p.NeighborCache)
	p.Lists = &ListPlan{Blocks: p.BlockCache, Neighbors: p.NeighborCache, Passes: passes}
}

// joinLists counts the neighbor cache with the topology, which takes turns with batches.
func (p *Split) joinLists() {
	p.Topology, p.Neighbor = p.Topology+p.Neighbor, 0
}

// neighborBytes is what a neighbor cache takes: the lists, and the directory of less than a
// sixteenth.
func neighborBytes(size int64) int64 { return mem.ArenaBytes(size) + mem.ArenaBytes(size/16) }

// neighborSize is the largest neighbor cache whose lists take so many bytes, with three leading
// bits, so that runs with nearly the same memory find the one that is kept. 0 is none.
func neighborSize(most int64) int64 {
	n := most
	for n >= neighborsLeast {
		n &^= 1<<(bits.Len64(uint64(n))-3) - 1
		if mem.ArenaBytes(n) <= most {
			return n
		}
		n--
	}
	return 0
}

// epochSeconds is what splits are compared by: an epoch, with its share of what is made once.
func (p *Split) epochSeconds() float64 {
	once := p.Forecast.Start
	if p.Lists != nil {
		once += p.Lists.Make
	}
	return p.Forecast.Time + once/float64(max(1, p.Facts.Epochs))
}

// ChoosesNeighbors says that the split has a neighbor cache whose size was chosen.
func (p *Split) ChoosesNeighbors() bool { return p.quarters > 0 }

// MakeSeconds is how long it takes to make the neighbor cache of a split before the first epoch, if
// its size was chosen.
func (s *Costs) MakeSeconds(p *Split) float64 {
	if p.quarters == 0 || p.Facts.NeighborsAhead || s.Kept[p.NeighborCache] {
		return 0
	}
	scratch := p.BlockCache // as layout takes it
	if p.Superbatch == nil || p.Superbatch.Overlap {
		scratch = max(scratch, (p.Memory-p.Fixed-p.Model-p.Neighbor)/2)
	}
	return float64(s.Scans(scratch))*s.ScanSeconds + float64(p.NeighborCache)/s.Device.Sequential
}

// loaded is how many bytes are read when the topology is opened for a superbatch.
func (s *Costs) loaded(p *Split) float64 {
	switch {
	case p.Superbatch.Overlap:
		return 0
	case p.Resident:
		return float64(s.TopologyBytes)
	}
	return float64(p.NeighborCache)
}

// tellLists completes what the best split says of its lists: what neighbor caches would bring.
func (s *Costs) tellLists(best *Split, splits []*Split) {
	l := best.Lists
	switch {
	case l == nil:
	case s.Tried == nil:
		l.Why = s.ListsWhy
	case best.quarters > 0:
		r := s.Tried.at(best.BlockCache, best.NeighborCache)
		l.Hit = r.Hits / max(1, r.Lists)
		made := "kept from before"
		if best.Facts.NeighborsAhead {
			made = "made before the run"
		}
		if l.Make > 0 {
			made = fmt.Sprintf("%.2gs to make", l.Make)
		}
		l.Why = fmt.Sprintf("neighbor cache %s, %s: %.0f%% of the lists",
			mem.FormatSize(l.Neighbors), made, 100*l.Hit)
	default:
		l.Why = "no neighbor cache: " + s.bestNeighbors(splits)
	}
}

// bestNeighbors says what the best of the splits with a neighbor cache would take.
func (s *Costs) bestNeighbors(splits []*Split) string {
	var best *Split
	for _, p := range splits {
		if p.quarters > 0 && p.Forecast != nil &&
			(best == nil || p.epochSeconds() < best.epochSeconds()) {
			best = p
		}
	}
	if best == nil {
		return "none was tried"
	}
	what := fmt.Sprintf("with %s %s an epoch", mem.FormatSize(best.NeighborCache),
		seconds(best.Forecast.Time))
	if best.Lists.Make > 0 {
		what += fmt.Sprintf(", and %s to make it", seconds(best.Lists.Make))
	}
	return what
}
