package plan

import "gdb/sample/superbatch"

// head returns how many batches the first superbatch of a pair has, if a step takes step seconds:
// see superbatch.Costs.Head. With overlap it is the length of the first superbatch of a run of two.
// It is 0 where superbatches come neither in pairs nor in such a run.
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

// batches returns the number of batches in a run.
func (s *Costs) batches(p *Split) float64 { return float64(p.Facts.Epochs) * float64(s.Batches) }

// besideHead returns how many seconds of sampling cost nothing because they pass while rows
// are swept for the head: the sampling of the pair's other superbatch. share is the head's
// part of the pair.
func (s *Costs) besideHead(share, sweep, ahead float64) float64 {
	if share == 0 {
		return 0
	}
	return min(sweep, ahead*(1-share))
}
