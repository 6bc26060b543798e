package plan

import (
	"gdb/internal/mem"
	"gdb/layout/topology"
)

const (
	// growth, in sixteenths, is the capacity of a list that grows by appending, as a share of its
	// length: a quarter more than it needs.
	growth = 20
	// pagedCacheLeast is the smallest block cache of the paged reader, in bytes.
	pagedCacheLeast = 8 << 20
	// readyBatches is how many gathered batches wait for the step at most, and ReadyLeast how many
	// wait where nothing was planned.
	readyBatches, ReadyLeast = 2, 1
	// inTurn stands for a number of waiting batches: batches are gathered and trained on in turn,
	// in the memory of one batch's features.
	inTurn = -1
	// sessionBytes is what each session of the paged reader takes for blocks outside the cache.
	sessionBytes = 512 << 10
	// rowsLeast is the number of rows of the smallest feature cache that is worth having.
	rowsLeast = 64
)

// Split is one way to split the memory of a run.
type Split struct {
	*Plan
	Facts *Facts

	// BlockCache and NeighborCache are the sizes of the paged reader's caches, in bytes. If the
	// size of the neighbor cache is chosen, both together have listCaches bytes, and the neighbor
	// cache has quarters fourths of that.
	BlockCache, NeighborCache int64
	listCaches                int64
	quarters                  int64
	passes                    bool // the rest of listCaches draws batches together

	rowArenas int64 // the part of Batches for features, which evaluation may use
	short     bool  // it does not fit: a cache or a buffer would be smaller than needed
}

// begin returns a split that holds only what every way needs: the program, the model, the vectors
// that are learned, and the memory of a device.
func begin(f *Facts) *Split {
	return &Split{Facts: f, NeighborCache: max(0, f.NeighborCache),
		Plan: &Plan{Memory: f.Memory, Fixed: f.Program, Model: f.Model, Vectors: f.Vectors,
			VectorsDisk: f.VectorsDisk, BatchNodes: f.BatchNodes, BatchEdges: f.BatchEdges,
			BatchInner: f.BatchInner, OnDevice: f.planDevice(), dim: f.Dim}}
}

// planTopology chooses how the topology is held before the sizes of batches are known: resident in
// the fastest form that fits in half of the memory the program leaves, else paged. A form that the
// user asked for is taken even if it does not fit.
func (p *Split) planTopology() {
	room := p.Left()
	if form, ok := p.Facts.formIn(room / 2); ok {
		p.setResident(form)
		return
	}
	if forms := p.Facts.residentForms(); !p.Facts.mayPage() && len(forms) > 0 {
		p.setResident(forms[len(forms)-1])
		return
	}
	p.setPaged(max(pagedCacheLeast, room/4))
}

// formIn returns the fastest form of resident lists that takes no more than room bytes.
func (f *Facts) formIn(room int64) (topology.FormBytes, bool) {
	for _, form := range f.residentForms() {
		if form.Bytes <= room {
			return form, true
		}
	}
	return topology.FormBytes{}, false
}

// Sampling returns how the topology is held while batches are sampled to plan a run, and how to
// hold it if those batches do not fit beside it; the latter is nil if there is no other way. The
// topology is resident where that leaves a quarter of the memory free: a plan keeps no batches in
// memory, and sampling from a paged topology takes many times as long.
func Sampling(f *Facts) (first, otherwise *Split) {
	first = begin(f)
	first.planTopology()
	room := first.Left() + first.Topology
	if form, ok := f.formIn(room * 3 / 4); f.mayPage() && !first.Resident && ok {
		otherwise = first.copied()
		first.setResident(form)
	}
	return first, otherwise
}

// Evaluating splits the memory for an evaluation without training, which takes eval bytes beside
// the topology and the features. The topology has its place first, then the features, if all of
// them fit and the evaluation reads all.
func Evaluating(f *Facts, eval int64) (*Split, error) {
	if err := f.checkTopology(); err != nil {
		return nil, err
	}
	p := begin(f)
	p.Eval = eval
	p.planTopology()
	if p.Left() < 0 {
		p.setPaged(pagedCacheLeast)
	}
	if p.Left() < 0 {
		return nil, &TooSmallError{Memory: p.Memory, Least: p.Memory - p.Left(),
			Nearest: p.Plan, Evaluates: true}
	}
	p.Cache = "none"
	all := mem.ArenaBytes(int64(f.Nodes) * int64(f.Dim) * 4)
	if !f.EvalSampled && all <= p.Left() {
		p.Cache, p.Features = "all", all
	}
	return p, nil
}

