package plan

import (
	"fmt"
	"math"
	"slices"

	"gdb/internal/mem"
	"gdb/sample/bulk"
	"gdb/sample/rowcache"
	"gdb/sample/superbatch"
)

// Costs holds what the stages of a run cost for a batch, as a function of the memory they are
// given, as measured by package probe. Times are seconds.
type Costs struct {
	Sampled              int     // batches that were measured
	Batches              uint64  // in an epoch
	Full                 float64 // batches of an epoch, the last one as a fraction
	Nodes, Edges, Unique float64
	Rows                 float64 // of features: nodes or, where rows are kept in pieces, pieces
	RowBytes             float64
	StoredBytes          float64 // of a row in the store
	TopologyBytes        int64   // of the file
	OnDevice             float64 // share of a batch's rows that the device keeps
	Inner                float64 // share of rows that are copied when others are read in place
	Device               *Profile
	Step, StepInPlace    Work // a step that copies its rows, and one that reads them in place

	Prepare  float64           // of a batch, beside its sampling: seconds of a core
	Resident Price             // of lists, sampled from a resident topology
	Paged    []PagedPrice      // by size of the block cache, ascending
	NoPaged  bool              // no split with a paged topology is worth measuring
	Floor    *ReadFloor        // of paged lists; nil if not known
	Tried    *ListTable        // of neighbor caches; nil if none is worth it
	ListsWhy string            // why no neighbor cache was tried
	Kept     map[int64]bool    // sizes of neighbor caches that the store has
	Curves   map[string]*Curve // by Split.CurveName

	// ScanSeconds is how long reading and scoring all lists takes. Scans returns how often that is
	// done to make a neighbor cache when scratch bytes of memory are free for it.
	ScanSeconds float64
	Scans       func(scratch int64) int

	Grows       Footprint
	Apart, Once ReadTable // rows of a batch that were not seen before, and all in one pass
}

// InPlace reports whether steps read rows where they are kept, instead of copying them: see Steps.
func (s *Costs) InPlace(p *Plan) bool {
	if p.Superbatch != nil {
		return p.Superbatch.InPlace || p.facts.Cut
	}
	return p.facts.Cut || p.Cache == "all" && p.facts.InPlaceResident
}

// stepOf returns what a step costs with a split: rows are read in place or copied.
func (s *Costs) stepOf(p *Plan) Work {
	if s.InPlace(p) {
		return s.StepInPlace
	}
	return s.Step
}

// listPrice returns what sampling a batch costs with a split.
func (s *Costs) listPrice(p *Plan) Price {
	price := s.drawPrice(p)
	if p.Superbatch == nil {
		price.Own += s.Prepare
	}
	return price
}

// drawPrice is listPrice without preparing.
func (s *Costs) drawPrice(p *Plan) Price {
	switch {
	case p.PassBytes() > 0:
		return s.passed(p)
	case p.Resident:
		price := s.Resident
		price.Own *= p.slowdown()
		return price
	case s.Tried != nil:
		return s.Tried.price(s, p)
	}
	price, floor := s.pagedPrice(p), s.Floor.price(s, p)
	if price.Wait < floor.Wait {
		price.Bytes, price.Wait, price.CPU = floor.Bytes, floor.Wait, max(price.CPU, floor.CPU)
	}
	return price
}

// pagedPrice returns what sampling costs with a paged topology, on a line between the block caches
// that were measured. Where none was, it counts no reading at all: a lower bound.
func (s *Costs) pagedPrice(p *Plan) Price {
	if len(s.Paged) == 0 {
		return Price{Own: s.ownLeast(p)}
	}
	first, last := s.Paged[0], s.Paged[len(s.Paged)-1]
	at := 0.0
	if last.Blocks > first.Blocks {
		at = float64(p.Lists.Blocks-first.Blocks) / float64(last.Blocks-first.Blocks)
	}
	at = min(1, max(0, at))
	mix := func(a, b float64) float64 { return a + at*(b-a) }
	return Price{Bytes: mix(first.Bytes, last.Bytes), Wait: mix(first.Wait, last.Wait),
		CPU: mix(first.CPU, last.CPU), Own: mix(first.Own, last.Own)}
}

