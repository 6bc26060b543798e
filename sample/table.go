package sample

import (
	"context"
	"math/bits"

	"gdb/internal/mem"
	"gdb/internal/pace"
)

// table numbers the nodes of a batch: open addressing with linear probing over entries of
// node<<32 | index+1, at most half full. Its size follows the batch, not the graph: 16 to 32
// bytes per node of the batch.
type table struct {
	held  *mem.Account
	slots []uint64
	shift int
	limit int // nodes before it grows
}

const (
	tableMin     = 1 << 10
	golden64     = 0x9e3779b97f4a7c15 // 2^64 over the golden ratio, for multiplicative hashing
	tableLoadLog = 1                  // slots are at least 2^1 times the nodes
)

func (t *table) reset(ctx context.Context, nodes []NodeID) (int, error) {
	if err := pace.Clear(ctx, t.slots); err != nil {
		return 0, err
	}
	if err := t.fit(ctx, nil, len(nodes)); err != nil {
		return 0, err
	}
	for i, v := range nodes {
		if i%pace.Every == 0 && ctx.Err() != nil {
			return 0, ctx.Err()
		}
		if !t.add(v, uint32(i)) {
			return i, nil
		}
	}
	return -1, nil
}

// fit makes room for n nodes, putting those given into the larger table.
func (t *table) fit(ctx context.Context, nodes []NodeID, n int) error {
	if n <= t.limit {
		return nil
	}
	size := max(tableMin, 1<<bits.Len(uint(n<<tableLoadLog-1)))
	if err := t.held.Add(int64(size-len(t.slots)) * 8); err != nil {
		return err
	}
	t.slots = make([]uint64, size)
	t.shift = 64 - bits.TrailingZeros(uint(size))
	t.limit = size >> tableLoadLog
	for i, v := range nodes {
		if i%pace.Every == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		t.add(v, uint32(i))
	}
	return nil
}

// add enters a node and reports whether it was new.
func (t *table) add(v NodeID, index uint32) bool {
	mask := uint64(len(t.slots) - 1)
	for h := uint64(v) * golden64 >> t.shift; ; h++ {
		e := &t.slots[h&mask]
		if *e == 0 {
			*e = uint64(v)<<32 | uint64(index+1)
			return true
		}
		if NodeID(*e>>32) == v {
			return false
		}
	}
}

func (t *table) extend(ctx context.Context, nodes []NodeID, _ []uint32, nbrs []NodeID,
	loc []uint32) ([]NodeID, error) {
	for len(nbrs) > 0 {
		if err := ctx.Err(); err != nil {
			return nodes, err
		}
		part, n := min(len(nbrs), pace.Every), 0
		if nodes, n = t.number(nodes, nbrs[:part], loc); n < part {
			if err := t.fit(ctx, nodes, len(nodes)+1); err != nil {
				return nodes, err
			}
		}
		nbrs, loc = nbrs[n:], loc[n:]
	}
	return nodes, nil
}

// number is extend until the table is full; it returns how many of nbrs it took.
func (t *table) number(nodes, nbrs []NodeID, loc []uint32) ([]NodeID, int) {
	slots, shift, limit := t.slots, t.shift&63, t.limit
	mask := uint64(len(slots) - 1)
	loc = loc[:len(nbrs)]
	for i, v := range nbrs {
		for h := uint64(v) * golden64 >> shift; ; h++ {
			e := slots[h&mask]
			if NodeID(e>>32) == v && e != 0 {
				loc[i] = uint32(e) - 1
				break
			}
			if e == 0 {
				if len(nodes) == limit {
					return nodes, i
				}
				slots[h&mask] = uint64(v)<<32 | uint64(len(nodes)+1)
				loc[i] = uint32(len(nodes))
				nodes = append(nodes, v)
				break
			}
		}
	}
	return nodes, len(nbrs)
}
