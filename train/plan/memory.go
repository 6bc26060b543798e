package plan

import (
	"gdb/internal/mem"
	"gdb/layout/topology"
)

const (
	// growth, in sixteenths, is how much more a list that grows takes than it needs.
	growth = 20
	// pagedCacheLeast is the least block cache of the paged reader.
	pagedCacheLeast = 8 << 20
	// readyBatches wait gathered for the step at most, ReadyLeast where nothing was planned.
	readyBatches, ReadyLeast = 2, 1
	// inTurn, as a number of batches that wait, has the memory of one batch's features.
	inTurn = -1
	// sessionBytes is what a paged reader takes for blocks beyond its cache.
	sessionBytes = 512 << 10
	// rowsLeast is the smallest feature cache that is worth its trouble.
	rowsLeast = 64
)

// Split is a way to split the memory of a run.
type Split struct {
	*Plan
	Facts *Facts

	// BlockCache and NeighborCache are the sizes of the paged reader's caches, and both have
	// listCaches if the latter's size is chosen: it has so many quarters of that.
	BlockCache, NeighborCache int64
	listCaches                int64
	quarters                  int64
	passes                    bool // the rest of listCaches is for drawing batches together

	rowArenas int64 // of Batches: features, which evaluation can have
	short     bool  // there is no cache of the size that superbatches need
}

// begin has the memory of what is there whatever the split is.
func begin(f *Facts) *Split {
	return &Split{Facts: f, NeighborCache: max(0, f.NeighborCache),
		Plan: &Plan{Memory: f.Memory, Fixed: f.Program, Model: f.Model, Vectors: f.Vectors,
			VectorsDisk: f.VectorsDisk, BatchNodes: f.BatchNodes, BatchEdges: f.BatchEdges,
			BatchInner: f.BatchInner, OnDevice: f.planDevice(), dim: f.Dim}}
}

// planTopology plans the topology before batches are known: resident if the lists fit in half of
// what the program leaves, in the fastest form that does; of a form that was asked for in any case.
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

// formIn is the fastest form that takes no more than room.
func (f *Facts) formIn(room int64) (topology.FormBytes, bool) {
	for _, form := range f.residentForms() {
		if form.Bytes <= room {
			return form, true
		}
	}
	return topology.FormBytes{}, false
}

// Sampling is how the topology is held while batches are sampled to plan a run, and how if those
// have no place beside it; nil if there is no other way. It is resident where that leaves a quarter
// of the memory free: a plan has no batches in memory, and from a paged topology its samples take
// many times as long.
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

// Evaluating splits the memory for an evaluation alone, which has so much besides: the topology has
// its place first, then the features, if all of them fit and it reads all.
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

// TopologyOptions is how the topology is opened with the split.
func (p *Split) TopologyOptions() topology.Options {
	if p.Resident {
		return topology.Options{Resident: true, Form: p.Form}
	}
	return topology.Options{CacheBytes: p.BlockCache, NeighborBytes: p.NeighborCache,
		PassBytes: p.PassBytes()}
}

// setResident plans the resident reader.
func (p *Split) setResident(form topology.FormBytes) {
	p.Resident, p.BlockCache, p.Neighbor, p.Lists = true, 0, 0, nil
	p.Topology, p.Form = form.Bytes, form.Form
}

// setPaged plans the paged reader, with a block cache of most bytes, but no larger than the file; a
// neighbor cache whose size is chosen has its share of that.
func (p *Split) setPaged(most int64) {
	p.Resident, p.Form = false, ""
	p.setLists(max(1<<20, min(most, p.Facts.PlainBytes()*5/4)))
	p.Topology += int64(Samplers(p.Facts.Threads)+1) * sessionBytes
}

// setReady sizes what is in flight if so many gathered batches wait, or with inTurn if a batch is
// gathered when the one before was released: see sample.Pipeline.
func (p *Split) setReady(ready int) {
	p.Ready, p.InTurn = max(ready, 0), ready == inTurn
	arenas, heap := p.pipeline(ready)
	p.rowArenas, p.Batches = arenas, arenas+heap
	p.setEval(heap)
}

// pipeline is the memory of a pipeline: features of batches, and its heap. Batches that are lent
// have their lists beside their features, and those of the pipeline are not lent.
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

// batchLists are the lists of a sampled batch: its edges twice, its nodes, and their offsets.
func (p *Split) batchLists() int64 {
	return (8+p.Facts.EntryBytes)*p.BatchEdges + (4+p.Facts.NodeBytes)*p.BatchNodes +
		4*p.BatchInner + p.Facts.SeedBytes*int64(p.Facts.Batch)
}

// samplerBytes is the scratch of a sampler, and of its reader: see sample.Sampler and
// topology.Session. A frontier has no more nodes than have neighbors in the batch.
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

// setEval sizes what evaluation takes besides the memory of the step and of batches, of which so
// much is heap: training pauses.
func (p *Split) setEval(heap int64) {
	f := &p.Facts.Evaluation
	p.Eval = max(0, mem.HeapCost(f.EvalHeap)-heap) +
		max(0, f.EvalArenas-p.rowArenas-p.Step) + f.EvalBeside
}

// Samplers is how many goroutines sample beside so many that compute: a batch takes about a tenth
// of a core's time to sample of what it takes to compute.
func Samplers(compute int) int { return max(1, compute/8) }

// CopyThreads is how many goroutines copy features beside so many that compute.
func CopyThreads(compute int) int { return max(1, compute/2) }
