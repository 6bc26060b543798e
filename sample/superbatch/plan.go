package superbatch

import (
	"gdb/internal/mem"
	"gdb/sample"
)

// Plan is what training on superbatches takes, and how they are made. Sizes are bytes.
type Plan struct {
	Slots    int   `json:"slots"`          // rows in the cache
	Kept     int   `json:"kept_slots"`     // slots that stay while planning takes its turn
	Planning int64 `json:"planning_bytes"` // that planning may take, in the memory of batches
	Storage  int64 `json:"storage_bytes"`  // of runtime files at most
	Batches  int   `json:"batches"`        // at most; 0: as many as the storage has room for
	Overlap  bool  `json:"overlap"`        // the next is sampled while one is trained on

	// Accesses and NextUses are memory that planning gets in addition, so that it
	// writes less to disk.
	Accesses int64 `json:"access_bytes"`
	NextUses int64 `json:"next_use_bytes"`

	// StageRows is how many rows may wait after reading, for each of two batches.
	StageRows int `json:"stage_rows"`
	// InPlace says that steps use rows in the cache: no rows wait, and none are copied. See Config.
	InPlace bool `json:"in_place"`
	// Sweep is the memory of a sweep over the features. It uses the memory of batches; or, if
	// SweepAhead is set, it has its own, and rows for the next batches are swept during training.
	Sweep      int64 `json:"sweep_bytes"`
	SweepAhead bool  `json:"sweep_ahead"`
}

// SpillShare bounds the rows of slots that are spilled between epochs: one part in SpillShare of
// the storage.
const SpillShare = 8

// Spill returns the bytes of the rows in slots that are not kept.
func (p *Plan) Spill(dim int) int64 { return 4 * int64(p.Slots-p.Kept) * int64(dim) }

// epochsAhead is how many epochs are sampled before the first of them is trained on, if the storage
// has room: with more, a sweep for all of them would not cost much less.
const epochsAhead = 8

// EpochsAhead returns how many epochs a superbatch covers at most. A pair of superbatches, most of
// which is sampled while rows are swept for the first, covers twice as many.
func (p *Plan) EpochsAhead() int {
	if p.SweepAhead && !p.Overlap {
		return 2 * epochsAhead
	}
	return epochsAhead
}

const (
	// planningLeast is the smallest memory of planning, even where batches take less: it is enough
	// for any number of nodes.
	planningLeast = 32 << 20
	// bytesPerStep is the memory kept for each batch of a superbatch, with room to grow.
	bytesPerStep = 144
	// bytesPerRecord is the memory kept for each record of swept rows. A record has at least
	// recordLeast bytes of rows.
	bytesPerRecord, recordLeast = 8, 64 << 10
	// sweepLeast is the memory of a sweep even where batches take less: enough for 512 batches. It
	// is at most one part in sweepShare of the memory left: without a sweep rows are read one by
	// one.
	sweepLeast, sweepShare = 32 << 20, 8
	// aheadMost bounds the memory of a sweep that goes on beside training: more would shrink the
	// cache. With less than SweepAheadLeast a span of batches is too short.
	aheadMost = 48 << 20
	// heapFactor is how much Go heap is reserved for each byte in use: lists grow by a quarter, and
	// garbage remains until it is collected.
	heapFactor = 2
	// accessShare and accessMost bound the memory that keeps accesses from being written to disk,
	// beyond what is free while batches are sampled: one part in accessShare of the memory left,
	// and accessMost bytes. accessCost is the bytes that one access takes.
	accessShare, accessMost, accessCost = 32, 32 << 20, 5
	// spareShare keeps one part in spareShare of the memory that rows could have during training
	// free, because the sizes are not exact.
	spareShare = 16
	// keptLoader is what a loader takes that keeps the batches of an evaluation, besides its index:
	// a cache of a few slots, and open files.
	keptLoader = 512 << 10
	// inPlaceShare is how many halves of the largest batch fit in a cache whose rows are used in
	// place. Batches that follow each other share rows; where two do not fit, the second is read
	// late.
	inPlaceShare = 3
)

// SweepAheadLeast is the smallest memory of a sweep that goes on beside training, in bytes.
const SweepAheadLeast = 4 << 20

