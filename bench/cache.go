package bench

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"gdb/blockdev"
	"gdb/internal/mem"
	"gdb/layout"
	"gdb/layout/topology"
	"gdb/sample"
	"gdb/sample/cachesim"
	"gdb/sample/loader"
	"gdb/sample/rowcache"
	"gdb/sample/superbatch"
)

// Workload says which feature rows are asked for: those of the batches of a training.
type Workload struct {
	// Store and Device are of the graph; it has features and a train split.
	Store  *layout.Store
	Device blockdev.Device
	// Fanout, Batch, Split and Seed are as in training. Default fanout 10,10,10, batches of 1000.
	Fanout []int
	Batch  int
	Split  string
	Seed   uint64
	// Memory bounds the process, in bytes; 0 for no bound.
	Memory int64
}

func (w *Workload) setDefaults() {
	if len(w.Fanout) == 0 {
		w.Fanout = []int{10, 10, 10}
	}
	w.Batch = cmp.Or(w.Batch, 1000)
}

// budget returns a budget of the memory that the program itself does not take.
func (w *Workload) budget() *mem.Budget {
	if w.Memory > 0 {
		return mem.NewBudget(max(1, w.Memory-programBytes))
	}
	return &mem.Budget{}
}

// trainSampler samples the batches of a workload.
type trainSampler struct {
	*sample.Sampler
	seeds    []sample.NodeID
	topology topology.Reader
}

// sampler opens the lists of the graph, in memory where they take no more than a quarter of it.
func (w *Workload) sampler(ctx context.Context, budget *mem.Budget) (*trainSampler, error) {
	seeds, err := loader.TrainNodes(ctx, w.Store, w.Split, budget)
	if err != nil {
		return nil, err
	}
	resident := budget.Limit() == 0 ||
		topology.ResidentBytes(w.Store, layout.In, topology.Plain) <=
			(budget.Limit()-budget.Used())/4
	topo, err := topology.Open(ctx, w.Store, w.Device, layout.In, topology.Options{
		Resident: resident, CacheBytes: budget.Limit() / 4, Budget: budget})
	if err != nil {
		return nil, err
	}
	s, err := sample.NewSampler([]topology.Reader{topo},
		sample.Config{Fanout: w.Fanout, Seed: w.Seed, Budget: budget})
	if err != nil {
		return nil, errors.Join(err, topo.Close())
	}
	return &trainSampler{s, seeds, topo}, nil
}

func (s *trainSampler) close() error {
	s.Close()
	return s.topology.Close()
}

// CacheOptions configure the simulation of feature caches. The trace and planning take 20 bytes a
// row asked for, and 8 a node.
type CacheOptions struct {
	Workload
	// Epochs is how many epochs are replayed. Default 1.
	Epochs int
	// Sizes are the capacities, in bytes of memory. Default: 5, 10, 20 and 40 % of FeatureBytes.
	Sizes []int64
	// Progress gets batches sampled and in all; nil for none.
	Progress func(phase string, done, total int64, unit string)
}

// programBytes is the memory of the program itself, as in training.
const programBytes = 56 << 20

// FeatureBytes returns the memory that all feature rows of a store take.
func FeatureBytes(s *layout.Store) (int64, error) {
	m := s.Meta()
	if len(m.Features) == 0 {
		return 0, errors.New("bench: the store has no features to cache: ingest again with " +
			"features (--features FILE or --feature-cols)")
	}
	return int64(m.Nodes) * int64(m.Features[0].Dim) * 4, nil
}

func (o *CacheOptions) setDefaults(whole int64) {
	o.Workload.setDefaults()
	o.Epochs = cmp.Or(o.Epochs, 1)
	if len(o.Sizes) == 0 {
		for _, percent := range []int64{5, 10, 20, 40} {
			o.Sizes = append(o.Sizes, whole*percent/100)
		}
	}
}

// hops are the numbers of batches after which Belady's cache changes: 1 is exact.
var hops = []int{1, 2, 4, 8}

// Cache samples epochs as training does, and replays the rows that their batches ask for through
// each cache policy with each size, through Belady's, which is the bound, and its k-hop
// approximation. No feature is read: bytes count the rows that a cache would have read, also before
// the first batch, without neighbors that come with a sector. Seconds measure the replay, that is
// the cost of the policy; for Belady's and khop-K, planning in memory.
func Cache(ctx context.Context, opt CacheOptions) (r *Report, err error) {
	whole, err := FeatureBytes(opt.Store)
	if err != nil {
		return nil, err
	}
	opt.setDefaults(whole)
	c := &cacheBench{CacheOptions: opt, budget: opt.budget()}
	c.record.Budget = c.budget
	defer func() { err = errors.Join(err, c.record.Close()) }()
	hot, err := c.sample(ctx)
	if err != nil {
		return nil, fmt.Errorf("bench: sample: %w", err)
	}
	policies, err := c.policies(ctx, hot)
	if err != nil {
		return nil, err
	}
	return c.replay(ctx, policies)
}

