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

// counts are monotonic.
type counts struct {
	rows atomic.Uint64 // copied
}

// Nodes counts those of the graph.
func (b *Buffer) Nodes() uint64 { return b.nodes }

// Edges counts the entries in memory.
func (b *Buffer) Edges() uint64 { return b.edges }

// Stats tells the memory of the lists.
func (b *Buffer) Stats() topology.Stats {
	bytes := 12*int64(len(b.start)) + 4*blockEntries*int64(len(b.blocks))
	return topology.Stats{Kind: "partitions", Bytes: bytes}
}

// NewSession returns a reader of lists for one goroutine.
func (b *Buffer) NewSession() topology.Session { return &session{b: b} }

// session reads lists. Nodes that are not in memory are an error.
type session struct {
	b     *Buffer
	nodes []sample.NodeID
	lists listfile.Lists
}

// place is the place of a node.
func (s *session) place(v sample.NodeID) (uint32, error) {
	if uint64(v) >= s.b.nodes || s.b.slot[v] == 0 {
		return 0, fmt.Errorf("sample: node %d is in no partition that is in memory", v)
	}
	return s.b.slot[v] - 1, nil
}

// Degrees counts the neighbors in memory.
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

// Gather copies entries.
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

// Lists copies whole lists.
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

// Release does nothing.
func (s *session) Release() {}

// features are those of the nodes in memory.
type features struct{ b *Buffer }

// Features are those of the nodes in memory; nil without any.
func (b *Buffer) Features() rowcache.Features {
	if b.cfg.Rows == nil {
		return nil
	}
	return features{b}
}

// Dim is the number of values in a row.
func (f features) Dim() int { return f.b.dim }

// Gather copies rows.
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

// Stats counts every row as found: all are in memory by then.
func (f features) Stats() rowcache.Stats {
	n := f.b.counts.rows.Load()
	bytes := int64(len(mem.BytesOf(f.b.rows)))
	return rowcache.Stats{Policy: "partitions", Capacity: bytes, Used: bytes, Requests: n,
		Hits: n, BytesRead: f.b.cfg.Rows.BytesRead()}
}

// Close does nothing: the buffer has the rows.
func (f features) Close() error { return nil }
