package train

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"gdb/blockdev"
	"gdb/compute/backend"
	"gdb/layout"
	"gdb/sample"
	"gdb/sample/loader"
	"gdb/sample/shared"
	"gdb/train/exact"
	"gdb/train/model"
	"gdb/train/plan"
	"gdb/train/probe"
	"gdb/train/run"
	"gdb/train/setting"
	"gdb/train/task"
)

// Together has open, once, what trainings of a store have in common that differ in no batch: files,
// splits, labels, lists, rows and caches, in one split of the memory. Trainings that go on at the
// same time step on the same batches. What a run comes to is what it comes to alone, to the bit.
type Together struct {
	store  *layout.Store
	dev    blockdev.Device
	opened *planned // of one of the trainings; its loop closes what is open
	most   int
	lends  bool // all models read rows where they are, if these are in memory
	loader *loader.Loader
	group  *shared.Group
}

// Beside is a training among others that share what is open.
type Beside struct {
	of     *Together
	member *shared.Member
}

// checkTogether says why trainings open what they read each for itself; nil if they can share it.
func checkTogether(c *Config) error {
	switch {
	case c.Backend != backend.CPU:
		return errors.New("a device keeps rows and batches of one model")
	case c.Buffered():
		return errors.New("partitions are in memory for one model")
	case c.NodeEmbedding > 0:
		return errors.New("vectors of nodes are large")
	case c.Tune:
		return errors.New("--tune measures each model for itself")
	case c.Cache == setting.CacheBelady || c.Superbatch > 0:
		return errors.New("superbatches are planned for one run")
	case c.Features == setting.FeaturesColumns, c.Precompute:
		return errors.New("features are made for each run")
	}
	return nil
}

// OpenTogether opens what trainings have in common, whose settings differ in Row.Beside alone. It
// returns nil where these settings have each training open all for itself.
func OpenTogether(ctx context.Context, store *layout.Store, dev blockdev.Device,
	all []Config) (*Together, error) {
	loop := run.New(store, "", nil)
	t := &Together{store: store, dev: dev}
	err := t.open(ctx, loop, all)
	if err != nil || t.group == nil {
		return nil, errors.Join(err, loop.Close())
	}
	return t, nil
}

func (t *Together) open(ctx context.Context, loop *run.Loop, all []Config) error {
	var each []*checked
	for _, cfg := range all {
		c, err := check(ctx, run.New(t.store, "", nil), t.store, t.dev, cfg)
		if err != nil {
			return err
		}
		if checkTogether(&c.cfg) != nil {
			return nil
		}
		each = append(each, c)
	}
	lead := *each[len(each)/2]
	lead.loop, lead.shares = loop, true
	d, err := openData(ctx, &lead)
	if err != nil {
		return err
	}
	if t.opened, err = t.plan(ctx, d, each); err != nil {
		return fmt.Errorf("train: %w", err)
	}
	if err := t.opened.openInputs(ctx, t.lends); err != nil {
		return err
	}
	c := d.in.batches(&t.opened.cfg, t.opened.plan)
	c.Seeds, c.Macro = d.nodes.train, d.cfg.Together()
	t.loader = loader.New(d.in.Source, c)
	loop.CloseLater(t.loader)
	t.group = shared.New(t.loader)
	return nil
}

// Most is how many trainings may go on at the same time.
func (t *Together) Most() int { return t.most }

// Close closes what is open. No training goes on.
func (t *Together) Close() error { return t.opened.loop.Close() }

// Begin adds a training, for which the others wait until its Run has returned.
func (t *Together) Begin() *Beside { return &Beside{of: t, member: t.group.Join()} }

// Leave ends the part of a training that is not run.
func (b *Beside) Leave() { b.member.Leave() }

// Run does what the function Run does, beside the other trainings that were begun.
func (b *Beside) Run(ctx context.Context, cfg Config, obs func(run.Event)) (*Result, error) {
	defer b.member.Leave()
	return runBeside(ctx, b.of.store, b.of.dev, cfg, obs, b)
}

// models are those that train at the same time, in the place of one.
type models []*shape

// Size returns what the steps of all take: see probe.Model.
func (m models) Size(d *sample.Dense, inner, scale int64, inPlace bool) (sum probe.StepSize) {
	for _, s := range m {
		sum.Host += s.Size(d, inner, scale, inPlace).Host
	}
	return sum
}

// Products times a matrix product.
func (m models) Products() (gflops float64, err error) { return m[0].Products() }

// repeated times the steps of some models as those of one between them.
type repeated struct {
	*stepper
	times int
}

// TimeStep returns what a step of each takes together.
func (r repeated) TimeStep(ctx context.Context, d *sample.Dense, inPlace bool) (plan.Work, error) {
	w, err := r.stepper.TimeStep(ctx, d, inPlace)
	return w.Times(float64(r.times)), err
}

