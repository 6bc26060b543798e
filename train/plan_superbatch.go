package train

import (
	"errors"
	"fmt"

	"gdb/internal/mem"
	"gdb/layout"
	"gdb/sample/superbatch"

	"github.com/cockroachdb/pebble/v2/vfs"
)

const (
	// storageShare of the free disk, and storageMost, bound the runtime files of superbatches.
	storageShare, storageMost = 4, 64 << 30
	// storageUnknown bounds them on a file system that does not tell its free space.
	storageUnknown = 1 << 30
	// planningLeast is the memory of planning that is there even if batches take less: enough for
	// any number of nodes.
	planningLeast = 32 << 20
	// bytesPerStep is what is kept for each batch of a superbatch, with room to grow.
	bytesPerStep = 48
	// heapFactor is how much of the Go heap is taken for a byte in use: lists grow by a quarter,
	// and there is garbage.
	heapFactor = 2
)

// SuperbatchPlan is what training on superbatches takes besides.
type SuperbatchPlan struct {
	Slots    int   `json:"slots"`          // rows in the cache
	Kept     int   `json:"kept_slots"`     // of them, those that stay when phases take turns
	Planning int64 `json:"planning_bytes"` // that planning may take, in the place of batches
	Storage  int64 `json:"storage_bytes"`  // of runtime files at most
	Batches  int   `json:"batches"`        // at most; 0: as many as the storage has room for
	Overlap  bool  `json:"overlap"`        // the next is sampled while one is trained on

	// Accesses and NextUses are memory of planning besides, so that less is written.
	Accesses int64 `json:"access_bytes"`
	NextUses int64 `json:"next_use_bytes"`

	// StageRows may wait after reading, for each of two batches.
	StageRows int `json:"stage_rows"`
	// InPlace has no such rows, and no copies: see superbatch.Config.
	InPlace bool `json:"in_place"`
}

const (
	// overlapShare of the cache's rows is what the overlap of phases may cost.
	overlapShare = 8
	// accessShare of the memory left, and accessMost, bound what is taken so that accesses need not
	// be written, beside what is free while batches are sampled; accessCost is what one takes.
	accessShare, accessMost, accessCost = 32, 32 << 20, 5
	// stageShare of a batch's rows is what may wait after reading. A batch that reads more, such as
	// the first, reads the rest when it is assembled.
	stageShare = 8
	// spareShare of the memory that rows could have while batches are trained on is not theirs: the
	// sizes are not exact.
	spareShare = 16
	// inPlaceShare halves of the largest batch fit in a cache whose rows are used in place: batches
	// that follow each other share rows, and where two do not fit, the second is read late.
	inPlaceShare = 3
	// readyShare of the cache is what a second batch's features may cost.
	readyShare = 4
)

// planSuperbatch splits the memory for training on superbatches: with rows used in the cache where
// the step can do that and batches fit there, else with rows copied to each batch.
func (p *planner) planSuperbatch(nodes uint64, storage int64) error {
	// Sampled evaluation gathers batches, and has no other memory for their rows.
	if inPlace(p.c, p.dims) && !p.c.LoadOnly && p.c.EvalMode != evalSampled {
		try, plan := *p, *p.Plan
		try.Plan = &plan
		least := min(uint64(p.BatchNodes*inPlaceShare/2), nodes)
		err := try.splitSuperbatch(nodes, &SuperbatchPlan{Storage: storage, InPlace: true})
		if err == nil && uint64(plan.Superbatch.Slots) >= least {
			*p.Plan = plan
			return nil
		}
	}
	return p.splitSuperbatch(nodes, &SuperbatchPlan{Storage: storage,
		StageRows: int(p.BatchNodes/stageShare) + 1})
}

