package rowcache

import (
	"cmp"
	"context"
	"slices"

	"gdb/layout"
)

// hottest keeps the hottest of the nodes offered, in a heap with the least hot on top. Nodes must
// be offered in ascending order of ids; nodes of degree 0 are not kept.
type hottest struct {
	limit int
	heap  []hotNode
}

// hotNode packs a degree, capped to 32 bits, above the complement of the id: larger is hotter.
type hotNode uint64

func newHottest(limit int) *hottest { return &hottest{limit: limit} }

func (h *hottest) offer(v layout.NodeID, degree uint64) {
	x := hotNode(min(degree, 1<<32-1)<<32 | uint64(^v))
	switch {
	case degree == 0 || h.limit < 1:
	case len(h.heap) < h.limit:
		h.heap = append(h.heap, x)
		if len(h.heap) == h.limit {
			for i := len(h.heap)/2 - 1; i >= 0; i-- {
				h.sink(i, h.heap[i])
			}
		}
	case x > h.heap[0]:
		h.sink(0, x)
	}
}

// sink puts x at i or below it, so that the heap is in order again.
func (h *hottest) sink(i int, x hotNode) {
	for {
		least := 2*i + 1
		if least >= len(h.heap) {
			break
		}
		if r := least + 1; r < len(h.heap) && h.heap[r] < h.heap[least] {
			least = r
		}
		if x <= h.heap[least] {
			break
		}
		h.heap[i] = h.heap[least]
		i = least
	}
	h.heap[i] = x
}

// These bound how long code runs without checking the context: a number of nodes, or a part that is
// sorted.
const (
	hotStep      = 1 << 16
	hotParts     = 32
	hotPartLeast = 1 << 17
)

// nodes returns the nodes kept, hottest first. They are sorted in parts, which are then merged, so
// that it ends soon after ctx does.
func (h *hottest) nodes(ctx context.Context) ([]layout.NodeID, error) {
	size := max(hotPartLeast, (len(h.heap)+hotParts-1)/hotParts)
	parts := slices.Collect(slices.Chunk(h.heap, size))
	for _, part := range parts {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		slices.SortFunc(part, func(a, b hotNode) int { return cmp.Compare(b, a) })
	}
	out := make([]layout.NodeID, len(h.heap))
	for i := range out {
		if i%hotStep == 0 && ctx.Err() != nil {
			return nil, ctx.Err()
		}
		best := 0
		for k, part := range parts {
			if len(part) > 0 && (len(parts[best]) == 0 || part[0] > parts[best][0]) {
				best = k
			}
		}
		out[i] = ^layout.NodeID(uint32(parts[best][0]))
		parts[best] = parts[best][1:]
	}
	return out, nil
}
