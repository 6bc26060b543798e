package train

import (
	"fmt"
	"math"

	"gdb/internal/mem"
	"gdb/sample/superbatch"
	"gdb/train/runs"
)

// Forecast is what an epoch of a run is expected to cost once caches are warm. Times are seconds.
type Forecast struct {
	Batches uint64 `json:"batches"`
	// Sampled is how many batches it was computed from.
	Sampled int     `json:"sampled_batches"`
	Nodes   float64 `json:"nodes_per_batch"`
	Edges   float64 `json:"edges_per_batch"`
	Read    int64   `json:"read_bytes"` // of the device: features and lists
	Lists   int64   `json:"list_bytes"` // of these, lists
	Hit     float64 `json:"hit"`        // rows found in the feature cache
	// Unique is how many different nodes the sampled batches have, over the sum of their nodes.
	Unique float64 `json:"unique"`

	Sample  float64 `json:"sample_s"`
	Gather  float64 `json:"gather_s"`
	Compute float64 `json:"compute_s"`
	Time    float64 `json:"time"`
	Step    float64 `json:"step_s"` // a batch's, with the machine for itself
	// Binding is the stage that takes as long as the epoch: sample, gather, compute; or device if
	// sampling and gathering wait for the same one, cores if the stages' work shares too few, or
	// turns if they wait for each other.
	Binding string `json:"binding"`

	Device *Profile `json:"device"`
}

// Totals sums what epochs cost, per epoch.
type Totals struct {
	Epochs  int     `json:"epochs"`
	Read    float64 `json:"read_bytes"`
	Hit     float64 `json:"hit"`
	Sample  float64 `json:"sample_s"`
	Gather  float64 `json:"gather_s"`
	Compute float64 `json:"compute_s"`
	Time    float64 `json:"time"`
}

// add takes an epoch's record into the means. The first epoch fills caches: once there are others
// it is left out, unless batches are prepared ahead, of which it has the work for those to come.
func (a *Totals) add(r *runs.Epoch, ahead bool) {
	if r.Epoch == 2 && a.Epochs == 1 && !ahead {
		*a = Totals{}
	}
	n := float64(a.Epochs)
	mean := func(to *float64, v float64) { *to = (*to*n + v) / (n + 1) }
	mean(&a.Read, float64(r.Read))
	mean(&a.Hit, r.Hit)
	mean(&a.Sample, r.Sample)
	mean(&a.Gather, r.Gather)
	mean(&a.Compute, r.Compute)
	mean(&a.Time, r.Time)
	a.Epochs++
}

// Compare is the line of plan against actual.
func (f *Forecast) Compare(a *Totals) string {
	return fmt.Sprintf("plan/actual per epoch: read %s/%s, hit %.1f%%/%.1f%%, sample %.1fs/%.1fs, "+
		"gather %.1fs/%.1fs, compute %.1fs/%.1fs, time %.1fs/%.1fs", mem.FormatSize(f.Read),
		mem.FormatSize(int64(a.Read)), 100*f.Hit, 100*a.Hit, f.Sample, a.Sample, f.Gather,
		a.Gather, f.Compute, a.Compute, f.Time, a.Time)
}

// String is one line.
func (f *Forecast) String() string {
	return fmt.Sprintf("an epoch of %d batches: read %s, hit %.1f%%, sample %.1fs, gather %.1fs, "+
		"compute %.1fs, time %.1fs (%s)", f.Batches, mem.FormatSize(f.Read), 100*f.Hit, f.Sample,
		f.Gather, f.Compute, f.Time, f.Binding)
}

// price is what a stage costs for a batch: reading so many bytes, for which it waits, and cores
// work; and what cores do of their own.
type price struct{ bytes, wait, cpu, own float64 }

// reading is what so many reads of so many bytes cost.
func (p *Profile) reading(reads, bytes float64) price {
	return price{bytes: bytes, wait: reads*p.ReadSeconds + bytes*p.ByteSeconds,
		cpu: reads*p.ReadCPU + bytes*p.ByteCPU}
}

