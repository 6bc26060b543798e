package plan

import (
	"math"

	"gdb/sample/bulk"
	"gdb/sample/rowcache"
)

const (
	// passSlowdown is how many times as long as from plain lists in memory batches take to be drawn
	// in passes, but for reading, checksums and all.
	passSlowdown = 6
	// togetherLeast is how many batches are drawn together at least.
	togetherLeast = 4
)

// PassBytes is the memory for batches that are drawn together; 0 has each drawn by itself.
func (p *Plan) PassBytes() int64 {
	if p.Lists == nil {
		return 0
	}
	return p.Lists.Passes
}

// together is how many batches there is memory for to draw them together.
func (p *Split) together() float64 {
	room := p.PassBytes() - bulk.PassWindowsBytes(p.PassBytes())
	batch := bulk.PassBatchBytes(p.BatchNodes, p.BatchInner, p.BatchEdges, p.Facts.NodeBytes,
		p.Facts.EntryBytes)
	return float64(room) / float64(max(1, batch))
}

// Staged says whether rows that the cache does not keep are read ahead: see rowcache.Staged.
func (p *Plan) Staged() bool { return p.Lists != nil && p.Lists.Staged }

// stage has rows read ahead, and returns whether there is a cache to read beside.
func (p *Split) stage() bool {
	p.Lists.Staged = p.Cache == "static"
	return p.Lists.Staged
}

// drawn is how many batches of an epoch are drawn together.
func (p *Split) drawn() float64 {
	return max(1, min(p.together(), float64(p.Facts.TrainBatches)))
}

// readAhead is what reading rows ahead costs an epoch, of which a batch misses what its cache does
// not hold: batches share few of these.
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

// drawsTogether says whether there is, if batches are to be drawn together, memory for that.
func (p *Split) drawsTogether() bool {
	return !p.passes || p.together() >= min(togetherLeast, float64(p.Facts.TrainBatches))
}

// passed is what sampling costs a batch in passes: a hop of some batches reads the lists once.
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

// samplers is how many goroutines draw batches together: nothing else goes on.
func (p *Split) samplers() int { return max(1, p.Facts.Threads) }
