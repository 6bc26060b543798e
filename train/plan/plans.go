package plan

import (
	"fmt"
	"slices"

	"gdb/internal/mem"
	"gdb/layout/topology"
	"gdb/sample/superbatch"
	"gdb/train/setting"
)

// AutoCaches lists the policies that --cache auto chooses from: on the graphs that were tried no
// other policy hits more often than the best of these.
var AutoCaches = []string{"static", "sieve", setting.CacheBelady}

// blockShares lists the shares, in sixteenths, of the memory left beside batches that the caches of
// a paged topology may get.
var blockShares = []int64{4, 0, 1, 2, 8, 12}

const (
	// stageMost and stageLeast bound the rows that may wait after reading: one part in stageMost,
	// or one in stageLeast, of a batch's rows. A batch that reads more, such as the first, reads
	// the rest when it is assembled.
	stageMost, stageLeast = 8, 64
)

// way is one way to split the memory; take works out its sizes.
type way struct {
	cache    string
	resident bool
	form     int   // index into Facts.residentForms
	blocks   int64 // sixteenths of the memory left that the caches of a paged topology get
	quarters int64 // quarters of that which the neighbor cache gets
	passes   bool  // batches are drawn together, in passes through the lists
	staged   bool  // rows outside the static cache are read ahead for many batches at once
	ready    int   // gathered batches that wait for the step, or inTurn

	overlap, inPlace, sweepAhead bool // of superbatches
	// lent is the sixteenths of the cache's memory that paged lists have while these are made.
	lent  int64
	stage int64 // one in stage of a batch's rows may wait after reading
}

// ways lists the ways to split the memory that the settings allow, where a device keeps some rows.
// The order matters where costs are not known: the first that fits is taken.
func (f *Facts) ways(onDevice int64) (all []way) {
	caches := []string{f.Cache}
	if f.Cache == "auto" {
		caches = f.autoCaches(onDevice)
	}
	if f.Dim == 0 {
		caches = []string{"none"}
	}
	for _, w := range f.topologies() {
		for _, w.ready = range []int{inTurn, 0, 1, readyBatches} {
			if w.ready == inTurn && f.Lent > 0 {
				continue // the next is gathered while others have this one
			}
			for _, w.cache = range caches {
				if w.cache != setting.CacheBelady {
					all = append(all, w)
					if staged := w; w.passes && w.cache == "static" && f.Lent == 0 &&
						onDevice == 0 {
						staged.staged = true
						all = append(all, staged)
					}
				} else if w.ready < readyBatches && w.ready != 0 && (w.resident || w.blocks == 0) {
					all = append(all, f.superbatchWays(w)...)
				}
			}
		}
	}
	return all
}

// topologies lists the ways to hold the lists.
func (f *Facts) topologies() (all []way) {
	for i := range f.residentForms() {
		all = append(all, way{resident: true, form: i})
	}
	if !f.mayPage() {
		return all
	}
	quarters := []int64{0}
	if f.NeighborCache == setting.NeighborAuto {
		quarters = []int64{0, 1, 2, 3}
	}
	for _, n := range blockShares {
		for _, q := range quarters {
			all = append(all, way{blocks: n, quarters: q})
		}
		if f.Passes && f.NeighborCache <= 0 {
			all = append(all, way{blocks: n, passes: true})
		}
	}
	return all
}

// autoCaches returns the policies to choose from. A superbatch plans all rows of its batches, so
// where a device keeps some rows the other policies read less; superbatches cannot serve batches as
// of times; and where batches are lent their caller says that it wants them, since they leave no
// memory to a second loader.
func (f *Facts) autoCaches(onDevice int64) []string {
	if onDevice == 0 && f.Lent == 0 && !f.OneByOne {
		return AutoCaches
	}
	return slices.DeleteFunc(slices.Clone(AutoCaches), func(cache string) bool {
		return cache == setting.CacheBelady
	})
}

// lentShares lists the sixteenths of the cache whose memory lists may have in their turn.
var lentShares = []int64{0, 8, 14}

