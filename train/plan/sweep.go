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

// superbatchReads forecasts how the rows of a superbatch are read, by the rules with
// which superbatch.Loader decides: for each span of batches, and for the first half,
// quarter, … of each span.
type superbatchReads struct {
	*Costs
	split  *Plan
	missed *MissCurve
	steps  float64
	step   Work
	staged int     // rows read ahead at most; 0 without bound
	ahead  bool    // sweeps go on beside training
	head   float64 // batches of the first superbatch of a pair
	before float64 // bytes of rows that the previous span has in the same storage
	free   float64 // seconds of the previous span's training in which a sweep may run
	costs  superbatch.Costs
	room   superbatch.SweepRoom
	sum    missedRows
}

// missedRows forecasts the average cost of a batch of a superbatch. It decides on sweeps as the
// loader does, but from mean costs, since it does not know where rows lie.
func (s *Costs) missedRows(p *Plan, rows RowsCost, step Work) missedRows {
	d, b := s.Device, p.Superbatch
	steps := s.Length(p)
	storage := float64(b.Storage)
	if b.Overlap {
		storage /= 2
	}
	files := s.records(b)
	r := &superbatchReads{Costs: s, split: p, missed: &rows.Misses, steps: steps, step: step,
		ahead: b.SweepAhead, staged: b.StageRows, head: s.head(p, step.Seconds),
		costs: superbatch.Costs{Read: d.ReadSeconds, Byte: d.ByteSeconds, Written: d.Write.Seconds,
			Step: step.Seconds},
		room: superbatch.SweepRoom{Memory: b.Sweep, RowBytes: int(s.StoredBytes),
			Storage:    int64(storage - steps*(files.nodes+files.edges+files.plan)),
			BatchNodes: int(p.BatchNodes)}}
	for at := 0.0; at < steps; {
		at += r.span(at)
	}
	m := r.sum
	for _, v := range []*float64{&m.bytes, &m.wait, &m.cpu, &m.loop, &m.gather, &m.compute,
		&m.sweep, &m.once, &m.passes, &m.looked} {
		*v /= steps
	}
	return m
}

// span decides how the next batches are read, as many as there is room for from batch at on, counts
// what they cost, and returns how many they are.
func (r *superbatchReads) span(at float64) float64 {
	n := r.extent(at)
	if n < 1 {
		n = r.steps - at
		r.count(at, n, false)
		return n
	}
	r.sum.looked += n
	swept := superbatch.Part(n, r.free, r.ahead, func(n float64) superbatch.Weighed {
		return r.weigh(at, n)
	})
	if swept > 0 {
		n = swept
	}
	r.count(at, n, swept > 0)
	return n
}

// extent returns how many batches from batch at on there is room to sweep for.
func (r *superbatchReads) extent(at float64) float64 {
	room, end := r.room, r.steps
	if at < r.head {
		end = r.head
	}
	fits := func(n float64) bool { return room.Fits(uint64(r.during(at, n)), int(math.Ceil(n))) }
	low, high := 0.0, end-at
	if room.Storage -= int64(r.before); fits(high) {
		return high
	}
	if room = r.room; r.ahead {
		room.Storage /= 2
	}
	high = math.Ceil(high) // storage may end a superbatch within a batch
	for high-low > 1 {
		if mid := math.Floor((low + high) / 2); fits(mid) {
			low = mid
		} else {
			high = mid
		}
	}
	return low
}

// during returns how many rows n batches miss, from batch at on.
func (r *superbatchReads) during(at, n float64) float64 {
	return r.missed.After(at+n, r.steps) - r.missed.After(at, r.steps)
}

// parts divides n batches from batch at on into parts, the first ones shorter, and calls each with
// the number of batches in a part and the rows that one of them misses.
func (r *superbatchReads) parts(at, n float64, each func(batches, rows float64)) {
	const most = 8
	for first, k := 0.0, most-1; k >= 0; k-- {
		end := n / math.Exp2(float64(k))
		if missed := r.during(at+first, end-first); end > first {
			each(end-first, missed/(end-first))
		}
		first = end
	}
}

// weigh returns the costs of sweeping for n batches and of reading without a sweep, for the
// loader's rule to compare.
func (r *superbatchReads) weigh(at, n float64) (w superbatch.Weighed) {
	w.Sweep = r.costs.Seconds(r.pass(at, n))
	r.parts(at, n, func(batches, rows float64) {
		packed := r.room.Packed(rows, int(math.Ceil(n)))
		w.Add(r.costs, batches, r.Apart.Of(rows), packed)
	})
	return w
}

// pass returns what a sweep for n batches reads. Missed rows that were not seen before are all
// different; rows that were seen before may be missed more than once.
func (r *superbatchReads) pass(at, n float64) rowfile.ReadCost {
	before, seen := r.Grows.After(at), r.Grows.After(at+n)
	missed := r.during(at, n)
	fresh := min(missed, seen-before)
	unique := fresh
	if again := missed - fresh; again > 0 && before > 0 {
		unique += before * (1 - math.Exp(-again/before))
	}
	return r.Once.Of(unique)
}

// count adds what n batches cost from batch at on, swept or not.
func (r *superbatchReads) count(at, n float64, swept bool) {
	total, m, d := r.during(at, n), &r.sum, r.Device
	w := r.weigh(at, n)
	free := r.free
	r.before = 0
	if r.free = w.ApartIdle; swept {
		r.free = w.PackedIdle
		r.before = total * r.StoredBytes
		pass := r.pass(at, n)
		m.bytes += float64(pass.Bytes)
		m.sweep += w.Sweep
		m.once += max(0, w.Sweep-free)
		m.passes += d.Reading(float64(pass.Reads), float64(pass.Bytes)).CPU +
			total*(d.Copy.CPU+r.StoredBytes*d.Write.CPU)
	}
	if !r.ahead {
		r.free, r.before = 0, 0
	}
	r.parts(at, n, func(batches, rows float64) {
		read := r.Apart.Of(rows)
		if swept {
			read = r.room.Packed(rows, int(math.Ceil(n)))
		}
		r.countBatches(batches, rows, d.Reading(float64(read.Reads), float64(read.Bytes)))
	})
}

// countBatches adds the cost of batches that miss rows rows each. Rows that have no room to be read
// ahead are read when the batch is assembled.
func (r *superbatchReads) countBatches(batches, rows float64, read Price) {
	ahead := 1.0
	if r.staged > 0 && rows > float64(r.staged) {
		ahead = float64(r.staged) / rows
	}
	reading := Work{read.Wait, read.CPU}
	works := []Work{reading.Times(ahead),
		r.assembling(r.split, rows).Plus(reading.Times(1 - ahead)), r.step}
	ends := r.cycle(r.split.InTurn, works)
	loop := max(ends[0], ends[1], ends[2])
	if r.split.InTurn {
		loop = max(ends[0], ends[1]+ends[2])
	}
	m := &r.sum
	m.bytes, m.wait = m.bytes+batches*read.Bytes, m.wait+batches*read.Wait
	for _, w := range works {
		m.cpu += batches * w.CPU
	}
	m.loop, m.gather = m.loop+batches*loop, m.gather+batches*(ends[0]+ends[1])
	m.compute += batches * ends[2]
}
