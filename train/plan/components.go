package plan

import (
	"math"

	"gdb/internal/mem"
	"gdb/layout/neighborcache"
	"gdb/layout/topology"
	"gdb/sample"
	"gdb/sample/bulk"
	"gdb/sample/rowcache"
	"gdb/train/setting"
)

const (
	// pagedCacheLeast is the smallest block cache of the paged reader, in bytes.
	pagedCacheLeast = 8 << 20
	// readyBatches is how many gathered batches wait for the step at most, and ReadyLeast how many
	// wait where nothing was planned.
	readyBatches, ReadyLeast = 2, 1
	// inTurn stands for a number of waiting batches: batches are gathered and trained on in turn,
	// in the memory of one batch's features.
	inTurn = -1
	// rowsLeast is the number of rows of the smallest feature cache that is worth having.
	rowsLeast = 64
	// rowsFlying is of how many steps another device may still read rows.
	rowsFlying = 2
	// togetherLeast is the smallest number of batches that are drawn together.
	togetherLeast = 4
)

// lists is how a topology is held, and what that takes. Sizes are bytes.
type lists struct {
	form     topology.Form // "" if it is paged
	bytes    int64         // of the topology, with what its sessions take
	neighbor int64         // of the neighbor cache beside it
	caches   int64         // of a paged topology, together
	plan     *ListPlan     // nil if it is resident
}

// held returns lists that are held in memory in some form.
func held(form topology.FormBytes) lists { return lists{form: form.Form, bytes: form.Bytes} }

// paged returns lists whose caches are given some bytes, but hardly more than the file has. A
// neighbor cache whose size is chosen has quarters fourths of that; one whose size the user gave
// comes on top. If passes is set, the rest beside the smallest block cache draws batches together.
func (f *Facts) paged(given, quarters int64, passes bool) (l lists) {
	l.caches = wholePages(max(1<<20, min(given, f.cachesMost())))
	l.plan = &ListPlan{Blocks: l.caches, Neighbors: max(0, f.NeighborCache)}
	l.bytes = f.PagedBytes(l.caches)
	if passes {
		l.plan.Blocks = min(l.caches, pagedCacheLeast)
		l.plan.Passes = l.caches - l.plan.Blocks
		l.bytes = f.PagedBytes(l.plan.Blocks) + l.plan.Passes
	} else if f.NeighborCache == setting.NeighborAuto {
		l.plan.Neighbors = neighborcache.SizeIn(l.caches * quarters / 4)
		taken := neighborcache.Bytes(l.plan.Neighbors)
		l.plan.Blocks = wholePages(l.caches - taken)
		l.bytes -= taken
	}
	l.neighbor = neighborcache.Bytes(l.plan.Neighbors)
	l.bytes += int64(f.samplers()+1) * topology.OverflowBytes
	return l
}

// cachesMost returns the size above which the caches of a paged topology are of no use.
func (f *Facts) cachesMost() int64 { return f.PlainBytes() * 5 / 4 }

// wholePages rounds a size above a huge page down to whole ones, since block caches are whole
// arenas.
func wholePages(n int64) int64 {
	if n > mem.HugePageBytes {
		n &^= mem.HugePageBytes - 1
	}
	return n
}

// joined counts the neighbor cache as part of the topology, for superbatches whose topology takes
// turns with batches in the same memory.
func (l lists) joined() lists {
	l.bytes, l.neighbor = l.bytes+l.neighbor, 0
	return l
}

// hold writes to the plan how its topology is held.
func (l lists) hold(p *Plan) {
	p.Resident, p.Form, p.Lists = l.plan == nil, l.form, l.plan
	p.Topology, p.Neighbor = l.bytes, l.neighbor
}

// topologyOf returns the component that lists are if their caches are given a share, in sixteenths,
// of the memory beside batches.
func topologyOf(share, most int64, of func(given int64) lists) mem.Component {
	return mem.Component{Name: "topology", Least: pagedCacheLeast, Most: most, Share: share,
		Takes: func(given int64) int64 {
			l := of(given)
			return l.bytes + l.neighbor
		}}
}