// stepShare bounds the models that train at the same time, with their steps, to one part in
// stepShare of the memory: caches have the rest.
const stepShare = 2

// plan splits the memory for as many models as train at the same time.
func (t *Together) plan(ctx context.Context, d *data, each []*checked) (*planned, error) {
	var all models
	for _, c := range each {
		s, err := newShape(&c.cfg, d.in.Meta, d.in.task, d.in.Budget)
		if err != nil {
			return nil, err
		}
		d.loop.CloseLater(s.backend)
		s.shares = true
		all = append(all, s)
	}
	slices.SortStableFunc(all, func(a, b *shape) int {
		return cmp.Compare(b.modelBytes(), a.modelBytes())
	})
	for t.most = len(all); ; t.most = (t.most + 1) / 2 {
		best, err := t.planFor(ctx, d, all[:t.most])
		var small *plan.TooSmallError
		switch {
		case err != nil && (t.most == 1 || !errors.As(err, &small)):
			return nil, err
		case err == nil && (t.most == 1 || best.Model+best.Step <= d.cfg.Memory/stepShare):
			best.Forecast, best.Rivals = nil, nil // they are of all trainings together
			return &planned{data: d, plan: best}, nil
		}
	}
}

// planFor splits the memory for models that train at the same time, of which the one in the middle
// is timed.
func (t *Together) planFor(ctx context.Context, d *data, some models) (*plan.Plan, error) {
	middle := some[len(some)/2]
	probed, err := d.probed(some[len(some)/2:])
	if err != nil {
		return nil, err
	}
	f := &probed.Facts
	f.Model, f.InPlaceResident, f.OneByOne = 0, true, true
	for _, s := range some {
		f.Model += s.modelBytes()
		f.InPlaceResident = f.InPlaceResident && model.Of(s.cfg).InPlaceResident(s.dims)
		sets := exact.SetsBytes(s.spec(), d.in.Meta.Nodes, f.Memory)
		f.EvalArenas = max(f.EvalArenas, exact.Bytes+sets)
		probed.StepName += fmt.Sprint(" beside ", s.dims)
	}
	t.lends = f.InPlaceResident
	pr, err := probe.New(d.in.Source, probed, some)
	if err != nil {
		return nil, err
	}
	best, err := pr.Kept(ctx)
	if err != nil || best != nil {
		return best, err
	}
	splits, _, err := pr.Plans(ctx)
	if err != nil {
		return nil, err
	}
	timed, err := newShape(middle.cfg, d.in.Meta, d.in.task, d.in.Budget)
	if err != nil {
		return nil, err
	}
	timed.shares = true
	steps, err := newStepper(timed)
	if err != nil {
		return nil, errors.Join(err, timed.backend.Close())
	}
	best, err = pr.Choose(ctx, splits, repeated{steps, len(some)})
	return best, errors.Join(err, steps.Close(), timed.backend.Close())
}

// plan has a training read what is open, with a model of its own.
func (b *Beside) plan(c *checked) (*planned, error) {
	o := b.of.opened
	if err := b.of.adopt(c); err != nil {
		return nil, err
	}
	in, split := *o.in, *o.plan
	in.task = task.New(in.Meta.Labels, c.cfg.Loss)
	own := in.Budget.Part(0)
	c.loop.CloseLater(own)
	s, err := newShape(&c.cfg, in.Meta, in.task, own)
	if err != nil {
		return nil, err
	}
	c.loop.CloseLater(s.backend)
	s.shares = true
	if in.Resident != nil && !b.of.lends && model.Of(&c.cfg).InPlaceResident(s.dims) {
		b.member.Table = in.Resident.Table()
	}
	for _, note := range o.loop.Notes() {
		c.loop.Note(note)
	}
	p := &planned{data: &data{checked: c, in: &in, nodes: o.nodes}, plan: &split}
	if err := p.openModel(s); err != nil {
		return nil, err
	}
	return p, p.openReplicas(nil)
}

// adopt takes over what was found as the inputs were opened.
func (t *Together) adopt(c *checked) error {
	of := &t.opened.cfg
	c.cfg.Memory = of.Memory
	if !c.loop.Resumed {
		c.cfg.Normalize, c.cfg.Scale = of.Normalize, of.Scale
		c.cfg.EdgeScale, c.cfg.SplitTimes = of.EdgeScale, of.SplitTimes
	}
	if err := c.cfg.SameBatches(of); err != nil {
		return fmt.Errorf("train: run %s has other batches than those beside it: %w: train it by "+
			"itself, with --resume", c.cfg.Run, err)
	}
	return nil
}