// Demand says what the memory of superbatches depends on. Sizes are bytes.
type Demand struct {
	Batch   sample.BatchSize // the largest batch
	Scratch int64            // of a sampler, with its session
	Threads int              // that sample, while nothing else works
	Nodes   uint64           // in the graph
	Dim     int              // values in a row
	// Pieces is the rows of the largest batch, of AllPieces of all nodes, and Wide the values that
	// the row of a node takes in a batch, where rows are pieces: see Config.Split. Else all are 0.
	// With Cut only inner nodes take these values, beside all pieces.
	Pieces, Wide int64
	AllPieces    uint64
	Cut          bool
	Steps        int64 // batches of the whole run
	Ready        int   // gathered batches that wait for the step
	Cache        int64 // that the slots may take; 0: as much as there is
	// EvalSteps is how many batches an evaluation has at most that takes turns with training in
	// the same memory, and makes superbatches of them; 0 for none.
	EvalSteps int64
	// Step is what a step on a batch takes. Its memory is free while a superbatch is made, where
	// phases take turns: see Config.Rest.
	Step int64
	// Prepared is what is prepared of a batch beside its lists: see Config.Prepare.
	Prepared int64
	// These are fields of Plan.
	Storage                      int64
	Batches, StageRows           int
	Overlap, InPlace, SweepAhead bool
}

// SlotsLeast returns the number of slots without which superbatches do not work.
func (d *Demand) SlotsLeast() int64 {
	if d.InPlace {
		return min(d.batchRows()*inPlaceShare/2, int64(d.allRows()))
	}
	return 1
}

// pieces reports whether rows are pieces.
func (d *Demand) pieces() bool { return d.Wide > 0 }

// batchRows returns the rows of the largest batch.
func (d *Demand) batchRows() int64 {
	if d.pieces() {
		return d.Pieces
	}
	return d.Batch.Nodes
}

// allRows returns the number of all rows.
func (d *Demand) allRows() uint64 {
	if d.pieces() {
		return d.AllPieces
	}
	return d.Nodes
}

// rows returns the memory that the features of batches have while a superbatch is trained on.
func (d *Demand) rows() int64 {
	row := 4 * int64(d.Dim)
	if d.pieces() {
		row = 4 * d.Wide
	}
	switch inner := d.Batch.Inner * row; {
	case d.InPlace:
		return framesInPlace * mem.ArenaBytes(inner)
	case d.Cut:
		return int64(d.Ready+1) * mem.ArenaBytes(d.Pieces*4*int64(d.Dim)+inner)
	}
	return int64(d.Ready+1) * mem.ArenaBytes(d.Batch.Nodes*row)
}

// recordBytes returns the bytes that the largest batch takes in the runtime files.
func (d *Demand) recordBytes() int64 {
	b := &d.Batch
	return (4+b.NodeBytes)*b.Nodes + 5*d.batchRows() + (4+b.EntryBytes)*b.Edges
}

// loop returns the memory that training on a superbatch takes without the cache. arenas hold
// features of batches, rows that were read, and read buffers; lists is the heap that batches and
// their changes to the cache take.
func (d *Demand) loop() (arenas, lists int64) {
	frames, edge := int64(Frames(d.Ready)), int64(8)
	arenas = d.rows() + mem.ArenaBytes(PackedBytes) + d.recordBytes()
	if d.InPlace {
		frames, edge = framesInPlace, 12
	} else {
		arenas += Stages * mem.ArenaBytes(int64(d.StageRows)*4*int64(d.Dim))
	}
	arenas += frames * d.Prepared
	rows := d.batchRows()
	lists = frames*(edge*d.Batch.Edges+28*max(rows, d.Batch.Nodes)) + 16*rows
	if d.pieces() {
		lists += frames * 4 * rows
	}
	if d.Cut {
		lists += frames * 4 * (rows + d.Batch.Nodes)
	}
	return arenas, mem.HeapCost(lists * sample.GrowthSixteenths / 16)
}

