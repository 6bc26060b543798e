package superbatch

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"gdb/blockdev"
	"gdb/internal/mem"
	"gdb/kv"
	"gdb/layout/rowfile"
	"gdb/sample"
	"gdb/sample/rowcache"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// batchesMost bounds the batches of a superbatch, so that its index of 24 to 32 bytes a batch stays
// small.
const batchesMost = 1 << 20

// Rows reads the rows of a feature file one by one, or those of many lists of nodes in one pass
// over the file, as *rowfile.Reader does.
type Rows interface {
	rowcache.Rows
	Sweep(ctx context.Context, keys []uint64, buf []byte,
		emit func(list uint32, row []byte) error) error
	SweepCost(keys iter.Seq[[]uint64], lists int) (once rowfile.ReadCost,
		apart []rowfile.ReadCost)
	Decode(out []float32, rows []byte) error
}

// Config configures a Loader: what is sampled, where runtime files go, and how much memory each
// part may take.
type Config struct {
	// Graph is called before batches are sampled, and the release that it returns is called after:
	// the topology is needed in between only. Nil if the topology is always in memory.
	Graph func(ctx context.Context) (release func() error, err error)
	// Rest gives back what steps keep from one to the next, before a superbatch is made in that
	// memory. It is called by the goroutine that asks for a batch, unless superbatches overlap. Nil
	// is not called.
	Rest func() error
	// Drawer returns what draws the batches of steps first … end-1 for Workers; steps are counted
	// over all epochs, perEpoch in each. It is called after Graph.
	Drawer func(workers int, perEpoch, first, end uint64) (sample.Drawer, error)
	// Order returns the order of an epoch's seeds. All epochs have the same number of batches.
	Order func(epoch uint64) (*sample.Order, error)
	// Epoch and StartBatch say where to begin, counted from 0; Epochs is the epoch after the last.
	Epoch, StartBatch, Epochs uint64
	// Nodes is the number of nodes of the graph.
	Nodes uint64
	// Split says of which pieces Rows has the rows of nodes. What is said of rows here, and of the
	// nodes of batches where their rows are planned, holds of pieces then. Nil if rows are whole.
	// With Cut batches keep the pieces: see sample.Batch.TablePieces.
	Split *rowfile.Split
	Cut   bool
	// Rows reads features and Labels, which may be nil, reads labels. The caller closes both.
	Rows   Rows
	Labels *sample.Labels

	// Prepare makes what the step on a batch needs that follows from its Dense, and sets
	// Batch.Prepared, which the batch keeps; Finish does what is left once it has its features.
	// They are called beside steps. nil makes nothing.
	Prepare, Finish func(b *sample.Batch) error
	// Pages locks the memory of Batch.X; nil does not.
	Pages sample.Pages

	// FS, Prep and Name say where runtime files go: Prep is the store's directory for them, and
	// Name is a name that no other Loader uses at the same time.
	FS         vfs.FS
	Prep, Name string
	UUID       kv.UUID
	// Device reads the runtime files.
	Device blockdev.Device

	// Batches bounds the batches of a superbatch, which may go over several epochs. 0 takes as many
	// as fit in StorageBytes.
	Batches int
	// Until returns the epoch before which a superbatch that begins in the given epoch must end.
	// Nil sets no such end. It is called by the goroutine that asks for a batch.
	Until func(epoch uint64) uint64
	// StorageBytes bounds the bytes of runtime files.
	StorageBytes int64
	// Repeats keeps a superbatch that has all batches once they were handed out, for Loader.Again:
	// its files, a little memory for each of its batches, and the slots.
	Repeats bool
	// Overlap samples and plans the next superbatch while one is trained on. Both then hold memory
	// at the same time, and each has half of StorageBytes.
	Overlap bool
	// InPlace leaves the rows of the outermost delta in their slots, where the first layer reads
	// them: see sample.Batch.Table. Every row of a batch is in a slot then, so a batch must fit in
	// the cache. Missed rows are read to their slots while the previous batch is used, if the cache
	// has room for both, else after it.
	InPlace bool
	// Planned holds the sizes that memory was planned for. Where a batch is larger, the cache gives
	// up slots for good.
	Planned Sizes
	// StageRows bounds the rows of a batch that are read ahead, in rows. A batch that misses more
	// reads the rest when it is assembled. 0 is no bound.
	StageRows int
	// Slots is the number of rows that the cache holds; each takes SlotBytes.
	Slots int
	// SlotsKept is how many slots keep their memory while the next superbatch is sampled and
	// planned. The others are emptied at the end of each superbatch and come back for the next. 0,
	// or Overlap, keeps all.
	SlotsKept int
	// Spill reports whether the memory of the slots that are not kept is wanted after an epoch that
	// does not end a superbatch. Their rows are then written to a file and read back for the next
	// epoch. Nil never spills.
	Spill func(epoch uint64) bool
	// PlanBytes bounds the memory of planning, besides PlanHeap of the largest batch.
	PlanBytes int64
	// AccessBytes and NextBytes are memory besides PlanBytes: for the accesses noted while a
	// superbatch is sampled, and for their next uses while it is planned. What does not fit is
	// written to runtime files.
	AccessBytes, NextBytes int64
	// Workers is the number of goroutines that sample. Default 1.
	Workers int
	// Threads bounds the goroutines that copy rows. Default 1.
	Threads int
	// Ready is how many batches are assembled ahead while one is used. With 0, the next is
	// assembled when the one before is released, but its rows are read meanwhile. It takes memory
	// for the features of Ready+1 batches, Stages times StageRows rows, and the lists of
	// Frames(Ready) batches. If InPlace, Ready is 1, and memory is taken for the features of
	// FramesInPlace batches without their outermost deltas, and for their lists.
	Ready int
	// Costs say where Rows are read in one pass for many batches, which is then a sweep. The zero
	// value always reads rows one by one. A sweep takes at most SweepBytes between batches, in
	// place of the batches' memory, and PackedBytes besides.
	Costs      Costs
	SweepBytes int64
	// SweepAhead sweeps for the next batches while those before are trained on. A sweep's memory is
	// then taken besides that of batches, and the rows of each sweep get half of the storage.
	SweepAhead bool
	// Decided is called with how rows are read, before the first batch that they are read for, by
	// the goroutine that asks for it. Nil is not called.
	Decided func(Reading)
	// Budget counts the memory. Nil counts none.
	Budget *mem.Budget
}

