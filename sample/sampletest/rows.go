package sampletest

import (
	"context"
	"fmt"
	"sync/atomic"

	"gdb/internal/rng"
	"gdb/kv"
	"gdb/layout"
)

// Rows are feature rows computed from their node. They satisfy sample.Rows and sample.RawRows.
type Rows struct {
	Count uint64 // nodes
	Dim   int
	// Fail makes reads that include this node fail, if it is set.
	Fail *layout.NodeID
	read atomic.Uint64
}

// Value is element j of the row of v.
func Value(v layout.NodeID, j int) float32 {
	return float32(rng.Key(uint64(v), uint64(j))>>40) / (1 << 24)
}

// Meta describes the rows as f32.
func (r *Rows) Meta() kv.RowsMeta {
	return kv.RowsMeta{Name: "computed", DType: "f32", Dim: r.Dim, RowBytes: 4 * r.Dim}
}

// Gather computes rows.
func (r *Rows) Gather(ctx context.Context, nodes []layout.NodeID, at []uint32,
	out []float32) error {
	for i, v := range nodes {
		to := i
		if at != nil {
			to = int(at[i])
		}
		if err := r.check(v); err != nil {
			return err
		}
		for j := range r.Dim {
			out[to*r.Dim+j] = Value(v, j)
		}
	}
	r.read.Add(uint64(len(nodes) * r.Dim * 4))
	return ctx.Err()
}

// Scan computes consecutive rows.
func (r *Rows) Scan(ctx context.Context, first layout.NodeID, n int, out []float32) error {
	nodes := make([]layout.NodeID, n)
	for i := range nodes {
		nodes[i] = first + layout.NodeID(i)
	}
	return r.Gather(ctx, nodes, nil, out)
}

// BytesRead counts the bytes of rows computed.
func (r *Rows) BytesRead() uint64 { return r.read.Load() }

func (r *Rows) check(v layout.NodeID) error {
	if uint64(v) >= r.Count {
		return fmt.Errorf("sampletest: row %d is out of range", v)
	}
	if r.Fail != nil && v == *r.Fail {
		return fmt.Errorf("sampletest: row %d cannot be read", v)
	}
	return nil
}