// work is both, one after the other, of so many workers.
func (p price) work(workers float64) work {
	return work{(p.wait + p.own) / workers, p.cpu + p.own}
}

// forecast predicts an epoch with a split.
func (s *prices) forecast(p *planner) *Forecast {
	f := &Forecast{Sampled: s.sampled, Nodes: s.nodes, Edges: s.edges, Batches: s.batches,
		Unique: s.unique, Device: s.device}
	lists, rows := s.lists(p), s.rows(p)
	f.Hit = rows.hit
	f.Lists, f.Read = int64(s.full*lists.bytes), int64(s.full*(lists.bytes+rows.bytes))
	if p.Superbatch != nil {
		s.superbatch(p, f, lists, rows)
		return f
	}
	samplers := float64(samplers(p.c.Threads))
	works := []work{lists.work(samplers), s.gathering(p, rows), s.stepOf(p)}
	ends := s.cycle(p.InTurn, works)
	f.Step = works[2].Seconds
	f.Sample, f.Gather, f.Compute = s.full*ends[0]*samplers, s.full*ends[1], s.full*ends[2]
	f.bind("compute", f.Compute)
	f.bind("gather", f.Gather)
	f.bind("sample", s.full*ends[0])
	f.bind("device", s.full*(lists.wait+rows.wait))
	if p.InTurn {
		f.bind("turns", f.Gather+f.Compute)
	}
	if s.shortOfCores(p.InTurn, works) {
		f.Binding = "cores"
	}
	f.Time += s.stall(p) * min(f.Gather, f.Compute)
	return f
}

// cycle is how long sampling, gathering and the step of a batch take beside each other. In turn,
// the latter two are not.
func (s *prices) cycle(inTurn bool, works []work) []float64 {
	if !inTurn {
		return shared(s.device.Cores, works...)
	}
	both := works[1].plus(works[2])
	ends, k := shared(s.device.Cores, works[0], both), 1.0
	if both.Seconds > 0 {
		k = ends[1] / both.Seconds
	}
	return []float64{ends[0], k * works[1].Seconds, k * works[2].Seconds}
}

// shortOfCores says whether all that cores compute for a batch takes them longer than any of the
// works that go on beside each other would take alone.
func (s *prices) shortOfCores(inTurn bool, works []work) bool {
	all := works[0].beside(works[1]).beside(works[2])
	if inTurn {
		all = works[0].beside(works[1].plus(works[2]))
	}
	return all.CPU/s.device.Cores > all.Seconds
}

// bind takes a time that the epoch takes at least.
func (f *Forecast) bind(what string, time float64) {
	if time > f.Time {
		f.Time, f.Binding = time, what
	}
}

// stall is the share of the shorter of gathering and computing for which a stage waits since
// batches are not equally large and no more of them are ready: an assumption that decides between
// splits that cost the same.
func (s *prices) stall(p *planner) float64 {
	if p.InTurn || p.Superbatch != nil && p.Superbatch.InPlace {
		return 0
	}
	return [...]float64{0.06, 0.02, 0}[min(p.Ready, 2)]
}

