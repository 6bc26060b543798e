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

	"gdb/internal/mem"
	"gdb/layout"
	"gdb/layout/topology"
	"gdb/sample"
	"gdb/sample/rowcache"
)

// Order says how an epoch goes through partitions; *partition.Epoch implements it.
type Order interface {
	// Sets returns the number of sets, and Partitions returns the partitions of one.
	Sets() int
	Partitions(set int) []int
	// SetOf returns the set in whose turn a training node of a partition is trained on, -1 for
	// none.
	SetOf(part int, node uint32) int
}

// Config says which partitions are kept in memory, and how epochs go.
type Config struct {
	Deal *Deal
	// Capacity is the number of partitions in memory.
	Capacity int
	// Order returns the order of an epoch, which must depend on its number alone.
	Order func(epoch uint64) Order
	// Train are the training nodes. They must not change.
	Train []sample.NodeID
	// Batch is the number of training nodes of a batch, and Seed is what their order depends on.
	Batch int
	Seed  uint64
	// Rows are the features; nil for none. The caller closes them.
	Rows rowcache.Rows
	// Edges is the number of entries of all lists of the graph. Memory is taken in advance for as
	// many as a set is expected to have; a set with more takes more.
	Edges uint64
	// Threads bounds the goroutines that copy rows.
	Threads int
	// Budget counts the memory; nil counts none.
	Budget *mem.Budget
}

// blockEntries is the number of entries in a block of the lists in memory: 2 MiB.
const blockEntries = 1 << 19

// Buffer holds the partitions in memory. It is a topology.Reader of the lists of their nodes,
// without neighbors that are not in memory, and has their features. One Epoch at a time changes
// what is in memory; between changes, any goroutine may read.
//
// It takes 4 bytes of memory per node of the graph, 8 per training node, 16 bytes and the features
// per node in memory, and 4 per entry of their lists in memory.
type Buffer struct {
	cfg   Config
	nodes uint64
	dim   int

	arenas []*mem.Arena
	slot   []uint32 // slot of each node, from 1 on; 0 if it is not in memory
	rows   []float32
	start  []uint64 // where the list of a slot begins, counted over all blocks
	degree []uint32
	free   []uint32 // free slots, from 1 on
	blocks [][]sample.NodeID
	edges  uint64 // number of entries in memory

	turnsHeld int64  // bytes of turnsBytes counted in the budget
	held      []bool // which partitions are in memory
	counts    counts
}

// New takes the memory of an empty buffer. The caller calls Close.
func New(cfg Config) (b *Buffer, err error) {
	b = &Buffer{cfg: cfg, nodes: cfg.Deal.spec.Nodes, held: make([]bool, cfg.Deal.Parts())}
	if cfg.Rows != nil {
		b.dim = cfg.Rows.Meta().Dim
	}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("sample: a buffer of %d of %d partitions: %w",
				cfg.Capacity, cfg.Deal.Parts(), err), b.Close())
		}
	}()
	slots := int64(cfg.Deal.Most(cfg.Capacity))
	for _, part := range []struct {
		what  string
		bytes int64
		take  func(all []byte)
	}{
		{"places of nodes", 4 * int64(b.nodes), func(a []byte) { b.slot = mem.View[uint32](a) }},
		{"features", 4 * slots * int64(b.dim), func(a []byte) { b.rows = mem.View[float32](a) }},
		{"places of lists", 8 * slots, func(a []byte) { b.start = mem.View[uint64](a) }},
		{"lengths of lists", 4 * slots, func(a []byte) { b.degree = mem.View[uint32](a) }},
		{"free places", 4 * slots, func(a []byte) { b.free = mem.View[uint32](a) }},
	} {
		all, err := b.arena(part.what, part.bytes)
		if err != nil {
			return b, err
		}
		part.take(all)
	}
	if err := cfg.Budget.Reserve("turns of training nodes", turnsBytes(&cfg)); err != nil {
		return b, err
	}
	b.turnsHeld = turnsBytes(&cfg)
	for i := range b.free { // so that slot 1 is taken first
		b.free[i] = uint32(len(b.free) - i)
	}
	for range expectedBlocks(&cfg) {
		if err := b.addBlock(); err != nil {
			return b, err
		}
	}
	return b, nil
}

