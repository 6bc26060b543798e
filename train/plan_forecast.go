package train

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"

	"gdb/internal/mem"
	"gdb/kv"
	"gdb/sample"
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
	// sampling and gathering wait for the same one, or cores if the stages' work shares too few.
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
// it is left out.
func (a *Totals) add(r *EpochRecord) {
	if r.Epoch == 2 && a.Epochs == 1 {
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

// forecast samples batches, and predicts what an epoch costs. It needs the model, and features not
// opened yet, whose memory it borrows.
func (t *trainer) forecast(ctx context.Context) (err error) {
	p, in := t.plan, t.in
	tr, err := in.record(ctx, &t.cfg, t.train, (p.Features+p.Batches)/2)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, tr.close()) }()
	if len(tr.batches) == 0 {
		return nil // no room to plan: the plan says so by its absence
	}
	n := float64(len(tr.batches))
	f := &Forecast{Sampled: len(tr.batches), Nodes: float64(tr.nodes) / n,
		Edges:   float64(tr.edges) / n,
		Batches: (uint64(len(t.train)) + uint64(t.cfg.Batch) - 1) / uint64(t.cfg.Batch)}
	if s := p.Superbatch; s != nil && !s.Overlap { // from here on its memory is for batches
		in.turns = true
		if err := in.dropGraph(); err != nil {
			return err
		}
	}
	if f.Device, err = t.profile(ctx); err != nil {
		return err
	}
	step, err := t.timeStep(ctx)
	if err != nil {
		return err
	}
	cost, err := t.rowCost(ctx, tr, f)
	if err != nil {
		return err
	}
	full := float64(len(t.train)) / float64(t.cfg.Batch) // batches, the last one in part
	f.Lists = int64(full * float64(tr.blocks) / float64(max(1, tr.sampled)))
	f.Read = f.Lists + int64(full*cost.bytes)
	f.Sample = full * tr.took.Seconds() / float64(max(1, tr.sampled))
	f.Gather, f.Compute = full*cost.seconds, full*step.Seconds()
	f.bind(&t.cfg, full*cost.cpu, full*tr.waited.Seconds()/float64(max(1, tr.sampled)))
	p.Forecast, p.dense = f, nil
	return nil
}

// bind finds what takes as long as the epoch.
func (f *Forecast) bind(c *Config, gatherCPU, listWait float64) {
	cores := float64(runtime.NumCPU())
	compute := f.Compute * min(cores, float64(c.Threads))
	for _, s := range []struct {
		name string
		time float64
	}{{"compute", f.Compute}, {"gather", f.Gather},
		{"sample", f.Sample / float64(samplers(c.Threads))},
		{"device", listWait + f.Gather},
		{"cores", (f.Sample - listWait + gatherCPU + compute) / cores}} {
		if s.time > f.Time {
			f.Time, f.Binding = s.time, s.name
		}
	}
}

// rowsCost is what gathering a batch costs.
type rowsCost struct{ bytes, seconds, cpu float64 }

// rowCost predicts the reads of a batch: its nodes that the cache does not hold, laid out as the
// reader lays them out.
func (t *trainer) rowCost(ctx context.Context, tr *trace, f *Forecast) (rowsCost, error) {
	var c rowsCost
	in, p := t.in, t.plan
	held, err := newNodeSet(in.meta.Nodes, in.budget)
	if err != nil {
		return c, err
	}
	defer held.free()
	f.Unique = float64(tr.footprint(held, 0, len(tr.batches))) / float64(tr.nodes)
	switch p.Cache {
	case "all":
		f.Hit = 1
		c.seconds = f.Nodes * float64(4*t.dims[0]) / f.Device.CopyBytes
		c.cpu = c.seconds
		return c, nil
	case "none":
		held = nil
	case "static":
		if err := in.planHot(ctx, p); err != nil {
			return c, err
		}
		clear(held.words)
		for _, v := range p.hot {
			held.add(uint32(v))
		}
	default:
		return t.simulate(ctx, tr, f)
	}
	return t.missCost(ctx, tr.batches, held, f)
}

