// Package probe measures what a plan is made from: how large batches are, how fast the disk and the
// processor are, and which rows and lists a run will need. It asks package plan for the ways to
// split the memory, and measures what decides between them. Its terms: the pilot is the first few
// batches, sampled to learn their sizes; the trace is the nodes of more batches, through which
// caches are played; the profile holds the speeds of the device. It closes all that it opens,
// except the topology.
package probe

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"gdb/internal/mem"
	"gdb/layout"
	"gdb/layout/neighborcache"
	"gdb/layout/topology"
	"gdb/sample"
	"gdb/sample/loader"
	"gdb/train/plan"
)

// Config says what to plan for.
type Config struct {
	// Facts holds what is known before anything is measured: the memory, the settings, the model
	// and its evaluation. The probe fills in the rest.
	plan.Facts
	// Seeds, Fanout and Seed determine the batches: see loader.Config. Layer sizes are set
	// in the source.
	Seeds  []sample.NodeID
	Fanout []int
	Seed   uint64
	// Spare is memory beyond the plan that a feature cache uses until its budget wants it back.
	// Caches that cannot give memory back do not get it.
	Spare int64
	// StepName names all settings that the time of a step or of sampling depends on: what was
	// measured under this name is not measured again.
	StepName string
	// Remeasure measures the device again, although the catalog has a profile of it.
	Remeasure bool
	// Profiles is the directory where profiles of devices are kept for a day, for all stores of
	// this machine; "" keeps none there.
	Profiles string
}

// Model is what a probe needs of the model that is trained on the batches.
type Model interface {
	// StepBytes returns the memory of a step on the largest batch, which has inner nodes
	// with neighbors. d is the largest batch that was sampled; no batch is more than scale
	// times as large.
	StepBytes(d *sample.Dense, inner, scale int64, inPlace bool) int64
	// DeviceBytes returns what a step takes of a device with memory of its own: what it
	// computes, and the inputs of the steps under way. It answers for the last call of StepBytes
	// without inPlace.
	DeviceBytes() (step, given int64)
	// TimeStep returns how long a step takes on a batch.
	TimeStep(ctx context.Context, d *sample.Dense, inPlace bool) (plan.Work, error)
	// Products returns how many billion operations matrix products do in a second.
	Products() (gflops float64, err error)
}

// Probe measures one source for one run. It may be used by one goroutine.
type Probe struct {
	src   *loader.Source
	cfg   Config
	facts plan.Facts
	model Model         // nil where batches are loaded and no model is trained
	dense *sample.Dense // a large batch
	// pilots are the batches that were sampled to learn their sizes; a trace begins with them.
	// piloted says how the topology was open then.
	pilots  []pilotBatch
	piloted topology.Options

	device *plan.Profile // nil until it is known
	name   string        // key of the plan: see planName
	news   bool          // the catalog lacks something that is known
	// measured says that the device was measured and other stores do not have the result yet.
	measured bool
}

// New returns a probe of a source whose features are open. model is nil where batches are loaded
// and no model is trained.
func New(src *loader.Source, cfg Config, model Model) (*Probe, error) {
	m := &Probe{src: src, cfg: cfg, facts: cfg.Facts, model: model}
	f := &m.facts
	f.Program = src.ProgramBytes()
	if f.Nodes = src.Meta.Nodes; src.Rows != nil {
		f.Dim = src.Rows.Meta().Dim
	}
	f.Forms, f.Passes = src.Forms(), src.Passes()
	f.Hops = max(len(cfg.Fanout), len(src.LayerSize))
	f.PagedBytes = func(cache int64) int64 {
		return topology.PagedBytes(src.Store, layout.In,
			cache)
	}
	f.TrainBatches = int64((len(cfg.Seeds) + f.Batch - 1) / f.Batch)
	f.SeedBytes = 8
	if l := src.Meta.Labels; l != nil && l.Kind == "multi" {
		f.SeedBytes += 4 * int64(len(l.Classes))
	}
	var err error
	if f.Storage, err = storage(src.Store); err != nil {
		return nil, err
	}
	m.name = m.planName()
	return m, nil
}

// Splits opens the topology, samples batches to learn their sizes, and returns the ways to split
// the memory. If there is none the error is a plan.TooSmallError.
func (m *Probe) Plans(ctx context.Context) ([]*plan.Plan, error) {
	if err := m.sampleBatches(ctx); err != nil {
		return nil, err
	}
	return plan.Plans(&m.facts)
}