// price returns what lists cost a batch with the caches of a split. The core time of sampling
// depends on the blocks read; it was measured with the smallest and the largest block cache, and a
// list is assumed to take the same time wherever it is found.
func (l *ListTable) price(s *Costs, p *Plan) Price {
	reads := l.at(p.Lists.Blocks, p.Lists.Neighbors).Reads
	c := s.Device.Reading(reads, reads*l.BlockBytes)
	least, most := s.Paged[0], s.Paged[len(s.Paged)-1]
	many, few := l.at(least.Blocks, 0).Reads, l.at(most.Blocks, 0).Reads
	c.Own = most.Own
	if many > few {
		c.Own += (reads - few) * max(0, least.Own-most.Own) / (many - few)
	}
	c.Own = max(c.Own, s.ownLeast(p))
	return c
}

// ownLeast returns the least core time that sampling a batch takes with a split, in seconds.
func (s *Costs) ownLeast(p *Plan) float64 {
	least := s.Resident.Own * p.slowdown()
	for _, paged := range s.Paged {
		least = min(least, paged.Own)
	}
	return least
}

// neighborsAtBest is how many times as many hits as a block cache of its size a neighbor cache may
// bring. On R-MAT graphs it brings about as many.
const neighborsAtBest = 4

// FloorSize returns the size of a block cache that brings at least as many hits as the
// caches of a split.
func FloorSize(p *Plan) int64 { return p.Lists.Blocks + neighborsAtBest*p.Lists.Neighbors }

// price returns a lower bound of what the reads of a split cost: the cost with the next larger
// cache of the table, or nothing beyond the largest.
func (f *ReadFloor) price(s *Costs, p *Plan) Price {
	if f == nil {
		return Price{}
	}
	i, _ := slices.BinarySearch(f.Blocks, FloorSize(p))
	if i == len(f.Blocks) {
		return Price{}
	}
	return s.Device.Reading(f.Reads[i], f.Reads[i]*f.BlockBytes)
}

// passSlowdown is how many times as long batches take to be drawn in passes as from plain lists in
// memory, with checksums and without reading.
const passSlowdown = 6

// passed returns what sampling a batch costs in passes: the batches that are drawn together read
// all lists once for each hop.
func (s *Costs) passed(p *Plan) Price {
	batches := min(p.together(), float64(p.facts.TrainBatches)*float64(p.facts.Epochs))
	if p.Superbatch == nil {
		batches = min(batches, float64(p.facts.TrainBatches))
	}
	c := Price{Own: s.Resident.Own * passSlowdown}
	c.Bytes = float64(p.facts.Hops) * float64(s.TopologyBytes) / max(1, batches)
	// Windows are read while others are drawn from.
	workers := float64(p.passWorkers())
	c.Wait = max(0, c.Bytes/s.Device.Sequential*workers-c.Own)
	return c
}

// passWorkers returns how many goroutines draw batches together: all threads, since nothing else
// runs at that time.
func (p *Plan) passWorkers() int { return max(1, p.facts.Threads) }

// drawn returns how many batches of one epoch are drawn together.
func (p *Plan) drawn() float64 {
	return max(1, min(p.together(), float64(p.facts.TrainBatches)))
}

// readAhead returns what reading rows ahead costs an epoch. A batch misses the rows that its cache
// does not hold; the batches are assumed to share none of these.
func (s *Costs) readAhead(p *Plan, rows RowsCost) (c Price) {
	if !p.Staged() {
		return c
	}
	drawn := p.drawn()
	held := bulk.PassHeldBytes(p.BatchNodes, p.BatchInner, p.BatchEdges, p.facts.NodeBytes,
		p.facts.EntryBytes)
	free := p.PassBytes() - mem.HeapCost(int64(drawn*float64(held)))
	fit := rowcache.StagedFit(free, p.facts.RowDim())
	missed := drawn * s.Rows * (1 - rows.Hit)
	parts := math.Ceil(missed / float64(max(1, fit)))
	once := s.Once.Of(missed / max(1, parts))
	times := parts * float64(p.facts.TrainBatches) / drawn
	return s.Device.Reading(times*float64(once.Reads), times*float64(once.Bytes))
}

// rows returns what a batch's rows cost with a split.
func (s *Costs) rows(p *Plan) RowsCost {
	if p.Cache == "all" {
		return RowsCost{Hit: 1}
	}
	return s.Curves[s.CurveName(p)].at(p.CacheBytes())
}

