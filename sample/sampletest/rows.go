package sampletest

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"sync/atomic"
	"unsafe"

	"gdb/blockdev"
	"gdb/internal/mem"
	"gdb/internal/rng"
	"gdb/kv"
	"gdb/layout"
	"gdb/layout/rowfile"
)

// Rows computes feature rows from their node: rowcache.Rows that tests can fail and slow down.
type Rows struct {
	Count uint64 // the number of nodes
	Dim   int
	// Fail, if it is not nil, makes reads fail that include this node.
	Fail *layout.NodeID
	read atomic.Uint64
}

// Value returns element j of the row of v.
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

// GatherParts computes rows, and does not call arrived.
func (r *Rows) GatherParts(ctx context.Context, nodes []layout.NodeID, at []uint32, out []float32,
	_ func(keys []uint64)) error {
	return r.Gather(ctx, nodes, at, out)
}

// GatherStored returns false: rows are computed.
func (r *Rows) GatherStored(context.Context, []layout.NodeID, []uint32,
	func(read, bytes int64) ([]byte, error)) (read bool, err error) {
	return false, nil
}

// Sweep computes the rows of keys, each of which is node<<32 | list. It does not use buf, but
// refuses one that is not aligned, to which a disk could not read.
func (r *Rows) Sweep(ctx context.Context, keys []uint64, buf []byte,
	emit func(list uint32, row []byte) error) error {
	if uintptr(unsafe.Pointer(unsafe.SliceData(buf)))%blockdev.Align != 0 {
		return errors.New("sampletest: the buffer of a sweep is not aligned")
	}
	row := make([]float32, r.Dim)
	for i, key := range keys {
		if i > 0 && key < keys[i-1] {
			return fmt.Errorf("sampletest: keys %d and %d do not ascend", i-1, i)
		}
		if err := r.Gather(ctx, []layout.NodeID{layout.NodeID(key >> 32)}, nil, row); err != nil {
			return err
		}
		if err := emit(uint32(key), mem.BytesOf(row)); err != nil {
			return err
		}
	}
	return nil
}

// SweepCost counts a read for each row.
func (r *Rows) SweepCost(keys iter.Seq[[]uint64], lists int) (once rowfile.ReadCost,
	apart []rowfile.ReadCost) {
	apart = make([]rowfile.ReadCost, lists)
	count := func(c *rowfile.ReadCost) { c.Reads, c.Bytes = c.Reads+1, c.Bytes+int64(4*r.Dim) }
	before := -1
	for some := range keys {
		for _, key := range some {
			if int(uint32(key)) >= lists {
				continue
			}
			count(&apart[uint32(key)])
			if v := int(key >> 32); v != before {
				count(&once)
				before = v
			}
		}
	}
	return once, apart
}

// Decode copies rows.
func (r *Rows) Decode(out []float32, rows []byte) error {
	copy(mem.BytesOf(out), rows)
	return nil
}

// BytesRead returns how many bytes of rows were computed.
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