// missCost is the mean cost of batches whose nodes in held are cached; nil holds none.
func (t *trainer) missCost(ctx context.Context, batches [][]sample.NodeID, held *nodeSet,
	f *Forecast) (rowsCost, error) {
	var m misses
	var missed []sample.NodeID
	for _, b := range batches {
		missed = missed[:0]
		for _, v := range b {
			if held == nil || !held.has(uint32(v)) {
				missed = append(missed, v)
			}
		}
		if err := m.add(ctx, t.in, missed); err != nil {
			return rowsCost{}, err
		}
		m.nodes += len(b)
	}
	return m.cost(t.dims[0], len(batches), f), nil
}

// misses are summed over batches.
type misses struct {
	nodes, missed, reads int
	bytes                int64
}

func (m *misses) add(ctx context.Context, in *inputs, missed []sample.NodeID) error {
	reads, bytes, err := in.reader.Cost(ctx, missed)
	m.missed, m.reads, m.bytes = m.missed+len(missed), m.reads+reads, m.bytes+bytes
	return err
}

// cost is that of one of so many batches.
func (m *misses) cost(dim, batches int, f *Forecast) rowsCost {
	n, d, hits := float64(batches), f.Device, m.nodes-m.missed
	f.Hit = float64(hits) / float64(max(1, m.nodes))
	copies := float64(hits) / n * float64(4*dim) / d.CopyBytes
	reads, bytes := float64(m.reads)/n, float64(m.bytes)/n
	return rowsCost{bytes: bytes, seconds: reads*d.ReadSeconds + bytes*d.ByteSeconds + copies,
		cpu: reads*d.ReadCPU + bytes*d.ByteCPU + copies}
}

// stepRounds are run to time a step.
const stepRounds = 3

// simulate runs the policy over the trace, and counts the last quarter, which finds the cache as
// full as the trace can make it.
func (t *trainer) simulate(ctx context.Context, tr *trace, f *Forecast) (c rowsCost, err error) {
	policy, err := sample.NewPolicy(t.plan.Cache)
	if err != nil { // one that knows the future: it has no more misses than this
		policy = sample.NewLRU()
	}
	rows := &tracedRows{in: t.in}
	slots := sample.CacheRows(t.plan.Features, t.dims[0], policy.SlotBytes())
	if s := t.plan.Superbatch; s != nil {
		slots = s.Slots
	}
	sim, err := sample.NewCached(ctx, rows, policy, sample.CacheOptions{Budget: t.in.budget,
		Bytes: sample.CacheBytes(slots, 1, policy.SlotBytes())})
	if err != nil {
		return c, err
	}
	defer func() { err = errors.Join(err, sim.Close()) }()
	largest := 0 // a few batches that were sampled first may have been smaller
	for _, b := range tr.batches {
		largest = max(largest, len(b))
	}
	out, warm := make([]float32, largest), len(tr.batches)*3/4
	for i, b := range tr.batches {
		if i == warm {
			rows.misses = misses{}
		}
		if err := sim.Gather(ctx, b, out[:len(b)]); err != nil {
			return c, err
		}
		rows.nodes += len(b)
	}
	return rows.cost(t.dims[0], len(tr.batches)-warm, f), nil
}

// tracedRows counts what a cache would read. Its rows have one value, which is no one's.
type tracedRows struct {
	in *inputs
	misses
}

// Meta describes the rows.
func (r *tracedRows) Meta() kv.RowsMeta { return kv.RowsMeta{Name: "trace", Dim: 1} }

// Gather counts.
func (r *tracedRows) Gather(ctx context.Context, nodes []sample.NodeID, _ []uint32,
	_ []float32) error {
	return r.add(ctx, r.in, nodes)
}

// Scan is not used by caches.
func (r *tracedRows) Scan(context.Context, sample.NodeID, int, []float32) error { return nil }

// BytesRead is 0: nothing is.
func (r *tracedRows) BytesRead() uint64 { return 0 }

// timeStep is how long a training step on a sampled batch takes: the fastest of some, the first
// of which finds its memory new.
func (t *trainer) timeStep(ctx context.Context) (took time.Duration, err error) {
	d := t.plan.dense
	n := len(d.NodeIDs) * t.dims[0]
	a, err := mem.NewArena(t.in.budget, "features of a batch", int64(n)*4)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, a.Free()) }()
	x := mem.View[float32](a.Bytes())[:n]
	for i := range x {
		x[i] = 1
	}
	for i := range stepRounds {
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
