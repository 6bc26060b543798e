package query

import (
	"context"
	"fmt"
	"math"
	"slices"

	"gdb/internal/pace"
	"gdb/layout"
	"gdb/layout/listfile"
	"gdb/shell/exec"
	"gdb/shell/graph"
	"gdb/shell/words"

	"github.com/RoaringBitmap/roaring/v2"
)

// neighbors runs NEIGHBORS: it shows the lists of nodes, or with HOPS or COUNT the nodes within
// some hops.
type neighbors struct {
	x     *exec.Execution
	dirs  []layout.Direction
	via   int
	limit int64

	nodes *exec.Find
	hops  []exec.Lists // one for the lists of nodes
	names exec.Names   // not used with COUNT
	count *exec.Operator
	empty int // how many lists had no entries so far
}

func planNeighbors(x *exec.Execution) (*exec.Plan, error) {
	n := &neighbors{x: x, dirs: x.Directions(x.ListDirection()),
		limit: x.IntOr("LIMIT", math.MaxInt64)}
	var err error
	if n.via, err = x.EdgeType(); err != nil {
		return nil, err
	}
	if n.nodes, err = x.Find("nodes", x.Operand.Nodes); err != nil {
		return nil, err
	}
	if err := x.Graph.CheckDirections(n.dirs); err != nil {
		return nil, err
	}
	x.WarnApart()
	if !x.Has("HOPS") && !x.Has("COUNT") {
		hop := exec.Hop{Directions: n.dirs, Via: n.via}
		n.hops = []exec.Lists{x.Lists("neighbors", hop, n.nodes.Operator)}
		n.names = x.Names(n.hops[0].Operator)
		return &exec.Plan{Root: n.names.Operator, Run: n.runLists}, nil
	}
	in, hops := n.nodes.Operator, int(x.IntOr("HOPS", 1))
	for hop := 1; hop <= hops; hop++ {
		n.hops = append(n.hops, x.Lists(hopName(hop), exec.Hop{Directions: n.dirs, Via: n.via,
			Met: hop > 1, Distinct: true}, in))
		in = n.hops[hop-1].Operator
	}
	if x.Has("COUNT") {
		n.count = x.Operator("distinct count", "", float64(hops), 0, in)
		return &exec.Plan{Root: n.count, Run: n.runHops}, nil
	}
	n.names = x.Names(in)
	return &exec.Plan{Root: n.names.Operator, Run: n.runHops}, nil
}

// hopName returns the name of the operator of a hop.
func hopName(hop int) string { return fmt.Sprintf("hop %d", hop) }

// runLists shows the neighbors of each node, with the columns that run parallel to them.
func (n *neighbors) runLists(ctx context.Context) error {
	nodes, err := n.nodes.Nodes(ctx)
	if err != nil {
		return err
	}
	m := n.x.Graph.Meta()
	cols := []string{"node", "direction", "neighbor"}
	for _, c := range []struct {
		name string
		has  bool
	}{{"type", len(m.EdgeTypes) > 0}, {"weight", m.Weighted}, {"time", m.Timestamped}} {
		if c.has {
			cols = append(cols, c.name)
		}
	}
	n.x.Header(cols...)
	for _, dir := range n.dirs {
		err := n.hops[0].Each(ctx, dir, nodes, n.limit, func(part []layout.NodeID,
			l *listfile.Lists) (bool, error) {
			return n.listRows(ctx, part, l, dir)
		})
		if err != nil {
			return err
		}
	}
	n.x.WarnNoLists(n.empty, len(nodes))
	return nil
}

// listRows shows the lists l of nodes until there are as many rows as wanted. It returns whether
// more are wanted.
func (n *neighbors) listRows(ctx context.Context, nodes []layout.NodeID, l *listfile.Lists,
	dir layout.Direction) (bool, error) {
	x := n.x
	names, err := n.names.Of(ctx, nodes)
	if err != nil {
		return false, err
	}
	for i := range nodes {
		if l.Off[i] == l.Off[i+1] {
			n.empty++
		}
	}
	i, end, batch := 0, uint64(len(l.Nbrs)), uint64(x.Graph.NameBatch())
	for from := uint64(0); from < end && int64(x.Rows) < n.limit; from += batch {
		nbrs, err := n.names.Of(ctx, l.Nbrs[from:min(from+batch, end)])
		if err != nil {
			return false, err
		}
		for j, nbr := range nbrs {
			k := from + uint64(j)
			for k >= l.Off[i+1] {
				i++
			}
			if n.via >= 0 && int(l.Types[k]) != n.via {
				continue
			}
			if int64(x.Rows) >= n.limit {
				break
			}
			n.hops[0].Emit(1, 0)
			x.Row(n.edgeCells(names[i], dir, nbr, l, int(k))...)
		}
		if x.Err() != nil {
			break
		}
	}
	return int64(x.Rows) < n.limit, x.Err()
}

