// Package partbuffer keeps some of the partitions of a graph in memory, features and neighbor lists
// alike, and makes the batches of an epoch from these alone. It goes through sets of partitions:
// while a set is in memory, the training nodes of its turn are trained on, with neighbors drawn
// among the nodes in memory (Waleffe, Mohoney, Rekatsinas and Venkataraman, "Marius++", sections
// 4.2, 5.1 and 5.3).
//
// Such batches are approximate, since neighbors outside the set are missing. Draws are uniform over
// the neighbors in memory.
package partbuffer

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"gdb/internal/mem"
	"gdb/layout/partition"
	"gdb/layout/rowfile"
	"gdb/layout/topology"
	"gdb/sample"

	"github.com/RoaringBitmap/roaring/v2"
)

// Config says which partitions are kept in memory, and how epochs go.
type Config struct {
	Deal *partition.Deal
	// Order says how epochs go through the partitions. Its capacity is how many are in memory.
	Order *partition.Order
	// Train are the training nodes. They must not change.
	Train []sample.NodeID
	// Batch is the number of training nodes of a batch, and Seed is what their order depends on.
	Batch int
	Seed  uint64
	// Rows are the features; nil for none. The caller closes them.
	Rows *rowfile.Reader
	// Edges is the number of entries of all lists of the graph. Memory is taken in advance for as
	// many as a set is expected to have; a set with more takes more.
	Edges uint64
	// Threads bounds the goroutines that copy rows.
	Threads int
	// Budget counts the memory; nil counts none.
	Budget *mem.Budget
}

// capacity returns the number of partitions in memory.
func (c *Config) capacity() int { return c.Order.Spec().Capacity }

// slots returns the number of nodes in memory: each frame has room for the largest partition.
func (c *Config) slots() int64 { return int64(c.capacity()) * int64(c.Deal.Most(1)) }

// Buffer holds the partitions in memory. It is a topology.Reader of the lists of their nodes,
// without neighbors that are not in memory, and has their features. One Epoch at a time changes
// what is in memory; between changes, any goroutine may read.
//
// It takes 4 bytes of memory per node of the graph, 8 per training node, 12 bytes and the features
// per node in memory, and 4 per entry of their lists in memory.
type Buffer struct {
	topology.Held
	cfg   Config
	parts *partition.Buffer
	dim   int

	arenas []*mem.Arena
	slot   []uint32 // slot of each node, from 1 on; 0 if it is not in memory
	rows   []float32
	start  []uint64 // where the list of a slot begins, counted over all blocks
	degree []uint32

	turnsHeld int64         // bytes of turnsBytes counted in the budget
	copied    atomic.Uint64 // rows of features
}

// New takes the memory of an empty buffer. The caller calls Close.
func New(cfg Config) (b *Buffer, err error) {
	b = &Buffer{cfg: cfg}
	b.parts = partition.NewBuffer(b, cfg.Deal.Parts(), cfg.capacity())
	b.Held = topology.Held{NodeCount: cfg.Deal.Nodes(), Place: b.place}
	if cfg.Rows != nil {
		b.dim = cfg.Rows.Meta().Dim
	}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("sample: a buffer of %d of %d partitions: %w",
				cfg.capacity(), cfg.Deal.Parts(), err), b.Close())
		}
	}()
	for i, take := range []struct {
		what string
		to   func(all []byte)
	}{
		{"places of nodes", func(a []byte) { b.slot = mem.View[uint32](a) }},
		{"features", func(a []byte) { b.rows = mem.View[float32](a) }},
		{"places of lists", func(a []byte) { b.start = mem.View[uint64](a) }},
		{"lengths of lists", func(a []byte) { b.degree = mem.View[uint32](a) }},
	} {
		all, err := b.arena(take.what, cfg.arrays(b.dim)[i])
		if err != nil {
			return b, err
		}
		take.to(all)
	}
	if err := cfg.Budget.Reserve("turns of training nodes", turnsBytes(&cfg)); err != nil {
		return b, err
	}
	b.turnsHeld = turnsBytes(&cfg)
	for range expectedBlocks(&cfg) {
		if err := b.addBlock(); err != nil {
			return b, err
		}
	}
	return b, nil
}

// arrays returns the bytes of the arrays of a buffer: by node of the graph, and by node in memory
// its features, and where its list begins and ends.
func (c *Config) arrays(dim int) []int64 {
	return []int64{4 * int64(c.Deal.Nodes()), 4 * c.slots() * int64(dim), 8 * c.slots(),
		4 * c.slots()}
}

// Bytes returns the memory that New takes, in bytes.
func Bytes(cfg *Config, dim int) (n int64) {
	for _, bytes := range cfg.arrays(dim) {
		n += max(mem.ArenaBytes(bytes), 4096)
	}
	return n + turnsBytes(cfg) + int64(expectedBlocks(cfg))*mem.ArenaBytes(4*topology.BlockEntries)
}

