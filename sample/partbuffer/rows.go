package partbuffer

import (
	"context"
	"fmt"
	"sync/atomic"

	"gdb/internal/mem"
	"gdb/layout/rowfile"
	"gdb/sample"
	"gdb/sample/rowcache"
)

// rows are the features of nodes in memory, each in a slot, counted from 1.
type rows struct {
	from    *rowfile.Reader // nil without features
	all     []float32
	dim     int
	threads int
	slot    func(v sample.NodeID) uint32 // 0 for a node that is not in memory
	halo    bool                         // has rows of nodes that are not in memory:
	summed  bool                         // zeros, which nothing reads, or else what is on disk
	copied  atomic.Uint64
}

// Features returns the features of the nodes in memory, or nil if there are none.
func (r *rows) Features() rowcache.Features {
	if r.from == nil {
		return nil
	}
	return features{r}
}

// rowsOnce is how many rows are read together.
const rowsOnce = 1 << 14

// read reads the rows of nodes to slots from first on, and returns how many bytes they are. each
// calls its argument with the nodes, ascending.
func (r *rows) read(ctx context.Context, first uint32,
	each func(take func(v sample.NodeID))) (bytes int64, err error) {
	if r.from == nil {
		return 0, nil
	}
	nodes, at := make([]sample.NodeID, 0, rowsOnce), make([]uint32, 0, rowsOnce)
	read := func() {
		if err == nil && len(nodes) > 0 {
			err = r.from.Gather(ctx, nodes, at, r.all)
			bytes += 4 * int64(r.dim) * int64(len(nodes))
		}
		nodes, at = nodes[:0], at[:0]
	}
	each(func(v sample.NodeID) {
		nodes, at = append(nodes, v), append(at, first-1)
		if first++; len(nodes) == rowsOnce {
			read()
		}
	})
	if read(); err != nil {
		return 0, fmt.Errorf("sample: read the features of partitions: %w", err)
	}
	return bytes, nil
}

// features gathers the rows of nodes in memory.
type features struct{ r *rows }

// Dim returns the number of values in a row.
func (f features) Dim() int { return f.r.dim }

// Gather copies the rows of nodes to out. All nodes must be in memory; with a halo others are read.
func (f features) Gather(ctx context.Context, nodes []sample.NodeID, out []float32) error {
	r := f.r
	r.copied.Add(uint64(len(nodes)))
	outside := 0
	for _, v := range nodes {
		if r.slot(v) == 0 {
			if outside++; !r.halo {
				return notThere(v)
			}
		}
	}
	bytes := 4 * len(nodes) * r.dim
	rowcache.Parallel(len(nodes), r.threads, bytes, func(first, end int) {
		rowcache.CopyEach(out[first*r.dim:], r.all, r.dim, end-first, bytes, func(i int) uint32 {
			return max(1, r.slot(nodes[first+i])) - 1 // of another node where it is not there
		})
	})
	switch {
	case outside > 0 && r.summed:
		r.clearOutside(nodes, out)
	case outside > 0:
		return r.readOutside(ctx, nodes, out)
	}
	return ctx.Err()
}

// clearOutside makes the rows of the nodes that are not in memory zeros.
func (r *rows) clearOutside(nodes []sample.NodeID, out []float32) {
	for i, v := range nodes {
		if r.slot(v) == 0 {
			clear(out[i*r.dim : (i+1)*r.dim])
		}
	}
}

// readOutside reads the rows of the nodes that are not in memory to out.
func (r *rows) readOutside(ctx context.Context, all []sample.NodeID, out []float32) error {
	nodes, at := make([]sample.NodeID, 0, rowsOnce), make([]uint32, 0, rowsOnce)
	for i, v := range all {
		if r.slot(v) == 0 {
			nodes, at = append(nodes, v), append(at, uint32(i))
		}
		if len(nodes) == rowsOnce || i == len(all)-1 {
			if err := r.from.Gather(ctx, nodes, at, out); err != nil {
				return fmt.Errorf("sample: read the features of neighbors outside memory: %w", err)
			}
			nodes, at = nodes[:0], at[:0]
		}
	}
	return nil
}

// notThere says that a node is not in memory.
func notThere(v sample.NodeID) error {
	return fmt.Errorf("sample: node %d is in no partition that is in memory", v)
}

// Lent returns nil, since rows change places.
func (f features) Lent() []float32 { return nil }

// Stats returns the number of rows copied, each counted as a hit.
func (f features) Stats() rowcache.Stats {
	n := f.r.copied.Load()
	bytes := int64(len(mem.BytesOf(f.r.all)))
	return rowcache.Stats{Policy: "partitions", Capacity: bytes, Used: bytes, Requests: n,
		Hits: n, BytesRead: f.r.from.BytesRead()}
}

// Close does nothing, since the buffer owns the rows.
func (f features) Close() error { return nil }
