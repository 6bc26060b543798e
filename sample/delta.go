package sample

import (
	"context"
	"slices"

	"gdb/internal/mem"
	"gdb/internal/pace"
	"gdb/sample/draw"

	"github.com/RoaringBitmap/roaring/v2"
)

// Delta is a way to find the nodes that a hop adds to a batch. All ways give the same sets.
type Delta uint8

const (
	// DeltaTable finds them with a hash table of the batch's nodes, the fastest way for
	// mini-batches. A delta is in the order in which nodes first appear.
	DeltaTable Delta = iota
	// DeltaRoaring finds them with roaring bitmaps, which take 2 bytes per node and less for dense
	// sets; it is for samples of a large part of the graph. A delta is in ascending order.
	DeltaRoaring
)

// deltaSet holds the nodes of a batch and numbers them.
type deltaSet interface {
	// reset empties the set and adds nodes, the seeds. twice is the index of a seed that repeats an
	// earlier one, or -1.
	reset(ctx context.Context, nodes []NodeID) (twice int, err error)
	// extend appends the nodes of nbrs that are new to nodes, whose capacity suffices, and writes
	// the index in nodes of each of nbrs to loc. starts says where each delta starts in nodes.
	extend(ctx context.Context, nodes []NodeID, starts []uint32, nbrs []NodeID,
		loc []uint32) ([]NodeID, error)
}

func newDeltaSet(kind Delta, held *mem.Account) deltaSet {
	if kind == DeltaRoaring {
		return &roaringSet{held: held}
	}
	return tableSet{draw.NewNodeTable(held)}
}

// tableSet finds deltas with a hash table.
type tableSet struct{ table *draw.NodeTable }

func (t tableSet) reset(ctx context.Context, nodes []NodeID) (int, error) {
	return t.table.Reset(ctx, nodes)
}

func (t tableSet) extend(ctx context.Context, nodes []NodeID, _ []uint32, nbrs []NodeID,
	loc []uint32) ([]NodeID, error) {
	return t.table.Extend(ctx, nodes, nbrs, loc)
}

// roaringSet finds deltas with bitmaps, and indexes by binary search in the sorted deltas, which
// takes about 100 ns per edge.
type roaringSet struct {
	held   *mem.Account
	seen   *roaring.Bitmap
	seeds  []uint64 // seed<<32 | index, ascending
	sorted []uint32
}

func (r *roaringSet) reset(_ context.Context, nodes []NodeID) (int, error) {
	if err := resize(r.held, &r.seeds, len(nodes)); err != nil {
		return 0, err
	}
	for i, v := range nodes {
		r.seeds[i] = uint64(v)<<32 | uint64(i)
	}
	slices.Sort(r.seeds)
	for i := 1; i < len(r.seeds); i++ {
		if r.seeds[i]>>32 == r.seeds[i-1]>>32 {
			return int(uint32(r.seeds[i])), nil
		}
	}
	r.seen = roaring.New()
	r.seen.AddMany(ids32(nodes))
	return -1, nil
}

func (r *roaringSet) extend(ctx context.Context, nodes []NodeID, starts []uint32, nbrs []NodeID,
	loc []uint32) ([]NodeID, error) {
	if err := resize(r.held, &r.sorted, len(nbrs)); err != nil {
		return nodes, err
	}
	copy(r.sorted, ids32(nbrs))
	slices.Sort(r.sorted) // sorted additions are five times as fast
	delta := roaring.New()
	delta.AddMany(r.sorted)
	delta.AndNot(r.seen)
	r.seen.Or(delta)
	first := len(nodes)
	nodes = nodes[:first+int(delta.GetCardinality())]
	for it, at := delta.ManyIterator(), first; ; {
		n := it.NextMany(ids32(nodes[at:]))
		if n == 0 {
			break
		}
		at += n
	}
	for e, v := range nbrs {
		if e%pace.Every == 0 && ctx.Err() != nil {
			return nodes, ctx.Err()
		}
		loc[e] = r.find(nodes, starts, v)
	}
	return nodes, nil
}

// find returns the index of v, which is in nodes. The last entry of starts is where the newest
// delta starts.
func (r *roaringSet) find(nodes []NodeID, starts []uint32, v NodeID) uint32 {
	end := len(nodes)
	for h := len(starts) - 1; h > 0; h-- {
		first := int(starts[h])
		if i, ok := slices.BinarySearch(nodes[first:end], v); ok {
			return uint32(first + i)
		}
		end = first
	}
	i, _ := slices.BinarySearch(r.seeds, uint64(v)<<32)
	return uint32(r.seeds[i])
}

// ids32 returns node ids as numbers, as roaring takes them. Both share memory.
func ids32(s []NodeID) []uint32 { return mem.View[uint32](mem.BytesOf(s)) }
