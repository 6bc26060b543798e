// Package draw chooses which neighbors are sampled, and numbers nodes as they are met.
//
// Choose takes entries of one list: uniformly, without replacement.
//
// A LayerDrawer draws the neighbors of a whole frontier together, not node by node, so that a hop
// adds about as many nodes as its layer size says, however large the frontier is. Probabilities
// follow LADIES (Zou and others, "Layer-Dependent Importance Sampling for Training Deep and Large
// Graph Convolutional Networks"): the mass of a candidate is the sum of (w/s)² over its entries in
// lists of the frontier, where w is the weight of an entry (1 without weights) and s the sum of the
// weights of its list. Candidates are drawn as in PLADIES (Balin and Catalyurek, "Layer-Neighbor
// Sampling"): each independently, u with the probability p(u) = min(1, c·mass(u)), with the c for
// which these add up to the layer size. So the draw depends only on the key of the hop, the node
// and the lists. Every entry of a drawn node counts w/p(u) times, which makes the weighted sum of
// rows an unbiased estimate of the sum over whole lists (Horvitz and Thompson).
package draw

import (
	"context"
	"math/bits"

	"gdb/internal/mem"
	"gdb/internal/pace"
	"gdb/layout"
)

// NodeTable numbers the nodes of a batch. It uses open addressing with linear probing over entries
// of node<<32 | index+1, at most half full. Its size depends on the batch, not the graph: 16 to 32
// bytes per node of the batch. One goroutine may use it.
type NodeTable struct {
	held  *mem.Account
	slots []uint64
	shift int
	limit int // number of nodes at which it grows
}

// Golden64 is 2^64 over the golden ratio, for multiplicative hashing.
const Golden64 = 0x9e3779b97f4a7c15

const (
	tableMin     = 1 << 10
	tableLoadLog = 1 // slots are at least 2^1 times the nodes
)

// NewNodeTable returns a table whose memory is counted in held.
func NewNodeTable(held *mem.Account) *NodeTable { return &NodeTable{held: held} }

// Reset makes nodes the contents. twice is the index of a node that repeats an earlier one, or -1.
func (t *NodeTable) Reset(ctx context.Context, nodes []layout.NodeID) (twice int, err error) {
	if err := pace.Clear(ctx, t.slots); err != nil {
		return 0, err
	}
	if err := t.fit(ctx, nil, max(1, len(nodes))); err != nil {
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

// ResetTimed makes pairs of a node and a time the contents, or nodes if times is empty.
func (t *NodeTable) ResetTimed(ctx context.Context, nodes []layout.NodeID,
	times []int64) (twice int, err error) {
	if len(times) == 0 {
		return t.Reset(ctx, nodes)
	}
	if _, err := t.Reset(ctx, nil); err != nil {
		return 0, err
	}
	var loc [1]uint32
	for i := range nodes {
		got, _, err := t.ExtendTimed(ctx, nodes[:i:i+1], times[:i:i+1], times[i], nodes[i:i+1],
			loc[:])
		if err != nil || len(got) == i {
			return i, err
		}
	}
	return -1, nil
}

// ExtendTimed does what Extend does for pairs of a node and a time: all of nbrs have the time at.
func (t *NodeTable) ExtendTimed(ctx context.Context, nodes []layout.NodeID, times []int64,
	at int64, nbrs []layout.NodeID, loc []uint32) ([]layout.NodeID, []int64, error) {
	for i, v := range nbrs {
		if i%pace.Every == 0 && ctx.Err() != nil {
			return nodes, times, ctx.Err()
		}
		if len(nodes) >= t.limit {
			if err := t.growTimed(ctx, nodes, times); err != nil {
				return nodes, times, err
			}
		}
		mask := uint64(len(t.slots) - 1)
		for h := hashTimed(v, at) >> t.shift; ; h++ {
			e := &t.slots[h&mask]
			if *e == 0 {
				*e = uint64(v)<<32 | uint64(len(nodes)+1)
				loc[i] = uint32(len(nodes))
				nodes, times = append(nodes, v), append(times, at)
				break
			}
			if k := uint32(*e) - 1; layout.NodeID(*e>>32) == v && times[k] == at {
				loc[i] = k
				break
			}
		}
	}
	return nodes, times, nil
}

// growTimed makes room for more pairs, and enters all again.
func (t *NodeTable) growTimed(ctx context.Context, nodes []layout.NodeID, times []int64) error {
	if err := t.fit(ctx, nil, len(nodes)+1); err != nil {
		return err
	}
	mask := uint64(len(t.slots) - 1)
	for i, v := range nodes {
		if i%pace.Every == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		h := hashTimed(v, times[i]) >> t.shift
		for t.slots[h&mask] != 0 {
			h++
		}
		t.slots[h&mask] = uint64(v)<<32 | uint64(i+1)
	}
	return nil
}

// hashTimed mixes a node and a time.
func hashTimed(v layout.NodeID, at int64) uint64 {
	h := uint64(at) * Golden64
	return (uint64(v) ^ h>>32 ^ h<<16) * Golden64
}

// fit makes room for n nodes. If the table grows, it enters nodes again.
func (t *NodeTable) fit(ctx context.Context, nodes []layout.NodeID, n int) error {
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
func (t *NodeTable) add(v layout.NodeID, index uint32) bool {
	mask := uint64(len(t.slots) - 1)
	for h := uint64(v) * Golden64 >> t.shift; ; h++ {
		e := &t.slots[h&mask]
		if *e == 0 {
			*e = uint64(v)<<32 | uint64(index+1)
			return true
		}
		if layout.NodeID(*e>>32) == v {
			return false
		}
	}
}

// Extend appends to nodes the nodes of nbrs that are new, and writes the index in nodes of each of
// nbrs to loc. nodes must be all contents of the table, and its capacity must suffice.
func (t *NodeTable) Extend(ctx context.Context, nodes, nbrs []layout.NodeID,
	loc []uint32) ([]layout.NodeID, error) {
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

// number does what Extend does until the table is full, and returns how many of nbrs it took.
func (t *NodeTable) number(nodes, nbrs []layout.NodeID, loc []uint32) ([]layout.NodeID, int) {
	slots, shift, limit := t.slots, t.shift&63, t.limit
	mask := uint64(len(slots) - 1)
	loc = loc[:len(nbrs)]
	for i, v := range nbrs {
		for h := uint64(v) * Golden64 >> shift; ; h++ {
			e := slots[h&mask]
			if layout.NodeID(e>>32) == v && e != 0 {
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