// splitSuperbatch splits the memory for one way to use rows. If their phases take turns, what
// is held for batches is the larger of what training on them takes, and the topology, sampling and
// planning; if they overlap, it is both, which they do where that takes little of the cache. The
// cache gets the rest; and while batches are trained on, what they do not take of their share.
func (p *planner) splitSuperbatch(nodes uint64, s *SuperbatchPlan) error {
	topology, dim, storage := p.Topology, p.dims[0], s.Storage
	s.Batches = p.c.Superbatch
	p.Features, p.Batches, p.Topology = 0, 0, 0
	n, e := p.BatchNodes, p.BatchEdges
	p.Ready = readyLeast
	x := arenaBytes(n * int64(dim) * 4)
	if !s.InPlace && (x > (p.Left()-p.loop(s, 1))/readyShare || p.c.LoadOnly) {
		p.Ready = 0
	}
	loop, disk := p.loop(s, p.Ready), 9*n+4*e
	// The sampler's scratch, the batches between sampling and writing, and the records.
	const inFlight = 5
	sampling := mem.HeapCost(((inFlight+int64(p.c.Threads))*(8*e+8*n)+12*e+44*n)*growth/16 + 2*disk)
	planning := heapFactor * superbatch.PlanHeap(int(n))
	steps := min(storage/max(1, disk+12*n), 1<<20)
	if p.c.Superbatch > 0 {
		steps = min(steps, int64(p.c.Superbatch))
	}
	s.Planning = max(planningLeast, loop-max(sampling+topology, planning))
	use, err := superbatch.PlanMemory(nodes, s.Planning)
	if err != nil {
		return fmt.Errorf("train: %w", err)
	}
	build := use + max(topology+sampling, planning)
	if s.InPlace { // evaluation cannot have what is not there
		p.rowArenas = superbatch.FramesInPlace * arenaBytes(p.BatchInner*4*int64(dim))
		p.setEval()
	}
	turns, batches := *s, max(loop, build)
	turns.Accesses = min(max(0, batches-use-topology-sampling)+
		min(accessMost, max(0, p.Left()-batches)/accessShare), accessCost*n*steps)
	batches = max(batches, use+turns.Accesses+topology+sampling)
	turns.NextUses = max(0, batches-use-turns.Accesses-planning)
	p.Batches = batches + steps*bytesPerStep
	spare := batches - loop
	p.planSlots(&turns, nodes, spare-spare/spareShare)
	p.Topology = topology
	p.Batches = loop + build - topology + 2*steps*bytesPerStep
	s.Overlap = true
	p.planSlots(s, nodes, 0)
	if s.Kept <= 0 || s.Slots < turns.Slots-turns.Slots/overlapShare {
		p.Topology, *s = 0, turns
		p.Batches = batches + steps*bytesPerStep
	}
	if s.Kept <= 0 {
		return fmt.Errorf("train: memory %s is too small: superbatches need at least %s (%s): "+
			"raise --memory, lower --batch or --fanout, or take --cache static",
			mem.FormatSize(p.Memory), sizeUp(p.Memory-p.Left()+superbatch.SlotBytes(dim)), p)
	}
	p.Cache, p.Superbatch = cacheBelady, s
	p.Features = s.features(dim)
	return nil
}

// planSlots gives the cache what is left, and so many bytes more that it has now and then.
func (p *planner) planSlots(s *SuperbatchPlan, nodes uint64, spare int64) {
	row, slot := 4*int64(p.dims[0]), superbatch.SlotBytes(p.dims[0])
	most := int64(nodes)
	if p.c.FeatureCache > 0 {
		most = min(most, p.c.FeatureCache/slot)
	}
	more := min(spare/row, max(0, (p.Left()-slot)/(slot-row)))
	kept := (p.Left() - more*(slot-row)) / slot
	s.Kept = int(min(max(0, kept), most))
	s.Slots = int(min(kept+more, most))
}

// features is the memory of the cache: of all slots where they are listed, and of the rows that
// stay.
func (s *SuperbatchPlan) features(dim int) int64 {
	row := 4 * int64(dim)
	return int64(s.Kept)*row + int64(s.Slots)*(superbatch.SlotBytes(dim)-row)
}

// loop is what training on a superbatch takes but for the cache: features of batches, rows that
// were read, lists of batches with what their changes say, and the read buffer.
func (p *planner) loop(s *SuperbatchPlan, ready int) int64 {
	n, e, row := p.BatchNodes, p.BatchEdges, 4*int64(p.dims[0])
	if s.InPlace {
		const frames = superbatch.FramesInPlace
		return frames*arenaBytes(p.BatchInner*row) +
			mem.HeapCost(frames*(12*e+28*n)*growth/16) + 9*n + 4*e
	}
	return int64(ready+1)*arenaBytes(n*row) +
		superbatch.Stages*arenaBytes(int64(s.StageRows)*row) +
		mem.HeapCost(int64(superbatch.Frames(ready))*(8*e+28*n)*growth/16) + 9*n + 4*e
}

// superbatchStorage is how many bytes of runtime files a store has room for.
func superbatchStorage(s *layout.Store) (int64, error) {
	usage, err := s.FS().GetDiskUsage(s.Path())
	if errors.Is(err, vfs.ErrUnsupported) {
		return storageUnknown, nil
	}
	if err != nil {
		return 0, fmt.Errorf("train: ask for the free space of %s: %w", s.Path(), err)
	}
	return int64(min(usage.AvailBytes/storageShare, storageMost)), nil
}
