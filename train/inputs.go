package train

import (
	"context"
	"errors"
	"fmt"
	"io"

	"gdb/blockdev"
	"gdb/internal/mem"
	"gdb/kv"
	"gdb/layout"
	"gdb/sample"
)

// inputs are what a training reads: the graph, its features and labels, opened as the memory
// allows. They are for one run and closed by it.
type inputs struct {
	store  *layout.Store
	dev    blockdev.Device
	meta   *kv.Meta
	budget *mem.Budget

	topology layout.Topology
	rows     sample.Rows // of the features, without a cache
	reader   *layout.Rows
	rowsHeld int64 // bytes counted for reading features and labels so far
	features sample.Features
	labels   *sample.Labels
	classes  int
	multi    bool

	closers []io.Closer // in the order of opening
}

// openGraph opens the topology.
func (in *inputs) openGraph(ctx context.Context, opt layout.TopologyOptions) error {
	t, err := in.store.Topology(ctx, in.dev, layout.In, opt)
	if err != nil {
		return fmt.Errorf("train: open topology: %w", err)
	}
	in.topology = t
	in.closers = append(in.closers, t)
	return nil
}

// openRows opens the files of features and labels, without a cache.
func (in *inputs) openRows(ctx context.Context) error {
	rows, err := in.store.Rows(ctx, in.dev, in.meta.Features[0], in.budget)
	if err != nil {
		return fmt.Errorf("train: open features: %w", err)
	}
	in.rows, in.reader = rows, rows
	in.closers = append(in.closers, rows)
	in.rowsHeld = in.budget.Used()
	return nil
}

// openLabels opens the labels.
func (in *inputs) openLabels(ctx context.Context) error {
	rows, err := in.store.Rows(ctx, in.dev, in.meta.Labels.Rows, in.budget)
	if err != nil {
		return fmt.Errorf("train: open labels: %w", err)
	}
	in.closers = append(in.closers, rows)
	in.rowsHeld = in.budget.Used()
	in.labels, err = sample.NewLabels(ctx, in.meta.Labels, rows, in.meta.Nodes, in.budget)
	if err != nil {
		return fmt.Errorf("train: open labels: %w", err)
	}
	in.closers = append(in.closers, in.labels)
	in.classes, in.multi = in.labels.Classes(), in.labels.Multi()
	return nil
}

// openFeatures puts the cache of a plan before the features.
func (in *inputs) openFeatures(ctx context.Context, p *Plan, threads int) (err error) {
	opt := sample.CacheOptions{Bytes: p.Features, Threads: threads, Budget: in.budget}
	switch p.Cache {
	case "all":
		in.features, err = sample.NewResident(ctx, in.rows, in.meta.Nodes, threads, in.budget)
	case "none", cacheBelady: // the latter has its own, for training
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
	p.hot, err = HotNodes(ctx, in.store, in.dev, limit, in.budget)
	return err
}

// HotNodes returns the at most limit nodes that stand in the most lists, most first: those whose
// rows the static cache of a run keeps. One scan of the topology; memory as for sample.HotByUse.
func HotNodes(ctx context.Context, s *layout.Store, dev blockdev.Device, limit int,
	budget *mem.Budget) ([]sample.NodeID, error) {
	scan := func(fn func(first layout.NodeID, cont bool, l *layout.Lists) error) error {
		return s.ScanTopology(ctx, dev, layout.In, fn)
	}
	if s.Meta().Undirected {
		return sample.HotByDegree(scan, limit)
	}
	return sample.HotByUse(scan, s.Meta().Nodes, limit, budget)
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
