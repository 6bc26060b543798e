package plan

import (
	"fmt"
	"math"

	"gdb/internal/mem"
	"gdb/sample/superbatch"
)

// Forecast is what an epoch of a run is expected to cost once caches are warm. Times are seconds.
type Forecast struct {
	Batches uint64 `json:"batches"`
	// Sampled is the number of batches that the forecast was computed from.
	Sampled int     `json:"sampled_batches"`
	Nodes   float64 `json:"nodes_per_batch"`
	Edges   float64 `json:"edges_per_batch"`
	Read    int64   `json:"read_bytes"` // from the disk: features and lists
	Lists   int64   `json:"list_bytes"` // the part of Read that is lists
	Hit     float64 `json:"hit"`        // rows found in the feature cache
	// DeviceHit is the share of all rows that the device keeps and that the feature cache is not
	// asked for. Sent is how many bytes the other rows of a batch have.
	DeviceHit float64 `json:"device_hit,omitempty"`
	Sent      float64 `json:"sent_bytes_per_batch,omitempty"`
	// Unique is the number of different nodes in the sampled batches, divided by the sum
	// of their nodes.
	Unique float64 `json:"unique"`

	Sample  float64 `json:"sample_s"`
	Gather  float64 `json:"gather_s"`
	Compute float64 `json:"compute_s"`
	Time    float64 `json:"time"`
	// Start is the time before the first epoch, in which resident lists are loaded and
	// caches filled.
	Start float64 `json:"start_s"`
	Step  float64 `json:"step_s"` // of one batch, when nothing else runs
	// Sweep is how long the sweeps for an epoch's rows take, and Beside how much of that happens
	// while batches are trained on.
	Sweep  float64 `json:"sweep_s"`
	Beside float64 `json:"sweep_beside_s"`
	// Binding is the stage that determines the epoch's time: sample, gather or compute; device if
	// sampling and gathering wait for the same one; cores if the stages together need more cores
	// than there are; or turns if they wait for each other.
	Binding string `json:"binding"`

	Device *Profile `json:"device"`
}

// String returns one line for people.
func (f *Forecast) String() string {
	return fmt.Sprintf("an epoch of %d batches: read %s, hit %.1f%%, sample %.1fs, gather %.1fs, "+
		"compute %.1fs, time %.1fs (%s)", f.Batches, mem.FormatSize(f.Read), 100*f.Hit, f.Sample,
		f.Gather, f.Compute, f.Time, f.Binding)
}

