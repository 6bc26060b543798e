package train

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"gdb/internal/mem"
	"gdb/layout"
	"gdb/sample"
	"gdb/train/kernel"

	"github.com/RoaringBitmap/roaring/v2"
)

const (
	// evalBytes is what evaluation takes at least: a range of nodes, a window of a file.
	evalBytes = 24 << 20
	// evalHeapBytes is what it takes on the heap: parts of lists, of at most listEdges entries,
	// and rows of a chunk of nodes.
	evalHeapBytes = 12 << 20
	// batchMargin, in sixteenths, is how much larger than the largest sampled batch memory is
	// reserved for. Beyond it the feature cache gives way, and batches wait for each other.
	batchMargin = 18
	// growth, in sixteenths, is how much more a list that grows takes than it needs.
	growth = 20
	// pagedCacheLeast is the least block cache of the paged reader.
	pagedCacheLeast = 8 << 20
	// readyBatches wait gathered for the step at most, readyLeast when features do not fit.
	readyBatches, readyLeast = 2, 1
	// sessionBytes is what a paged reader takes for blocks beyond its cache.
	sessionBytes = 512 << 10
	// rowsLeast is the smallest feature cache that is worth its trouble.
	rowsLeast = 64
)

// planner splits the memory of one run.
type planner struct {
	*Plan
	c     *Config
	store *layout.Store
	dims  []int
	// scale is how many times as large as dense batches are, at most: a part of a batch was
	// sampled if a whole one does not fit.
	scale int64

	blockCache, neighborCache int64 // of the paged reader
}

// planTopology decides between resident and paged: resident if the lists fit in half of what the
// program leaves. Sampling touches a block per node, so they come before features.
func (p *planner) planTopology() {
	need, room := p.store.ResidentBytes(layout.In), p.Left()
	p.Resident = p.c.Topology == "resident" || p.c.Topology == "auto" && need <= room/2
	if p.Resident {
		p.Topology = need
		return
	}
	p.setPaged(max(pagedCacheLeast, room/4))
}

// setPaged plans the paged reader, with a block cache of most bytes, but no larger than the file.
func (p *planner) setPaged(most int64) {
	p.Resident = false
	// The lists, and the directory of less than a sixteenth.
	p.Neighbor = arenaBytes(p.neighborCache) + arenaBytes(p.neighborCache/16)
	p.blockCache = max(1<<20, min(most, p.store.ResidentBytes(layout.In)*5/4))
	p.Topology = p.store.PagedBytes(layout.In, p.blockCache) +
		int64(samplers(p.c.Threads)+1)*sessionBytes
}

// planModel counts parameters: weights, gradients and optimizer state outside the heap, and on it
// the best weights, and copies for a checkpoint.
func (p *planner) planModel() {
	params, states := 4*int64(countParams(p.dims)), int64(len(stateNames(p.c.Optimizer)))
	p.Model = (2+states)*arenaBytes(params) + mem.HeapCost((3+states)*params)
}

// arenaUnit is what large arenas are a multiple of.
const arenaUnit = 2 << 20

// arenaBytes is what an arena of n bytes counts for.
func arenaBytes(n int64) int64 {
	if n < arenaUnit {
		return (n + 4095) &^ 4095
	}
	return (n + arenaUnit - 1) &^ (arenaUnit - 1)
}

// planBatches sizes batches and step from the largest sampled one.
func (p *planner) planBatches() {
	grow := func(n int64) int64 { return n * p.scale * batchMargin / 16 }
	p.BatchNodes, p.BatchEdges = grow(int64(len(p.dense.NodeIDs))), grow(int64(len(p.dense.Nbrs)))
	p.BatchInner = grow(int64(len(p.dense.NodeIDs)) - int64(p.dense.NodeIDOffsets[1]))
	floats, lists := stepFloats(p.dims, p.dense)
	p.Step = arenaBytes(grow(4*floats)*9/8) + mem.HeapCost(grow(4*lists)*growth/16+p.kernelBytes())
	if p.c.LoadOnly {
		p.Step = 0
	}
	p.setReady(readyBatches)
}

