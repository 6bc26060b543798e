package train

import (
	"context"
	"fmt"

	"gdb/compute/backend"
	"gdb/compute/backend/cuda"
	"gdb/internal/mem"
	"gdb/sample"
	"gdb/train/devicecache"
	"gdb/train/devicesample"
	"gdb/train/exact"
	"gdb/train/model"
	"gdb/train/optimize"
	"gdb/train/partitions"
	"gdb/train/plan"
	"gdb/train/probe"
	"gdb/train/runs"
	"gdb/train/setting"
	"gdb/train/task"
)

// planned is a training whose memory is split: see checked. The model has its memory, and the graph
// is opened later.
type planned struct {
	*data
	steps    *stepper          // on the first device
	replicas *replicas         // on all
	buffer   *partitions.Nodes // nil where batches are drawn from the whole graph
	plan     *plan.Plan
	device   *plan.Profile // for superbatches; nil with other caches
}

// makePlan splits the memory as it was split before for the same settings, or else chooses a new
// split.
func makePlan(ctx context.Context, d *data) (*planned, error) {
	shapes, err := d.openShapes()
	if err != nil {
		return nil, err
	}
	s := shapes[0]
	p := &planned{data: d}
	if d.cfg.Buffered() {
		if p.buffer, err = partitions.Open(ctx, d.in.Source, &d.cfg, d.nodes.train); err != nil {
			return nil, err
		}
		p.buffer.Record(&d.cfg)
		d.loop.CloseLater(p.buffer)
	}
	probed, err := d.probed(shapes)
	if err != nil {
		return nil, fmt.Errorf("train: %w", err)
	}
	pr, err := probe.New(d.in.Source, probed, s)
	if err != nil {
		return nil, err
	}
	best, err := p.choose(ctx, pr, s)
	if err == nil {
		err = p.openReplicas(shapes[1:])
	}
	if err != nil {
		return nil, err
	}
	d.in.OnDevice = int(best.OnDevice.Cached())
	if p.plan = best; p.plan.Superbatch != nil {
		p.device, err = pr.Profile(ctx)
	}
	if p.buffer != nil && err == nil {
		err = p.buffer.Decide(&d.cfg, p.plan.Forecast)
		p.buffer.Describe(p.plan)
		if h := p.steps.history; h != nil {
			h.InMemory(func(v sample.NodeID) bool { return p.buffer.Has(v) })
		}
	}
	return p, err
}

// openShapes opens the backends on all devices of the run, or on one that is planned for.
func (d *data) openShapes() (all []*shape, err error) {
	first, err := newShape(&d.cfg, d.in.Meta, d.in.task, d.in.Budget)
	if err != nil {
		return nil, err
	}
	d.loop.CloseLater(first.backend)
	all = append(all, first)
	if d.cfg.DeviceMemory > 0 {
		return all, nil
	}
	for _, number := range d.cfg.MoreDevices {
		s, err := first.beside(number)
		if err != nil {
			return nil, err
		}
		d.loop.CloseLater(s.backend)
		all = append(all, s)
	}
	return all, nil
}

// choose returns the split of the memory, and opens the model before anything is timed.
func (p *planned) choose(ctx context.Context, pr *probe.Probe, s *shape) (*plan.Plan, error) {
	tunes := p.cfg.Tune && p.cfg.Order == nil // on batches that a new plan samples
	best, err := pr.Kept(ctx)
	if err != nil {
		return nil, fmt.Errorf("train: %w", err)
	}
	if best != nil && !tunes {
		return best, p.openModel(s)
	}
	splits, largest, err := pr.Plans(ctx)
	if err != nil {
		return nil, fmt.Errorf("train: %w", explained(err, s.learned))
	}
	if err := p.openModel(s); err != nil {
		return nil, err
	}
	if tunes {
		if err := p.steps.tune(ctx, largest); err != nil {
			return nil, err
		}
	}
	return pr.Choose(ctx, splits, p.steps)
}

// openModel takes the memory of the model.
func (p *planned) openModel(s *shape) (err error) {
	if p.steps, err = newStepper(s); err != nil {
		return err
	}
	p.loop.CloseLater(p.steps)
	// The best weights, and the copies of a checkpoint.
	copies := (3 + int64(len(optimize.StateNames(p.cfg.Optimizer)))) * 4 *
		int64(p.steps.model.Params().Total)
	return s.budget.Reserve("checkpoint", copies)
}

// probed returns the configuration of the probe that plans the run.
func (d *data) probed(shapes []*shape) (probe.Config, error) {
	s := shapes[0]
	fanout, _ := model.Of(&d.cfg).Sampled()
	c := probe.Config{Facts: d.facts(s), Seeds: d.nodes.train, Fanout: fanout,
		ByRelation: d.in.byRelation, Seed: d.cfg.Seed, Remeasure: d.cfg.Remeasure,
		StepName: fmt.Sprint(d.cfg.StepName(), s.dims), Profiles: d.cfg.Profiles}
	c.Unpriced = d.cfg.Buffered() && !c.EvalSampled && d.cfg.Reuse != setting.ReuseAuto
	var err error
	c.Device, err = d.deviceFacts(shapes)
	return c, err
}

