package encode

import (
	"context"
	"fmt"
	"slices"

	"gdb/compute/kernel"
	"gdb/internal/mem"
	"gdb/kv"
	"gdb/layout"
)

// features holds the features of all nodes.
type features struct {
	dim    int
	values []float32 // (nodes, dim)
	arena  *mem.Arena
}

// readFeatures reads the features of a store. Rows of counts are divided by their sum, as in node
// classification.
func (e *Encoder) readFeatures(ctx context.Context, m *kv.Meta, budget *mem.Budget) (*features,
	error) {
	rows, err := e.files.Rows(ctx, m.Features[0])
	if err != nil {
		return nil, fmt.Errorf("train: encoder: %w", err)
	}
	if slices.Contains(m.Stats.CountFeatures, m.Features[0].Name) {
		rows.NormalizeRows()
	}
	f := &features{dim: m.Features[0].Dim}
	size := max(1, int64(m.Nodes)*int64(f.dim))
	if f.arena, err = mem.NewArena(budget, "features", 4*size); err != nil {
		return nil, fmt.Errorf("train: features for an encoder: %w", err)
	}
	f.values = mem.View[float32](f.arena.Bytes())
	const once = 1 << 14
	for first := 0; first < e.nodes; first += once {
		n := min(once, e.nodes-first)
		err := rows.Scan(ctx, layout.NodeID(first), n, f.values[first*f.dim:(first+n)*f.dim])
		if err != nil {
			return f, fmt.Errorf("train: features for an encoder: %w", err)
		}
	}
	return f, nil
}

// gather reads the input of the sample's nodes: their features, followed by what is learned. near
// says that nodes are given by numbers of the partitions in memory.
func (e *Encoder) gather(near bool) error {
	nodes := mem.View[uint32](mem.BytesOf(e.dense.NodeIDs))
	width, first := 0, 0
	if e.features != nil {
		first, width = e.features.dim, e.features.dim
	}
	if e.cfg.EncodesVectors() {
		width += e.cfg.Dim
	}
	if err := e.held.AtLeast(4 * int64(width+e.cfg.Dim) * int64(len(nodes))); err != nil {
		return fmt.Errorf("train: encoder: %w", err)
	}
	e.x = mem.Resized(e.x, len(nodes)*width)
	if f := e.features; f != nil {
		e.pool.Span(len(nodes), rowsOnce, func(lo, hi int) {
			for i := lo; i < hi; i++ {
				node := int(nodes[i])
				if near {
					node = int(e.near.node(nodes[i]))
				}
				copy(e.x[i*width:][:first], f.values[node*f.dim:][:f.dim])
			}
		})
	}
	if !e.cfg.EncodesVectors() {
		return nil
	}
	e.rows = kernel.Rows{Cols: e.cfg.Dim, At: nodes, X: e.x, Stride: width}
	from := e.embeddings
	if near {
		from, e.rows.At = e.near.embeddings, e.near.rowsOf(nodes)
	}
	e.rows.Gather(e.pool, from)
	return nil
}

// rowsOnce is how many rows a worker copies at a time.
const rowsOnce = 64