// kernelBytes is the scratch memory of matrix products: partial sums, and packed blocks.
func (p *planner) kernelBytes() int64 {
	const slabs, floatsMax, blockRows = 32, 4 << 20, 160
	n := 0
	for i := range len(p.dims) - 1 {
		k, m := p.dims[i], p.dims[i+1]
		n = max(n, min(slabs*k*m, floatsMax)+p.c.Threads*blockRows*(k+m+64))
	}
	if p.c.Dropout > 0 && inPlace(p.c, p.dims) {
		n += p.c.Threads * kernel.DroppedWords(slices.Max(p.c.Fanout), p.dims[0])
	}
	return 4 * int64(n)
}

// setReady sizes what is in flight: see sample.Pipeline for the number of batches.
func (p *planner) setReady(ready int) {
	const gatherers, queued = 1, 1
	workers := int64(samplers(p.c.Threads))
	p.Ready = ready
	rows := int64(ready + gatherers + 1)
	n, e := p.BatchNodes, p.BatchEdges
	lists := (rows + workers + queued) * (8*n + 8*e)
	sampler := workers * (28*n + 12*e + 32*n)
	if !p.Resident {
		sampler += workers * (72*n + 24*e)
	}
	gather := gatherers * (16*n + 24*n)
	p.rowArenas = rows * arenaBytes(n*int64(p.dims[0])*4*17/16)
	p.Batches = p.rowArenas + mem.HeapCost((lists+sampler+gather)*growth/16)
	p.setEval()
}

// setEval sizes what evaluation takes besides the memory of batches and the step's.
func (p *planner) setEval() {
	p.Eval = max(mem.HeapCost(evalHeapBytes), mem.HeapCost(evalHeapBytes)+evalBytes-
		p.rowArenas-p.Step) + p.c.scoreBytes()
	if p.c.LoadOnly {
		p.Eval = 0
	}
}

// planFeatures gives the features what is left.
func (p *planner) planFeatures(nodes uint64, storage int64) error {
	dim := int64(p.dims[0])
	all := arenaBytes(int64(nodes) * dim * 4)
	if p.Left() < all { // a cache of features is worth more than a second batch that waits
		p.setReady(readyLeast)
		if p.c.Cache == cacheBelady {
			return p.planSuperbatch(nodes, storage)
		}
	}
	room := p.Left()
	if room < 0 {
		return p.tooSmall()
	}
	if p.c.FeatureCache > 0 {
		room = min(room, p.c.FeatureCache)
	}
	p.Cache, p.Features = p.c.Cache, room
	switch {
	case p.c.Cache == "none" || room < dim*4*rowsLeast:
		p.Cache, p.Features = "none", 0
	case all <= room:
		p.Cache, p.Features = "all", all
	case p.c.Cache == cacheBelady: // --feature-cache forbids to hold all
		return p.planSuperbatch(nodes, storage)
	case p.c.Cache == "auto":
		p.Cache = "static"
	}
	return nil
}

// tooSmall is the error of a memory in which the run has no place, with the least that would do.
func (p *planner) tooSmall() error {
	least := *p
	plan := *p.Plan
	least.Plan = &plan
	if p.c.Topology != "resident" {
		least.setPaged(pagedCacheLeast)
	}
	least.setReady(readyLeast)
	need := least.Memory - least.Left()
	return fmt.Errorf("train: memory %s is too small: this run needs at least %s (%s): raise "+
		"--memory, or lower --batch, --fanout or --hidden", mem.FormatSize(p.Memory),
		sizeUp(need), &plan)
}

// sizeUp writes a size that is no smaller than n, in whole MiB.
func sizeUp(n int64) string { return fmt.Sprintf("%dMiB", (n+1<<20-1)>>20) }

// stepFloats counts the scratch of one training step on a batch, as sage.memory takes it, and the
// entries of its layers' lists.
func stepFloats(dims []int, d *sample.Dense) (floats, lists int64) {
	end := d.NodeIDOffsets[len(d.NodeIDOffsets)-1]
	for l := range len(dims) - 1 {
		v := sample.Layer{In: end - d.NodeIDOffsets[l], Out: end - d.NodeIDOffsets[l+1]}
		first := d.NbrOffsets[d.NodeIDOffsets[l+1]-d.NodeIDOffsets[1]]
		v.Idx = d.ReprMap[first:]
		agg, back := int64(v.Out)*int64(dims[l]), l > 0
		if transformFirst(v, dims[l], dims[l+1], l > 0) {
			agg, back = int64(v.In)*int64(dims[l+1]), true
		}
		floats += 2*int64(v.Out)*int64(dims[l+1]) + agg
		if back {
			floats += int64(kernel.TransposedWords(int(v.In), len(v.Idx), int(v.Out)))
		}
		if l > 0 {
			lists += int64(v.Out) + 1 + int64(len(v.Idx))
		}
	}
	return floats, lists
}

