package shell

import (
	"context"
	"fmt"
	"math"

	"gdb/layout/listfile"
	"gdb/shell/graph"
	"gdb/shell/result"

	"gdb/layout"

	"github.com/RoaringBitmap/roaring/v2"
)

// hopOperator names the operator of a hop.
func hopOperator(hop int) string { return fmt.Sprintf("hop %d", hop) }

// hops collects all nodes within HOPS hops of those in visited, to which they are added; each is
// met once. Memory: three sets of nodes, visited and two frontiers.
func (x *execution) hops(ctx context.Context, visited *graph.Bits, via int) error {
	hops, limit := x.IntOr("HOPS", 1), x.IntOr("LIMIT", math.MaxInt64)
	if x.Has("COUNT") {
		x.header("hop", "nodes", "total")
	} else {
		x.header("hop", "node")
	}
	dirs := x.directions(x.listDirection())
	frontier := graph.NewBits(x.engine.Budget)
	defer func() { frontier.Free() }()
	if err := frontier.Union(visited); err != nil {
		return err
	}
	total := uint64(0)
	for hop := 1; hop <= int(hops) && !frontier.IsEmpty() && int64(x.rows) < limit; hop++ {
		next := graph.NewBits(x.engine.Budget)
		err := x.expand(ctx, hopOperator(hop), dirs, via, frontier,
			func(nbrs []layout.NodeID) (bool, error) { return true, next.Add(nbrs) })
		frontier.Free()
		frontier = next
		if err != nil {
			return err
		}
		next.AndNot(visited.Bitmap)
		if err := visited.Union(next); err != nil {
			return err
		}
		met := next.GetCardinality()
		total += met
		x.root.in = result.Count(total)
		x.emit(hopOperator(hop), int(met), 0)
		if err := x.hopRows(ctx, hop, next, total, limit); err != nil {
			return err
		}
	}
	return nil
}

// hopRows shows the nodes of a hop, or how many they are.
func (x *execution) hopRows(ctx context.Context, hop int, met *graph.Bits, total uint64,
	limit int64) error {
	if x.Has("COUNT") {
		return x.row(hop, result.Count(met.GetCardinality()), result.Count(total))
	}
	return met.Each(func(nodes []layout.NodeID) (bool, error) {
		if left := limit - int64(x.rows); int64(len(nodes)) > left {
			nodes = nodes[:left]
		}
		names, err := x.names(ctx, nodes)
		if err != nil {
			return false, err
		}
		for _, name := range names {
			if err := x.row(hop, name); err != nil {
				return false, err
			}
		}
		return int64(x.rows) < limit, nil
	})
}

// expand calls fn with the neighbors of a frontier, by edges of a type or of all, in parts, each as
// often as it stands in a list, until fn returns false.
func (x *execution) expand(ctx context.Context, name string, dirs []layout.Direction, via int,
	frontier *graph.Bits, fn func(nbrs []layout.NodeID) (bool, error)) error {
	more := true
	for _, dir := range dirs {
		err := frontier.Each(func(nodes []layout.NodeID) (bool, error) {
			err := x.eachList(ctx, name, dir, nodes, math.MaxInt64,
				func(_ []layout.NodeID, l *listfile.Lists) (_ bool, err error) {
					more, err = fn(ofType(l, via))
					return more, err
				})
			return more, err
		})
		if err != nil || !more {
			return err
		}
	}
	return nil
}

// ofType returns the neighbors along edges of a type, or of all for -1; it may overwrite l.
func ofType(l *listfile.Lists, via int) []layout.NodeID {
	if via < 0 {
		return l.Nbrs
	}
	out := l.Nbrs[:0]
	for k, v := range l.Nbrs {
		if int(l.Types[k]) == via {
			out = append(out, v)
		}
	}
	return out
}

// meets returns a node that is in nodes and in the set.
func meets(nodes []layout.NodeID, set *roaring.Bitmap) (layout.NodeID, bool) {
	for _, v := range nodes {
		if set.Contains(uint32(v)) {
			return v, true
		}
	}
	return 0, false
}
