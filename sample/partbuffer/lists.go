package partbuffer

import (
	"context"
	"fmt"

	"gdb/internal/mem"
	"gdb/layout"
	"gdb/layout/topology"
	"gdb/sample"
	"gdb/sample/rowcache"
)

// place returns where the list of a node begins, and its length. To ask for a node that is not in
// memory is an error.
func (b *Buffer) place(v sample.NodeID) (first uint64, degree uint32, err error) {
	if uint64(v) >= b.NodeCount || b.slot[v] == 0 {
		return 0, 0, fmt.Errorf("sample: node %d is in no partition that is in memory", v)
	}
	at := b.slot[v] - 1
	return b.start[at], b.degree[at], nil
}

// listsOnce is how many lists are read together, and entriesOnce how many entries of them.
const listsOnce, entriesOnce = 1 << 10, 1 << 18

// readLists reads the lists of the nodes in memory, and keeps the neighbors that are in memory.
func (b *Buffer) readLists(ctx context.Context, lists topology.Reader, in []bool) (err error) {
	session := lists.NewSession()
	defer session.Release()
	b.EntryCount = 0
	nodes := make([]sample.NodeID, 0, listsOnce)
	degrees := make([]uint32, listsOnce)
	read := func() {
		if err == nil && len(nodes) > 0 {
			err = b.readSome(ctx, session, nodes, degrees[:len(nodes)])
		}
		nodes = nodes[:0]
	}
	b.cfg.Deal.EachNode(in, func(_ int, v sample.NodeID) {
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
	b.start[s], b.degree[s] = b.EntryCount, 0
}

// keep adds the neighbors that are in memory to the list of v, which was begun last.
func (b *Buffer) keep(v sample.NodeID, neighbors []sample.NodeID) error {
	first := b.EntryCount
	for _, u := range neighbors {
		if uint64(u) >= b.NodeCount {
			return layout.OutOfRange(u, b.NodeCount)
		}
		if b.slot[u] == 0 {
			continue
		}
		if b.EntryCount/topology.BlockEntries == uint64(len(b.Blocks)) {
			if err := b.addBlock(); err != nil {
				return err
			}
		}
		b.Blocks[b.EntryCount/topology.BlockEntries][b.EntryCount%topology.BlockEntries] = u
		b.EntryCount++
	}
	b.degree[b.slot[v]-1] += uint32(b.EntryCount - first)
	return nil
}

// features gathers the rows of nodes in memory.
type features struct{ b *Buffer }

// Features returns the features of the nodes in memory, or nil if there are none.
func (b *Buffer) Features() rowcache.Features {
	if b.cfg.Rows == nil {
		return nil
	}
	return features{b}
}

// Dim returns the number of values in a row.
func (f features) Dim() int { return f.b.dim }

// Gather copies the rows of nodes to out. All nodes must be in memory.
func (f features) Gather(ctx context.Context, nodes []sample.NodeID, out []float32) error {
	b := f.b
	b.copied.Add(uint64(len(nodes)))
	for _, v := range nodes {
		if _, _, err := b.place(v); err != nil {
			return err
		}
	}
	bytes := 4 * len(nodes) * b.dim
	rowcache.Parallel(len(nodes), b.cfg.Threads, bytes, func(first, end int) {
		rowcache.CopyEach(out[first*b.dim:], b.rows, b.dim, end-first, bytes, func(i int) uint32 {
			return b.slot[nodes[first+i]] - 1
		})
	})
	return ctx.Err()
}

// Lent returns nil, since rows change places.
func (f features) Lent() []float32 { return nil }

// Stats returns the number of rows copied, each counted as a hit.
func (f features) Stats() rowcache.Stats {
	n := f.b.copied.Load()
	bytes := int64(len(mem.BytesOf(f.b.rows)))
	return rowcache.Stats{Policy: "partitions", Capacity: bytes, Used: bytes, Requests: n,
		Hits: n, BytesRead: f.b.cfg.Rows.BytesRead()}
}

// Close does nothing, since the buffer owns the rows.
func (f features) Close() error { return nil }
