package plan

import (
	"fmt"

	"gdb/internal/mem"
	"gdb/sample/superbatch"
	"gdb/sample/superbatch/changeset"
	"gdb/train/setting"
)

const (
	// planningLeast is the smallest memory of planning, even where batches take less: it is enough
	// for any number of nodes.
	planningLeast = 32 << 20
	// bytesPerStep is the memory kept for each batch of a superbatch, with room to grow.
	bytesPerStep = 144
	// bytesPerRecord is the memory kept for each record of swept rows. A record has at least
	// recordLeast bytes of rows.
	bytesPerRecord, recordLeast = 8, 64 << 10
	// SpillShare bounds the rows of slots that are spilled between epochs: one part in SpillShare
	// of the storage.
	SpillShare = 8
	// sweepLeast is the memory of a sweep even where batches take less: enough for 512
	// batches. It is at most one part in sweepShare of the memory left: without a sweep rows
	// are read one by one.
	sweepLeast, sweepShare = 32 << 20, 8
	// aheadMost and aheadLeast bound the memory of a sweep that goes on beside training: more would
	// shrink the cache, and with less a span of batches is too short.
	aheadMost, aheadLeast = 48 << 20, 4 << 20
	// heapFactor is how much Go heap is reserved for each byte in use: lists grow by a quarter, and
	// garbage remains until it is collected.
	heapFactor = 2
)

// SuperbatchPlan is what training on superbatches takes in addition. Sizes are bytes.
type SuperbatchPlan struct {
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
	// InPlace says that steps use rows in the cache: no rows wait, and none are copied. See
	// superbatch.Config.
	InPlace bool `json:"in_place"`
	// Sweep is the memory of a sweep over the features. It uses the memory of batches; or, if
	// SweepAhead is set, it has its own, and rows for the next batches are swept during training.
	Sweep      int64 `json:"sweep_bytes"`
	SweepAhead bool  `json:"sweep_ahead"`
}

const (
	// accessShare and accessMost bound the memory that keeps accesses from being written to disk,
	// beyond what is free while batches are sampled: one part in accessShare of the memory left,
	// and accessMost bytes. accessCost is the bytes that one access takes.
	accessShare, accessMost, accessCost = 32, 32 << 20, 5
	// stageMost and stageLeast bound the rows that may wait after reading: one part in stageMost,
	// or one in stageLeast, of a batch's rows. A batch that reads more, such as the first, reads
	// the rest when it is assembled.
	stageMost, stageLeast = 8, 64
	// spareShare keeps one part in spareShare of the memory that rows could have during training
	// free, because the sizes are not exact.
	spareShare = 16
	// inPlaceShare is how many halves of the largest batch fit in a cache whose rows are
	// used in place. Batches that follow each other share rows; where two do not fit, the
	// second is read late.
	inPlaceShare = 3
)

// superbatchWays lists the ways to train on superbatches with a topology: with phases in
// turn or overlapping, and with rows used in the cache, where the step can do that, or
// copied to each batch.
func (p *Split) superbatchWays(w splitWay) (all []splitWay) {
	for _, w.overlap = range []bool{false, true} {
		// Sampled evaluation gathers batches, and has no other memory for their rows.
		for _, w.sweepAhead = range []bool{false, true} {
			w.inPlace = w.ready == inTurn && p.Facts.ReadsInPlace && p.Facts.Evaluates &&
				!p.Facts.EvalSampled
			if w.inPlace {
				all = append(all, w)
			}
			w.inPlace = false
			for _, w.stage = range []int64{stageMost, stageLeast} {
				all = append(all, w)
			}
		}
	}
	return all
}

