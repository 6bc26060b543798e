package rowcache

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"gdb/blockdev"
	"gdb/internal/mem"
	"gdb/layout"
	"gdb/layout/listfile"
	"gdb/layout/topology"
)

// TopologyScan calls fn with all lists in node order, as listfile.Scan does.
type TopologyScan func(fn func(first layout.NodeID, cont bool, l *listfile.Lists) error) error

// FindHot returns at most limit nodes that stand in the most lists, most first. A static cache
// keeps their rows. It takes one scan of the topology, and memory as HotByUse does.
func FindHot(ctx context.Context, s *layout.Store, dev blockdev.Device, limit int,
	budget *mem.Budget) ([]layout.NodeID, error) {
	scan := func(fn func(first layout.NodeID, cont bool, l *listfile.Lists) error) error {
		return topology.Scan(ctx, s, dev, layout.In, fn)
	}
	if s.Meta().Undirected {
		return HotByDegree(ctx, scan, limit)
	}
	return HotByUse(ctx, scan, s.Meta().Nodes, limit, budget)
}

// FindHotAbout does what FindHot does, but reads only one in every blocks of the topology. It
// serves to forecast what a cache would do, and leaves out levels.
func FindHotAbout(ctx context.Context, s *layout.Store, dev blockdev.Device, limit, every int,
	budget *mem.Budget) ([]layout.NodeID, error) {
	each := func(count func([]layout.NodeID) error) error {
		return listfile.ScanSome(ctx, s.Base(), dev, layout.In, every,
			func(l *listfile.Lists) error { return count(l.Nbrs) })
	}
	return hotByCount(ctx, s.Meta().Nodes, limit, budget, each)
}

// HotByDegree returns at most limit nodes with the longest lists, longest first, ties by id. Over
// out-lists this is the order in which sampling of in-lists needs nodes most; over in-lists it is
// so only if the graph is undirected, else take HotByUse. It takes one scan, and 8 bytes of memory
// per node of the result.
func HotByDegree(ctx context.Context, scan TopologyScan, limit int) ([]layout.NodeID, error) {
	h := newHottest(limit)
	last, degree := layout.NodeID(0), uint64(0) // a hub's list comes in parts
	err := scan(func(first layout.NodeID, cont bool, l *listfile.Lists) error {
		for i := range len(l.Off) - 1 {
			if !cont || i > 0 {
				h.offer(last, degree)
				last, degree = first+layout.NodeID(i), 0
			}
			degree += l.Off[i+1] - l.Off[i]
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	h.offer(last, degree)
	return h.nodes(ctx)
}

// HotByUse returns at most limit nodes that stand in the most lists, most first, ties by id: the
// more lists a node is in, the more often uniform sampling of these lists needs it. It takes one
// scan, 4 bytes of memory per node of the graph while it runs, counted in budget, and 8 per node of
// the result. If the budget has no room for that, it counts part of the nodes at a time, with a
// scan for each part.
func HotByUse(ctx context.Context, scan TopologyScan, nodes uint64, limit int,
	budget *mem.Budget) ([]layout.NodeID, error) {
	return hotByCount(ctx, nodes, limit, budget, func(count func([]layout.NodeID) error) error {
		return scan(func(_ layout.NodeID, _ bool, l *listfile.Lists) error { return count(l.Nbrs) })
	})
}

// HotByTrial returns at most limit nodes that stand in the most batches of a trial, most first,
// ties by id. A trial, such as an epoch sampled before training, shows what training will ask for
// with its seeds and fanouts (J. Yang, D. Tang, X. Song, L. Wang, Q. Yin, R. Chen, W. Yu, J. Zhou,
// GNNLab). each calls its argument with the nodes of each batch. It takes memory as HotByUse does.
func HotByTrial(ctx context.Context, each func(fn func(nodes []layout.NodeID) error) error,
	nodes uint64, limit int, budget *mem.Budget) ([]layout.NodeID, error) {
	return hotByCount(ctx, nodes, limit, budget, each)
}

// hotByCount returns the nodes that each passes to its argument most often.
func hotByCount(ctx context.Context, nodes uint64, limit int, budget *mem.Budget,
	each func(count func([]layout.NodeID) error) error) ([]layout.NodeID, error) {
	h := newHottest(limit)
	for size, first := nodes, uint64(0); first < nodes; {
		arena, err := mem.NewArena(budget, "use counts of nodes", int64(min(size, nodes-first))*4)
		if err != nil && size > useCountsLeast {
			size /= 2
			continue
		}
		if err != nil {
			return nil, err
		}
		uses := mem.View[uint32](arena.Bytes())
		err = errors.Join(h.count(ctx, each, layout.NodeID(first), uses), arena.Free())
		if err != nil {
			return nil, err
		}
		first += size
	}
	return h.nodes(ctx)
}

// useCountsLeast is the least number of nodes for which a scan is made.
const useCountsLeast = 1 << 20

// count counts how often each passes the len(uses) nodes from first on, and offers them.
func (h *hottest) count(ctx context.Context, each func(count func([]layout.NodeID) error) error,
	first layout.NodeID, uses []uint32) error {
	n := layout.NodeID(len(uses))
	err := each(func(ids []layout.NodeID) error {
		for _, v := range ids {
			if i := v - first; i < n { // also false below first, where it wraps around
				uses[i] = max(uses[i], uses[i]+1) // stays at the largest count
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	for i, count := range uses {
		if i%hotStep == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		h.offer(first+layout.NodeID(i), uint64(count))
	}
	return nil
}

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