// superbatchWays lists the ways to train on superbatches with a topology: with phases in turn or
// overlapping, where paged lists may have memory of the cache in their turn, and with rows used in
// the cache, where the step can do that, or copied to each batch.
func (f *Facts) superbatchWays(w way) (all []way) {
	for _, w.overlap = range []bool{false, true} {
		for _, w.sweepAhead = range []bool{false, true} {
			// Sampled evaluation gathers batches, and has memory for their rows where rows are
			// pieces and phases take turns: see Demand.EvalSteps.
			w.inPlace = w.ready == inTurn && f.ReadsInPlace && f.Evaluates &&
				(f.Cut && !w.overlap || !f.EvalSampled && f.PieceDim == 0)
			lent := lentShares
			if w.resident || w.overlap {
				lent = lentShares[:1]
			}
			for _, w.lent = range lent {
				copied := w
				if copied.inPlace = false; w.inPlace {
					all = append(all, w)
				}
				for _, copied.stage = range []int64{stageMost, stageLeast} {
					all = append(all, copied)
				}
			}
		}
	}
	return all
}

// outcome is what a way to split the memory leads to: the plan, the least memory with which the way
// would work, and whether a cache or a buffer would be smaller than needed.
type outcome struct {
	plan  *Plan
	least int64
	short bool
}

// begin returns a plan with what every way needs: the program, the model, the vectors that are
// learned, and the memory of a device.
func (f *Facts) begin() *Plan {
	return &Plan{Memory: f.Memory, Fixed: f.Program, Model: f.Model, Vectors: f.Vectors,
		VectorsDisk: f.VectorsDisk, BatchNodes: f.BatchNodes, BatchEdges: f.BatchEdges,
		BatchPieces: f.BatchPieces,
		BatchInner:  f.BatchInner, Sampled: f.Sampled, Samplers: f.samplers(),
		OnDevice: f.planDevice(), facts: f}
}

// lists returns the lists of a way whose caches are given some bytes.
func (f *Facts) lists(w way, given int64) lists {
	if w.resident {
		return held(f.residentForms()[w.form])
	}
	return f.paged(given, w.quarters, w.passes)
}

// take works out the sizes of a way to split the memory. The lists are given their share first; the
// feature cache has what is left.
func (f *Facts) take(w way) (t outcome) {
	l := f.lists(w, pagedCacheLeast)
	arenas, heap := f.pipeline(w.ready, f.scratch(l.form))
	p := f.begin()
	p.quarters, p.Ready, p.InTurn = w.quarters, max(w.ready, 0), w.ready == inTurn
	p.Batches, p.Eval = arenas+heap, f.evaluating(f.StepCopied, arenas, heap)
	topology := mem.Fixed("topology", "", l.bytes)
	if !w.resident {
		topology = topologyOf(w.blocks, max(pagedCacheLeast, f.cachesMost()),
			func(given int64) lists { return f.lists(w, given) })
	}
	pool := mem.Divide(f.Memory, []mem.Component{mem.Fixed("program", "", f.Program),
		mem.Fixed("model", "", f.Model), mem.Fixed(vectorsName(f.Halo), "", f.Vectors), topology,
		f.featuresOf(), mem.Fixed("batches", "", p.Batches), mem.Fixed("step", "", f.StepCopied),
		mem.Fixed("evaluation", "", p.Eval)})
	f.lists(w, pool.Part("topology").Given).hold(p)
	p.Cache, p.Features, p.Step = f.features(w.cache, pool.Part("features").Given,
		p.OnDevice.Cached())
	t = outcome{plan: p, least: pool.Least, short: w.passes && !p.drawsTogether()}
	if w.staged {
		p.Lists.Staged = p.Cache == "static" // else there is nothing to read ahead
		t.short = t.short || !p.Lists.Staged
	}
	return t
}

