package superbatch

import (
	"context"
	"fmt"

	"gdb/blockdev"
	"gdb/internal/mem"
	"gdb/kv"
	"gdb/sample"
	"gdb/sample/rowcache"
	"gdb/sample/superbatch/changeset"
	"gdb/sample/superbatch/runtimefile"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// batchesMost bounds a superbatch: what is kept for each batch, 24 to 32 bytes, stays small.
const batchesMost = 1 << 20

// Config says what a Loader runs.
type Config struct {
	// Graph, if it is not nil, is called before batches are sampled, and what it returns after:
	// the topology needs to be there between only.
	Graph func(ctx context.Context) (release func() error, err error)
	// Sampler makes the sampler of one worker.
	Sampler func() (*sample.Sampler, error)
	// Ahead draws the batches of steps first … end-1 together, counted over all epochs of perEpoch
	// steps each; it may return nil, as may be Ahead: then each is drawn by itself. It is called
	// after Graph.
	Ahead func(perEpoch, first, end uint64) (sample.Ahead, error)
	// Order gives the order of an epoch. All epochs have the same number of batches.
	Order func(epoch uint64) (*sample.Order, error)
	// Epoch and StartBatch are where to begin, and Epochs is the epoch after the last.
	Epoch, StartBatch, Epochs uint64
	// Nodes is the number of nodes of the graph.
	Nodes uint64
	// Rows are the features, and Labels, which may be nil, the labels. Closed by their owner.
	Rows   rowcache.Rows
	Labels *sample.Labels

	// FS, Prep and Name are where runtime files go: Prep is the store's directory for them, and
	// Name is not used by another Loader at the same time.
	FS         vfs.FS
	Prep, Name string
	UUID       kv.UUID
	// Device reads the runtime files.
	Device blockdev.Device

	// Batches is the most batches of a superbatch, which may go over several epochs; 0 takes as
	// many as StorageBytes has room for.
	Batches int
	// Until says before which epoch a superbatch ends that begins in one, at the latest; nil does
	// not. It is called by who asks for a batch.
	Until func(epoch uint64) uint64
	// StorageBytes bounds the runtime files.
	StorageBytes int64
	// Overlap samples and plans the next superbatch while one is trained on. The memory of both is
	// taken at the same time then, and each has half of StorageBytes.
	Overlap bool
	// InPlace leaves the rows of the outermost delta in their slots, for the first layer to read:
	// see sample.Batch.Table. All rows of a batch are in slots then: it must fit. The rows that it
	// misses are read to their slots while the batch before is used, if both fit, else after it.
	InPlace bool
	// Planned are the sizes that a batch was planned with: where one is larger, the cache gets
	// smaller, and stays so.
	Planned Sizes
	// StageRows is how many rows of a batch may be read ahead; a batch that needs more reads the
	// rest when it is assembled. 0 is no bound.
	StageRows int
	// Slots is the number of rows in the cache: each takes SlotBytes.
	Slots int
	// SlotsKept is how many of them have memory while the next superbatch is sampled and planned:
	// the others are emptied at the end of each, and come back when it is trained on. 0, or
	// Overlap, keeps all.
	SlotsKept int
	// Spill says after which epochs the memory of the others is asked for, if the superbatch does
	// not end there: their rows are written to a file then, and read back for the next epoch. Nil
	// is never.
	Spill func(epoch uint64) bool
	// PlanBytes bounds the memory of planning, but for PlanHeap of the largest batch.
	PlanBytes int64
	// AccessBytes and NextBytes are memory besides, for what planning notes of a superbatch while
	// it is sampled, and then until it is planned. What does not fit there is written.
	AccessBytes, NextBytes int64
	// Workers is the number of goroutines that sample. Default 1.
	Workers int
	// Threads bounds the goroutines that copy rows. Default 1.
	Threads int
	// Ready is how many batches are assembled while one is used: with none, the next is assembled
	// when that one is released, and reading goes on at the same time. Memory: the features of
	// Ready+1
	// batches, Stages times StageRows, and the lists of Frames(Ready). If InPlace, it is 1, and
	// memory is for the features of FramesInPlace batches but for the outermost delta, and their
	// lists.
	Ready int
	// Sweeper reads Rows in one pass for many batches where Costs say that this is faster; nil
	// reads them one by one. It takes SweepBytes at most between batches, in the place of their
	// memory, and PackedBytes beside it.
	Sweeper    Sweeper
	Costs      Costs
	SweepBytes int64
	// SweepAhead sweeps for the batches that come next while those before are trained on: its
	// memory is beside that of batches then, and the rows of each have half of their storage.
	SweepAhead bool
	// Decided, if it is not nil, is told how rows are read before the first of some batches, by who
	// asks for it.
	Decided func(Reading)
	// Budget counts the memory; nil for none.
	Budget *mem.Budget
}

// Sizes are those of the largest batch, and what a training step on it takes.
type Sizes struct {
	Nodes, Inner, Edges int64 // inner nodes are those that have neighbors
	StepBytes           int64
}

// SlotBytes is the memory of a cached row.
func SlotBytes(dim int) int64 { return 4*int64(dim) + changeset.SlotBytes }

// PlanHeap is the memory of planning for the largest batch, of so many nodes.
func PlanHeap(nodes int) int64 { return planHeapPerNode * int64(nodes) }

// PlanMemory is what planning takes for a graph of so many nodes if it may take most.
func PlanMemory(nodes uint64, most int64) (int64, error) {
	r, err := changeset.PlanRanges(nodes, most)
	return r.Memory(), err
}

// SweepMemory is what a sweep takes besides SweepBytes, if batches have at most so many nodes: to
// write, on the heap, and to read the records of batches.
func SweepMemory(nodes int) (heap, read int64) {
	return blockdev.WriteBytes + bufferMost, max(collectReadPerNode*int64(nodes),
		missingReads*(8*missingRecord+runtimefile.UnitBytes)*5/4)
}

// Stages is how many batches' rows, of those that are read, are in memory: one batch is read while
// one is assembled.
const Stages = 2

// Frames is how many batches' lists are in memory while a superbatch is trained on.
func Frames(ready int) int { return Stages + ready + 1 }

// frames is how many batches' lists are in memory.
func (c *Config) frames() int {
	if c.InPlace {
		return changeset.FramesInPlace
	}
	return Frames(c.Ready)
}

func (c *Config) check() error {
	c.Workers, c.Threads, c.Ready = max(c.Workers, 1), max(c.Threads, 1), max(c.Ready, 0)
	if c.InPlace {
		c.Ready = changeset.FramesInPlace - 1
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
