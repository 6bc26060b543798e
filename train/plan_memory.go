package train

import (
	"fmt"
	"slices"

	"gdb/internal/mem"
	"gdb/layout"
	"gdb/train/runs"
	"gdb/train/task"
)

const (
	// evalBytes is what evaluation takes at least: a range of nodes, a window of a file.
	evalBytes = 24 << 20
	// evalHeapBytes is what it takes on the heap: parts of lists, of at most listEdges entries,
	// and rows of a chunk of nodes.
	evalHeapBytes = 12 << 20
	// growth, in sixteenths, is how much more a list that grows takes than it needs.
	growth = 20
	// pagedCacheLeast is the least block cache of the paged reader.
	pagedCacheLeast = 8 << 20
	// readyBatches wait gathered for the step at most, readyLeast where nothing was planned.
	readyBatches, readyLeast = 2, 1
	// inTurn, as a number of batches that wait, has the memory of one batch's features.
	inTurn = -1
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

	pilot pilotSizes
	// stepCopied and stepInPlace are the memory of a step whose first layer has the batch's own
	// rows, which it may overwrite, or reads those of a cache.
	stepCopied, stepInPlace int64

	nodes    uint64
	evalMost int64 // of them, in the largest set that is evaluated
	storage  int64 // of runtime files
	// runBatches are the batches of the whole run.
	runBatches int64
	short      bool // there is no cache of the size that superbatches need

	// paged is how the topology is opened if sampling from a resident one has no memory; nil if
	// it is not, or is paged.
	paged *layout.TopologyOptions

	blockCache, neighborCache int64 // of the paged reader
	listCaches                int64 // both, if the latter's size is chosen
	quarters                  int64 // of that for it
}

// planTopology plans the topology before batches are known: resident if the lists fit in half of
// what the program leaves.
func (p *planner) planTopology() {
	need, room := p.store.ResidentBytes(layout.In), p.Left()
	if p.c.Topology == "resident" || p.c.Topology == "auto" && need <= room/2 {
		p.setResident()
		return
	}
	p.setPaged(max(pagedCacheLeast, room/4))
}

// setResident plans the resident reader.
func (p *planner) setResident() {
	p.Resident, p.blockCache, p.Neighbor, p.Lists = true, 0, 0, nil
	p.Topology = p.store.ResidentBytes(layout.In)
}

// setPaged plans the paged reader, with a block cache of most bytes, but no larger than the file; a
// neighbor cache whose size is chosen has its share of that.
func (p *planner) setPaged(most int64) {
	p.Resident = false
	p.setLists(max(1<<20, min(most, p.store.ResidentBytes(layout.In)*5/4)))
	p.Topology += int64(samplers(p.c.Threads)+1) * sessionBytes
}