// scoreBytes is what the metric takes in evaluation.
func (c *Config) scoreBytes() int64 {
	if c.Metric == metricROCAUC {
		return scoreBytes
	}
	return 0
}

// fixed is the memory of the program, of what was reserved so far, and of reading features and
// labels, whose buffers are made when they are needed.
func (in *inputs) fixed() int64 {
	buffers := in.store.RowsBytes(in.meta.Features[0]) + in.store.RowsBytes(in.meta.Labels.Rows)
	return mem.ProcessBytes + in.budget.Used() + max(0, buffers-in.rowsHeld)
}

// checkLeast reports a memory that is too small whatever the batches are.
func (in *inputs) checkLeast(memory int64) error {
	least := in.fixed() + mem.HeapCost(evalHeapBytes) + evalBytes +
		in.store.PagedBytes(layout.In, 1<<20)
	if memory < least {
		return fmt.Errorf("train: memory %s is too small: this store needs at least %s, and room "+
			"for batches: raise --memory", mem.FormatSize(memory), sizeUp(least))
	}
	return nil
}

// splitBytes is the memory of a set of nodes.
func splitBytes(sets ...*roaring.Bitmap) int64 {
	n := int64(0)
	for _, s := range sets {
		if s != nil {
			n += int64(s.GetSizeInBytes())
		}
	}
	return n
}

// makePlan opens the topology and splits the memory.
func (in *inputs) makePlan(ctx context.Context, c *Config, train []sample.NodeID,
	dims []int) (*Plan, error) {
	p := &planner{c: c, store: in.store, dims: dims, scale: 1, neighborCache: c.NeighborCache,
		Plan: &Plan{Memory: c.Memory, Fixed: in.fixed()}}
	p.planModel()
	p.planTopology()
	if err := in.openPlanned(ctx, p); err != nil {
		return nil, err
	}
	if err := p.sample(ctx, in, train); err != nil {
		return nil, err
	}
	storage, err := superbatchStorage(in.store)
	if err != nil {
		return nil, err
	}
	p.planBatches()
	err = p.planFeatures(in.meta.Nodes, storage)
	if err == nil || !p.Resident || c.Topology == "resident" {
		return p.Plan, err
	}
	// Lists in memory leave no room for batches: they are read by pages instead.
	p.Features = 0
	p.setPaged(pagedCacheLeast)
	p.setReady(readyLeast)
	if c.Cache != cacheBelady {
		p.setPaged(pagedCacheLeast + max(0, p.Left()/2))
	}
	if err := p.planFeatures(in.meta.Nodes, storage); err != nil {
		return nil, err
	}
	return p.Plan, errors.Join(in.closeLast(), in.openPlanned(ctx, p))
}

// openPlanned opens the topology as planned.
func (in *inputs) openPlanned(ctx context.Context, p *planner) error {
	return in.openGraph(ctx, layout.TopologyOptions{Resident: p.Resident,
		CacheBytes: p.blockCache, NeighborBytes: p.neighborCache, Budget: in.budget})
}

// sample samples batches to see how large they are. If a whole one does not fit in memory the
// least that would do is found from a part of one: a batch has at most as many times its nodes.
func (p *planner) sample(ctx context.Context, in *inputs, train []sample.NodeID) error {
	part := *p.c
	for {
		var err error
		p.dense, err = in.pilot(ctx, &part, train)
		var full *mem.LimitError
		switch {
		case err == nil && p.scale == 1:
			return nil
		case err == nil:
			p.planBatches()
			return p.tooSmall()
		case !errors.As(err, &full) || part.Batch == 1:
			return fmt.Errorf("train: sample a batch to size the memory: %w", err)
		}
		part.Batch = (part.Batch + 3) / 4
		p.scale = int64(p.c.Batch+part.Batch-1) / int64(part.Batch)
	}
}
