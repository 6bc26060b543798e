package rowcache

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"gdb/internal/mem"
	"gdb/layout"
)

// resident holds all rows.
type resident struct {
	rows     Rows
	arena    *mem.Arena
	table    []float32
	dim      int
	threads  int
	requests atomic.Uint64
	held     atomic.Bool // see Located
}

// NewResident returns features that are read whole, once: 4 bytes per value of the graph, counted
// in budget. Gathering copies with up to threads goroutines. rows are closed by their owner.
func NewResident(ctx context.Context, rows Rows, nodes uint64, threads int,
	budget *mem.Budget) (Features, error) {
	f := &resident{rows: rows, dim: rows.Meta().Dim, threads: threads}
	var err error
	f.arena, err = mem.NewArena(budget, "resident features", int64(nodes)*int64(f.dim)*4)
	if err != nil {
		return nil, err
	}
	f.table = mem.View[float32](f.arena.Bytes())
	stop := f.arena.Populate()
	err = f.load(ctx, nodes)
	stop()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("sample: load features: %w", err), f.arena.Free())
	}
	return f, nil
}

// load reads all rows.
func (f *resident) load(ctx context.Context, nodes uint64) error {
	return load(ctx, int(nodes), f.dim, func(ctx context.Context, first, n int) error {
		part := f.table[uint64(first)*uint64(f.dim):][:uint64(n)*uint64(f.dim)]
		return f.rows.Scan(ctx, layout.NodeID(first), n, part)
	})
}

// Dim is the number of values in a row.
func (f *resident) Dim() int { return f.dim }

// Gather copies rows.
func (f *resident) Gather(ctx context.Context, nodes []layout.NodeID, out []float32) error {
	f.requests.Add(uint64(len(nodes)))
	bytes := len(nodes) * f.dim * 4
	Parallel(len(nodes), f.threads, bytes, func(first, end int) {
		CopyRows(out[first*f.dim:], f.table, f.dim, nodes[first:end], nil, bytes)
	})
	return ctx.Err()
}

// Table is the matrix of all rows, (nodes, Dim): inference over the whole graph reads it in place.
func (f *resident) Table() []float32 { return f.table }

// Stats counts every request as a hit.
func (f *resident) Stats() Stats {
	n := f.requests.Load()
	bytes := int64(len(f.table)) * 4
	return Stats{Policy: "all", Capacity: bytes, Used: bytes, Requests: n, Hits: n,
		BytesRead: f.rows.BytesRead()}
}

// Close frees the memory.
func (f *resident) Close() error { return f.arena.Free() }

// direct reads every row from disk.
type direct struct {
	rows     Rows
	requests atomic.Uint64
}

// NewDirect returns features without a cache. rows are closed by their owner.
func NewDirect(rows Rows) Features { return &direct{rows: rows} }

// Dim is the number of values in a row.
func (f *direct) Dim() int { return f.rows.Meta().Dim }

// Gather reads rows.
func (f *direct) Gather(ctx context.Context, nodes []layout.NodeID, out []float32) error {
	f.requests.Add(uint64(len(nodes)))
	return f.rows.Gather(ctx, nodes, nil, out)
}

// Stats counts every request as a miss.
func (f *direct) Stats() Stats {
	return Stats{Policy: "none", Requests: f.requests.Load(), BytesRead: f.rows.BytesRead()}
}

// Close does nothing.
func (f *direct) Close() error { return nil }
