package plan

import (
	"math"

	"gdb/sample/bulk"
	"gdb/sample/rowcache"
)

const (
	// passSlowdown is how many times as long batches take to be drawn in passes as from plain lists
	// in memory, with checksums and without reading.
	passSlowdown = 6
	// togetherLeast is the smallest number of batches that are drawn together.
	togetherLeast = 4
)

// PassBytes returns the memory in which batches are drawn together; 0 draws each by itself.
func (p *Plan) PassBytes() int64 {
	if p.Lists == nil {
		return 0
	}
	return p.Lists.Passes
}

// together returns how many batches can be drawn together in the split's memory.
func (p *Split) together() float64 {
	room := p.PassBytes() - bulk.PassWindowsBytes(p.PassBytes())
	batch := bulk.PassBatchBytes(p.BatchNodes, p.BatchInner, p.BatchEdges, p.Facts.NodeBytes,
		p.Facts.EntryBytes)
	return float64(room) / float64(max(1, batch))
}

// Staged reports whether rows that the cache does not keep are read ahead: see rowcache.Staged.
func (p *Plan) Staged() bool { return p.Lists != nil && p.Lists.Staged }

// stage sets rows to be read ahead, and returns whether that works: it needs a static cache.
func (p *Split) stage() bool {
	p.Lists.Staged = p.Cache == "static"
	return p.Lists.Staged
}

// drawn returns how many batches of one epoch are drawn together.
func (p *Split) drawn() float64 {
	return max(1, min(p.together(), float64(p.Facts.TrainBatches)))
}

// readAhead returns what reading rows ahead costs an epoch. A batch misses the rows that its cache
// does not hold; the batches are assumed to share none of these.
func (s *Costs) readAhead(p *Split, rows RowsCost) (c Price) {
	if !p.Staged() {
		return c
	}
	drawn := p.drawn()
	held := bulk.PassHeldBytes(p.BatchNodes, p.BatchInner, p.BatchEdges, p.Facts.NodeBytes,
		p.Facts.EntryBytes)
	fit := rowcache.StagedFit(p.PassBytes()-int64(drawn*float64(held)), p.Facts.Dim)
	missed := drawn * s.Nodes * (1 - rows.Hit)
	parts := math.Ceil(missed / float64(max(1, fit)))
	once := s.Once.Of(missed / max(1, parts))
	times := parts * float64(p.Facts.TrainBatches) / drawn
	return s.Device.Reading(times*float64(once.Reads), times*float64(once.Bytes))
}

// drawsTogether reports whether the split has memory enough to draw batches together, if it
// does that at all.
func (p *Split) drawsTogether() bool {
	return !p.passes || p.together() >= min(togetherLeast, float64(p.Facts.TrainBatches))
}

// passed returns what sampling a batch costs in passes: the batches that are drawn together read
// all lists once for each hop.
func (s *Costs) passed(p *Split) Price {
	batches := min(p.together(), float64(p.Facts.TrainBatches)*float64(p.Facts.Epochs))
	if p.Superbatch == nil {
		batches = min(batches, float64(p.Facts.TrainBatches))
	}
	c := Price{Own: s.Resident.Own * passSlowdown}
	c.Bytes = float64(p.Facts.Hops) * float64(s.TopologyBytes) / max(1, batches)
	// Windows are read while others are drawn from.
	workers := float64(p.samplers())
	c.Wait = max(0, c.Bytes/s.Device.Sequential*workers-c.Own)
	return c
}

// samplers returns how many goroutines draw batches together: all threads, since nothing else
// runs at that time.
func (p *Split) samplers() int { return max(1, p.Facts.Threads) }