// facts returns what is known of the run before batches are sampled.
func (d *data) facts(s *shape) plan.Facts {
	c := &d.cfg
	f := plan.Facts{Memory: c.Memory, Model: s.modelBytes(), Settings: plan.SettingsOf(c)}
	if s.learned != nil {
		f.Vectors = s.learned.Bytes()
		f.VectorsDisk = runs.CheckpointsMost * s.learned.CheckpointBytes()
	}
	if c.Halo() {
		states := s.states()
		f.Vectors = states.Bytes()
		f.VectorsDisk = runs.CheckpointsMost * states.CheckpointBytes()
	}
	f.ReadsInPlace = model.Of(c).InPlace(s.dims)
	f.NodeBytes, f.EntryBytes = d.in.NodeBytes(), d.in.EntryBytes()
	f.DrawBytes = d.in.DrawBytes()
	f.InPlaceResident = model.Of(c).InPlaceResident(s.dims)
	f.Evaluates, f.EvalSampled = true, c.EvalMode == setting.EvalSampled
	f.EvalHeap, f.EvalBeside = exact.HeapBytes, scoreBytes(c)
	if d.in.Labels.Multi() || c.AtPrecision > 0 {
		f.EvalBeside += task.ThresholdBytes(d.in.task.Outputs())
	}
	if f.EvalSampled {
		f.EvalArenas = exact.Bytes
		f.EvalBatches = (d.nodes.evalMost + int64(c.PartSeeds()) - 1) / int64(c.PartSeeds())
		f.EvalBeside += mem.HeapCost(evalListBytes(d.nodes.evalMost))
	} else {
		f.EvalArenas = exact.Bytes +
			exact.SetsBytes(model.Of(c).Spec(s.dims), d.in.Meta.Nodes, c.Memory)
		if c.Backend == backend.CUDA {
			f.EvalArenas += cuda.StepsStaged * mem.ArenaBytes(exact.GivenBytes*9/8)
		}
	}
	return f
}

// scoreBytes returns what the metric takes in an evaluation.
func scoreBytes(c *Config) int64 {
	if task.ByScores(c.Metric) {
		return task.ScoreBytes
	}
	return 0
}

// deviceFacts returns what is known of the device that a run computes on, or is planned for; of
// several, what each has at least.
func (d *data) deviceFacts(shapes []*shape) (f plan.DeviceFacts, err error) {
	c, s := &d.cfg, shapes[0]
	why := cannotDraw(d.in, c)
	if why != nil && c.SampleOn == setting.SampleDevice {
		return f, fmt.Errorf("train: --sample-on device: %w: take --sample-on host", why)
	}
	if c.Backend != backend.CUDA {
		return f, nil
	}
	if why == nil && c.SampleOn != "" && c.SampleOn != setting.SampleHost {
		lists := backend.NeighborsOf(d.in.Meta.Nodes, d.in.Meta.Edges)
		f.Lists, f.DrawBeside = lists.Bytes(), c.SampleOn != setting.SampleDevice
		f.Draw = func(nodes, edges int64) (device, host int64) {
			return devicesample.Bytes(drawConfig(d.in, c, nodes, edges))
		}
	}
	if f.Name = fmt.Sprintf("device %d", c.Device); c.Parts() > 1 {
		f.Name = "each of devices " + setting.FormatDevices(c.Devices())
	}
	if f.Cacheable = s.features > 0 && s.learned == nil; f.Cacheable {
		f.RowBytes = 4 * int64(s.features)
		f.RowBytes = (f.RowBytes + devicecache.MoreSent(f.RowBytes)) * 9 / 8
	}
	f.Model = (2 +
		int64(len(optimize.StateNames(c.Optimizer)))) * 4 * int64(model.Of(c).Spec(s.dims).Params())
	if c.EvalMode != setting.EvalSampled && !d.alone {
		f.Eval = exact.Bytes + exact.HeapBytes
	}
	if c.DeviceMemory > 0 {
		f.Memory, f.Free = c.DeviceMemory, max(0, c.DeviceMemory-driverBytes)
		return f, nil
	}
	for i, s := range shapes {
		on := s.backend.Device()
		if on == nil {
			break
		}
		free, memory, err := on.DeviceMemory()
		if err != nil {
			return f, err
		}
		if i == 0 || free < f.Free {
			f.Free = free
		}
		if i == 0 || memory < f.Memory {
			f.Memory = memory
		}
	}
	return f, nil
}

// driverBytes is what driver, kernels and cuBLAS are assumed to take of a device that is
// only planned for.
const driverBytes = 512 << 20
