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
	Planning int64 `json:"planning_bytes"` // that planning may take, in the place of batches
	Storage  int64 `json:"storage_bytes"`  // of runtime files at most
	Batches  int   `json:"batches"`        // at most; 0: as many as the storage has room for
	Overlap  bool  `json:"overlap"`        // the next is sampled while one is trained on
}

// overlapShare of the cache is what the overlap of phases may cost.
const overlapShare = 8

// planSuperbatch splits the memory for training on superbatches. If their phases take turns, what
// is held for batches is the larger of what training on them and sampling and planning them takes;
// if they overlap, it is both, which they do where that takes little of the cache. The cache gets
// the rest.
func (p *Plan) planSuperbatch(c *Config, nodes uint64, dim int, storage int64) error {
	s := &SuperbatchPlan{Storage: storage, Batches: c.Superbatch}
	p.Features, p.Batches, p.Ready = 0, 0, readyLeast
	n, e := p.BatchNodes, p.BatchEdges
	frames, disk := int64(superbatch.Frames(p.Ready)), 9*n+4*e
	// A frame's lists, what its changes say, and its features; and the read buffer.
	loop := frames*(n*int64(dim)*4+heapFactor*(8*e+28*n)) + disk
	// The sampler's scratch, the batches between sampling and writing, and the records.
	const inFlight = 5
	sampling := heapFactor*((inFlight+int64(samplers(c.Threads)))*(8*e+8*n)+12*e+44*n) +
		heapFactor*disk
	steps := min(storage/max(1, disk+12*n), 1<<20)
	if c.Superbatch > 0 {
		steps = min(steps, int64(c.Superbatch))
	}
	s.Planning = max(planningLeast, loop-max(sampling, heapFactor*superbatch.PlanHeap(int(n))))
	use, err := superbatch.PlanMemory(nodes, s.Planning)
	if err != nil {
		return fmt.Errorf("train: %w", err)
	}
	build := use + max(sampling, heapFactor*superbatch.PlanHeap(int(n)))
	p.Batches = max(loop, build) + steps*bytesPerStep
	if least := min(loop, build); least < p.Left()/overlapShare {
		s.Overlap = true
		p.Batches += least + steps*bytesPerStep
	}
	room := p.Left()
	if c.FeatureCache > 0 {
		room = min(room, c.FeatureCache)
	}
	if s.Slots = int(min(room/superbatch.SlotBytes(dim), int64(nodes))); room < 0 || s.Slots == 0 {
		return fmt.Errorf("train: memory %s is too small: superbatches need %s and room for a "+
			"cache (%s): raise --memory, lower --batch or --fanout, or take --cache static",
			mem.FormatSize(p.Memory), mem.FormatSize(p.Memory-p.Left()), p)
	}
	p.Cache, p.Superbatch = cacheBelady, s
	p.Features = int64(s.Slots) * superbatch.SlotBytes(dim)
	return nil
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