// planModel counts parameters: weights, gradients and optimizer state outside the heap, and on it
// the best weights, and copies for a checkpoint.
func (p *planner) planModel() {
	params, states := 4*int64(p.c.Architecture().Params(p.dims)),
		int64(len(stateNames(p.c.Optimizer)))
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

// planBatches sizes batches and step from the sampled ones.
func (p *planner) planBatches() {
	p.BatchNodes = min(p.pilot.nodes.reserve()*p.scale, int64(p.nodes))
	p.BatchEdges = p.pilot.edges.reserve() * p.scale
	p.BatchInner = p.pilot.inner.reserve() * p.scale
	p.dense = p.pilot.largest
	if !p.c.LoadOnly {
		p.stepCopied, p.stepInPlace = p.stepBytes(false), p.stepBytes(true)
	}
}

// stepBytes is the memory of a step on the largest batch.
func (p *planner) stepBytes(inPlace bool) int64 {
	have := inner(p.dense)
	floats, lists := p.c.Architecture().StepFloats(p.dims, p.dense, inPlace,
		func(n int64) int64 { return n * p.BatchInner / p.scale / have })
	return arenaBytes(4*floats*p.scale*9/8) +
		mem.HeapCost(4*lists*p.scale*growth/16+p.kernelBytes())
}

// kernelBytes is the scratch memory of the kernels of a step.
func (p *planner) kernelBytes() int64 {
	n := p.c.Architecture().ProductBytes(p.dims, p.c.Threads)
	if p.c.Dropout > 0 && inPlace(p.c, p.dims) {
		n += p.c.Architecture().DroppedBytes(p.dims, p.c.Threads, slices.Max(p.c.Fanout))
	}
	return n
}

// setReady sizes what is in flight if so many gathered batches wait, or with inTurn if a batch is
// gathered when the one before was released: see sample.Pipeline.
func (p *planner) setReady(ready int) {
	p.Ready, p.InTurn = max(ready, 0), ready == inTurn
	arenas, heap := p.pipeline(ready)
	p.rowArenas, p.Batches = arenas, arenas+heap
	p.setEval(heap)
}

// pipeline is the memory of a pipeline: features of batches, and its heap.
func (p *planner) pipeline(ready int) (arenas, heap int64) {
	const gatherers, queued = 1, 1
	workers := int64(samplers(p.c.Threads))
	rows := int64(max(ready, 0) + gatherers + 1)
	if ready == inTurn {
		rows = 1
	}
	heap = (rows+workers+queued)*p.batchLists() + workers*p.samplerBytes()
	heap += gatherers * (16 + 24) * p.BatchNodes
	return rows * arenaBytes(p.rowBytes()), mem.HeapCost(heap * growth / 16)
}

// batchLists are the lists of a sampled batch: its edges twice, its nodes, and their offsets.
func (p *planner) batchLists() int64 {
	seeds := int64(8)
	if m := p.store.Meta(); m.Labels.Kind == "multi" {
		seeds += 4 * int64(len(m.Labels.Classes))
	}
	return 8*p.BatchEdges + 4*p.BatchNodes + 4*p.BatchInner + seeds*int64(p.c.Batch)
}

// samplerBytes is the scratch of a sampler, and of its reader: see sample.Sampler and
// layout.Session. A frontier has no more nodes than have neighbors in the batch.
func (p *planner) samplerBytes() int64 {
	bytes := 12*p.BatchEdges + 12*p.BatchInner + 32*p.BatchNodes
	if !p.Resident {
		bytes += 72*p.BatchInner + 24*p.BatchEdges
	}
	return bytes
}

// setEval sizes what evaluation takes besides the memory of the step and of batches, of which so
// much is heap: they rest meanwhile.
func (p *planner) setEval(heap int64) {
	arenas, list := evalBytes+inferenceSetsBytes(p.c.Architecture(), p.dims, p.nodes), int64(0)
	if p.c.EvalMode == runs.EvalSampled {
		arenas, list = evalBytes, mem.HeapCost(evalListBytes(p.evalMost))
	}
	p.Eval = max(0, mem.HeapCost(evalHeapBytes)-heap) + max(0, arenas-p.rowArenas-p.Step) +
		scoreBytes(p.c) + list
	if p.c.LoadOnly {
		p.Eval = 0
	}
}

// sizeUp writes a size that is no smaller than n, in whole MiB.
func sizeUp(n int64) string { return fmt.Sprintf("%dMiB", (n+1<<20-1)>>20) }

// task.ScoreBytes is what the metric takes in evaluation.
func scoreBytes(c *Config) int64 {
	if c.Metric == task.ROCAUC {
		return task.ScoreBytes
	}
	return 0
}

// fixed is the memory of the program, of what was reserved so far, and of reading features and
// labels, whose buffers are made when they are needed.
func (in *inputs) fixed() int64 {
	features, labels := int64(0), int64(0)
	if in.reader != nil {
		features = in.reader.MostBytes()
	} else {
		features = in.store.RowsBytes(in.meta.Features[0], in.room())
	}
	if in.labelRows != nil {
		labels = in.labelRows.MostBytes()
	} else {
		labels = in.store.RowsBytes(in.meta.Labels.Rows, in.room())
	}
	return mem.ProcessBytes + in.budget.Used() + max(0, features+labels-in.rowsHeld)
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