// demand returns what superbatches are asked to be with a way to split the memory.
func (f *Facts) demand(w way, scratch int64) *superbatch.Demand {
	d := &superbatch.Demand{Batch: f.largest(), Scratch: scratch, Threads: f.Threads,
		Nodes: f.Nodes, Dim: f.RowDim(), Pieces: f.BatchPieces, AllPieces: f.AllPieces,
		Wide: int64(f.Unpacked), Cut: f.Cut, Steps: int64(f.Epochs) * f.TrainBatches,
		Ready: max(0, w.ready), Cache: f.FeatureCache, Storage: f.Storage, Batches: f.Superbatch,
		Overlap: w.overlap, InPlace: w.inPlace, SweepAhead: w.sweepAhead,
		Prepared: f.PreparedBytes}
	if f.Device.Memory == 0 {
		d.Step = f.StepCopied
	}
	if w.inPlace {
		d.Ready = ReadyLeast
		d.Step = min(d.Step, f.StepInPlace)
	} else {
		d.StageRows = int(f.batchRows()/w.stage) + 1
	}
	if f.EvalSampled && !w.overlap {
		d.EvalSteps = f.EvalBatches
	}
	return d
}

// takeSuperbatch works out the sizes of a way to train on superbatches. If their phases take turns,
// a paged topology's blocks get what training leaves of the memory held for batches.
func (f *Facts) takeSuperbatch(w way) (t outcome, err error) {
	l := f.lists(w, pagedCacheLeast)
	d := f.demand(w, f.scratch(l.form))
	p := f.begin()
	p.Cache, p.Step, p.Lent = setting.CacheBelady, f.StepCopied, f.lent()
	if w.inPlace {
		p.Step = f.StepInPlace
	}
	p.quarters, p.Ready, p.InTurn = w.quarters, d.Ready, w.ready == inTurn && !w.inPlace
	if !w.overlap {
		l = l.joined()
	}
	free := p.Left()
	ph, err := d.Phases(l.bytes, free-l.bytes-l.neighbor)
	if err != nil {
		return t, fmt.Errorf("plan: %w", err)
	}
	if !w.overlap && !w.resident {
		more := ph.Spare(l.bytes)
		if w.lent > 0 {
			more += max(0, free-d.Hold(&ph, l.bytes, free).Bytes) * w.lent / 16
		}
		if more > 0 {
			l = f.lists(w, l.caches+more/16*15).joined() // its tables take the rest
		}
	}
	h := d.Hold(&ph, l.bytes, free)
	if l.hold(p); !w.overlap {
		p.Topology = 0
	}
	p.Batches, p.Eval = h.Bytes, f.evaluating(p.Step, h.Rows, h.Lists)
	s := &superbatch.Plan{Planning: ph.Planning, Storage: d.Storage, Batches: d.Batches,
		Overlap: d.Overlap, Accesses: h.Accesses, NextUses: h.NextUses, StageRows: d.StageRows,
		InPlace: d.InPlace, Sweep: ph.Sweep, SweepAhead: d.SweepAhead}
	t.least = p.Memory - p.Left() + d.SlotsLeast()*superbatch.SlotBytes(f.RowDim())
	s.Slots, s.Kept = d.Slots(p.Left(), h.Spare)
	p.Superbatch, p.Features = s, s.CacheBytes(f.RowDim())
	t.plan = p
	t.short = s.Kept <= 0 || int64(s.Slots) < d.SlotsLeast() ||
		s.SweepAhead && s.Sweep < superbatch.SweepAheadLeast || w.passes && !p.drawsTogether()
	return t, nil
}

// holdsAll returns the plan that keeps the lists and all features in memory, with the fastest form
// of lists that fits; nil if none does.
func (f *Facts) holdsAll() *Plan {
	if f.Cache == "none" && f.Dim > 0 {
		return nil
	}
	for form := range f.residentForms() {
		for _, ready := range []int{readyBatches, 1, 0} {
			p := f.take(way{cache: "static", resident: true, form: form, ready: ready}).plan
			if p.Left() >= 0 && (p.Cache == "all" || f.Dim == 0) {
				return p
			}
		}
	}
	return nil
}

