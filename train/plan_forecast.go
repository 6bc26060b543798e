package train

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"gdb/internal/mem"
	"gdb/sample"
	"gdb/sample/superbatch"
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
func (a *Totals) add(r *EpochRecord, ahead bool) {
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

// price is what a stage costs for a batch: seconds of a device, and of a core.
type price struct{ bytes, wait, cpu float64 }

// forecast predicts an epoch with a split.
func (s *prices) forecast(p *planner) *Forecast {
	f := &Forecast{Sampled: s.sampled, Nodes: s.nodes, Edges: s.edges, Batches: s.batches,
		Unique: s.unique, Device: s.device}
	lists, rows := s.lists(p), s.rows(p)
	f.Hit = rows.hit
	f.Lists, f.Read = int64(s.full*lists.bytes), int64(s.full*(lists.bytes+rows.bytes))
	f.Compute = s.full * s.step
	if p.Superbatch != nil {
		s.superbatch(p, f, lists, rows)
		return f
	}
	f.Sample = s.full * (lists.wait + lists.cpu)
	f.Gather = s.full * (rows.wait + rows.copies)
	c := p.c
	f.bind("compute", f.Compute)
	f.bind("gather", f.Gather)
	f.bind("sample", f.Sample/float64(samplers(c.Threads)))
	f.bind("device", s.full*(lists.wait+rows.wait))
	f.bind("cores", (s.full*(lists.cpu+rows.cpu+rows.copies)+f.Compute*s.stepCores(c))/s.cores)
	if p.InTurn {
		f.bind("turns", f.Gather+f.Compute)
	}
	f.Time += s.stall(p) * min(f.Gather, f.Compute)
	return f
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
	const planSeconds = 150e-9 // a core, for an access
	// A core, for a byte of a row that lists share: rows of a cache lie farther apart than those of
	// a batch. Seen on a shared machine, so roughly.
	const againByte = 0.3e-9
	b, c := p.Superbatch, p.c
	steps, copies := s.steps(b, c), s.full*s.nodes*s.rowBytes/s.device.CopyBytes
	if b.InPlace {
		copies *= s.inner
		again := max(0, s.edges-2*s.nodes) * s.rowBytes
		f.Compute += s.full * again * againByte / s.stepCores(c)
	}
	loop, binding := f.Compute, "compute"
	if p.InTurn {
		loop += copies
	}
	missed := s.missedRows(p, rows, f.Compute/float64(f.Batches), loop/s.full)
	files := s.full * s.runtimeBytes(b, steps, missed.looked)
	topology := s.full / steps * s.loaded(p) // an epoch
	f.Lists += int64(topology)
	f.Read += int64(topology + files + s.full*missed.bytes)
	io := (topology + files) / s.device.Sequential
	f.Sample = s.full*((lists.wait+lists.cpu)/float64(c.Threads)+s.nodes*planSeconds) + io
	read, once := s.full*missed.wait, s.full*missed.once
	f.Gather = read + copies + s.full*missed.sweep
	if !p.InTurn {
		loop += s.stall(p) * min(f.Gather, f.Compute)
	}
	if loop += s.full * missed.late; read > f.Compute {
		binding = "gather"
	}
	cores := (f.Compute*s.stepCores(c) + copies + s.full*missed.cpu) / s.cores
	if cores > loop {
		loop, binding = cores, "cores"
	}
	if b.SweepAhead {
		if cores += s.full * missed.passes / s.cores; cores > loop {
			loop, binding = cores, "cores"
		}
		if busy := read + s.full*(missed.sweep-missed.once); busy > loop {
			loop, binding = busy, "device"
		}
	}
	loop += once
	if !b.Overlap {
		f.bind(binding, loop)
		f.bind("turns", loop+f.Sample)
		return
	}
	f.bind(binding, loop)
	f.bind("sample", f.Sample)
	f.bind("device", s.full*(lists.wait+missed.sweep)+read+io)
	f.bind("cores", cores+s.full*(lists.cpu+s.nodes*planSeconds)/s.cores)
	// The first of a run's superbatches has nothing to overlap with.
	alone := min(1, steps/(float64(c.Epochs)*float64(s.batches)))
	f.Time += alone * (loop + f.Sample - f.Time)
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

// stepCores is how many cores a step computes on.
func (s *prices) stepCores(c *Config) float64 { return min(s.cores, float64(c.Threads)) }

// stepRounds are run to time a step.
const stepRounds = 3

// timeStep is how long a training step on a sampled batch takes: the fastest of some, the first
// of which finds its memory new.
func (t *trainer) timeStep(ctx context.Context, d *sample.Dense) (took time.Duration,
	err error) {
	n := len(d.NodeIDs) * t.dims[0]
	a, err := mem.NewArena(t.in.budget, "features of a batch", int64(n)*4)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, a.Free(), t.be.Trim()) }()
	x := mem.View[float32](a.Bytes())[:n]
	for i := range stepRounds {
		for i := range x { // a step leaves its own results there
			x[i] = 1
		}
		begun := time.Now()
		if err := t.be.Begin(); err != nil {
			return 0, err
		}
		s := step{seed: t.cfg.Seed, dropout: float32(t.cfg.Dropout), train: true}
		if _, err := t.model.forward(d, x, s); err != nil {
			return 0, err
		}
		t.be.Zero(t.model.gradLogits())
		t.model.backward(s)
		if d := time.Since(begun); i == 0 || d < took {
			took = d
		}
	}
	return took, ctx.Err()
}
