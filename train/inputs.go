package train

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

	"gdb/blockdev"
	"gdb/internal/mem"
	"gdb/kv"
	"gdb/layout"
	"gdb/sample"
	"gdb/train/runs"
	"gdb/train/task"
)

// inputs are what a training reads: the graph, its features and labels, opened as the memory
// allows. They are for one run and closed by it.
type inputs struct {
	store  *layout.Store
	dev    blockdev.Device
	meta   *kv.Meta
	budget *mem.Budget

	topology layout.Topology // nil while it is not in memory: see useGraph
	graph    layout.TopologyOptions
	turns    bool // the topology is in memory only while it is used
	turn     struct {
		sync.Mutex // guards topology against reading statistics
		past       layout.NeighborStats
	}
	rows      sample.Rows // of the features, without a cache
	reader    *layout.Rows
	labelRows *layout.Rows
	rowsHeld  int64 // bytes counted for reading features and labels so far
	evalMost  int64 // nodes of the largest set that is evaluated
	features  sample.Features
	labels    *sample.Labels
	task      task.Task
	classes   int
	multi     bool

	claims  string      // the file to lock before hidden states are written, if any
	closers []io.Closer // in the order of opening
}

// openGraph opens the topology.
func (in *inputs) openGraph(ctx context.Context, opt layout.TopologyOptions) error {
	in.graph = opt
	if err := in.loadGraph(ctx); err != nil {
		return err
	}
	in.closers = append(in.closers, graphCloser{in})
	return nil
}

func (in *inputs) loadGraph(ctx context.Context) error {
	t, err := in.store.Topology(ctx, in.dev, layout.In, in.graph)
	if err != nil {
		return fmt.Errorf("train: open topology: %w", err)
	}
	in.turn.Lock()
	defer in.turn.Unlock()
	in.topology = t
	return nil
}

// changeGraph opens the topology in another way, if it is not open in this one.
func (in *inputs) changeGraph(ctx context.Context, opt layout.TopologyOptions) error {
	if in.topology != nil && in.graph == opt {
		return nil
	}
	if err := in.dropGraph(); err != nil {
		return err
	}
	in.graph = opt
	return in.loadGraph(ctx)
}

// dropGraph closes the topology if it is open.
func (in *inputs) dropGraph() error {
	in.turn.Lock()
	defer in.turn.Unlock()
	t := in.topology
	if in.topology = nil; t == nil {
		return nil
	}
	s := t.Stats().Neighbors
	in.turn.past.Requests += s.Requests
	in.turn.past.Hits += s.Hits
	in.turn.past.Note = s.Note
	return t.Close()
}

// neighbors are the statistics of the neighbor cache, over all turns. It may be called at any time.
func (in *inputs) neighbors() layout.NeighborStats {
	in.turn.Lock()
	defer in.turn.Unlock()
	s := in.turn.past
	if in.topology != nil {
		now := in.topology.Stats().Neighbors
		now.Requests, now.Hits = now.Requests+s.Requests, now.Hits+s.Hits
		s = now
	}
	return s
}

// graphCloser closes the topology at the end.
type graphCloser struct{ in *inputs }

func (g graphCloser) Close() error { return g.in.dropGraph() }

// useGraph opens the topology if it takes turns with batches. The caller calls release. One use at
// a time.
func (in *inputs) useGraph(ctx context.Context) (release func() error, err error) {
	if !in.turns {
		return func() error { return nil }, nil
	}
	if in.topology == nil {
		if err := in.loadGraph(ctx); err != nil {
			return nil, err
		}
	}
	return in.dropGraph, nil
}

// openRows opens the files of features and labels, without a cache.
func (in *inputs) openRows(ctx context.Context) error {
	before := in.budget.Used()
	rows, err := in.store.Rows(ctx, in.dev, in.meta.Features[0], in.budget)
	if err != nil {
		return fmt.Errorf("train: open features: %w", err)
	}
	in.rows, in.reader = rows, rows
	in.closers = append(in.closers, rows)
	in.rowsHeld += in.budget.Used() - before
	return nil
}

// openLabels opens the labels.
func (in *inputs) openLabels(ctx context.Context) error {
	before := in.budget.Used()
	rows, err := in.store.Rows(ctx, in.dev, in.meta.Labels.Rows, in.budget)
	if err != nil {
		return fmt.Errorf("train: open labels: %w", err)
	}
	in.labelRows = rows
	in.closers = append(in.closers, rows)
	in.rowsHeld += in.budget.Used() - before
	in.labels, err = sample.NewLabels(ctx, in.meta.Labels, rows, in.meta.Nodes, in.budget)
	if err != nil {
		return fmt.Errorf("train: open labels: %w", err)
	}
	in.closers = append(in.closers, in.labels)
	in.classes, in.multi = in.labels.Classes(), in.labels.Multi()
	in.task = &task.Classes{Names: in.meta.Labels.Classes, Multi: in.multi}
	return nil
}

// openFeatures puts the cache of a plan before the features.
func (in *inputs) openFeatures(ctx context.Context, p *Plan, threads int) (err error) {
	opt := sample.CacheOptions{Bytes: p.Features, Threads: threads, Budget: in.budget}
	switch p.Cache {
	case "all":
		in.features, err = sample.NewResident(ctx, in.rows, in.meta.Nodes, threads, in.budget)
	case "none", runs.CacheBelady: // the latter has its own, for training
		in.features = sample.NewDirect(in.rows)
	case "static":
		if err = in.planHot(ctx, p); err == nil {
			opt.Bytes -= hotBytes(len(p.hot))
			in.features, err = sample.NewCached(ctx, in.rows, sample.NewStatic(p.hot), opt)
		}
		p.hot = nil
	default:
		var policy sample.Policy
		if policy, err = sample.NewPolicy(p.Cache); err == nil {
			in.features, err = sample.NewCached(ctx, in.rows, policy, opt)
		}
	}
	if err != nil {
		return fmt.Errorf("train: open features with cache %s: %w", p.Cache, err)
	}
	in.closers = append(in.closers, in.features)
	return nil
}

// hotBytes is the memory of finding and listing so many hot nodes: 12 bytes each on the heap.
func hotBytes(nodes int) int64 { return mem.HeapCost(12 * int64(nodes)) }

// planHot lists the nodes whose rows the static cache of a plan keeps, if that was not done yet.
func (in *inputs) planHot(ctx context.Context, p *Plan) (err error) {
	if p.hot != nil {
		return nil
	}
	rows := sample.CacheRows(p.Features, in.rows.Meta().Dim, int(hotBytes(1)))
	limit := int(min(uint64(rows), in.meta.Nodes))
	if err := in.budget.Reserve("hot nodes", 12*int64(limit)); err != nil {
		return err
	}
	defer in.budget.Release(12 * int64(limit))
	p.hot, err = sample.HotNodes(ctx, in.store, in.dev, limit, in.budget)
	return err
}

// closeLast closes what was opened last.
func (in *inputs) closeLast() error {
	last := len(in.closers) - 1
	c := in.closers[last]
	in.closers = in.closers[:last]
	return c.Close()
}

// Close closes all, the last opened first.
func (in *inputs) Close() error {
	var err error
	for len(in.closers) > 0 {
		err = errors.Join(err, in.closeLast())
	}
	return err
}