// Bytes returns the memory that New takes, in bytes.
func Bytes(cfg *Config, dim int) (n int64) {
	slots := int64(cfg.Deal.Most(cfg.Capacity))
	for _, bytes := range []int64{4 * int64(cfg.Deal.spec.Nodes), 4 * slots * int64(dim), 8 * slots,
		4 * slots, 4 * slots} {
		n += max(mem.ArenaBytes(bytes), 4096)
	}
	return n + turnsBytes(cfg) + int64(expectedBlocks(cfg))*mem.ArenaBytes(4*blockEntries)
}

// turnsBytes returns the memory of the lists of each set's training nodes, which grow while they
// are filled.
func turnsBytes(cfg *Config) int64 { return mem.HeapCost(8 * int64(len(cfg.Train))) }

// expectedBlocks returns how many blocks the lists of a set are expected to take, and an eighth
// more. An edge has both ends in memory with the square of the share of nodes there.
func expectedBlocks(cfg *Config) int {
	share := float64(cfg.Deal.Most(cfg.Capacity)) / float64(cfg.Deal.spec.Nodes)
	return int(share*share*float64(cfg.Edges)*9/8)/blockEntries + 1
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
	all, err := b.arena("edges", 4*blockEntries)
	if err == nil {
		b.blocks = append(b.blocks, mem.View[sample.NodeID](all))
	}
	return err
}

// Close frees the memory.
func (b *Buffer) Close() (err error) {
	for _, a := range b.arenas {
		err = errors.Join(err, a.Free())
	}
	b.cfg.Budget.Release(b.turnsHeld)
	*b = Buffer{cfg: b.cfg}
	return err
}

// load loads the partitions of a set to memory, and drops all others. It reads the features of new
// partitions, and the lists of all.
func (b *Buffer) load(ctx context.Context, lists topology.Reader, parts []int) error {
	in, fresh := make([]bool, len(b.held)), make([]bool, len(b.held))
	for _, p := range parts {
		in[p], fresh[p] = true, !b.held[p]
	}
	b.leave(in)
	copy(b.held, in)
	err := b.enter(ctx, fresh)
	if err == nil {
		err = b.readLists(ctx, lists, in)
	}
	if err != nil { // what is in memory is incomplete
		b.leave(make([]bool, len(in)))
	}
	return err
}

// leave frees the slots of partitions that are not in a set.
func (b *Buffer) leave(in []bool) {
	out := make([]bool, len(in))
	for p := range in {
		out[p] = b.held[p] && !in[p]
		b.held[p] = b.held[p] && in[p]
	}
	b.cfg.Deal.EachNode(out, func(v sample.NodeID) {
		if s := b.slot[v]; s != 0 {
			b.slot[v] = 0
			b.free = append(b.free, s)
		}
	})
}

// rowsOnce is how many rows are read together.
const rowsOnce = 1 << 14

// enter gives slots to the nodes of new partitions, and reads their features.
func (b *Buffer) enter(ctx context.Context, fresh []bool) (err error) {
	nodes, at := make([]sample.NodeID, 0, rowsOnce), make([]uint32, 0, rowsOnce)
	read := func() {
		if err == nil && b.cfg.Rows != nil && len(nodes) > 0 {
			err = b.cfg.Rows.Gather(ctx, nodes, at, b.rows)
		}
		nodes, at = nodes[:0], at[:0]
	}
	b.cfg.Deal.EachNode(fresh, func(v sample.NodeID) {
		if err != nil {
			return
		}
		s := b.free[len(b.free)-1]
		b.free = b.free[:len(b.free)-1]
		b.slot[v] = s
		nodes, at = append(nodes, v), append(at, s-1)
		if len(nodes) == rowsOnce {
			read()
		}
	})
	read()
	if err != nil {
		return fmt.Errorf("sample: read the features of partitions: %w", err)
	}
	return nil
}