// forecast predicts what an epoch costs with a split.
func (s *Costs) forecast(p *Split) *Forecast {
	f := &Forecast{Sampled: s.Sampled, Nodes: s.Nodes, Edges: s.Edges, Batches: s.Batches,
		Unique: s.Unique, Device: s.Device}
	lists, rows := s.lists(p), s.rows(p)
	if p.OnDevice != nil {
		f.DeviceHit, f.Sent = s.OnDevice, s.Nodes*(1-s.OnDevice)*s.RowBytes
	}
	f.Hit, f.Start = rows.Hit, s.start(p)
	f.Lists, f.Read = int64(s.Full*lists.Bytes), int64(s.Full*(lists.Bytes+rows.Bytes))
	if p.Superbatch != nil {
		s.superbatch(p, f, lists, rows)
		return f
	}
	samplers := float64(Samplers(p.Facts.Threads))
	works := []Work{lists.work(samplers), s.gathering(p, rows), s.stepOf(p)}
	if p.passes {
		works[0] = Work{} // batches are drawn before, and not beside the others
	}
	ahead := s.readAhead(p, rows)
	if p.Staged() {
		works[1] = s.Device.Hit.Times(s.Nodes)
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
	if p.passes {
		draw := s.Full * lists.work(float64(p.samplers())).Seconds
		f.Sample = draw*float64(p.samplers()) + ahead.Wait
		f.Time += draw + ahead.Wait
	}
	return f
}

// start returns how long it takes to open what a split holds, in seconds. Resident lists and all
// features are read in sequence; a static cache reads its rows one by one or reads all rows in
// sequence, whichever is faster.
func (s *Costs) start(p *Split) (seconds float64) {
	d, all := s.Device, float64(p.Facts.Nodes)*s.StoredBytes/s.Device.Sequential
	if p.Resident && (p.Superbatch == nil || p.Superbatch.Overlap) {
		seconds = float64(s.TopologyBytes) / d.Sequential
	}
	switch p.Cache {
	case "all":
		seconds += all
	case "static":
		rows := float64(p.Features) / max(1, s.RowBytes)
		seconds += min(all, rows*(d.ReadSeconds+s.StoredBytes*d.ByteSeconds))
	}
	return seconds
}

// cycle returns how long sampling, gathering and the step of a batch take while they share the
// cores. If inTurn, gathering and the step of a batch follow each other.
func (s *Costs) cycle(inTurn bool, works []Work) []float64 {
	if !inTurn {
		return shared(s.Device.Cores, works...)
	}
	both := works[1].Plus(works[2])
	ends, k := shared(s.Device.Cores, works[0], both), 1.0
	if both.Seconds > 0 {
		k = ends[1] / both.Seconds
	}
	return []float64{ends[0], k * works[1].Seconds, k * works[2].Seconds}
}

// shortOfCores reports whether the core time of all stages of a batch, spread over all cores, is
// longer than the longest of the stages that run at the same time.
func (s *Costs) shortOfCores(inTurn bool, works []Work) bool {
	all := works[0].Beside(works[1]).Beside(works[2])
	if inTurn {
		all = works[0].Beside(works[1].Plus(works[2]))
	}
	return all.CPU/s.Device.Cores > all.Seconds
}

// bind records a lower bound of the epoch's time, and what as its cause if it is the
// largest so far.
func (f *Forecast) bind(what string, time float64) {
	if time > f.Time {
		f.Time, f.Binding = time, what
	}
}

// stall returns the share of the shorter of gathering and computing that a stage spends waiting
// because batches differ in size and few of them are ready. It is an assumption, made to decide
// between splits that otherwise cost the same.
func (s *Costs) stall(p *Split) float64 {
	if p.InTurn || p.Superbatch != nil && p.Superbatch.InPlace {
		return 0
	}
	return [...]float64{0.06, 0.02, 0}[min(p.Ready, 2)]
}

// superbatch completes the forecast of training on superbatches.
func (s *Costs) superbatch(p *Split, f *Forecast, lists Price, rows RowsCost) {
	b, c, d := p.Superbatch, p.Facts, s.Device
	steps, step := s.Steps(p), s.stepOf(p)
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
	deciding, sampling := d.Decide.Times(s.Nodes), lists.work(1)
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

// assembling returns what it costs to put together a batch of a superbatch, without reading. Every
// row is copied to the batch, and rows that were missed to the cache as well; in place only the
// rows of inner nodes are copied, and no missed ones.
func (s *Costs) assembling(p *Split, missed float64) Work {
	if p.Superbatch.InPlace {
		return s.Device.Copy.Times(s.Inner * s.Nodes)
	}
	return s.Device.Copy.Times(s.Nodes + missed)
}

// batchRecords is how many bytes the runtime files have for a batch: its nodes, its edges, and the
// plan of where its rows come from.
type batchRecords struct{ nodes, edges, plan float64 }

// records forecasts the bytes of a batch's records: each number is stored at the width
// of the largest.
func (s *Costs) records(b *SuperbatchPlan) batchRecords {
	width := func(most float64) float64 { return math.Ceil(math.Log2(max(2, most))) / 8 }
	return batchRecords{nodes: s.Nodes * width(s.Grows.Most), edges: s.Edges * width(s.Nodes),
		plan: s.Nodes * width(float64(b.Slots))}
}

// runtimeBytes returns how many bytes of runtime files are read for a batch: once to plan it, once
// to train on it, and a part of it looked times to decide on sweeps. Accesses and next uses are
// read as far as they do not fit in memory.
func (s *Costs) runtimeBytes(b *SuperbatchPlan, steps, looked float64) float64 {
	const noteBytes = 4
	r, notes := s.records(b), 0.0
	for _, memory := range []int64{b.Accesses, b.NextUses} {
		notes += max(0, s.Nodes*noteBytes-float64(memory)/steps)
	}
	return 2*r.nodes + r.edges + r.plan + looked*(r.nodes+r.plan) + notes
}

// Steps returns how many batches a superbatch of a split has.
func (s *Costs) Steps(p *Split) float64 {
	b, f := p.Superbatch, p.Facts
	epochs := f.Epochs
	switch {
	case !f.Evaluates:
	case b.Kept < b.Slots && b.Spill(int(s.RowBytes)/4) > b.Storage/SpillShare:
		epochs = min(epochs, f.EvalEvery)
	case b.Batches == 0 && f.Patience > 0:
		epochs = min(epochs, max(f.EvalEvery, min(f.Patience*f.EvalEvery, b.EpochsAhead())))
	case b.Batches == 0:
		epochs = min(epochs, max(f.EvalEvery, b.EpochsAhead()))
	}
	n := float64(epochs) * float64(s.Batches)
	if b.Batches > 0 {
		n = min(n, float64(b.Batches))
	}
	storage := float64(b.Storage)
	if b.Overlap {
		storage /= 2
	}
	storage = float64(superbatch.BatchStorage(int64(storage)))
	return max(1, min(n, storage/(s.Nodes*21+s.Edges*4)))
}

// epochsAhead is how many epochs are sampled before the first of them is trained on, if the storage
// has room: with more, a sweep for all of them would not cost much less.
const epochsAhead = 8

// EpochsAhead returns how many epochs a superbatch covers at most. A pair of superbatches, most of
// which is sampled while rows are swept for the first, covers twice as many.
func (s *SuperbatchPlan) EpochsAhead() int {
	if s.SweepAhead && !s.Overlap {
		return 2 * epochsAhead
	}
	return epochsAhead
}