// Phases holds the bytes that training on a superbatch and making one take, without the cache and
// the topology.
type Phases struct {
	Sweep, Planning int64 // fields of Plan

	loop, lists             int64 // training, and its heap, given back before the next is made
	step                    int64 // free while the next is made, in turn
	gather                  int64 // evaluation on a superbatch, in turn
	ahead                   int64 // of loop, a sweep beside it; in turn, beside making too
	use, sampling, planning int64 // of making one: always, while sampling, and while planning
}

// Phases sizes the phases, with a topology of some bytes, where free bytes are left besides. A
// sweep uses the arenas of training; if it runs beside training it has its own.
func (d *Demand) Phases(topology, free int64) (ph Phases, err error) {
	n := int(max(d.batchRows(), d.Batch.Nodes))
	heap, read := SweepMemory(n)
	arenas, lists := d.loop()
	if read = mem.ArenaBytes(read) + mem.HugePageBytes; d.SweepAhead {
		ph.Sweep = max(0, min(aheadMost, free/sweepShare))
		ph.ahead = ph.Sweep + read + mem.HeapCost(heap)
	} else {
		lists = max(lists, mem.HeapCost(heap))
		ph.Sweep = max(arenas-read, min(sweepLeast, free/sweepShare), 0)
		arenas = ph.Sweep + read
	}
	// The samplers' scratch, the batches between sampling and writing, and the records.
	const inFlight = 4
	workers := int64(d.Threads)
	ph.sampling = mem.HeapCost(((inFlight+workers)*d.Batch.ListBytes()+workers*d.Scratch)*
		sample.GrowthSixteenths/16 + 2*d.recordBytes())
	ph.planning = heapFactor * PlanHeap(n)
	if ph.loop, ph.lists = arenas+lists+ph.ahead, lists; !d.Overlap {
		ph.step = d.Step
	}
	if d.EvalSteps > 0 && !d.Overlap && d.InPlace { // else it takes what training does
		rows, lists := d.gathering().loop()
		ph.gather = max(rows, arenas) + lists + ph.ahead
	}
	ph.Planning = max(planningLeast, ph.loop-ph.ahead-max(ph.sampling+topology, ph.planning))
	ph.use, err = PlanMemory(d.allRows(), ph.Planning)
	return ph, err
}

// gathering returns the demand of batches whose rows are copied together, as an evaluation has
// them.
func (d *Demand) gathering() *Demand {
	g := *d
	g.InPlace, g.Ready, g.StageRows = false, 0, EvaluationStage(d.batchRows())
	return &g
}

// EvaluationStage returns how many rows are read ahead of a batch of an evaluation, if the largest
// has this number of rows: few, since they are swept for.
func EvaluationStage(rows int64) int { return int(rows/64) + 1 }

// Spare returns how many bytes of what training takes a larger topology could have while batches
// are sampled, if the phases take turns.
func (ph *Phases) Spare(topology int64) int64 {
	return max(0, ph.loop+ph.step-ph.use-ph.sampling-topology)
}

// build returns the memory that making a superbatch takes, with a topology of that many bytes.
func (ph *Phases) build(topology int64) int64 {
	return ph.use + max(topology+ph.sampling, ph.planning)
}

// Held is the memory that is held for batches and, if the phases take turns, for the topology.
// Sizes are bytes.
type Held struct {
	Bytes int64
	// Rows and Lists are the parts of it that evaluation may use: arenas, and heap.
	Rows, Lists int64
	// Spare is the part that more slots can have during training.
	Spare int64
	// Accesses and NextUses are fields of Plan.
	Accesses, NextUses int64
}