// superbatch completes the forecast of training on superbatches.
func (s *prices) superbatch(p *planner, f *Forecast, lists price, rows rowsCost) {
	b, c, d := p.Superbatch, p.c, s.device
	steps, step := s.steps(b, c), s.stepOf(p)
	f.Step = step.Seconds
	missed := s.missedRows(p, rows, step)
	files := s.full * s.runtimeBytes(b, steps, missed.looked)
	topology := s.full / steps * s.loaded(p) // an epoch
	head := s.head(p, step.Seconds)
	if head > 0 { // for each of a pair
		topology *= 2
	}
	f.Lists += int64(topology)
	f.Read += int64(topology + files + s.full*missed.bytes)
	io := (topology + files) / d.Sequential
	deciding, sampling := d.Decide.times(s.nodes), lists.work(1)
	f.Sample = s.full*(sampling.Seconds+deciding.Seconds) + io
	ahead := s.full*(sampling.Seconds/float64(c.Threads)+deciding.Seconds) + io
	f.Compute = s.full * missed.compute
	f.Gather = s.full * (missed.gather + missed.sweep)
	loop, once := s.full*missed.loop, s.full*missed.once
	cores, read := s.full*missed.cpu/d.Cores, s.full*missed.wait
	binding := "compute"
	switch {
	case cores > max(read, s.full*step.Seconds):
		binding = "cores"
	case read > s.full*step.Seconds:
		binding = "gather"
	}
	if !p.InTurn {
		loop += s.stall(p) * min(f.Gather, f.Compute)
	}
	if b.SweepAhead {
		if cores += s.full * missed.passes / d.Cores; cores > loop {
			loop, binding = cores, "cores"
		}
		if busy := read + s.full*(missed.sweep-missed.once); busy > loop {
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
	f.bind("device", s.full*(lists.wait+missed.sweep)+read+io)
	f.bind("cores", cores+s.full*(sampling.CPU+deciding.CPU)/d.Cores)
	// The first of a run's superbatches has nothing to overlap with.
	alone := min(1, steps/(float64(c.Epochs)*float64(s.batches)))
	f.Time += alone * (loop + ahead - f.Time)
}

// assembling is what putting a batch of a superbatch together takes, but for reading: each row is
// copied there, and those that were missed to the cache; or a part of them, and none that was
// missed.
func (s *prices) assembling(p *planner, missed float64) work {
	if p.Superbatch.InPlace {
		return s.device.Copy.times(s.inner * s.nodes)
	}
	return s.device.Copy.times(s.nodes + missed)
}

// batchRecords are the bytes that the runtime files have of a batch: its nodes, its edges, and
// where its rows come from.
type batchRecords struct{ nodes, edges, plan float64 }

// records forecasts them: numbers are stored at the width of the largest.
func (s *prices) records(b *SuperbatchPlan) batchRecords {
	width := func(most float64) float64 { return math.Ceil(math.Log2(max(2, most))) / 8 }
	return batchRecords{nodes: s.nodes * width(s.grows.most), edges: s.edges * width(s.nodes),
		plan: s.nodes * width(float64(b.Slots))}
}

// runtimeBytes are read of runtime files for a batch: to plan it, to train on it, and a part of it
// looked times to decide on sweeps; accesses and next uses as far as they do not fit in memory.
func (s *prices) runtimeBytes(b *SuperbatchPlan, steps, looked float64) float64 {
	const noteBytes = 4
	r, notes := s.records(b), 0.0
	for _, memory := range []int64{b.Accesses, b.NextUses} {
		notes += max(0, s.nodes*noteBytes-float64(memory)/steps)
	}
	return 2*r.nodes + r.edges + r.plan + looked*(r.nodes+r.plan) + notes
}

// steps is how many batches a superbatch has: see trainer.superbatches.
func (s *prices) steps(b *SuperbatchPlan, c *Config) float64 {
	epochs := c.Epochs
	switch {
	case c.LoadOnly:
	case b.Kept < b.Slots && b.spill(int(s.rowBytes)/4) > b.Storage/spillShare:
		epochs = min(epochs, c.EvalEvery)
	case b.Batches == 0 && c.Patience > 0:
		epochs = min(epochs, max(c.EvalEvery, min(c.Patience*c.EvalEvery, epochsAhead)))
	case b.Batches == 0:
		epochs = min(epochs, max(c.EvalEvery, epochsAhead))
	}
	n := float64(epochs) * float64(s.batches)
	if b.Batches > 0 {
		n = min(n, float64(b.Batches))
	}
	storage := float64(b.Storage)
	if b.Overlap {
		storage /= 2
	}
	storage = float64(superbatch.BatchStorage(int64(storage)))
	return max(1, min(n, storage/(s.nodes*21+s.edges*4)))
}
