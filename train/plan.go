package train

import (
	"context"
	"fmt"

	"gdb/internal/mem"
	"gdb/layout"
	"gdb/sample"
)

const (
	// fixedBytes is the memory of the program itself: code, Go runtime, catalog transactions.
	fixedBytes = 56 << 20
	// evalBytes is kept for evaluation at least: read buffers and a range of nodes.
	evalBytes = 24 << 20
	// pilotBatches are sampled before the memory is split, to know how large batches are.
	pilotBatches = 2
	// pilotMargin, in sixteenths, is how much larger than these the largest batch may be.
	pilotMargin = 20
	// heapFactor is how much of the Go heap is taken for a byte in use, garbage included.
	heapFactor = 2
	// pagedCacheLeast is the least block cache of the paged reader.
	pagedCacheLeast = 8 << 20
	// readyBatches wait gathered for the step at most, readyLeast when features do not fit.
	readyBatches, readyLeast = 2, 1
)

// Plan is how the memory of a run is split. All sizes are bytes.
type Plan struct {
	Memory   int64  // the bound of the whole process
	Fixed    int64  // program, runtime, catalog
	Model    int64  // weights, gradients, optimizer state
	Topology int64  // arrays, or the block cache
	Resident bool   // the topology is decoded into arrays
	Batches  int64  // batches in flight
	Ready    int    // batches that wait for the step
	Step     int64  // activations and gradients
	Eval     int64  // evaluation at least; it takes the place of batches too
	Features int64  // all rows, or the cache
	Cache    string // all, none, static, belady, or one that sample.NewPolicy knows

	// Superbatch is set for cache belady alone.
	Superbatch *SuperbatchPlan

	BatchNodes, BatchEdges int64 // of the largest batch expected
}

// String is one line.
func (p *Plan) String() string {
	kind := "paged"
	if p.Resident {
		kind = "resident"
	}
	f := mem.FormatSize
	return fmt.Sprintf("memory %s: topology %s (%s), features %s (cache %s), batches %s, step %s, "+
		"model %s, evaluation %s, program %s", f(p.Memory), f(p.Topology), kind, f(p.Features),
		p.Cache, f(p.Batches), f(p.Step), f(p.Model), f(p.Eval), f(p.Fixed))
}

// left is what is not spoken for.
func (p *Plan) left() int64 {
	return p.Memory - p.Fixed - p.Model - p.Topology - p.Batches - p.Step - p.Eval - p.Features
}

// planTopology decides between resident and paged: resident if the lists fit in half of what the
// program leaves. Sampling touches a block per node, so they come before features.
func (p *Plan) planTopology(s *layout.Store, c *Config) {
	need, room := s.ResidentBytes(layout.In), p.left()
	p.Resident = c.Topology == "resident" || c.Topology == "auto" && need <= room/2
	if p.Resident {
		p.Topology = need
		return
	}
	p.Topology = max(pagedCacheLeast, min(need, room/4))
}

// planBatches sizes batches and step from sampled ones.
func (p *Plan) planBatches(c *Config, dims []int, largest *sample.Dense, params int) {
	nodes, edges := int64(len(largest.NodeIDs)), int64(len(largest.Nbrs))
	grow := func(n int64) int64 { return n * pilotMargin / 16 }
	p.BatchNodes, p.BatchEdges = grow(nodes), grow(edges)
	copies := int64(2) // adam: two moments
	p.Model = 4 * int64(params) * (2 + copies)
	p.Step = grow(4 * stepFloats(dims, largest))
	p.setReady(readyBatches, dims[0])
}

// setReady sizes what is in flight: see sample.Pipeline for the number of batches.
func (p *Plan) setReady(ready, dim int) {
	const workers, gatherers, queued = 1, 1, 1
	p.Ready = ready
	rows := int64(ready + gatherers + 1)
	lists := rows + workers + queued
	heap := lists*(8*p.BatchEdges+8*p.BatchNodes) + 12*p.BatchEdges + 44*p.BatchNodes
	p.Batches = rows*p.BatchNodes*int64(dim)*4*9/8 + heapFactor*heap
}

