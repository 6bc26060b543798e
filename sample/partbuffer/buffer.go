// Package partbuffer keeps some of the partitions of a graph in memory, features and neighbor lists
// alike, and makes the batches of an epoch from these alone. It goes through sets of partitions:
// while a set is in memory, the training nodes of its turn are trained on, with neighbors drawn
// among the nodes in memory (Waleffe, Mohoney, Rekatsinas and Venkataraman, "Marius++", sections
// 4.2, 5.1 and 5.3). A macro-batch is a set with hubs beside it, of partitions that are ranges of
// nodes; the next one is read while one is trained on ("Hanoi", chapter 4).
//
// Such batches are approximate, since neighbors outside the set are missing. Draws are uniform over
// the neighbors in memory.
package partbuffer

import (
	"context"
	"errors"
	"fmt"

	"gdb/internal/mem"
	"gdb/layout/partition"
	"gdb/layout/rowfile"
	"gdb/layout/topology"
	"gdb/sample"
	"gdb/sample/rowcache"

	"github.com/RoaringBitmap/roaring/v2"
)

// Config says which partitions are kept in memory, and how epochs go.
type Config struct {
	Deal *partition.Deal
	// Order says how epochs go through the partitions. Its capacity is how many a set has.
	Order *partition.Order
	// Train are the training nodes. They must not change.
	Train []sample.NodeID
	// Batch is the number of training nodes of a batch, and Seed is what their order depends on.
	Batch int
	Seed  uint64
	// Rows are the features; nil for none. The caller closes them.
	Rows *rowfile.Reader
	// Edges is the number of entries of all lists of the graph. Without Macro, memory is taken in
	// advance for as many as a set is expected to have; a set with more takes more.
	Edges uint64
	// Macro makes sets macro-batches; nil does not. The partitions of Deal are ranges then, and the
	// sets of an epoch have none in common.
	Macro *Macro
	// Threads bounds the goroutines that copy rows.
	Threads int
	// Budget counts the memory; nil counts none.
	Budget *mem.Budget
}

// Macro says what macro-batches have beside their partitions, and how often each is used.
type Macro struct {
	// Hubs are nodes that stay in memory, ascending; HubEntries is how many entries their lists
	// have together.
	Hubs       []sample.NodeID
	HubEntries uint64
	// SetEntries is the most entries that the lists of a set have, on disk.
	SetEntries uint64
	// Reuse is how often an epoch goes through the training nodes of a set while it is in memory; 0
	// counts as 1.
	Reuse int
	// Halo keeps the neighbors outside memory in lists, up to the last hop: see Buffer.Inner.
	Halo bool
	// Summed says that rows have the sums of whole lists beside the features: with a halo, the rows
	// of neighbors outside memory are not read, and the last hop has such neighbors too.
	Summed bool
	// Refresh are nodes, ascending, that come in batches of their own after the training nodes of
	// their set, all of them in the first epochs and then a part in each: see sample.Batch.Refresh.
	Refresh []sample.NodeID
}

// inner reports whether the last hop has no neighbors outside memory, but others do.
func (m *Macro) inner() bool { return m.Halo && !m.Summed }

// capacity returns the number of partitions of a set.
func (c *Config) capacity() int { return c.Order.Spec().Capacity }

// reuse returns how often a set is gone through.
func (c *Config) reuse() int {
	if c.Macro == nil {
		return 1
	}
	return max(1, c.Macro.Reuse)
}

// setNodes returns the room for nodes of a set: the largest partition as often as it has any.
func (c *Config) setNodes() int64 { return int64(c.capacity()) * int64(c.Deal.Most(1)) }

// memory has a set of partitions. Its methods but Close are for one goroutine at a time.
type memory interface {
	topology.Reader
	// load makes a set the one in memory; next is read ahead as far as there is room, and nil for
	// none. lists reads the whole graph. After an error nothing is in memory.
	load(ctx context.Context, lists topology.Reader, now, next *roaring.Bitmap) error
	// Features returns the features of the nodes in memory, or nil if there are none.
	Features() rowcache.Features
	// Has says whether a node is in memory.
	Has(v sample.NodeID) bool
	// Inner has the lists without neighbors outside memory, if the others have them; else nil.
	Inner() topology.Reader
}

