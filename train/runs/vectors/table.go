package vectors

import (
	"context"

	"gdb/internal/trace"
	"gdb/kv"
	"gdb/train/runs"
)

// table has the vectors of all nodes, wherever they are kept. Rows that it hands out are valid
// during the call.
type table interface {
	// Row reads the vector of a node.
	Row(ctx context.Context, node kv.NodeID, to []float32) error
	// Scan calls fn with all vectors, some rows at a time, in the order in which they are kept.
	// node is that of a row.
	Scan(ctx context.Context, fn func(rows []float32, node func(row int) uint32) error) error
	// Each calls fn with all vectors in the order of nodes, some that follow one another at a time.
	Each(ctx context.Context, fn func(first int, rows []float32) error) error
	Close() error
}

// flat is the table of an array of a checkpoint, which has nodes in ascending order.
type flat struct {
	state      *runs.StateFile
	name       string
	nodes, dim int
	block      []float32
}

// newFlat reads the array once, to check it; block is memory to read it in.
func newFlat(ctx context.Context, state *runs.StateFile, name string, nodes int, block []float32,
	dim int) (table, error) {
	if err := state.Check(ctx, name, nodes*dim, block); err != nil {
		return nil, err
	}
	trace.From(ctx).Read(1, 4*uint64(nodes*dim))
	return &flat{state: state, name: name, nodes: nodes, dim: dim, block: block}, nil
}

// Row reads the vector of a node.
func (f *flat) Row(ctx context.Context, node kv.NodeID, to []float32) error {
	trace.From(ctx).Read(1, 4*uint64(f.dim))
	return f.state.Read(f.name, int(node)*f.dim, to)
}

// Scan is Each.
func (f *flat) Scan(ctx context.Context, fn func(rows []float32,
	node func(row int) uint32) error) error {
	return f.Each(ctx, func(first int, rows []float32) error {
		return fn(rows, func(row int) uint32 { return uint32(first + row) })
	})
}

// Each reads block by block.
func (f *flat) Each(ctx context.Context, fn func(first int, rows []float32) error) error {
	most := len(f.block) / f.dim
	for first := 0; first < f.nodes; first += most {
		if err := ctx.Err(); err != nil {
			return err
		}
		block := f.block[:min(most, f.nodes-first)*f.dim]
		if err := f.state.Read(f.name, first*f.dim, block); err != nil {
			return err
		}
		trace.From(ctx).Read(1, 4*uint64(len(block)))
		if err := fn(first, block); err != nil {
			return err
		}
	}
	return nil
}

// Close has nothing to do: the state is closed by Vectors.
func (f *flat) Close() error { return nil }