// gathering returns what gathering a batch takes with a split: rows that are in memory are copied
// while others are read.
func (s *Costs) gathering(p *Plan, rows RowsCost) Work {
	d, read, asked := s.Device, Work{rows.Wait, rows.CPU}, s.Rows*(1-s.OnDevice)
	switch {
	case p.Cache == "all" && p.facts.Cut && p.facts.InPlaceResident:
		return s.unpacking(p)
	case p.Cache == "none":
		return read.Plus(s.unpacking(p))
	case p.Cache != "all":
		return read.Beside(d.Hit.Times(asked * rows.Hit).Plus(
			d.Miss.Times(asked * (1 - rows.Hit)))).Plus(s.unpacking(p))
	case p.facts.InPlaceResident:
		return d.Copy.Times(s.Inner * s.Nodes)
	}
	return d.Copy.Times(asked).Plus(s.unpacking(p))
}

// unpackShare is what writing values of whole rows takes, in order, of copying as many in pieces
// from anywhere. It is an assumption.
const unpackShare = 0.5

// unpacking returns what making rows of a batch's pieces takes: of inner nodes alone, where the
// others stay pieces.
func (s *Costs) unpacking(p *Plan) Work {
	if p.facts.PieceDim == 0 {
		return Work{}
	}
	nodes := s.Nodes
	if p.facts.Cut {
		nodes *= s.Inner
	}
	return s.Device.Copy.Times(unpackShare * nodes * float64(p.facts.Dim) /
		float64(p.facts.PieceDim))
}

// CurveName returns the key of a split's curve in Costs.Curves: the policy and, for
// superbatches, their length.
func (s *Costs) CurveName(p *Plan) string {
	if b := p.Superbatch; b != nil {
		return fmt.Sprint(p.Cache, s.Length(p))
	}
	return p.Cache
}

// Length returns how many batches a superbatch of a split has.
func (s *Costs) Length(p *Plan) float64 {
	b, f := p.Superbatch, p.facts
	epochs := f.Epochs
	switch {
	case !f.Evaluates:
	case b.Kept < b.Slots && b.Spill(int(s.RowBytes)/4) > b.Storage/superbatch.SpillShare:
		epochs = min(epochs, f.EvalEvery)
	case b.Batches == 0 && f.Patience > 0:
		epochs = min(epochs, max(f.EvalEvery, min(f.Patience*f.EvalEvery, b.EpochsAhead())))
	case b.Batches == 0:
		epochs = min(epochs, max(f.EvalEvery, b.EpochsAhead()))
	}
	n := float64(epochs) * float64(s.Batches)
	if b.Batches > 0 {
		n = min(n, float64(b.Batches))
	}
	storage := float64(b.Storage)
	if b.Overlap {
		storage /= 2
	}
	storage = float64(superbatch.BatchStorage(int64(storage)))
	return max(1, min(n, storage/(s.Rows*21+s.Edges*4)))
}

// start returns how long it takes to open what a split holds, in seconds. Resident lists and all
// features are read in sequence; a static cache reads its rows one by one or reads all rows in
// sequence, whichever is faster.
func (s *Costs) start(p *Plan) (seconds float64) {
	d, all := s.Device, float64(p.facts.AllRows())*s.StoredBytes/s.Device.Sequential
	if p.Resident && (p.Superbatch == nil || p.Superbatch.Overlap) {
		seconds = float64(s.TopologyBytes) / d.Sequential
	}
	switch p.Cache {
	case "all":
		seconds += all
	case "static":
		rows := float64(p.Features) / max(1, s.RowBytes)
		seconds += min(all, rows*(d.ReadSeconds+s.StoredBytes*d.ByteSeconds))
	}
	return seconds
}

// batches returns the number of batches in a run.
func (s *Costs) batches(p *Plan) float64 { return float64(p.facts.Epochs) * float64(s.Batches) }

// head returns how many batches the first superbatch of a pair has, if a step takes step seconds:
// see superbatch.Costs.Head. With overlap it is the length of the first superbatch of a run of two.
// It is 0 where superbatches come neither in pairs nor in such a run.
func (s *Costs) head(p *Plan, step float64) float64 {
	b, d := p.Superbatch, s.Device
	switch {
	case b.Overlap && s.Length(p) < s.batches(p):
		return 0
	case b.Overlap:
		return float64(superbatch.First(uint64(s.Length(p))))
	case !b.SweepAhead:
		return 0
	}
	costs := superbatch.Costs{Read: d.ReadSeconds, Byte: d.ByteSeconds, Step: step}
	features := float64(p.facts.AllRows()) * s.StoredBytes
	return float64(costs.Head(int(s.Length(p)), int64(features)))
}

