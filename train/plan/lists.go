package plan

import (
	"fmt"
	"math/bits"

	"gdb/internal/mem"
	"gdb/train/setting"
)

// ListPlan is how the memory of a paged topology is split between its caches. Sizes are bytes.
type ListPlan struct {
	Blocks    int64 `json:"block_cache_bytes"`
	Neighbors int64 `json:"neighbor_cache_bytes"`
	// Passes is the memory in which batches are drawn together; 0 draws each by itself.
	Passes int64 `json:"pass_bytes,omitempty"`
	// Staged says that rows outside the static cache are read ahead, for many of the batches that
	// are drawn together, in the part of Passes that drawing does not need then.
	Staged bool `json:"staged,omitempty"`
	// Hit is the share of lists expected to be found in a neighbor cache whose size was chosen.
	Hit float64 `json:"neighbor_hit"`
	// Make is how long it takes to make the neighbor cache before the first epoch, in seconds; 0 if
	// the store has one already.
	Make float64 `json:"make_s"`
	// Why says why this size of the neighbor cache was chosen, or why there is none.
	Why string `json:"why,omitempty"`
}

// neighborsLeast is the smallest neighbor cache that is chosen.
const neighborsLeast = 256 << 10

// neighborQuarters returns the shares, in quarters, that the neighbor cache may get of the memory
// of a paged topology's caches.
func (p *Split) neighborQuarters() []int64 {
	if p.Facts.NeighborCache != setting.NeighborAuto {
		return []int64{0}
	}
	return []int64{0, 1, 2, 3}
}

// setLists splits sum bytes between the caches of a paged topology. A neighbor cache whose size the
// user gave comes on top. Block caches are whole arenas.
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

// joinLists counts the neighbor cache as part of the topology, for superbatches whose topology
// takes turns with batches in the same memory.
func (p *Split) joinLists() {
	p.Topology, p.Neighbor = p.Topology+p.Neighbor, 0
}

// neighborBytes returns what a neighbor cache of a size takes: the lists, and a directory of less
// than a sixteenth of that.
func neighborBytes(size int64) int64 { return mem.ArenaBytes(size) + mem.ArenaBytes(size/16) }

// neighborSize returns the largest neighbor cache whose lists take no more than most bytes; 0 if
// that is too small. Only the three leading bits are kept, so that runs with nearly the same memory
// share one cache.
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

// epochSeconds returns the time by which splits are compared: an epoch, plus its share of
// what is done once.
func (p *Split) epochSeconds() float64 {
	once := p.Forecast.Start
	if p.Lists != nil {
		once += p.Lists.Make
	}
	return p.Forecast.Time + once/float64(max(1, p.Facts.Epochs))
}

// ChoosesNeighbors reports whether the split has a neighbor cache whose size was chosen.
func (p *Split) ChoosesNeighbors() bool { return p.quarters > 0 }

// MakeSeconds returns how long it takes to make the split's neighbor cache before the first epoch.
// It is 0 unless the size was chosen.
func (s *Costs) MakeSeconds(p *Split) float64 {
	if p.quarters == 0 || p.Facts.NeighborsAhead || s.Kept[p.NeighborCache] {
		return 0
	}
	scratch := p.BlockCache // what layout takes to make it
	if p.Superbatch == nil || p.Superbatch.Overlap {
		scratch = max(scratch, (p.Memory-p.Fixed-p.Model-p.Neighbor)/2)
	}
	return float64(s.Scans(scratch))*s.ScanSeconds + float64(p.NeighborCache)/s.Device.Sequential
}

// loaded returns how many bytes are read when the topology is opened for a superbatch.
func (s *Costs) loaded(p *Split) float64 {
	switch {
	case p.Superbatch.Overlap:
		return 0
	case p.Resident:
		return float64(s.TopologyBytes)
	}
	return float64(p.NeighborCache)
}

// tellLists fills in what the best split tells the user of its lists: why it has a neighbor cache
// of that size, or what one would have cost.
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

// bestNeighbors says how long an epoch would take with the best split that has a neighbor cache.
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