// Sizes are the sizes of the largest batch, and the bytes that a training step on it takes.
type Sizes struct {
	Nodes, Inner, Edges int64 // inner nodes have neighbors in the batch
	Rows                int64 // of features; 0: a row for each node
	StepBytes           int64
}

// SlotBytes returns the memory of a cached row of dim floats, in bytes.
func SlotBytes(dim int) int64 { return 4*int64(dim) + cacheSlotBytes }

// PlanHeap returns the heap that planning takes if the largest batch has this number of nodes.
func PlanHeap(nodes int) int64 { return planHeapPerNode * int64(nodes) }

// PlanMemory returns the bytes that planning takes for a graph with this number of nodes, given
// that it may take most bytes.
func PlanMemory(nodes uint64, most int64) (int64, error) {
	r, err := planRanges(nodes, most)
	return r.Memory(), err
}

// SweepMemory returns the bytes that a sweep takes besides SweepBytes if batches have at most this
// number of nodes: heap is for writing, and read for the records of batches.
func SweepMemory(nodes int) (heap, read int64) {
	return blockdev.WriteBytes + bufferMost, max(collectReadPerNode*int64(nodes),
		missingReads*(8*missingRecord+unitBytes)*5/4)
}

// Stages is the number of batches whose read rows are in memory: one batch is read while another is
// assembled.
const Stages = 2

// Frames returns how many batches' lists are in memory while a superbatch is trained on.
func Frames(ready int) int { return Stages + ready + 1 }

// frames returns how many batches' lists are in memory with this configuration.
func (c *Config) frames() int {
	if c.InPlace {
		return framesInPlace
	}
	return Frames(c.Ready)
}

// rowCount returns the number of all rows.
func (c *Config) rowCount() uint64 {
	if c.Split != nil {
		return c.Split.Rows
	}
	return c.Nodes
}

// rowsOf returns the rows of a batch's nodes, in the memory of scratch if they are pieces.
func (c *Config) rowsOf(b *sample.Batch, scratch *[]sample.NodeID) []sample.NodeID {
	if c.Split == nil {
		return b.Dense.NodeIDs
	}
	*scratch = c.Split.Append(b.Dense.NodeIDs, (*scratch)[:0])
	return *scratch
}

func (c *Config) check() error {
	c.Workers, c.Threads, c.Ready = max(c.Workers, 1), max(c.Threads, 1), max(c.Ready, 0)
	if c.InPlace {
		c.Ready = framesInPlace - 1
	}
	if c.InPlace && c.Split != nil && !c.Cut {
		return errors.New("superbatch: rows are read in place, and put together from pieces")
	}
	if c.Batches < 0 || c.Batches > batchesMost {
		return fmt.Errorf("superbatch: %d batches: give 1 to %d", c.Batches, batchesMost)
	}
	if c.Slots < 0 || c.Slots >= 1<<31 {
		return fmt.Errorf("superbatch: a cache of %d rows", c.Slots)
	}
	if c.SlotsKept <= 0 || c.SlotsKept > c.Slots || c.Overlap {
		c.SlotsKept = c.Slots
	}
	return nil
}
