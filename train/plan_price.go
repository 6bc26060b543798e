package train

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"gdb/internal/mem"
	"gdb/layout"
	"gdb/sample"
)

// prices are what the stages of a run cost for a batch, by what they are given.
type prices struct {
	sampled              int
	batches              uint64
	full                 float64 // batches of an epoch, the last one in part
	nodes, edges, unique float64
	rowBytes             float64
	topologyBytes        int64 // of the file
	device               *Profile
	step, stepInPlace    work // of a step, also with rows read in place

	resident price
	paged    []pagedPrice      // by size, ascending
	noPaged  bool              // none is worth it
	tried    *listTrial        // of neighbor caches; nil if none is worth it
	listsWhy string            // why there is no trial
	curves   map[string]*curve // by policy
	inner    float64           // share of rows that are copied if others are read in place

	grows       footprint
	storedBytes float64   // of a row in the store
	apart, once readTable // rows of a batch that were not seen before, and all in one pass
}

// pagedPrice is what lists cost with a block cache.
type pagedPrice struct {
	blocks int64
	price
}

// choose takes the split of the least forecast time; the topology is closed if it is not open as
// that says. The first is taken if there is no choice, or no room to look.
func (t *trainer) choose(ctx context.Context, splits []*planner) error {
	best := splits[0]
	if len(splits) > 1 || !t.cfg.LoadOnly { // loading alone needs a forecast to choose by only
		fastest, err := t.price(ctx, splits)
		var full *mem.LimitError
		if err != nil && !errors.As(err, &full) {
			return err
		}
		if err == nil {
			best = fastest
		}
	}
	t.plan = best.Plan
	t.in.budget.Settle()
	b := t.plan.Superbatch
	t.in.turns = b != nil && !b.Overlap
	graph := best.graph(t.in)
	if t.in.turns || t.in.graph != graph {
		err := t.in.dropGraph()
		t.in.graph = graph
		return err
	}
	return nil
}

// best is the split with the least time; of the others the best of each kind are its rivals.
func (s *prices) best(splits []*planner) *planner {
	splits = slices.DeleteFunc(slices.Clone(splits), func(p *planner) bool {
		return s.noPaged && !p.Resident || s.tried == nil && p.quarters > 0
	})
	for _, p := range splits {
		p.Forecast = s.forecast(p)
	}
	slices.SortStableFunc(splits, func(a, b *planner) int {
		return cmp.Compare(a.epochSeconds(), b.epochSeconds())
	})
	best := splits[0]
	const rivals = 3
	seen := map[string]bool{best.kind(): true}
	for _, p := range splits[1:] {
		if kind := p.kind(); !seen[kind] && len(best.Rivals) < rivals {
			seen[kind] = true
			best.Rivals = append(best.Rivals, Rival{What: p.what(), Time: p.Forecast.Time,
				AtLeast: p.Cache != "all" && s.curves[s.curveName(p)].bound})
		}
	}
	return best
}

// kind tells splits apart whose forecasts a user would compare: policies where they are chosen,
// else how lists and batches are held.
func (p *planner) kind() string {
	if p.c.Cache == "auto" {
		return p.Cache
	}
	return p.what()
}

