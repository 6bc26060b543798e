package encode

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"gdb/compute/kernel"
	"gdb/internal/mem"
	"gdb/kv"
	"gdb/layout"
	"gdb/layout/topology"
	"gdb/sample"
	"gdb/train/model"
	"gdb/train/setting"
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

// near is what batches read where embeddings are on disk by partition: the embeddings of the
// partitions in memory, and the lists between these.
type near struct {
	embeddings []float32
	row, node  func(number uint32) uint32
	at         []uint32
}

// Near makes batches draw from other lists than those of the store. The nodes of these lists have
// numbers of their own, which Batch expects from now on. embeddings is the table from which they
// are read; row returns the row of a number there, and the gradient that Step returns is by row.
// node returns the node of a number. All still encodes the nodes of the store.
func (e *Encoder) Near(lists []topology.Reader, embeddings []float32,
	row, node func(number uint32) uint32, budget *mem.Budget) error {
	fanout, err := sample.ParseFanout(e.cfg.Fanout)
	if err != nil {
		return err
	}
	drawn, err := sample.NewSampler(lists, sample.Config{Fanout: fanout, Seed: e.cfg.Seed,
		Budget: budget})
	if err != nil {
		return err
	}
	e.drawn.Close()
	e.drawn, e.near = drawn, &near{embeddings: embeddings, row: row,
		node: node}
	return nil
}

// rowsOf returns the rows of numbers, valid until the next call.
func (n *near) rowsOf(numbers []uint32) []uint32 {
	n.at = mem.Resized(n.at, len(numbers))
	for i, v := range numbers {
		n.at[i] = n.row(v)
	}
	return n.at
}

// Both reports whether the encoder draws from the lists of outgoing edges too.
func (e *Encoder) Both() bool { return e.both }

// SpecOf returns the model of the encoder that settings choose, for a graph. Each layer has the
// width of the vectors, and adds its input to its output.
func SpecOf(c *setting.Link, m *kv.Meta) (*model.Spec, error) {
	a, err := model.Find(c.Encoder)
	if err != nil {
		return nil, fmt.Errorf("train: encoder: %w", err)
	}
	fanout, err := sample.ParseFanout(c.Fanout)
	if err != nil {
		return nil, fmt.Errorf("train: fanout %q: %w", c.Fanout, err)
	}
	s := &model.Spec{Architecture: a, Options: setting.Options{Residual: true}}
	if c.Encoder == "rgcn" {
		s.Relations = len(m.EdgeTypes)
	}
	s.Dims = []int{0}
	if c.EncodesVectors() {
		s.NodeEmbedding, s.Dims[0] = c.Dim, c.Dim
	}
	if c.EncodesFeatures() {
		if len(m.Features) == 0 {
			return nil, errors.New("train: the store has no features: leave --encoder-input out")
		}
		s.Dims[0] += setting.FeatureDim(m)
	}
	for range fanout {
		s.Dims = append(s.Dims, c.Dim)
	}
	if err := s.Validate(); err != nil {
		return nil, fmt.Errorf("train: encoder %s: %w", c.Encoder, err)
	}
	return s, nil
}
