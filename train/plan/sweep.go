package plan

import (
	"math"

	"gdb/layout/rowfile"
	"gdb/sample/superbatch"
)

// missedRows holds what a batch of a superbatch costs on average, with the rows that the cache
// misses. Times are seconds.
type missedRows struct {
	bytes   float64 // read of the features and packed
	wait    float64 // waiting for these reads
	cpu     float64 // core time of reading, assembling and the step
	loop    float64 // from one batch to the next, without sweeps
	gather  float64 // reading and assembling, in loop or beside it
	compute float64 // the step, as part of loop
	sweep   float64 // sweeping for rows
	once    float64 // the part of sweep that training waits for
	passes  float64 // core time of sweeping
	looked  float64 // batches whose lists are read to decide on sweeps, per batch
}

// missedRows forecasts the average cost of a batch of a superbatch, whose rows are read as the
// outlook says.
func (s *Costs) missedRows(p *Plan, rows RowsCost, step Work) (m missedRows) {
	steps := s.Length(p)
	o := s.outlook(p, rows, step, steps)
	for span := range o.Spans() {
		m.looked += span.Looked
		if span.Swept {
			s.countSweep(&m, o, span)
		}
		o.Reads(span, func(batches, rows float64, read rowfile.ReadCost) {
			s.countBatches(&m, p, step, batches, rows,
				s.Device.Reading(float64(read.Reads), float64(read.Bytes)))
		})
	}
	for _, v := range []*float64{&m.bytes, &m.wait, &m.cpu, &m.loop, &m.gather, &m.compute,
		&m.sweep, &m.once, &m.passes, &m.looked} {
		*v /= steps
	}
	return m
}

// outlook returns what a superbatch of steps batches will read, by mean costs.
func (s *Costs) outlook(p *Plan, rows RowsCost, step Work, steps float64) *superbatch.Outlook {
	d, b, files := s.Device, p.Superbatch, s.records(p.Superbatch)
	storage := float64(b.Storage)
	if b.Overlap {
		storage /= 2
	}
	return &superbatch.Outlook{Steps: steps, Head: s.head(p, step.Seconds), Ahead: b.SweepAhead,
		Costs: superbatch.Costs{Read: d.ReadSeconds, Byte: d.ByteSeconds,
			Written: d.Write.Seconds, Step: step.Seconds},
		Room: superbatch.SweepRoom{Memory: b.Sweep, RowBytes: int(s.StoredBytes),
			Storage:    int64(storage - steps*(files.nodes+files.edges+files.plan)),
			BatchNodes: int(max(p.BatchNodes, p.BatchPieces))},
		Missed: func(batches float64) float64 { return rows.Misses.After(batches, steps) },
		Apart:  s.Apart.Of, Once: s.once}
}

// once returns what a sweep reads for n batches from batch at on, which miss some rows. Missed rows
// that were not seen before are all different; rows that were seen before may be missed more than
// once.
func (s *Costs) once(at, n, missed float64) rowfile.ReadCost {
	before, seen := s.Grows.After(at), s.Grows.After(at+n)
	fresh := min(missed, seen-before)
	unique := fresh
	if again := missed - fresh; again > 0 && before > 0 {
		unique += before * (1 - math.Exp(-again/before))
	}
	return s.Once.Of(unique)
}

// countSweep adds what sweeping for a span costs.
func (s *Costs) countSweep(m *missedRows, o *superbatch.Outlook, span superbatch.Foreseen) {
	d, pass := s.Device, o.Once(span.At, span.Batches, span.Missed)
	m.bytes += float64(pass.Bytes)
	m.sweep += span.Weighed.Sweep
	m.once += max(0, span.Weighed.Sweep-span.Free)
	m.passes += d.Reading(float64(pass.Reads), float64(pass.Bytes)).CPU +
		span.Missed*(d.Copy.CPU+s.StoredBytes*d.Write.CPU)
}

// countBatches adds the cost of batches that miss rows rows each. Rows that have no room to be read
// ahead are read when the batch is assembled.
func (s *Costs) countBatches(m *missedRows, p *Plan, step Work, batches, rows float64,
	read Price) {
	ahead := 1.0
	if staged := float64(p.Superbatch.StageRows); staged > 0 && rows > staged {
		ahead = staged / rows
	}
	reading := Work{read.Wait, read.CPU}
	works := []Work{reading.Times(ahead), s.assembling(p, rows).Plus(reading.Times(1 - ahead)),
		step}
	ends := s.cycle(p.InTurn, works)
	loop := max(ends[0], ends[1], ends[2])
	if p.InTurn {
		loop = max(ends[0], ends[1]+ends[2])
	}
	m.bytes, m.wait = m.bytes+batches*read.Bytes, m.wait+batches*read.Wait
	for _, w := range works {
		m.cpu += batches * w.CPU
	}
	m.loop, m.gather = m.loop+batches*loop, m.gather+batches*(ends[0]+ends[1])
	m.compute += batches * ends[2]
}