// price samples batches, finds what the stages cost, and returns the fastest split. Memory: what is
// free; the topology gives way where that is short.
func (t *trainer) price(ctx context.Context, splits []*planner) (best *planner, err error) {
	in, dense := t.in, splits[0].dense
	free := in.budget.Limit() - in.budget.Used()
	tr, err := in.record(ctx, &t.cfg, t.train, free/3)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, tr.close()) }()
	if len(tr.batches) == 0 {
		return nil, &mem.LimitError{What: "trace of accesses", Used: in.budget.Used(),
			Limit: in.budget.Limit()}
	}
	s := t.newPrices(tr, dense)
	if s.device, err = t.profile(ctx); err != nil {
		return nil, err
	}
	how := "resident"
	if !in.graph.Resident {
		how = "paged"
	}
	if s.resident.own, err = t.timedSampling(s.device, tr, how); err != nil {
		return nil, err
	}
	if free < 2*splits[0].Step+4*splits[0].rowArenas+64<<20 {
		if err := in.dropGraph(); err != nil {
			return nil, err
		}
	}
	if err := t.priceSteps(ctx, s, dense, splits); err != nil {
		return nil, err
	}
	if err := t.priceRows(ctx, s, tr, splits); err != nil {
		return nil, err
	}
	if err := t.priceLists(ctx, s, splits); err != nil {
		return nil, err
	}
	if err := t.priceNeighbors(ctx, s, tr, splits); err != nil {
		return nil, err
	}
	defer s.closeTrial()
	best = s.best(splits)
	if err := errors.Join(s.tellLists(best, splits), in.dropGraph()); err != nil {
		return nil, err
	}
	if err := t.keepProfile(ctx, s.device); err != nil {
		return nil, err
	}
	if err := t.priceRows(ctx, s, tr, []*planner{best}); err != nil {
		return nil, err
	}
	best.Forecast = s.forecast(best) // at the very size
	return best, nil
}

// stepName has all settings that the time of a step or of sampling depends on.
func (t *trainer) stepName() string {
	c := &t.cfg
	return fmt.Sprint(c.Model, c.Fanout, t.dims, c.Batch, c.Threads, c.Backend, c.Optimizer,
		c.Dropout > 0, c.Split)
}

// timedSampling is what cores did to sample a trace, for a batch, but for reading.
func (t *trainer) timedSampling(p *Profile, tr *trace, how string) (float64, error) {
	w, err := p.timed("sample "+how+" "+t.stepName(), func() (work, error) {
		s := max(0, tr.took-tr.waited).Seconds() / float64(max(1, tr.sampled))
		return work{s, s}, nil
	})
	return w.CPU, err
}

// priceSteps times steps as the splits make them, on a batch that is larger than most.
func (t *trainer) priceSteps(ctx context.Context, s *prices, d *sample.Dense,
	splits []*planner) error {
	if t.cfg.LoadOnly {
		return nil
	}
	for _, kind := range []struct {
		name    string
		inPlace bool
		to      *work
	}{{"step ", false, &s.step}, {"step in place ", true, &s.stepInPlace}} {
		wanted := func(p *planner) bool { return s.inPlace(p) == kind.inPlace }
		if !slices.ContainsFunc(splits, wanted) {
			continue
		}
		w, err := s.device.timed(kind.name+t.stepName(), func() (work, error) {
			w, err := t.timeStep(ctx, d, kind.inPlace)
			return w.times(s.nodes / float64(len(d.NodeIDs))), err
		})
		if err != nil {
			return err
		}
		*kind.to = w
	}
	return nil
}

// inPlace says whether steps read rows where they are kept: see inputs.pipeline.
func (s *prices) inPlace(p *planner) bool {
	if p.Superbatch != nil {
		return p.Superbatch.InPlace
	}
	return p.Cache == "all" && p.c.Dropout == 0 && inPlace(p.c, p.dims)
}

// stepOf is what a step takes with a split.
func (s *prices) stepOf(p *planner) work {
	if s.inPlace(p) {
		return s.stepInPlace
	}
	return s.step
}

// newPrices takes from a trace what is the same for all splits.
func (t *trainer) newPrices(tr *trace, d *sample.Dense) *prices {
	n, size := float64(len(tr.batches)), uint64(t.cfg.Batch)
	s := &prices{sampled: len(tr.batches), nodes: float64(tr.nodes) / n,
		edges: float64(tr.edges) / n, batches: (uint64(len(t.train)) + size - 1) / size,
		full: float64(len(t.train)) / float64(size), rowBytes: 4 * float64(t.dims[0]),
		curves: map[string]*curve{}, inner: 1}
	path, _ := layout.TopologyPaths(layout.In)
	for _, f := range t.in.meta.Files {
		if f.Path == path {
			s.topologyBytes = f.Size
		}
	}
	s.storedBytes = float64(t.in.rows.Meta().RowBytes)
	if inPlace(&t.cfg, t.dims) {
		s.inner = 1 - float64(d.NodeIDOffsets[1])/float64(len(d.NodeIDs))
	}
	return s
}