// besideHead returns how many seconds of sampling cost nothing because they pass while rows
// are swept for the head: the sampling of the pair's other superbatch. share is the head's
// part of the pair.
func (s *Costs) besideHead(share, sweep, ahead float64) float64 {
	if share == 0 {
		return 0
	}
	return min(sweep, ahead*(1-share))
}

// MakeSeconds returns how long it takes to make the split's neighbor cache before the first epoch.
// It is 0 unless the size was chosen.
func (s *Costs) MakeSeconds(p *Plan) float64 {
	if p.quarters == 0 || p.facts.NeighborsAhead || s.Kept[p.Lists.Neighbors] {
		return 0
	}
	scratch := p.Lists.Blocks // what layout takes to make it
	if p.Superbatch == nil || p.Superbatch.Overlap {
		scratch = max(scratch, (p.Memory-p.Fixed-p.Model-p.Neighbor)/2)
	}
	return float64(s.Scans(scratch))*s.ScanSeconds + float64(p.Lists.Neighbors)/s.Device.Sequential
}

// loaded returns how many bytes are read when the topology is opened for a superbatch.
func (s *Costs) loaded(p *Plan) float64 {
	switch {
	case p.Superbatch.Overlap:
		return 0
	case p.Resident:
		return float64(s.TopologyBytes)
	}
	return float64(p.Lists.Neighbors)
}

// batchRecords is how many bytes the runtime files have for a batch: its nodes, its edges, and the
// plan of where its rows come from.
type batchRecords struct{ nodes, edges, plan float64 }

// records forecasts the bytes of a batch's records: each number is stored at the width
// of the largest.
func (s *Costs) records(b *superbatch.Plan) batchRecords {
	width := func(most float64) float64 { return math.Ceil(math.Log2(max(2, most))) / 8 }
	return batchRecords{nodes: s.Nodes * width(s.Grows.Most), edges: s.Edges * width(s.Nodes),
		plan: s.Rows * width(float64(b.Slots))}
}

// runtimeBytes returns how many bytes of runtime files are read for a batch: once to plan it, once
// to train on it, and a part of it looked times to decide on sweeps. Accesses and next uses are
// read as far as they do not fit in memory.
func (s *Costs) runtimeBytes(b *superbatch.Plan, steps, looked float64) float64 {
	const noteBytes = 4
	r, notes := s.records(b), 0.0
	for _, memory := range []int64{b.Accesses, b.NextUses} {
		notes += max(0, s.Rows*noteBytes-float64(memory)/steps)
	}
	return 2*r.nodes + r.edges + r.plan + looked*(r.nodes+r.plan) + notes
}

// cycle returns how long sampling, gathering and the step of a batch take while they share the
// cores. If inTurn, gathering and the step of a batch follow each other.
func (s *Costs) cycle(inTurn bool, works []Work) []float64 {
	if !inTurn {
		return shared(s.Device.Cores, works...)
	}
	both := works[1].Plus(works[2])
	ends, k := shared(s.Device.Cores, works[0], both), 1.0
	if both.Seconds > 0 {
		k = ends[1] / both.Seconds
	}
	return []float64{ends[0], k * works[1].Seconds, k * works[2].Seconds}
}

// shortOfCores reports whether the core time of all stages of a batch, spread over all cores, is
// longer than the longest of the stages that run at the same time.
func (s *Costs) shortOfCores(inTurn bool, works []Work) bool {
	all := works[0].Beside(works[1]).Beside(works[2])
	if inTurn {
		all = works[0].Beside(works[1].Plus(works[2]))
	}
	return all.CPU/s.Device.Cores > all.Seconds
}

// stall returns the share of the shorter of gathering and computing that a stage spends waiting
// because batches differ in size and few of them are ready. It is an assumption, made to decide
// between splits that otherwise cost the same.
func (s *Costs) stall(p *Plan) float64 {
	if p.InTurn || p.Superbatch != nil && p.Superbatch.InPlace {
		return 0
	}
	return [...]float64{0.06, 0.02, 0}[min(p.Ready, 2)]
}

// assembling returns what it costs to put together a batch of a superbatch, without reading. Every
// row is copied to the batch, and rows that were missed to the cache as well; in place only the
// rows of inner nodes are copied, and no missed ones.
func (s *Costs) assembling(p *Plan, missed float64) Work {
	switch {
	case p.Superbatch.InPlace && p.facts.Cut:
		return s.unpacking(p)
	case p.Superbatch.InPlace:
		return s.Device.Copy.Times(s.Inner * s.Nodes)
	}
	return s.Device.Copy.Times(s.Rows + missed).Plus(s.unpacking(p))
}