// scratch returns what a sampler takes with its session of lists in a form.
func (f *Facts) scratch(form topology.Form) int64 {
	b := f.largest()
	return b.ScratchBytes(f.DrawBytes) + f.LayerBytes +
		topology.SessionBytes(form, f.BatchInner, f.BatchEdges)
}

// pipeline returns the memory of a pipeline whose samplers take scratch bytes each: arenas for the
// features of batches, and its heap. A lent batch has its lists in the arenas too, beside its
// features; batches inside the pipeline are not lent.
func (f *Facts) pipeline(ready int, scratch int64) (arenas, heap int64) {
	c := sample.PipelineConfig{Workers: f.samplers(), Ready: ready, InTurn: ready == inTurn}
	all, rows := c.Batches()
	if ready != inTurn {
		rows += max(1, f.Lent) - 1
	}
	b := f.largest()
	heap = int64(all)*b.ListBytes() + int64(c.Workers)*scratch + rowcache.LookupBytes(f.batchRows())
	more := int64(max(1, f.Devices) - 1) // each has rows on their way to itself, and a batch
	arenas = int64(rows)*mem.ArenaBytes(f.arenaBytes()) +
		(int64(rows)+rowsFlying*more)*mem.ArenaBytes(f.Device.RowBytes*b.Nodes)
	if f.PieceDim > 0 { // the list of a batch's pieces
		heap += 4 * f.BatchPieces
	}
	if f.Cut {
		heap += int64(all) * 4 * (f.BatchPieces + f.BatchNodes)
	}
	return arenas + (int64(all)+more)*f.PreparedBytes + f.drawHost(),
		mem.HeapCost(heap * sample.GrowthSixteenths / 16)
}

// arenaBytes returns the bytes of the features of the largest batch and, if it is lent, of its
// lists.
func (f *Facts) arenaBytes() int64 {
	return 4*f.batchFloats() + f.LentNodeBytes*f.BatchNodes + f.LentEntryBytes*f.BatchEdges
}

// lent returns the memory of the batches that a caller holds, and of the one that is copied for it,
// where it gets copies of batches.
func (f *Facts) lent() int64 {
	if f.Lent == 0 {
		return 0
	}
	return int64(f.Lent+1) * mem.ArenaBytes(f.arenaBytes())
}

// evaluating returns what evaluation takes beyond the memory of the step and of batches, which it
// may use because training pauses: arenas and heap belong to the batches.
func (f *Facts) evaluating(step, arenas, heap int64) int64 {
	return max(0, mem.HeapCost(f.EvalHeap)-heap) + max(0, f.EvalArenas-arenas-step) + f.EvalBeside
}

// features returns the policy of a feature cache that is given some bytes, and the bytes that it
// and a step take: it keeps all rows where they fit, and none where it would be too small to help.
func (f *Facts) features(cache string, given, onDevice int64) (policy string, bytes, step int64) {
	step = f.StepCopied
	if f.InPlaceResident {
		step = f.StepInPlace
	}
	switch all := f.allFeatures(); {
	case f.Dim == 0 || cache == "none" || given < int64(f.RowDim())*4*rowsLeast:
		return "none", 0, f.StepCopied
	case all+step-f.StepCopied <= given:
		return "all", all, step
	case onDevice == int64(f.Nodes): // there are no others
		return "none", 0, f.StepCopied
	}
	return cache, given, f.StepCopied
}

// featuresOf returns the component that the feature cache is: it is given all that is left.
func (f *Facts) featuresOf() mem.Component {
	c := mem.Component{Name: "features", Most: math.MaxInt64, Share: mem.All}
	if f.FeatureCache > 0 {
		c.Most = f.FeatureCache
	}
	return c
}

// together returns how many batches can be drawn together in the plan's memory.
func (p *Plan) together() float64 {
	f, room := p.facts, bulk.PassRoom(p.PassBytes(), bulk.PassWindowsBytes(p.PassBytes()))
	batch := bulk.PassBatchBytes(p.BatchNodes, p.BatchInner, p.BatchEdges, f.NodeBytes,
		f.EntryBytes)
	return float64(room) / float64(max(1, batch))
}

// drawsTogether reports whether the plan has memory enough to draw batches together.
func (p *Plan) drawsTogether() bool {
	return p.together() >= min(togetherLeast, float64(p.facts.TrainBatches))
}