// Plans returns the ways to split the memory that fit, without those that another one beats in
// every respect. If none fits the error is a TooSmallError.
func Plans(f *Facts) (all []*Plan, err error) {
	if err := f.checkTopology(); err != nil {
		return nil, err
	}
	device := f.planDevice()
	if err := device.fits(); err != nil {
		return nil, err
	}
	if one := f.holdsAll(); one != nil {
		return []*Plan{one}, nil
	}
	small := &TooSmallError{Memory: f.Memory}
	for _, w := range f.ways(device.Cached()) {
		t := outcome{}
		if w.cache != setting.CacheBelady {
			t = f.take(w)
		} else if t, err = f.takeSuperbatch(w); err != nil {
			return nil, err
		}
		if small.Least == 0 || t.least < small.Least {
			small.Least, small.Nearest = t.least, t.plan
		}
		if !t.short && t.plan.Left() >= 0 && !t.plan.beaten(all) {
			all = append(all, t.plan)
		}
	}
	if len(all) == 0 {
		return nil, small
	}
	return all, nil
}

// beaten reports whether one of the others, of the same kind, holds the topology in a form that is
// no slower and holds at least as many features.
func (p *Plan) beaten(others []*Plan) bool {
	return slices.ContainsFunc(others, func(o *Plan) bool {
		same := o.Cache == p.Cache && o.Ready == p.Ready && o.InTurn == p.InTurn &&
			(o.Superbatch == nil) == (p.Superbatch == nil)
		if s, q := o.Superbatch, p.Superbatch; same && s != nil {
			same = s.Overlap == q.Overlap && s.InPlace == q.InPlace &&
				s.SweepAhead == q.SweepAhead && s.StageRows == q.StageRows
		}
		if !same || o.CacheBytes() < p.CacheBytes() {
			return false
		}
		if o.Resident || p.Resident {
			return o.Resident && o.slowdown() <= p.slowdown()
		}
		a, b := o.Lists, p.Lists
		return (a.Passes > 0) == (b.Passes > 0) && a.Staged == b.Staged && a.Passes >= b.Passes &&
			a.Blocks >= b.Blocks && a.Neighbors >= b.Neighbors
	})
}

// beside chooses how the topology is held beside the fixed parts of a plan, before the sizes of
// batches are known: resident in the fastest form that fits in half of the memory left, else paged.
// A form that the user asked for is taken even if it does not fit.
func (f *Facts) beside(left int64) lists {
	if form, ok := f.formIn(left / 2); ok {
		return held(form)
	}
	if forms := f.residentForms(); !f.mayPage() && len(forms) > 0 {
		return held(forms[len(forms)-1])
	}
	return f.paged(max(pagedCacheLeast, left/4), 0, false)
}

// Sampling returns how the topology is opened while batches are sampled to plan a run, and how to
// open it if those batches do not fit beside it; the latter is nil if there is no other way. The
// topology is resident where that leaves a quarter of the memory free: a plan keeps no batches in
// memory, and sampling from a paged topology takes many times as long.
func Sampling(f *Facts) (first topology.Options, otherwise *topology.Options) {
	p := f.begin()
	left := p.Left()
	f.beside(left).hold(p)
	first = p.TopologyOptions()
	if form, ok := f.formIn((left - p.Neighbor) * 3 / 4); f.mayPage() && !p.Resident && ok {
		paged := first
		return topology.Options{Resident: true, Form: form.Form}, &paged
	}
	return first, nil
}

// Evaluating splits the memory for an evaluation without training, which takes eval bytes beside
// the topology and the features. The topology has its place first, then the features, if all of
// them fit and the evaluation reads all.
func Evaluating(f *Facts, eval int64) (*Plan, error) {
	if err := f.checkTopology(); err != nil {
		return nil, err
	}
	p := f.begin()
	p.Eval = eval
	if f.beside(p.Left()).hold(p); p.Left() < 0 {
		f.paged(pagedCacheLeast, 0, false).hold(p)
	}
	if p.Left() < 0 {
		return nil, &TooSmallError{Memory: p.Memory, Least: p.Memory - p.Left(), Nearest: p,
			Evaluates: true}
	}
	p.Cache = "none"
	if all := f.allFeatures(); !f.EvalSampled && all <= p.Left() {
		p.Cache, p.Features = "all", all
	}
	return p, nil
}