// cacheBench is one benchmark under way.
type cacheBench struct {
	CacheOptions
	budget *mem.Budget
	record cachesim.Record
}

// sample records the epochs, and returns the nodes that one more epoch, not replayed, asks for
// most: the trial of the sampled static cache.
func (c *cacheBench) sample(ctx context.Context) (hot []sample.NodeID, err error) {
	s, err := c.sampler(ctx, c.budget)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	for epoch := range c.Epochs {
		if err := c.epoch(ctx, s, epoch, c.record.Add); err != nil {
			return nil, err
		}
	}
	return rowcache.HotByTrial(ctx, func(fn func([]sample.NodeID) error) error {
		return c.epoch(ctx, s, c.Epochs, fn)
	}, c.Store.Meta().Nodes, c.rowsMax(), c.budget)
}

// epoch samples one epoch.
func (c *cacheBench) epoch(ctx context.Context, s *trainSampler, epoch int,
	fn func([]sample.NodeID) error) error {
	order, err := sample.EpochOrder(s.seeds, c.Seed, uint64(epoch), c.Batch)
	if err != nil {
		return err
	}
	batches := int64(order.Batches())
	done := int64(epoch) * batches
	return cachesim.Sampled(ctx, s.Sampler, order, func(nodes []sample.NodeID) error {
		if done++; c.Progress != nil {
			c.Progress("sample", done, int64(c.Epochs+1)*batches, "batches")
		}
		return fn(nodes)
	})
}

// rowsMax returns the most rows that a cache of these sizes holds.
func (c *cacheBench) rowsMax() (most int) {
	for _, bytes := range c.Sizes {
		most = max(most, rowcache.RowsIn(bytes, c.Store.Meta().Features[0].Dim, 0))
	}
	return int(min(uint64(most), c.Store.Meta().Nodes))
}

// policies returns all that are compared; hot are the nodes that a trial asked for most.
func (c *cacheBench) policies(ctx context.Context, hot []sample.NodeID) ([]cachesim.Policy, error) {
	var policies []cachesim.Policy
	for _, name := range cachesim.PolicyNames() {
		p, err := cachesim.ByName(name, func() ([]sample.NodeID, error) {
			if name == cachesim.StaticSampled {
				return hot, nil
			}
			return rowcache.FindHot(ctx, c.Store, c.Device, c.rowsMax(), c.budget)
		})
		if err != nil {
			return nil, fmt.Errorf("bench: policy %s: %w", name, err)
		}
		policies = append(policies, p)
	}
	return policies, nil
}

// replay runs the simulation and makes rows of it.
func (c *cacheBench) replay(ctx context.Context, policies []cachesim.Policy) (*Report, error) {
	m := c.Store.Meta()
	features := m.Features[0]
	var sizes []cachesim.Capacity
	for _, bytes := range c.Sizes {
		sizes = append(sizes, cachesim.Capacity{Bytes: bytes, Dim: features.Dim})
	}
	results, err := cachesim.Run(ctx, c.record.Trace(m.Nodes), policies, sizes, c.budget)
	if err != nil {
		return nil, err
	}
	r := newReport("cache", "policy", "capacity_bytes", "rows", "hit_ratio", "bytes_read",
		"requests", "seconds", "ns_per_request")
	planned := []cachesim.Result{}
	for _, one := range results {
		if one.Policy == cachesim.Belady.Name {
			planned = append(planned, one)
		} else {
			r.Rows = append(r.Rows, c.row(one))
		}
	}
	for _, hop := range hops {
		for _, one := range planned {
			if err := c.plan(ctx, &one, hop); err != nil {
				return nil, err
			}
			row := c.row(one)
			row["evicted"] = nil // which of the rows that are never used again is left open
			r.Rows = append(r.Rows, row)
		}
	}
	return r, nil
}

// row makes a row of a result.
func (c *cacheBench) row(one cachesim.Result) Row {
	return Row{"policy": one.Policy, "capacity_bytes": one.Capacity.Bytes, "rows": one.Rows,
		"requests": one.Requests, "evicted": one.Evicted, "hit_ratio": one.HitRatio(),
		"bytes_read":     one.RowsRead() * uint64(c.Store.Meta().Features[0].RowBytes),
		"seconds":        one.Elapsed.Seconds(),
		"ns_per_request": float64(one.Elapsed.Nanoseconds()) / float64(one.Requests)}
}

// plan plans Belady's cache as superbatches do.
func (c *cacheBench) plan(ctx context.Context, one *cachesim.Result, hop int) error {
	r, err := superbatch.Rehearse(ctx, c.record.Batches(), c.Store.Meta().Nodes, one.Rows, hop,
		c.budget)
	if err != nil {
		return err
	}
	if hop > 1 {
		one.Policy = fmt.Sprintf("khop-%d", hop)
	} else if r.Hits != one.Hits {
		return fmt.Errorf("bench: a cache of %d rows has %d hits as planned, the bound is %d",
			one.Rows, r.Hits, one.Hits)
	}
	one.Hits, one.Elapsed = r.Hits, r.Elapsed
	return nil
}
