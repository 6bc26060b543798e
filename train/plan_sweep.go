package train

import "math"

// missedRows are what the missing rows of a batch of a superbatch cost.
type missedRows struct {
	bytes float64 // read of the features and packed
	wait  float64 // while the batch before is trained on
	once  float64 // a batch's share of what is done before the first of many
	cpu   float64 // of a core, its share of that
	span  float64 // batches that are swept for together
}

const (
	// sweepGap and sweepExtent are the largest gap that a sweep reads over, and its longest read.
	sweepGap, sweepExtent = 8 << 10, 256 << 10
	// sweepKey is the memory of a sweep for a row.
	sweepKey = 16
)

// missedRows decides as superbatch.Costs does between rows read one by one and a sweep, with means
// in the place of the rows' places.
func (s *prices) missedRows(p *planner, rows rowsCost) missedRows {
	apart := missedRows{bytes: rows.bytes, wait: rows.wait}
	d, b, missed := s.device, p.Superbatch, s.nodes*(1-rows.hit)
	if missed < 1 || b.Sweep == 0 {
		return apart
	}
	room := float64(b.Storage) / 2
	if b.SweepAhead {
		room /= 2
	}
	span := min(s.steps(b, p.c), float64(b.Sweep)/(sweepKey*missed), room/(missed*s.rowBytes))
	if span < 1 {
		return apart
	}
	total, file := float64(p.nodes), float64(p.nodes)*s.rowBytes
	unique := total * (1 - math.Exp(-span*missed/total))
	gap := file / unique
	merged := 1 - math.Exp(-sweepGap/gap)
	reads := unique*(1-merged) + file/sweepExtent
	bytes := min(file, unique*(s.rowBytes+merged*min(gap, sweepGap/2)))
	packed := missed * s.rowBytes
	swept := missedRows{bytes: bytes/span + packed,
		wait: packed*d.ByteSeconds + packed/sweepExtent*d.ReadSeconds,
		once: (reads*d.ReadSeconds+bytes*d.ByteSeconds)/span + packed/d.Sequential,
		cpu:  (reads*d.ReadCPU+bytes*d.ByteCPU)/span + packed*d.ByteCPU, span: span}
	once := swept.once
	if b.SweepAhead {
		once = max(0, once-max(0, s.step-swept.wait))
	}
	if once+max(s.step, swept.wait) < max(s.step, apart.wait) {
		return swept
	}
	return apart
}
