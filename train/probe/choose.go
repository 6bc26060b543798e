package probe

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"gdb/internal/mem"
	"gdb/layout"
	"gdb/layout/neighborcache"
	"gdb/layout/topology"
	"gdb/sample"
	"gdb/train/plan"
)

// Plans opens the topology, samples batches to learn their sizes, and returns the ways to split the
// memory, and the largest of the batches. If there is no way the error is a plan.TooSmallError.
func (m *Probe) Plans(ctx context.Context) (all []*plan.Plan, largest *sample.Dense, err error) {
	if err := m.sampleBatches(ctx); err != nil {
		return nil, nil, err
	}
	all, err = plan.Plans(m.facts)
	return all, m.dense, err
}

// Choose returns the split whose epoch is forecast to take least. The first split is taken if
// there is no choice, or no memory to measure in. The topology is closed unless it is open as the
// chosen split has it. step times steps; nil where batches are loaded and no model is trained.
func (m *Probe) Choose(ctx context.Context, splits []*plan.Plan, step Timer) (*plan.Plan,
	error) {
	best := splits[0]
	if m.cfg.Unpriced {
		best = readiest(splits)
	} else if len(splits) > 1 || m.facts.Evaluates { // loading alone needs one only to choose by
		fastest, err := m.price(ctx, splits, step)
		var full *mem.LimitError
		if err != nil && !errors.As(err, &full) {
			return nil, err
		}
		if err == nil {
			best = fastest
		}
	}
	if best.OnDevice != nil {
		best.OnDevice.Launches = m.facts.Device.Launches
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

// readiest returns the split in which most batches wait for the step, with the least memory for
// lists.
func readiest(splits []*plan.Plan) *plan.Plan {
	ready := func(p *plan.Plan) int {
		if p.InTurn {
			return -1
		}
		return p.Ready
	}
	return slices.MinFunc(splits, func(a, b *plan.Plan) int {
		return cmp.Or(cmp.Compare(ready(b), ready(a)), cmp.Compare(a.Topology, b.Topology))
	})
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
func (m *Probe) price(ctx context.Context, splits []*plan.Plan, step Timer) (best *plan.Plan,
	err error) {
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
	err = m.roomy(func() error { return m.priceSteps(ctx, s, splits, step) })
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
	return s.WithSamplers(best), nil
}

// priceSteps times steps on a batch that is larger than most, with rows copied and in place as the
// splits need it.
func (m *Probe) priceSteps(ctx context.Context, s *plan.Costs, splits []*plan.Plan,
	step Timer) error {
	if step == nil {
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
			w, err := step.TimeStep(ctx, m.dense, kind.inPlace)
			return w.Times(s.Nodes / float64(len(m.dense.NodeIDs))), err
		})
		if err != nil {
			return err
		}
		if n := m.facts.Devices; n > 1 { // of which each takes one of n parts
			w.Seconds = max(w.CPU, w.Seconds/float64(n))
		}
		*kind.to = w
	}
	if m.facts.Device.Memory == 0 {
		return nil
	}
	w, err := m.timed("prepare "+m.cfg.StepName, func() (plan.Work, error) {
		w, err := step.TimePrepare(m.dense)
		return w.Times(s.Nodes / float64(len(m.dense.NodeIDs))), err
	})
	s.Prepare = w.CPU
	if err == nil {
		m.facts.Device.Launches, err = step.TimeLaunches(ctx, m.dense)
	}
	return err
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
		Nodes: float64(tr.nodes) / n, Rows: float64(tr.rows) / n,
		Edges: float64(tr.edges) / n, Batches: (uint64(len(m.cfg.Seeds)) + size - 1) / size,
		Full: float64(len(m.cfg.Seeds)) / float64(size), RowBytes: 4 * float64(m.facts.RowDim()),
		Device: m.device, Curves: map[string]*plan.Curve{}, Inner: 1,
		TopologyBytes: topology.FileBytes(m.src.Store, layout.In)}
	if m.src.Rows != nil {
		s.StoredBytes = float64(m.src.Rows.Meta().RowBytes)
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