// Choose returns the split whose epoch is forecast to take least. The first split is taken if
// there is no choice, or no memory to measure in. The topology is closed unless it is open as the
// chosen split has it.
func (m *Probe) Choose(ctx context.Context, splits []*plan.Plan) (*plan.Plan, error) {
	best := splits[0]
	if len(splits) > 1 || m.facts.Evaluates { // loading alone needs a forecast to choose by only
		fastest, err := m.price(ctx, splits)
		var full *mem.LimitError
		if err != nil && !errors.As(err, &full) {
			return nil, err
		}
		if err == nil {
			best = fastest
		}
	}
	if best.Forecast != nil {
		if err := m.keepPlan(ctx, best); err != nil {
			return nil, err
		}
	}
	m.src.Budget.CollectHeap()
	m.src.InTurns = best.TakesTurns()
	graph := m.graph(best.TopologyOptions())
	if m.src.InTurns || m.src.Graph != graph {
		err := m.src.DropGraph()
		m.src.Graph = graph
		return best, err
	}
	return best, nil
}

// Profile returns the profile of the device, which it measures if it is not known yet.
func (m *Probe) Profile(ctx context.Context) (*plan.Profile, error) {
	if err := m.profile(ctx); err != nil {
		return nil, err
	}
	return m.device, m.keepProfile(ctx)
}

// price samples batches, measures what the stages cost, and returns the fastest split. It uses what
// memory is free; the topology is closed where that is too little.
func (m *Probe) price(ctx context.Context, splits []*plan.Plan) (best *plan.Plan, err error) {
	src := m.src
	tr, err := m.record(ctx, (src.Budget.Limit()-src.Budget.Used())/3)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, tr.close()) }()
	if len(tr.batches) == 0 {
		return nil, &mem.LimitError{What: "trace of accesses", Used: src.Budget.Used(),
			Limit: src.Budget.Limit()}
	}
	if err := m.profile(ctx); err != nil {
		return nil, err
	}
	s := m.newCosts(tr)
	how := "paged"
	if src.Graph.Resident {
		how = "resident " + string(src.Graph.Form)
	}
	if s.Resident.Own, err = m.timedSampling(tr, how); err != nil {
		return nil, err
	}
	s.Resident.Own /= m.facts.Slowdown(src.Graph.Form)
	err = m.roomy(func() error { return m.priceSteps(ctx, s, splits) })
	if err == nil {
		err = m.roomy(func() error { return m.countRows(ctx, s, tr) })
	}
	if err == nil {
		err = m.roomy(func() error { return m.priceRows(ctx, s, tr, splits) })
	}
	if err != nil {
		return nil, err
	}
	if err := m.priceLists(ctx, s, tr, splits); err != nil {
		return nil, err
	}
	return m.fastest(ctx, s, tr, splits)
}

// roomy calls do while the topology is open, as it will be in the run. If memory is too short for
// both it closes the topology and calls do again.
func (m *Probe) roomy(do func() error) error {
	err := do()
	var full *mem.LimitError
	if m.src.Topology == nil || !errors.As(err, &full) {
		return err
	}
	if err := m.src.DropGraph(); err != nil {
		return err
	}
	return do()
}

// fastest chooses by all costs, and measures those of the chosen split again at its exact sizes.
func (m *Probe) fastest(ctx context.Context, s *plan.Costs, tr *trace,
	splits []*plan.Plan) (*plan.Plan, error) {
	trial, err := m.priceNeighbors(ctx, s, tr, splits)
	defer trial.close()
	if err != nil {
		return nil, err
	}
	best := s.Choose(splits)
	if l := best.Lists; l != nil && s.Tried != nil {
		if err := trial.try(l.Blocks, l.Neighbors); err != nil {
			return nil, err
		}
	}
	if err := m.keepProfile(ctx); err != nil {
		return nil, err
	}
	err = m.roomy(func() error { return m.priceRows(ctx, s, tr, []*plan.Plan{best}) })
	if err != nil {
		return nil, err
	}
	s.Complete(best, splits)
	return best, nil
}

// timedSampling returns the core time, in seconds, that sampling a batch of a trace took,
// without reading.
func (m *Probe) timedSampling(tr *trace, how string) (float64, error) {
	w, err := m.timed("sample "+how+" "+m.cfg.StepName, func() (plan.Work, error) {
		s := max(0, tr.cost.took-tr.cost.waited).Seconds() / float64(max(1, tr.sampled))
		return plan.Work{Seconds: s, CPU: s}, nil
	})
	return w.CPU, err
}