func (n *neighbors) edgeCells(node string, dir layout.Direction, nbr string, l *listfile.Lists,
	k int) []any {
	cells := []any{node, dir.String(), nbr}
	if l.Types != nil {
		cells = append(cells, n.x.Graph.Meta().EdgeTypes[l.Types[k]])
	}
	if l.Weights != nil {
		cells = append(cells, l.Weights[k])
	}
	if l.Times != nil {
		cells = append(cells, n.x.Graph.TimeOf(l.Times[k]))
	}
	return cells
}

// runHops collects all nodes within HOPS hops, each once. It takes the memory of three sets of
// nodes: the nodes that were met, and two frontiers.
func (n *neighbors) runHops(ctx context.Context) error {
	nodes, err := n.nodes.Nodes(ctx)
	if err != nil {
		return err
	}
	visited := graph.NewBits(n.x.Graph.Budget)
	defer visited.Free()
	for part := range slices.Chunk(nodes, pace.Every) {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := visited.Add(part); err != nil {
			return err
		}
	}
	if n.count != nil {
		n.x.Header("hop", "nodes", "total")
	} else {
		n.x.Header("hop", "node")
	}
	return n.widen(ctx, visited)
}

// widen goes on from the nodes of visited hop by hop, and adds the nodes that it meets to visited.
func (n *neighbors) widen(ctx context.Context, visited *graph.Bits) error {
	x := n.x
	frontier := graph.NewBits(x.Graph.Budget)
	defer func() { frontier.Free() }()
	if err := frontier.Union(visited); err != nil {
		return err
	}
	total := uint64(0)
	for i, lists := range n.hops {
		if frontier.IsEmpty() || int64(x.Rows) >= n.limit {
			break
		}
		next := graph.NewBits(x.Graph.Budget)
		err := expand(ctx, lists, n.dirs, n.via, frontier,
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
		if i == 0 && met == 0 {
			x.WarnNoLists(1, 1)
		}
		n.handsOn(total)
		lists.Emit(int(met), 0)
		if err := n.hopRows(ctx, i+1, next, total); err != nil {
			return err
		}
	}
	return nil
}

// handsOn notes how many rows the last operator took: all nodes of all hops.
func (n *neighbors) handsOn(total uint64) {
	root := n.count
	if root == nil {
		root = n.names.Operator
	}
	root.In = words.Count(total)
}

// hopRows shows the nodes of a hop, or how many they are.
func (n *neighbors) hopRows(ctx context.Context, hop int, met *graph.Bits, total uint64) error {
	x := n.x
	if n.count != nil {
		x.Row(hop, words.Count(met.GetCardinality()), words.Count(total))
		return x.Err()
	}
	return met.Each(func(nodes []layout.NodeID) (bool, error) {
		if left := n.limit - int64(x.Rows); int64(len(nodes)) > left {
			nodes = nodes[:left]
		}
		names, err := n.names.Of(ctx, nodes)
		if err != nil {
			return false, err
		}
		for _, name := range names {
			x.Row(hop, name)
		}
		return int64(x.Rows) < n.limit, x.Err()
	})
}

// expand calls fn with the neighbors of a frontier, in parts, until fn returns false. It follows
// edges of a type, or of all types, and hands on a neighbor as often as it stands in a list.
func expand(ctx context.Context, lists exec.Lists, dirs []layout.Direction, via int,
	frontier *graph.Bits, fn func(nbrs []layout.NodeID) (bool, error)) error {
	more := true
	for _, dir := range dirs {
		err := frontier.Each(func(nodes []layout.NodeID) (bool, error) {
			err := lists.Each(ctx, dir, nodes, math.MaxInt64,
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

// ofType returns the neighbors along edges of a type, or all neighbors if via is -1. It may
// overwrite l.
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

// meets returns a node of nodes that is also in the set; false if there is none.
func meets(nodes []layout.NodeID, set *roaring.Bitmap) (layout.NodeID, bool) {
	for _, v := range nodes {
		if set.Contains(uint32(v)) {
			return v, true
		}
	}
	return 0, false
}
