package train

import (
	"context"
	"errors"
	"fmt"

	"gdb/internal/mem"
	"gdb/layout"
	"gdb/sample"
	"gdb/train/runs"
)

// autoCaches are the policies that --cache auto chooses from: no other hits more often than the
// best of them on the graphs that were tried.
var autoCaches = []string{"static", "sieve", runs.CacheBelady}

// blockShares are the sixteenths of what batches leave that a paged topology's caches may get.
var blockShares = []int64{4, 0, 1, 2, 8, 12}

// splitWay is one way to split the memory.
type splitWay struct {
	cache    string
	resident bool
	blocks   int64 // sixteenths for a paged topology's caches
	quarters int64 // of these, for its neighbor cache
	ready    int   // batches that wait, or inTurn

	overlap, inPlace, sweepAhead bool // of superbatches
}

// ways lists what can be chosen. Where nothing can be said about the cost the first that fits is
// taken.
func (p *planner) ways() (all []splitWay) {
	caches := []string{p.c.Cache}
	if p.c.Cache == "auto" {
		caches = autoCaches
	}
	topologies := []splitWay{{resident: true}}
	if p.c.Topology != "resident" {
		if p.c.Topology == "paged" {
			topologies = nil
		}
		for _, n := range blockShares {
			for _, q := range p.neighborQuarters() {
				topologies = append(topologies, splitWay{blocks: n, quarters: q})
			}
		}
	}
	for _, w := range topologies {
		for _, w.ready = range []int{inTurn, 0, 1, readyBatches} {
			for _, w.cache = range caches {
				if w.cache != runs.CacheBelady {
					all = append(all, w)
				} else if w.ready < readyBatches && w.ready != 0 && (w.resident || w.blocks == 0) {
					all = append(all, p.superbatchWays(w)...)
				}
			}
		}
	}
	return all
}

// take splits the memory in a way, and returns the least memory that would do. It does not fit if
// Left is below 0, or short says so.
func (p *planner) take(w splitWay) (least int64, err error) {
	p.setResident()
	p.quarters = w.quarters
	if !w.resident {
		p.setPaged(pagedCacheLeast)
	}
	if w.cache == runs.CacheBelady {
		return p.takeSuperbatch(w)
	}
	p.Step = p.stepCopied
	p.setReady(w.ready)
	least = p.Memory - p.Left()
	if room := p.Left(); !w.resident && room > 0 {
		p.setPaged(pagedCacheLeast + room*w.blocks/16)
	}
	p.takeFeatures(w.cache)
	return least, nil
}

// takeFeatures gives the features what is left.
func (p *planner) takeFeatures(cache string) {
	dim := int64(p.dims[0])
	all, room := arenaBytes(int64(p.nodes)*dim*4), max(0, p.Left())
	if p.c.FeatureCache > 0 {
		room = min(room, p.c.FeatureCache)
	}
	step := p.Step
	if p.c.Dropout == 0 && inPlace(p.c, p.dims) {
		step = p.stepInPlace
	}
	p.Cache, p.Features = cache, room
	switch {
	case cache == "none" || room < dim*4*rowsLeast:
		p.Cache, p.Features = "none", 0
	case all+step-p.Step <= room:
		p.Cache, p.Features, p.Step = "all", all, step
	}
}

// holdsAll splits the memory with everything resident, if it fits.
func (p *planner) holdsAll() *planner {
	if p.c.Cache == "none" || p.c.Topology == "paged" {
		return nil
	}
	for _, ready := range []int{readyBatches, 1, 0} {
		try := p.copied()
		_, err := try.take(splitWay{cache: "static", resident: true, ready: ready})
		if err == nil && try.Left() >= 0 && try.Cache == "all" {
			return try
		}
	}
	return nil
}

// copied is a planner of its own.
func (p *planner) copied() *planner {
	c, plan := *p, *p.Plan
	c.Plan = &plan
	return &c
}

// candidates are the splits that fit, but for those that another beats in all; if there are none
// the error says what would do.
func (p *planner) candidates() (all []*planner, err error) {
	if one := p.holdsAll(); one != nil {
		return []*planner{one}, nil
	}
	least, nearest := int64(0), p
	for _, w := range p.ways() {
		try := p.copied()
		need, err := try.take(w)
		if err != nil {
			return nil, err
		}
		if least == 0 || need < least {
			least, nearest = need, try
		}
		if !try.short && try.Left() >= 0 && !try.beaten(all) {
			all = append(all, try)
		}
	}
	if len(all) == 0 {
		return nil, p.tooSmall(least, nearest)
	}
	return all, nil
}