// priceSteps times steps on a batch that is larger than most, with rows copied and in place as the
// splits need it.
func (m *Probe) priceSteps(ctx context.Context, s *plan.Costs, splits []*plan.Plan) error {
	if m.model == nil {
		return nil
	}
	for _, kind := range []struct {
		name    string
		inPlace bool
		to      *plan.Work
	}{{"step ", false, &s.Step}, {"step in place ", true, &s.StepInPlace}} {
		wanted := func(p *plan.Plan) bool { return s.InPlace(p) == kind.inPlace }
		if !slices.ContainsFunc(splits, wanted) {
			continue
		}
		w, err := m.timed(kind.name+m.cfg.StepName, func() (plan.Work, error) {
			if err := m.makeRoom(kind.inPlace); err != nil {
				return plan.Work{}, err
			}
			w, err := m.model.TimeStep(ctx, m.dense, kind.inPlace)
			return w.Times(s.Nodes / float64(len(m.dense.NodeIDs))), err
		})
		if err != nil {
			return err
		}
		*kind.to = w
	}
	return nil
}

// tableRoom is the least memory that must be free beside a step that is timed with rows in place. A
// quarter of it holds these rows; fewer might all lie in the caches of a processor.
const tableRoom = 256 << 20

// makeRoom closes the topology where rows that are used in place would have little memory.
func (m *Probe) makeRoom(inPlace bool) error {
	b := m.src.Budget
	if !inPlace || b.Limit() == 0 || b.Limit()-b.Used() >= m.facts.StepInPlace+tableRoom {
		return nil
	}
	return m.src.DropGraph()
}

// newCosts returns costs with what is the same for all splits filled in from a trace.
func (m *Probe) newCosts(tr *trace) *plan.Costs {
	n, size, d := float64(len(tr.batches)), uint64(m.facts.Batch), m.dense
	s := &plan.Costs{Sampled: len(tr.batches), OnDevice: tr.onDevice(),
		Nodes: float64(tr.nodes) / n,
		Edges: float64(tr.edges) / n, Batches: (uint64(len(m.cfg.Seeds)) + size - 1) / size,
		Full: float64(len(m.cfg.Seeds)) / float64(size), RowBytes: 4 * float64(m.facts.Dim),
		Device: m.device, Curves: map[string]*plan.Curve{}, Inner: 1}
	if m.src.Rows != nil {
		s.StoredBytes = float64(m.src.Rows.Meta().RowBytes)
	}
	path, _ := layout.TopologyPaths(layout.In)
	for _, f := range m.src.Meta.Files {
		if f.Path == path {
			s.TopologyBytes = f.Size
		}
	}
	s.Scans = func(scratch int64) int {
		made, _ := neighborcache.Scans(m.src.Store, scratch)
		return made
	}
	if m.facts.ReadsInPlace {
		s.Inner = 1 - float64(d.NodeIDOffsets[1])/float64(len(d.NodeIDs))
	}
	return s
}

// priceLists measures sampling from a paged topology with the largest and then with the smallest
// block cache, as long as such a split may cost less than all others. It decides that first as if
// reading lists cost nothing, then with the least that reading blocks costs, then as if all block
// caches were as good as the largest.
func (m *Probe) priceLists(ctx context.Context, s *plan.Costs, tr *trace,
	splits []*plan.Plan) error {
	least, most := s.Hopeful(splits)
	if least != nil && len(splits) > 1 {
		if err := m.floorLists(ctx, s, tr, splits); err != nil {
			return err
		}
		least, most = s.Hopeful(splits)
	}
	if s.NoPaged = least == nil; s.NoPaged {
		return nil
	}
	if err := m.measureLists(ctx, s, most); err != nil {
		return err
	}
	if least, _ = s.Hopeful(splits); least == nil || least.Lists.Blocks == most.Lists.Blocks {
		return nil
	}
	return m.measureLists(ctx, s, least)
}

// measureLists samples batches with the block cache of a split. Only the later ones count, since
// they find the cache filled.
func (m *Probe) measureLists(ctx context.Context, s *plan.Costs, p *plan.Plan) error {
	if err := m.src.ChangeGraph(ctx, m.graph(p.TopologyOptions())); err != nil {
		return err
	}
	tr, err := m.sampleFew(ctx)
	if err != nil {
		return err
	}
	bytes := float64(tr.cost.listBytes) / float64(max(1, tr.sampled))
	c := m.device.Reading(bytes/float64(max(1, m.src.Meta.BlockBytes)), bytes)
	c.Own, err = m.timedSampling(tr, fmt.Sprint("paged ", p.Lists.Blocks))
	s.Paged = slices.Insert(s.Paged, 0, plan.PagedPrice{Blocks: p.Lists.Blocks, Price: c})
	return err
}
