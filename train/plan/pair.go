package plan

import "gdb/sample/superbatch"

// head is how many batches the first superbatch of a pair has, if a step takes so many seconds, or
// the first of a run of two that overlap; 0 if there are no pairs: see superbatch.Costs.Head.
func (s *Costs) head(p *Split, step float64) float64 {
	b, d := p.Superbatch, s.Device
	switch {
	case b.Overlap && s.Steps(p) < s.batches(p):
		return 0
	case b.Overlap:
		return float64(superbatch.First(uint64(s.Steps(p))))
	case !b.SweepAhead:
		return 0
	}
	costs := superbatch.Costs{Read: d.ReadSeconds, Byte: d.ByteSeconds, Step: step}
	features := float64(p.Facts.Nodes) * s.StoredBytes
	return float64(costs.Head(int(s.Steps(p)), int64(features)))
}

// batches are all of a run.
func (s *Costs) batches(p *Split) float64 { return float64(p.Facts.Epochs) * float64(s.Batches) }

// besideHead is how many seconds of sampling ahead cost nothing: those of the other superbatch of a
// pair, whose head is such a share of it, while the head's rows are swept for.
func (s *Costs) besideHead(share, sweep, ahead float64) float64 {
	if share == 0 {
		return 0
	}
	return min(sweep, ahead*(1-share))
}