// turnsBytes returns the memory of the lists of each set's training nodes, which grow while they
// are filled.
func turnsBytes(cfg *Config) int64 { return mem.HeapCost(8 * int64(len(cfg.Train))) }

// expectedBlocks returns how many blocks the lists of a set are expected to take, and an eighth
// more. An edge has both ends in memory with the square of the share of nodes there.
func expectedBlocks(cfg *Config) int {
	share := float64(cfg.Deal.Most(cfg.capacity())) / float64(cfg.Deal.Nodes())
	return int(share*share*float64(cfg.Edges)*9/8)/topology.BlockEntries + 1
}

// arena maps memory, which Close unmaps.
func (b *Buffer) arena(what string, bytes int64) ([]byte, error) {
	a, err := mem.NewArena(b.cfg.Budget, what+" of partitions in memory", bytes)
	if err != nil {
		return nil, err
	}
	b.arenas = append(b.arenas, a)
	return a.Bytes(), nil
}

// addBlock adds a block for entries of lists.
func (b *Buffer) addBlock() error {
	all, err := b.arena("edges", 4*topology.BlockEntries)
	if err == nil {
		b.Blocks = append(b.Blocks, mem.View[sample.NodeID](all))
		b.Bytes = 12*int64(len(b.start)) + 4*topology.BlockEntries*int64(len(b.Blocks))
	}
	return err
}

// Close frees the memory. A read that is under way ends first.
func (b *Buffer) Close() error {
	err := b.parts.Drop()
	for _, a := range b.arenas {
		err = errors.Join(err, a.Free())
	}
	b.cfg.Budget.Release(b.turnsHeld)
	b.arenas, b.turnsHeld = nil, 0
	return err
}

// Fill reads the features of a partition into a frame: of its nodes in ascending order.
func (b *Buffer) Fill(ctx context.Context, part, frame int) (bytes int64, err error) {
	if b.cfg.Rows == nil {
		return 0, nil
	}
	const rowsOnce = 1 << 14 // rows that are read together
	nodes, at := make([]sample.NodeID, 0, rowsOnce), make([]uint32, 0, rowsOnce)
	read := func() {
		if err == nil && len(nodes) > 0 {
			err = b.cfg.Rows.Gather(ctx, nodes, at, b.rows)
		}
		nodes, at = nodes[:0], at[:0]
	}
	slot := b.firstSlot(frame)
	b.cfg.Deal.EachNode(b.flags(roaring.BitmapOf(uint32(part))), func(_ int, v sample.NodeID) {
		nodes, at = append(nodes, v), append(at, slot-1)
		if slot++; len(nodes) == rowsOnce {
			read()
		}
	})
	if read(); err != nil {
		return 0, fmt.Errorf("sample: read the features of partitions: %w", err)
	}
	return 4 * int64(b.dim) * int64(b.cfg.Deal.Size(part)), nil
}

// Store is not called: features do not change.
func (b *Buffer) Store(int, int) (int64, error) { return 0, nil }

// firstSlot returns the first slot of a frame.
func (b *Buffer) firstSlot(frame int) uint32 { return 1 + uint32(frame)*uint32(b.cfg.Deal.Most(1)) }

// flags returns whether each partition is in a set.
func (b *Buffer) flags(set *roaring.Bitmap) []bool {
	in := make([]bool, b.cfg.Deal.Parts())
	for it := set.Iterator(); it.HasNext(); {
		in[it.Next()] = true
	}
	return in
}

// load loads the partitions of a set to memory and drops all others, and begins to read those of
// the next set, if there is one and room. It reads the features of new partitions, and the lists of
// all.
func (b *Buffer) load(ctx context.Context, lists topology.Reader, now,
	next *roaring.Bitmap) error {
	before := b.parts.Resident().Clone()
	err := b.parts.Advance(ctx, now, next)
	if err == nil {
		b.cfg.Deal.EachNode(b.flags(roaring.AndNot(before, now)),
			func(_ int, v sample.NodeID) { b.slot[v] = 0 })
		b.enter(roaring.AndNot(now, before))
		err = b.readLists(ctx, lists, b.flags(now))
	}
	if err != nil { // what is in memory is incomplete
		clear(b.slot)
		_ = b.parts.Drop() // Advance returns its error
	}
	return err
}

// enter gives slots to the nodes of new partitions, in the order of Fill.
func (b *Buffer) enter(fresh *roaring.Bitmap) {
	slots := make([]uint32, b.cfg.Deal.Parts())
	for it := fresh.Iterator(); it.HasNext(); {
		part := it.Next()
		slots[part] = b.firstSlot(b.parts.Frame(int(part)))
	}
	b.cfg.Deal.EachNode(b.flags(fresh), func(part int, v sample.NodeID) {
		b.slot[v] = slots[part]
		slots[part]++
	})
}