// lists is what sampling costs with a split.
func (s *prices) lists(p *planner) price {
	if p.Resident || len(s.paged) == 0 {
		return s.resident
	}
	if s.tried != nil {
		return s.tried.price(p)
	}
	first, last := s.paged[0], s.paged[len(s.paged)-1]
	at := 0.0
	if last.blocks > first.blocks {
		at = float64(p.blockCache-first.blocks) / float64(last.blocks-first.blocks)
	}
	at = min(1, max(0, at))
	mix := func(a, b float64) float64 { return a + at*(b-a) }
	return price{bytes: mix(first.bytes, last.bytes), wait: mix(first.wait, last.wait),
		cpu: mix(first.cpu, last.cpu), own: mix(first.own, last.own)}
}

// priceLists measures sampling from a paged topology with the largest and the least of the block
// caches, as long as such a split may cost less than all others: first as if lists came for
// nothing, then as if they came as cheaply for all as with the largest.
func (t *trainer) priceLists(ctx context.Context, s *prices, splits []*planner) error {
	least, most := s.hopeful(splits)
	if s.noPaged = least == nil; s.noPaged {
		return nil
	}
	if err := t.measureLists(ctx, s, most); err != nil {
		return err
	}
	if least, _ = s.hopeful(splits); least == nil || least.blockCache == most.blockCache {
		return nil
	}
	return t.measureLists(ctx, s, least)
}

// known is the least time of a split of which all is known before lists are priced.
func (s *prices) known(splits []*planner) float64 {
	least := math.Inf(1)
	for _, p := range splits {
		if p.Resident && (p.Cache == "all" || !s.curves[s.curveName(p)].bound) {
			least = min(least, s.forecast(p).Time)
		}
	}
	return least
}

// mayWin says whether a policy whose costs are a bound may be the fastest.
func (s *prices) mayWin(cache string, splits []*planner) bool {
	known := s.known(splits)
	return slices.ContainsFunc(splits, func(p *planner) bool {
		return p.Cache == cache && s.forecast(p).Time <= known
	})
}

// hopeful are, of the splits with a paged topology that may cost less than all others by what is
// known, those with the least and the largest block cache; nil for none.
func (s *prices) hopeful(splits []*planner) (least, most *planner) {
	resident := s.known(splits)
	for _, p := range splits {
		if p.Resident || p.quarters > 0 || s.forecast(p).Time > resident {
			continue
		}
		if least == nil || p.blockCache < least.blockCache {
			least = p
		}
		if most == nil || p.blockCache > most.blockCache {
			most = p
		}
	}
	return least, most
}

// measureLists samples batches with the block cache of a split, of which those after the first few
// find it as it will be.
func (t *trainer) measureLists(ctx context.Context, s *prices, p *planner) error {
	in := t.in
	if err := in.changeGraph(ctx, p.graph(in)); err != nil {
		return err
	}
	tr, err := in.sampleFew(ctx, &t.cfg, t.train)
	if err != nil {
		return err
	}
	bytes := float64(tr.listBytes) / float64(max(1, tr.sampled))
	c := s.device.reading(bytes/float64(max(1, in.meta.BlockBytes)), bytes)
	c.own, err = t.timedSampling(s.device, tr, fmt.Sprint("paged ", p.blockCache))
	s.paged = slices.Insert(s.paged, 0, pagedPrice{p.blockCache, c})
	return err
}