// TopologyOptions returns the options with which the split's topology is opened.
func (p *Split) TopologyOptions() topology.Options {
	if p.Resident {
		return topology.Options{Resident: true, Form: p.Form}
	}
	return topology.Options{CacheBytes: p.BlockCache, NeighborBytes: p.NeighborCache,
		PassBytes: p.PassBytes()}
}

// setResident gives the topology the memory of a form of resident lists.
func (p *Split) setResident(form topology.FormBytes) {
	p.Resident, p.BlockCache, p.Neighbor, p.Lists = true, 0, 0, nil
	p.Topology, p.Form = form.Bytes, form.Form
}

// setPaged gives the topology a paged reader whose caches have most bytes, but hardly more than the
// file. A neighbor cache whose size is chosen has its share of that.
func (p *Split) setPaged(most int64) {
	p.Resident, p.Form = false, ""
	p.setLists(max(1<<20, min(most, p.Facts.PlainBytes()*5/4)))
	p.Topology += int64(Samplers(p.Facts.Threads)+1) * sessionBytes
}

// setReady sizes the batches in flight when ready gathered batches wait for the step, or, with
// inTurn, when a batch is gathered once the one before was released: see package loader.
func (p *Split) setReady(ready int) {
	p.Ready, p.InTurn = max(ready, 0), ready == inTurn
	arenas, heap := p.pipeline(ready)
	p.rowArenas, p.Batches = arenas, arenas+heap
	p.setEval(heap)
}

// pipeline returns the memory of a pipeline: arenas for the features of batches, and its heap.
// A lent batch has its lists in the arenas too, beside its features; batches inside the
// pipeline are not lent.
func (p *Split) pipeline(ready int) (arenas, heap int64) {
	const gatherers, queued, held = 1, 1, 1
	f, workers := p.Facts, int64(Samplers(p.Facts.Threads))
	lists := int64(max(ready, 0) + gatherers + held)
	rows := lists - held + int64(max(held, f.Lent))
	if ready == inTurn {
		lists, rows = 1, 1
	}
	heap = (lists+workers+queued)*p.batchLists() + workers*p.samplerBytes()
	heap += gatherers * (16 + 24) * p.BatchNodes
	each := p.RowBytes() + f.LentNodeBytes*p.BatchNodes + f.LentEntryBytes*p.BatchEdges
	return rows * mem.ArenaBytes(each), mem.HeapCost(heap * growth / 16)
}

// batchLists returns the bytes of a sampled batch's lists: its edges twice, its nodes, and
// their offsets.
func (p *Split) batchLists() int64 {
	return (8+p.Facts.EntryBytes)*p.BatchEdges + (4+p.Facts.NodeBytes)*p.BatchNodes +
		4*p.BatchInner + p.Facts.SeedBytes*int64(p.Facts.Batch)
}

// samplerBytes returns the scratch that a sampler and its reader take: see sample.Sampler and
// topology.Session. A frontier has at most as many nodes as the batch has nodes with neighbors.
func (p *Split) samplerBytes() int64 {
	each := 12 + p.Facts.EntryBytes + p.Facts.DrawBytes
	bytes := each*p.BatchEdges + 12*p.BatchInner + 32*p.BatchNodes + p.Facts.LayerBytes
	switch {
	case !p.Resident:
		bytes += 72*p.BatchInner + 28*p.BatchEdges
	case p.Form == topology.Compact:
		bytes += 32 * p.BatchInner
	}
	return bytes
}

// setEval sizes what evaluation takes beyond the memory of the step and of batches, which it may
// use because training pauses; heap is how much of the latter is Go heap.
func (p *Split) setEval(heap int64) {
	f := &p.Facts.Evaluation
	p.Eval = max(0, mem.HeapCost(f.EvalHeap)-heap) +
		max(0, f.EvalArenas-p.rowArenas-p.Step) + f.EvalBeside
}

// Samplers returns how many goroutines sample beside compute threads: a batch takes about a tenth
// of the core time to sample that it takes to compute.
func Samplers(compute int) int { return max(1, compute/8) }

// CopyThreads returns how many goroutines copy features beside compute threads.
func CopyThreads(compute int) int { return max(1, compute/2) }