// planFeatures gives the features what is left.
func (p *Plan) planFeatures(c *Config, nodes uint64, dim int, storage int64) error {
	all := int64(nodes) * int64(dim) * 4
	if p.left() < all { // a cache of features is worth more than a second batch that waits
		p.setReady(readyLeast, dim)
	}
	room := p.left()
	if room < 0 {
		return fmt.Errorf("train: memory %s is too small: this run needs %s (%s): raise --memory, "+
			"or lower --batch, --fanout or --hidden", mem.FormatSize(p.Memory),
			mem.FormatSize(p.Memory-room), p)
	}
	if c.FeatureCache > 0 {
		room = min(room, c.FeatureCache)
	}
	p.Cache, p.Features = c.Cache, room
	switch {
	case c.Cache == "none" || room < int64(dim)*4*64:
		p.Cache, p.Features = "none", 0
	case all <= room:
		p.Cache, p.Features = "all", all
	case c.Cache == cacheBelady:
		return p.planSuperbatch(c, nodes, dim, storage)
	case c.Cache == "auto":
		p.Cache = "static"
	}
	return nil
}

// stepFloats counts the scratch of one training step on a batch, as sage.memory takes it.
func stepFloats(dims []int, d *sample.Dense) int64 {
	total := int64(0)
	end := d.NodeIDOffsets[len(d.NodeIDOffsets)-1]
	for l := range len(dims) - 1 {
		v := sample.Layer{In: end - d.NodeIDOffsets[l], Out: end - d.NodeIDOffsets[l+1]}
		first := d.NbrOffsets[d.NodeIDOffsets[l+1]-d.NodeIDOffsets[1]]
		v.Idx = d.ReprMap[first:]
		agg := int64(v.Out) * int64(dims[l])
		if transformFirst(v, dims[l], dims[l+1], l > 0) {
			agg = int64(v.In) * int64(dims[l+1])
		}
		total += 2*int64(v.Out)*int64(dims[l+1]) + agg
	}
	return total
}

// pilot samples the first batches and returns the largest.
func (in *inputs) pilot(ctx context.Context, c *Config, train []sample.NodeID) (*sample.Dense,
	error) {
	s, err := sample.NewSampler([]layout.Topology{in.topology},
		sample.Config{Fanout: c.Fanout, Seed: c.Seed})
	if err != nil {
		return nil, err
	}
	defer s.Close()
	order, err := sample.EpochOrder(train, c.Seed, 0, c.Batch)
	if err != nil {
		return nil, err
	}
	var largest *sample.Dense
	for i := range min(order.Batches(), pilotBatches) {
		d := &sample.Dense{}
		if err := s.Sample(ctx, 0, i, order.Seeds(i, nil), d); err != nil {
			return nil, err
		}
		if largest == nil || len(d.NodeIDs) > len(largest.NodeIDs) {
			largest = d
		}
	}
	return largest, nil
}

// scoreBytes is what the metric takes in evaluation.
func (c *Config) scoreBytes() int64 {
	if c.Metric == metricROCAUC {
		return scoreBytes
	}
	return 0
}

// fixed is the memory of the program and of reading features and labels.
func (in *inputs) fixed() int64 {
	return fixedBytes + max(in.budget.Used(), in.store.RowsBytes(in.meta.Features[0])+
		in.store.RowsBytes(in.meta.Labels.Rows))
}

// checkLeast reports a memory that is too small whatever the batches are.
func (in *inputs) checkLeast(memory int64) error {
	if least := in.fixed() + evalBytes + pagedCacheLeast; memory < least {
		return fmt.Errorf("train: memory %s is too small: this store needs %s and room for "+
			"batches: raise --memory", mem.FormatSize(memory), mem.FormatSize(least))
	}
	return nil
}

// makePlan opens the topology and splits the memory.
func (in *inputs) makePlan(ctx context.Context, c *Config, train []sample.NodeID, dims []int,
	params int) (*Plan, error) {
	p := &Plan{Memory: c.Memory, Fixed: in.fixed() + 4*int64(len(train)),
		Eval: evalBytes + c.scoreBytes()}
	p.planTopology(in.store, c)
	if err := in.openGraph(ctx, p.Resident, p.Topology); err != nil {
		return nil, err
	}
	largest, err := in.pilot(ctx, c, train)
	if err != nil {
		return nil, fmt.Errorf("train: sample a batch to size the memory: %w", err)
	}
	p.planBatches(c, dims, largest, params)
	storage, err := superbatchStorage(in.store)
	if err != nil {
		return nil, err
	}
	return p, p.planFeatures(c, in.meta.Nodes, dims[0], storage)
}