// takeSuperbatch splits the memory for training on superbatches.
//
// If the phases take turns, the memory held for batches is the larger of what training takes and of
// what the topology, sampling and planning take; a paged topology's blocks get what would be left
// over of it. If the phases overlap, it is the sum of both. The cache gets the rest; during
// training it also gets what batches do not need of their share.
func (p *Split) takeSuperbatch(w splitWay) (least int64, err error) {
	dim, n := p.Facts.Dim, p.BatchNodes
	s := &SuperbatchPlan{Storage: p.Facts.Storage, Batches: p.Facts.Superbatch, Overlap: w.overlap,
		InPlace: w.inPlace, SweepAhead: w.sweepAhead}
	p.Superbatch, p.Cache, p.Step = s, setting.CacheBelady, p.Facts.StepCopied
	if w.inPlace {
		p.Step = p.Facts.StepInPlace
	}
	p.Ready, p.InTurn = max(0, w.ready), w.ready == inTurn && !w.inPlace
	slots := int64(1)
	if w.inPlace { // evaluation cannot have what is not there
		p.Ready, slots = ReadyLeast, min(n*inPlaceShare/2, int64(p.Facts.Nodes))
		p.rowArenas = changeset.FramesInPlace * mem.ArenaBytes(p.BatchInner*4*int64(dim))
	} else {
		s.StageRows = int(n/w.stage) + 1
		p.rowArenas = int64(p.Ready+1) * mem.ArenaBytes(n*int64(dim)*4)
	}
	if !w.overlap {
		p.joinLists()
	}
	ph, err := p.phases(s, p.Facts.Nodes, p.Topology)
	if err != nil {
		return 0, err
	}
	if more := ph.loop - ph.use - ph.sampling - p.Topology; !w.overlap && !w.resident && more > 0 {
		p.setPaged(p.listCaches + more/16*15) // its tables take the rest
		p.joinLists()
	}
	_, kept := p.steps(p.Facts.Storage)
	spare := int64(0)
	if w.overlap {
		p.Batches = ph.loop + ph.build(p.Topology) - p.Topology + 2*kept
	} else {
		topology, batches := p.Topology, max(ph.loop, ph.build(p.Topology)+ph.ahead)
		if p.Facts.EvalSampled { // its batches come through a pipeline
			arenas, heap := p.pipeline(w.ready)
			batches = max(batches, topology+arenas+heap)
		}
		p.Topology, p.Batches = 0, batches+kept
		batches = p.planNotes(s, &ph, topology, batches)
		// Evaluation has what the topology, and the heap of training, leave of it.
		p.rowArenas = max(0, batches-topology-ph.lists-ph.ahead)
		p.Batches, spare = batches+kept, batches-ph.loop
	}
	p.setEval(ph.lists)
	least = p.Memory - p.Left() + slots*superbatch.SlotBytes(dim)
	p.planSlots(s, spare-spare/spareShare)
	p.Features = s.features(dim)
	p.short = s.Kept <= 0 || int64(s.Slots) < slots || s.SweepAhead && s.Sweep < aheadLeast ||
		!p.drawsTogether()
	return least, nil
}

// planNotes gives planning memory for its notes (accesses and next uses), and returns how much
// memory is held for batches then.
func (p *Split) planNotes(s *SuperbatchPlan, ph *phases, topology, batches int64) int64 {
	steps, _ := p.steps(p.Facts.Storage)
	s.Accesses = min(max(0, batches-ph.ahead-ph.use-topology-ph.sampling)+
		min(accessMost, max(0, p.Left())/accessShare), accessCost*p.BatchNodes*steps)
	batches = max(batches, ph.ahead+ph.use+s.Accesses+topology+ph.sampling)
	// The heap of sampling is given back after planning only.
	s.NextUses = max(0, batches-ph.ahead-ph.use-s.Accesses-max(ph.sampling, ph.planning))
	return batches
}

// Spill returns the bytes of the rows in slots that are not kept.
func (s *SuperbatchPlan) Spill(dim int) int64 { return 4 * int64(s.Slots-s.Kept) * int64(dim) }

// phases holds the bytes that training on a superbatch and making one take, without the cache
// and the topology.
type phases struct {
	loop, lists             int64 // training, and its heap, given back before the next is made
	ahead                   int64 // of loop, a sweep beside it; in turn, beside making too
	use, sampling, planning int64 // of making one: always, while sampling, and while planning
}

// build returns the memory that making a superbatch takes, with a topology of that many bytes.
func (ph *phases) build(topology int64) int64 {
	return ph.use + max(topology+ph.sampling, ph.planning)
}

// phases sizes the phases. A sweep uses the arenas of training; if it runs beside training
// it has its own.
func (p *Split) phases(s *SuperbatchPlan, nodes uint64, topology int64) (ph phases, err error) {
	n := p.BatchNodes
	heap, read := superbatch.SweepMemory(int(n))
	arenas, lists := p.loop(s, p.Ready)
	if read = mem.ArenaBytes(read) + mem.HugePageBytes; s.SweepAhead {
		s.Sweep = max(0, min(aheadMost, p.Left()/sweepShare))
		ph.ahead = s.Sweep + read + mem.HeapCost(heap)
	} else {
		lists = max(lists, mem.HeapCost(heap))
		s.Sweep = max(arenas-read, min(sweepLeast, p.Left()/sweepShare), 0)
		arenas = s.Sweep + read
	}
	// The samplers' scratch, the batches between sampling and writing, and the records.
	const inFlight = 4
	workers := int64(p.Facts.Threads)
	ph.sampling = mem.HeapCost(((inFlight+workers)*p.batchLists()+workers*p.samplerBytes())*
		growth/16 + 2*p.recordBytes())
	ph.planning = heapFactor * superbatch.PlanHeap(int(n))
	ph.loop, ph.lists = arenas+lists+ph.ahead, lists
	s.Planning = max(planningLeast,
		ph.loop-ph.ahead-max(ph.sampling+topology, ph.planning))
	if ph.use, err = superbatch.PlanMemory(nodes, s.Planning); err != nil {
		return ph, fmt.Errorf("plan: %w", err)
	}
	return ph, nil
}

