package rowcache

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"gdb/internal/mem"
	"gdb/internal/pace"
	"gdb/kv"
	"gdb/layout"
	"gdb/layout/rowfile"
)

// sweepBytes is the memory that a pass reads to: with less, the device waits while the processor is
// busy.
const sweepBytes = 8 << 20

// Staged reads rows of a file, some of which are staged: in memory for now. All methods may be
// called from any goroutine.
type Staged struct {
	file   *rowfile.Reader
	dim    int
	budget *mem.Budget

	mu     sync.RWMutex // guards what is staged
	arena  *mem.Arena
	values []float32       // row of each of nodes
	nodes  []layout.NodeID // nodes whose rows are staged, ascending

	staged, used atomic.Uint64 // number of rows staged, and gathered from memory, in all
}

// NewStaged returns rows of which none are staged. The caller calls Drop before it closes file.
func NewStaged(file *rowfile.Reader, budget *mem.Budget) *Staged {
	return &Staged{file: file, dim: file.Meta().Dim, budget: budget}
}

// rowBytes returns the bytes of a staged row of dim values, with its node. keyBytes is what its key
// takes besides while rows are read.
func rowBytes(dim int) int64 { return 4*int64(dim) + 4 }

const keyBytes = 8

// fixedBytes bounds what staging takes whatever the number of rows: arenas are whole huge pages.
const fixedBytes = sweepBytes + 2*mem.HugePageBytes

// StagedFit returns how many rows of dim values can be staged in this many bytes of memory.
func StagedFit(bytes int64, dim int) int {
	return int(max(0, bytes-fixedBytes) / (rowBytes(dim) + keyBytes))
}

// Fit returns how many rows can be staged in this many bytes of memory.
func (r *Staged) Fit(bytes int64) int { return StagedFit(bytes, r.dim) }

// Stage reads the rows of the nodes in lists, each once, in place of the rows staged before. If
// there is no memory for them, it returns a mem.LimitError and nothing is staged.
func (r *Staged) Stage(ctx context.Context, lists [][]layout.NodeID) (err error) {
	if err := r.Drop(); err != nil {
		return err
	}
	keys, held, err := r.keys(lists)
	if err != nil || len(keys) == 0 {
		return errors.Join(err, held.Free())
	}
	defer func() { err = errors.Join(err, held.Free()) }()
	buf, err := mem.NewArena(r.budget, "buffer to stage rows", sweepBytes)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, buf.Free()) }()
	arena, err := mem.NewArena(r.budget, "staged rows", int64(len(keys))*rowBytes(r.dim))
	if err != nil {
		return err
	}
	populated := arena.Populate()
	split := 4 * len(keys) * r.dim
	values := mem.View[float32](arena.Bytes()[:split])
	nodes := mem.View[layout.NodeID](arena.Bytes()[split:])
	for i, k := range keys {
		nodes[i] = layout.NodeID(k >> 32)
	}
	err = r.file.Sweep(ctx, keys, buf.Bytes(), func(i uint32, row []byte) error {
		return r.file.Decode(values[int(i)*r.dim:int(i+1)*r.dim], row)
	})
	populated()
	if err != nil {
		return errors.Join(fmt.Errorf("staging: %w", err), arena.Free())
	}
	r.staged.Add(uint64(len(keys)))
	r.mu.Lock()
	defer r.mu.Unlock()
	r.arena, r.values, r.nodes = arena, values, nodes
	return nil
}

// keys returns node<<32 | index for the nodes of lists, ascending, each once, and their memory.
func (r *Staged) keys(lists [][]layout.NodeID) (keys []uint64, held *mem.Arena, err error) {
	n := 0
	for _, l := range lists {
		n += len(l)
	}
	if held, err = mem.NewArena(r.budget, "nodes of staged rows", keyBytes*int64(n)); err != nil {
		return nil, nil, err
	}
	keys = mem.View[uint64](held.Bytes())[:0]
	for _, l := range lists {
		for _, v := range l {
			keys = append(keys, uint64(v)<<32)
		}
	}
	pace.RadixSort(keys)
	keys = slices.Compact(keys)
	for i := range keys {
		keys[i] |= uint64(i)
	}
	return keys, held, nil
}

// Drop frees the memory of staged rows.
func (r *Staged) Drop() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	a := r.arena
	r.arena, r.values, r.nodes = nil, nil, nil
	if a == nil {
		return nil
	}
	return a.Free()
}

// Meta describes the rows of the file.
func (r *Staged) Meta() kv.RowsMeta { return r.file.Meta() }

// Scan reads consecutive rows from the file.
func (r *Staged) Scan(ctx context.Context, first layout.NodeID, n int, out []float32) error {
	return r.file.Scan(ctx, first, n, out)
}

// BytesRead returns how many bytes were read from the file.
func (r *Staged) BytesRead() uint64 { return r.file.BytesRead() }

// GatherStored returns false: staged rows were converted.
func (r *Staged) GatherStored(context.Context, []layout.NodeID, []uint32,
	func(read, bytes int64) ([]byte, error)) (read bool, err error) {
	return false, nil
}

// GatherParts copies rows that are staged, and reads the others from the file. It does not call
// arrived.
func (r *Staged) GatherParts(ctx context.Context, nodes []layout.NodeID, at []uint32,
	out []float32, _ func(keys []uint64)) error {
	others, to := r.copyStaged(nodes, at, out)
	if len(others) == 0 {
		return ctx.Err()
	}
	return r.file.Gather(ctx, others, to, out)
}

// copyStaged copies rows that are staged, and returns the other nodes and where their rows go.
func (r *Staged) copyStaged(nodes []layout.NodeID, at []uint32,
	out []float32) (others []layout.NodeID, to []uint32) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	if len(r.nodes) == 0 && at != nil {
		return nodes, at
	}
	for i, v := range nodes {
		row := uint32(i)
		if at != nil {
			row = at[i]
		}
		k, ok := slices.BinarySearch(r.nodes, v)
		if !ok {
			others, to = append(others, v), append(to, row)
			continue
		}
		copy(out[int(row)*r.dim:int(row+1)*r.dim], r.values[k*r.dim:])
	}
	r.used.Add(uint64(len(nodes) - len(others)))
	return others, to
}

// StagedStats count rows since NewStaged.
type StagedStats struct {
	Staged uint64 // rows read ahead
	Used   uint64 // rows asked for that were staged
}

// Stats returns the counters. It may be called at any time.
func (r *Staged) Stats() StagedStats { return StagedStats{r.staged.Load(), r.used.Load()} }