// Hold returns the memory that is held for batches beside a topology of some bytes. If the phases
// take turns, that is the larger of what training takes and of what the topology, sampling and
// planning take. If they overlap, it is the sum of both, without the topology. free bytes are left
// for it and the cache.
func (d *Demand) Hold(ph *Phases, topology, free int64) Held {
	steps, index := d.steps()
	if d.Overlap {
		return Held{Bytes: ph.loop + ph.build(topology) - topology + 2*index, Rows: d.rows(),
			Lists: ph.lists}
	}
	bytes := max(ph.loop, ph.gather, ph.build(topology)+ph.ahead-ph.step)
	accesses, nextUses := ph.notes(topology, bytes+ph.step, free-bytes-index,
		accessCost*d.batchRows()*steps)
	bytes = max(bytes, ph.ahead+ph.use+accesses+topology+ph.sampling-ph.step)
	// Evaluation has what the heap of training leaves of it, and the topology unless superbatches
	// are made of its batches. The topology may take some of a step's memory, too.
	rows := bytes - ph.lists - ph.ahead
	if d.EvalSteps == 0 {
		rows -= topology
	}
	return Held{Bytes: bytes + index, Rows: rows,
		Lists: ph.lists, Spare: bytes - ph.loop, Accesses: accesses, NextUses: nextUses}
}

// notes returns the memory that planning has for its notes (accesses and next uses), bytes being
// held for batches and free bytes left besides. All accesses take most bytes.
func (ph *Phases) notes(topology, bytes, free, most int64) (accesses, nextUses int64) {
	accesses = min(max(0, bytes-ph.ahead-ph.use-topology-ph.sampling)+
		min(accessMost, max(0, free)/accessShare), most)
	bytes = max(bytes, ph.ahead+ph.use+accesses+topology+ph.sampling)
	// The heap of sampling is given back after planning only.
	return accesses, max(0, bytes-ph.ahead-ph.use-accesses-max(ph.sampling, ph.planning))
}

// steps returns how many batches a superbatch has at most, and the memory that is kept for them and
// for the records of their rows.
func (d *Demand) steps() (steps, bytes int64) {
	steps = min(d.Storage/max(1, d.recordBytes()+12*d.batchRows()), 1<<20, d.Steps)
	if d.Batches > 0 {
		steps = min(steps, int64(d.Batches))
	}
	return steps, d.indexBytes(steps) + d.keptBytes()
}

// indexBytes returns the memory that is kept for a superbatch of some batches, and for the records
// of their rows.
func (d *Demand) indexBytes(steps int64) int64 {
	rows := min(d.Storage, steps*d.batchRows()*4*int64(d.Dim))
	return steps*bytesPerStep + (rows/recordLeast+steps)*bytesPerRecord
}

// evaluationShare is the part of the storage that superbatches of evaluations have if their batches
// are not known, or twice as much has no room for all of one.
const evaluationShare = 4

// EvaluationStorage returns how much of the storage superbatches of evaluations have: what all
// batches of one take with the rows of each, so that these are kept from one to the next; or, if
// that is more than half, a quarter.
func (d *Demand) EvaluationStorage() int64 {
	rows := d.batchRows()
	record := ref{Bytes: bufferLeast}.DiskBytes() // filled up by a part of it
	all := d.EvalSteps * (d.recordBytes() + record + rows*(4*int64(d.Dim)+missingBytes+
		planBytesPerAccess))
	if d.EvalSteps > 0 && all <= d.Storage*2/evaluationShare {
		return all
	}
	return d.Storage / evaluationShare
}

// keptBytes returns the memory of what is kept of an evaluation until the next one.
func (d *Demand) keptBytes() int64 {
	if d.EvalSteps == 0 || d.Overlap {
		return 0
	}
	return keptLoader + d.indexBytes(min(d.EvalSteps, batchesMost))
}

// Slots returns how many slots the cache has in free bytes, and how many of them are kept while
// planning takes its turn. spare bytes more can be used during training only.
func (d *Demand) Slots(free, spare int64) (slots, kept int) {
	row, slot := 4*int64(d.Dim), SlotBytes(d.Dim)
	most := int64(d.allRows())
	if d.Cache > 0 {
		most = min(most, d.Cache/slot)
	}
	more := min((spare-spare/spareShare)/row, max(0, (free-slot)/(slot-row)))
	stay := (free - more*(slot-row)) / slot
	return int(min(max(0, stay+more), most)), int(min(max(0, stay), most))
}

// CacheBytes returns the memory of the cache: the directory of all slots, and the rows of those
// that are kept.
func (p *Plan) CacheBytes(dim int) int64 {
	row := 4 * int64(dim)
	return int64(p.Kept)*row + int64(p.Slots)*(SlotBytes(dim)-row)
}