// beaten says that another split of the kind holds the topology, and no fewer features.
func (p *planner) beaten(others []*planner) bool {
	for _, o := range others {
		same := o.Cache == p.Cache && o.Ready == p.Ready && o.InTurn == p.InTurn &&
			(o.Superbatch == nil) == (p.Superbatch == nil)
		if s, q := o.Superbatch, p.Superbatch; same && s != nil {
			same = s.Overlap == q.Overlap && s.InPlace == q.InPlace &&
				s.SweepAhead == q.SweepAhead
		}
		if same && o.cacheBytes() >= p.cacheBytes() &&
			(o.Resident || !p.Resident && o.blockCache >= p.blockCache &&
				o.neighborCache >= p.neighborCache) {
			return true
		}
	}
	return false
}

// tooSmall is the error of a memory in which the run has no place, with the least that would do.
func (p *planner) tooSmall(least int64, nearest *planner) error {
	return fmt.Errorf("train: memory %s is too small: this run needs at least %s (%s): raise "+
		"--memory, or lower --batch, --fanout or --hidden", mem.FormatSize(p.Memory),
		sizeUp(least), nearest.Plan)
}

// makePlan sees how large batches are, and finds the splits of the memory that fit.
func (in *inputs) makePlan(ctx context.Context, c *Config, train []sample.NodeID,
	dims []int) ([]*planner, error) {
	p := &planner{c: c, store: in.store, dims: dims, scale: 1, nodes: in.meta.Nodes,
		evalMost:      in.evalMost,
		neighborCache: max(0, c.NeighborCache),
		Plan:          &Plan{Memory: c.Memory, Fixed: in.fixed(), dim: dims[0]}}
	p.runBatches = int64(c.Epochs) * int64((len(train)+c.Batch-1)/c.Batch)
	p.planModel()
	p.planTopology()
	p.samplesResident(in)
	if err := in.openGraph(ctx, p.graph(in)); err != nil {
		return nil, err
	}
	if err := p.sample(ctx, in, train); err != nil {
		return nil, err
	}
	var err error
	if p.storage, err = superbatchStorage(in.store); err != nil {
		return nil, err
	}
	p.planBatches()
	return p.candidates()
}

// samplesResident plans to sample from a resident topology where that leaves a quarter of the
// memory free: a plan has no batches in memory, and from a paged one its samples take many times as
// long.
func (p *planner) samplesResident(in *inputs) {
	need, room := p.store.ResidentBytes(layout.In), p.Left()+p.Topology
	if p.c.Topology == "auto" && !p.Resident && need <= room*3/4 {
		paged := p.graph(in)
		p.paged = &paged
		p.setResident()
	}
}

// graph is how the topology is opened as planned.
func (p *planner) graph(in *inputs) layout.TopologyOptions {
	if p.Resident {
		return layout.TopologyOptions{Resident: true, Budget: in.budget}
	}
	return layout.TopologyOptions{CacheBytes: p.blockCache, NeighborBytes: p.neighborCache,
		Budget: in.budget}
}

// sample samples batches to see how large they are. If a whole one does not fit in memory beside a
// resident topology, that is paged; if it does not fit then, the least that would do is found from
// a part of one: a batch has at most as many times its nodes.
func (p *planner) sample(ctx context.Context, in *inputs, train []sample.NodeID) error {
	part := *p.c
	for {
		var err error
		p.pilot, err = in.pilot(ctx, &part, train)
		var full *mem.LimitError
		switch {
		case err == nil && p.scale == 1:
			return nil
		case err == nil:
			p.planBatches()
			if _, err := p.candidates(); err != nil {
				return err
			}
			return fmt.Errorf("train: memory %s is too small to sample a batch: raise --memory, "+
				"or lower --batch or --fanout", mem.FormatSize(p.Memory))
		case errors.As(err, &full) && p.paged != nil:
			err := in.changeGraph(ctx, *p.paged)
			if p.paged = nil; err != nil {
				return err
			}
			p.planTopology()
			continue
		case !errors.As(err, &full) || part.Batch == 1:
			return fmt.Errorf("train: sample a batch to size the memory: %w", err)
		}
		part.Batch = (part.Batch + 3) / 4
		p.scale = int64(p.c.Batch+part.Batch-1) / int64(part.Batch)
	}
}
