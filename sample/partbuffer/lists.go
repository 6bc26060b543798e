package partbuffer

import (
	"context"
	"fmt"
	"sync/atomic"

	"gdb/internal/mem"
	"gdb/layout/listfile"
	"gdb/layout/topology"
	"gdb/sample"
	"gdb/sample/rowcache"
)

// counts are monotonic counters.
type counts struct {
	rows atomic.Uint64 // number of rows copied
}

// Nodes returns the number of nodes of the graph.
func (b *Buffer) Nodes() uint64 { return b.nodes }

// Edges returns the number of entries in memory.
func (b *Buffer) Edges() uint64 { return b.edges }

// Stats returns the memory of the lists.
func (b *Buffer) Stats() topology.Stats {
	bytes := 12*int64(len(b.start)) + 4*blockEntries*int64(len(b.blocks))
	return topology.Stats{Kind: "partitions", Bytes: bytes}
}

// NewSession returns a session that reads lists, for one goroutine.
func (b *Buffer) NewSession() topology.Session { return &session{b: b} }

// session reads lists. To ask for a node that is not in memory is an error.
type session struct {
	b     *Buffer
	nodes []sample.NodeID
	lists listfile.Lists
}

// place returns the slot of a node, from 0 on.
func (s *session) place(v sample.NodeID) (uint32, error) {
	if uint64(v) >= s.b.nodes || s.b.slot[v] == 0 {
		return 0, fmt.Errorf("sample: node %d is in no partition that is in memory", v)
	}
	return s.b.slot[v] - 1, nil
}

// Degrees writes the number of neighbors in memory of each node to deg.
func (s *session) Degrees(ctx context.Context, nodes []sample.NodeID, deg []uint32) error {
	s.nodes = nodes
	for i, v := range nodes {
		at, err := s.place(v)
		if err != nil {
			return err
		}
		deg[i] = s.b.degree[at]
	}
	return ctx.Err()
}

// Gather writes the entries at positions pos of the lists of the last Degrees to out.
func (s *session) Gather(ctx context.Context, off, pos []uint32, out []sample.NodeID) error {
	for i, v := range s.nodes {
		at, err := s.place(v)
		if err != nil {
			return err
		}
		start := s.b.start[at]
		for e := off[i]; e < off[i+1]; e++ {
			k := start + uint64(pos[e])
			out[e] = s.b.blocks[k/blockEntries][k%blockEntries]
		}
	}
	return ctx.Err()
}

// Lists returns the whole lists of nodes, valid until the next call.
func (s *session) Lists(ctx context.Context, nodes []sample.NodeID) (*listfile.Lists, error) {
	l := &s.lists
	l.Off, l.Nbrs = append(l.Off[:0], 0), l.Nbrs[:0]
	for _, v := range nodes {
		at, err := s.place(v)
		if err != nil {
			return nil, err
		}
		for k := s.b.start[at]; k < s.b.start[at]+uint64(s.b.degree[at]); k++ {
			l.Nbrs = append(l.Nbrs, s.b.blocks[k/blockEntries][k%blockEntries])
		}
		l.Off = append(l.Off, uint64(len(l.Nbrs)))
	}
	return l, ctx.Err()
}

// Release does nothing, since a session holds nothing.
func (s *session) Release() {}

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
	b.counts.rows.Add(uint64(len(nodes)))
	for _, v := range nodes {
		if uint64(v) >= b.nodes || b.slot[v] == 0 {
			return fmt.Errorf("sample: node %d is in no partition that is in memory", v)
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

// Stats returns the number of rows copied, each counted as a hit.
func (f features) Stats() rowcache.Stats {
	n := f.b.counts.rows.Load()
	bytes := int64(len(mem.BytesOf(f.b.rows)))
	return rowcache.Stats{Policy: "partitions", Capacity: bytes, Used: bytes, Requests: n,
		Hits: n, BytesRead: f.b.cfg.Rows.BytesRead()}
}

// Close does nothing, since the buffer owns the rows.
func (f features) Close() error { return nil }
