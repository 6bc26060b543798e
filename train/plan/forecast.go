package plan

import (
	"gdb/sample/superbatch"
)

// forecast predicts what an epoch costs with a split.
func (s *Costs) forecast(p *Plan) *Forecast {
	f := &Forecast{Sampled: s.Sampled, Nodes: s.Nodes, Edges: s.Edges, Batches: s.Batches,
		Unique: s.Unique, Device: s.Device}
	lists, rows := s.listPrice(p), s.rows(p)
	if p.OnDevice != nil {
		f.DeviceHit, f.Sent = s.OnDevice, s.Nodes*(1-s.OnDevice)*s.RowBytes
	}
	f.Hit, f.Start = rows.Hit, s.start(p)
	f.Lists, f.Read = int64(s.Full*lists.Bytes), int64(s.Full*(lists.Bytes+rows.Bytes))
	if p.Superbatch != nil {
		s.superbatch(p, f, lists, rows)
		return f
	}
	samplers := float64(p.Samplers)
	works := []Work{lists.work(samplers), s.gathering(p, rows), s.stepOf(p)}
	if p.PassBytes() > 0 {
		works[0] = Work{} // batches are drawn before, and not beside the others
	}
	ahead := s.readAhead(p, rows)
	if p.Staged() {
		works[1] = s.Device.Hit.Times(s.Rows).Plus(s.unpacking(p))
		f.Read += int64(ahead.Bytes - s.Full*rows.Bytes)
		rows.Wait = 0
	}
	ends := s.cycle(p.InTurn, works)
	f.Step = works[2].Seconds
	f.Sample, f.Gather, f.Compute = s.Full*ends[0]*samplers, s.Full*ends[1], s.Full*ends[2]
	f.bind("compute", f.Compute)
	f.bind("gather", f.Gather)
	f.bind("sample", s.Full*ends[0])
	f.bind("device", s.Full*(lists.Wait+rows.Wait))
	if p.InTurn {
		f.bind("turns", f.Gather+f.Compute)
	}
	if s.shortOfCores(p.InTurn, works) {
		f.Binding = "cores"
	}
	f.Time += s.stall(p) * min(f.Gather, f.Compute)
	if p.PassBytes() > 0 {
		draw := s.Full * lists.work(float64(p.passWorkers())).Seconds
		f.Sample = draw*float64(p.passWorkers()) + ahead.Wait
		f.Time += draw + ahead.Wait
	}
	return f
}

// bind records a lower bound of the epoch's time, and what as its cause if it is the
// largest so far.
func (f *Forecast) bind(what string, time float64) {
	if time > f.Time {
		f.Time, f.Binding = time, what
	}
}

// superbatch completes the forecast of training on superbatches.
func (s *Costs) superbatch(p *Plan, f *Forecast, lists Price, rows RowsCost) {
	b, c, d := p.Superbatch, p.facts, s.Device
	steps, step := s.Length(p), s.stepOf(p)
	f.Step = step.Seconds
	missed := s.missedRows(p, rows, step)
	files := s.Full * s.runtimeBytes(b, steps, missed.looked)
	topology := s.Full / steps * s.loaded(p) // an epoch
	head := s.head(p, step.Seconds)
	if head > 0 { // for each of a pair
		topology *= 2
	}
	f.Lists += int64(topology)
	f.Read += int64(topology + files + s.Full*missed.bytes)
	io := (topology + files) / d.Sequential
	deciding, sampling := d.Decide.Times(s.Rows), lists.work(1)
	f.Sample = s.Full*(sampling.Seconds+deciding.Seconds) + io
	ahead := s.Full*(sampling.Seconds/float64(c.Threads)+deciding.Seconds) + io
	f.Compute = s.Full * missed.compute
	f.Gather = s.Full * (missed.gather + missed.sweep)
	loop, once := s.Full*missed.loop, s.Full*missed.once
	f.Sweep, f.Beside = s.Full*missed.sweep, s.Full*(missed.sweep-missed.once)
	cores, read := s.Full*missed.cpu/d.Cores, s.Full*missed.wait
	binding := "compute"
	switch {
	case cores > max(read, s.Full*step.Seconds):
		binding = "cores"
	case read > s.Full*step.Seconds:
		binding = "gather"
	}
	if !p.InTurn {
		loop += s.stall(p) * min(f.Gather, f.Compute)
	}
	if b.SweepAhead {
		if cores += s.Full * missed.passes / d.Cores; cores > loop {
			loop, binding = cores, "cores"
		}
		if busy := read + s.Full*(missed.sweep-missed.once); busy > loop {
			loop, binding = busy, "device"
		}
	}
	loop += once
	f.bind(binding, loop)
	if !b.Overlap {
		f.bind("turns", loop+ahead-s.besideHead(head/steps, once, ahead))
		return
	}
	f.bind("sample", ahead)
	f.bind("device", s.Full*(lists.Wait+missed.sweep)+read+io)
	f.bind("cores", cores+s.Full*(sampling.CPU+deciding.CPU)/d.Cores)
	// The first of a run's superbatches has nothing to overlap with.
	alone := min(1, float64(superbatch.First(uint64(steps)))/s.batches(p))
	f.Time += alone * (loop + ahead - f.Time)
}