// listsOnce is how many lists are read together, and entriesOnce how many entries of them.
const listsOnce, entriesOnce = 1 << 10, 1 << 18

// readLists reads the lists of the nodes in memory, and keeps the neighbors that are in memory.
func (b *Buffer) readLists(ctx context.Context, lists topology.Reader, in []bool) (err error) {
	session := lists.NewSession()
	defer session.Release()
	b.edges = 0
	nodes := make([]sample.NodeID, 0, listsOnce)
	degrees := make([]uint32, listsOnce)
	read := func() {
		if err == nil && len(nodes) > 0 {
			err = b.readSome(ctx, session, nodes, degrees[:len(nodes)])
		}
		nodes = nodes[:0]
	}
	b.cfg.Deal.EachNode(in, func(v sample.NodeID) {
		if nodes = append(nodes, v); len(nodes) == listsOnce {
			read()
		}
	})
	read()
	if err != nil {
		return fmt.Errorf("sample: read the neighbor lists of partitions: %w", err)
	}
	return nil
}

// readSome reads the lists of nodes: as many together as have entriesOnce entries, and longer lists
// in parts.
func (b *Buffer) readSome(ctx context.Context, s topology.Session, nodes []sample.NodeID,
	degrees []uint32) error {
	if err := s.Degrees(ctx, nodes, degrees); err != nil {
		return err
	}
	for len(nodes) > 0 {
		n, entries := 1, uint64(degrees[0])
		for n < len(nodes) && entries+uint64(degrees[n]) <= entriesOnce {
			entries += uint64(degrees[n])
			n++
		}
		var err error
		parts, ok := s.(topology.PartReader)
		if ok && entries > entriesOnce {
			err = b.readLong(ctx, parts, nodes[0], degrees[0])
		} else {
			err = b.readWhole(ctx, s, nodes[:n])
		}
		if err != nil {
			return err
		}
		nodes, degrees = nodes[n:], degrees[n:]
	}
	return nil
}

// readWhole reads the whole lists of nodes.
func (b *Buffer) readWhole(ctx context.Context, s topology.Session, nodes []sample.NodeID) error {
	l, err := s.Lists(ctx, nodes)
	if err != nil {
		return err
	}
	for i, v := range nodes {
		b.begin(v)
		if err := b.keep(v, l.Nbrs[l.Off[i]:l.Off[i+1]]); err != nil {
			return err
		}
	}
	return nil
}

// readLong reads the list of v in parts.
func (b *Buffer) readLong(ctx context.Context, s topology.PartReader, v sample.NodeID,
	degree uint32) error {
	b.begin(v)
	for from := uint32(0); from < degree; from += min(entriesOnce, degree-from) {
		l, err := s.ListPart(ctx, v, from, from+min(entriesOnce, degree-from))
		if err != nil {
			return err
		}
		if err := b.keep(v, l.Nbrs); err != nil {
			return err
		}
	}
	return nil
}

// begin begins the list of a node, after the last entry.
func (b *Buffer) begin(v sample.NodeID) {
	s := b.slot[v] - 1
	b.start[s], b.degree[s] = b.edges, 0
}

// keep adds the neighbors that are in memory to the list of v, which was begun last.
func (b *Buffer) keep(v sample.NodeID, neighbors []sample.NodeID) error {
	first := b.edges
	for _, u := range neighbors {
		if uint64(u) >= b.nodes {
			return layout.OutOfRange(u, b.nodes)
		}
		if b.slot[u] == 0 {
			continue
		}
		if b.edges/blockEntries == uint64(len(b.blocks)) {
			if err := b.addBlock(); err != nil {
				return err
			}
		}
		b.blocks[b.edges/blockEntries][b.edges%blockEntries] = u
		b.edges++
	}
	b.degree[b.slot[v]-1] += uint32(b.edges - first)
	return nil
}
