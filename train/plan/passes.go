package plan

import "gdb/sample/passes"

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
	room := p.PassBytes() - passes.WindowsBytes(p.PassBytes())
	batch := passes.BatchBytes(p.BatchNodes, p.BatchInner, p.BatchEdges, p.Facts.NodeBytes,
		p.Facts.EntryBytes)
	return float64(room) / float64(max(1, batch))
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