// Buffer holds the partitions in memory. It is a topology.Reader of the lists of their nodes,
// without neighbors that are not in memory, and has their features. One Epoch at a time changes
// what is in memory; between changes, any goroutine may read.
//
// It takes 8 bytes of memory per training node. Without Macro it takes 4 bytes per node of the
// graph, 12 bytes and the features per node in memory, and 4 per entry of their lists in memory.
// With it, all that is in memory is there twice but the features of hubs; it takes no more per node
// of the graph than 1.1 bits for hubs, and 4 per entry of a hub's list.
type Buffer struct {
	memory    // nil while it rests
	cfg       Config
	turnsHeld int64 // bytes of turnsBytes counted in the budget
}

// New takes the memory of an empty buffer. The caller calls Close.
func New(cfg Config) (b *Buffer, err error) {
	if err := cfg.Budget.Reserve("turns of training nodes", turnsBytes(&cfg)); err != nil {
		return nil, fmt.Errorf("sample: %w", err)
	}
	b = &Buffer{cfg: cfg, turnsHeld: turnsBytes(&cfg)}
	if err := b.wake(); err != nil {
		cfg.Budget.Release(b.turnsHeld)
		return nil, err
	}
	return b, nil
}

// wake takes the memory of partitions, unless it is there.
func (b *Buffer) wake() error {
	if b.memory != nil {
		return nil
	}
	var taken memory
	var err error
	if b.cfg.Macro != nil {
		taken, err = newHalves(&b.cfg)
	} else {
		taken, err = newFrames(&b.cfg)
	}
	if err != nil {
		return fmt.Errorf("sample: a buffer of %d of %d partitions: %w", b.cfg.capacity(),
			b.cfg.Deal.Parts(), err)
	}
	b.memory = taken
	return nil
}

// Rest gives the memory of partitions back until the next Epoch, which takes and fills it again. A
// buffer that has all partitions keeps them. No epoch may be open.
func (b *Buffer) Rest() error {
	if b.memory == nil || b.cfg.capacity() == b.cfg.Deal.Parts() {
		return nil
	}
	taken := b.memory
	b.memory = nil
	return taken.Close()
}

// Features returns the features of the nodes in memory, or nil if there are none.
func (b *Buffer) Features() rowcache.Features {
	if b.memory == nil {
		return nil
	}
	return b.memory.Features()
}

// Bytes returns the memory that New takes, in bytes.
func Bytes(cfg *Config, dim int) (n int64) {
	all := frameArrays(cfg, dim)
	if cfg.Macro != nil {
		all, n = halfArrays(cfg, dim), readingBytes
	}
	for _, bytes := range all {
		n += arenaBytes(bytes)
	}
	return n + turnsBytes(cfg)
}

// arenaBytes returns the memory that an arena takes.
func arenaBytes(bytes int64) int64 { return max(mem.ArenaBytes(bytes), 4096) }

// turnsBytes returns the memory for the seeds of each set, and what it takes to list them.
func turnsBytes(cfg *Config) int64 {
	n := 8 * int64(len(cfg.Train))
	if cfg.Macro != nil {
		n += 12 * int64(len(cfg.Macro.Refresh)) // with the list itself
	}
	return mem.HeapCost(n)
}

// Close frees the memory.
func (b *Buffer) Close() error {
	var err error
	if b.memory != nil {
		err = b.memory.Close()
	}
	b.cfg.Budget.Release(b.turnsHeld)
	b.turnsHeld = 0
	return err
}

// arenas is memory that is counted in a budget, and freed together.
type arenas struct {
	budget *mem.Budget
	taken  []*mem.Arena
}

// take takes memory, in bytes.
func (a *arenas) take(what string, bytes int64) ([]byte, error) {
	arena, err := mem.NewArena(a.budget, what+" of partitions in memory", bytes)
	if err != nil {
		return nil, err
	}
	a.taken = append(a.taken, arena)
	return arena.Bytes(), nil
}

// free frees all memory.
func (a *arenas) free() (err error) {
	for _, arena := range a.taken {
		err = errors.Join(err, arena.Free())
	}
	a.taken = nil
	return err
}