// recordBytes returns the bytes that the largest batch takes in the runtime files.
func (p *Split) recordBytes() int64 {
	return (9+p.Facts.NodeBytes)*p.BatchNodes + (4+p.Facts.EntryBytes)*p.BatchEdges
}

// steps returns how many batches a superbatch has at most with storage bytes of disk, and the
// memory that is kept for them and for the records of their rows.
func (p *Split) steps(storage int64) (steps, bytes int64) {
	steps = min(storage/max(1, p.recordBytes()+12*p.BatchNodes), 1<<20,
		int64(p.Facts.Epochs)*p.Facts.TrainBatches)
	if p.Facts.Superbatch > 0 {
		steps = min(steps, int64(p.Facts.Superbatch))
	}
	rows := min(storage, steps*p.BatchNodes*4*int64(p.Facts.Dim))
	return steps, steps*bytesPerStep + (rows/recordLeast+steps)*bytesPerRecord
}

// planSlots gives the cache the memory that is left, and spare bytes more that it has only
// during training.
func (p *Split) planSlots(s *SuperbatchPlan, spare int64) {
	row, slot := 4*int64(p.Facts.Dim), superbatch.SlotBytes(p.Facts.Dim)
	most := int64(p.Facts.Nodes)
	if p.Facts.FeatureCache > 0 {
		most = min(most, p.Facts.FeatureCache/slot)
	}
	more := min(spare/row, max(0, (p.Left()-slot)/(slot-row)))
	kept := (p.Left() - more*(slot-row)) / slot
	s.Kept = int(min(max(0, kept), most))
	s.Slots = int(min(max(0, kept+more), most))
}

// features returns the memory of the cache: the directory of all slots, and the rows of the
// slots that stay.
func (s *SuperbatchPlan) features(dim int) int64 {
	row := 4 * int64(dim)
	return int64(s.Kept)*row + int64(s.Slots)*(superbatch.SlotBytes(dim)-row)
}

// CacheBytes returns the size that the feature cache has during training.
func (p *Split) CacheBytes() int64 {
	if s := p.Superbatch; s != nil {
		return int64(s.Slots) * superbatch.SlotBytes(p.Facts.Dim)
	}
	return p.Features
}

// loop returns the memory that training on a superbatch takes without the cache. arenas hold
// features of batches, rows that were read, and read buffers; lists is the heap that batches and
// their changes to the cache take.
func (p *Split) loop(s *SuperbatchPlan, ready int) (arenas, lists int64) {
	n, e, row := p.BatchNodes, p.BatchEdges, 4*int64(p.Facts.Dim)
	records := p.recordBytes()
	if s.InPlace {
		const frames = changeset.FramesInPlace
		return frames*mem.ArenaBytes(p.BatchInner*row) + mem.ArenaBytes(superbatch.PackedBytes) +
				records,
			mem.HeapCost((frames*(12*e+28*n) + 8*n) * growth / 16)
	}
	return int64(ready+1)*mem.ArenaBytes(n*row) + mem.ArenaBytes(superbatch.PackedBytes) + records +
			superbatch.Stages*mem.ArenaBytes(int64(s.StageRows)*row),
		mem.HeapCost((int64(superbatch.Frames(ready))*(8*e+28*n) + 8*n) * growth / 16)
}

// SuperbatchConfig returns the configuration with which superbatches are made on a device by a
// number of threads. The run fills in the rest.
func (p *Plan) SuperbatchConfig(d *Profile, threads int) *superbatch.Config {
	s := p.Superbatch
	c := &superbatch.Config{Batches: s.Batches, StorageBytes: s.Storage, Overlap: s.Overlap,
		Planned: superbatch.Sizes{Nodes: p.BatchNodes, Inner: p.BatchInner, Edges: p.BatchEdges,
			StepBytes: p.Step},
		Slots: s.Slots, SlotsKept: s.Kept, InPlace: s.InPlace, StageRows: s.StageRows,
		PlanBytes: s.Planning, AccessBytes: s.Accesses, NextBytes: s.NextUses,
		Workers: threads, Threads: CopyThreads(threads), Ready: p.Ready,
		SweepBytes: s.Sweep, SweepAhead: s.SweepAhead,
		Costs: superbatch.Costs{Read: d.ReadSeconds, Byte: d.ByteSeconds,
			Written: d.Write.Seconds}}
	if p.Forecast != nil {
		c.Costs.Step = p.Forecast.Step
	}
	return c
}
