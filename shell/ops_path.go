package shell

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"gdb/layout/listfile"
	"gdb/shell/graph"
	"gdb/shell/lang"

	"gdb/layout"
)

// pathDirections are the lists by which PATH steps from its first node and, backwards, from its
// last. A side is nil where the store keeps no such lists; then the other goes alone.
func (x *execution) pathDirections() (forth, back []layout.Direction, err error) {
	e := x.engine
	in, out := []layout.Direction{layout.In}, []layout.Direction{layout.Out}
	if e.Meta().Undirected || x.Has("BOTH") {
		both := []layout.Direction{layout.In, layout.Out}
		if e.Meta().Undirected {
			both = in // the lists of both directions are the same
		}
		return both, both, e.CheckDirections(both)
	}
	forth, back = out, in
	if x.Has("IN") {
		forth, back = in, out
	}
	if !e.HasDirection(forth[0]) {
		forth = nil
	}
	if !e.HasDirection(back[0]) {
		back = nil
	}
	return forth, back, nil
}

func planPath(x *execution) (*operator, error) {
	via, err := x.edgeType()
	if err != nil {
		return nil, err
	}
	from, err := x.opNodes("from", x.Operand.Nodes)
	if err != nil {
		return nil, err
	}
	to, err := x.opNodes("to", x.Args["TO"].Nodes)
	if err != nil {
		return nil, err
	}
	forth, back, err := x.pathDirections()
	if err != nil {
		return nil, err
	}
	side := func(name string, dirs []layout.Direction, node *operator) *operator {
		if dirs == nil {
			return newOperator(name, "no such lists: the other side goes alone", 1, 0, node)
		}
		return newOperator(name, x.listsDetail(dirs, via)+", hop by hop", -1, -1, node)
	}
	meet := newOperator("meet", "expands the smaller side", -1, 0, side("forth", forth, from),
		side("back", back, to))
	return x.opNames(newOperator("trace back", "", -1, -1, meet)), nil
}

// pathSide is a breadth-first search from one end. Memory: the levels, which are disjoint sets of
// nodes, and their union.
type pathSide struct {
	op      string
	dirs    []layout.Direction
	levels  []*graph.Bits
	visited *graph.Bits
}

func (x *execution) newPathSide(op string, dirs []layout.Direction,
	node layout.NodeID) (*pathSide, error) {
	s := &pathSide{op: op, dirs: dirs, visited: graph.NewBits(x.engine.Budget),
		levels: []*graph.Bits{graph.NewBits(x.engine.Budget)}}
	return s, errors.Join(s.levels[0].Add([]layout.NodeID{node}),
		s.visited.Add([]layout.NodeID{node}))
}

func (s *pathSide) free() {
	s.visited.Free()
	for _, l := range s.levels {
		l.Free()
	}
}

func (s *pathSide) depth() int { return len(s.levels) - 1 }

func (s *pathSide) frontier() *graph.Bits { return s.levels[s.depth()] }

// width is the number of nodes of the frontier.
func (s *pathSide) width() uint64 { return s.frontier().GetCardinality() }

// stuck says that no step from this side can find more.
func (s *pathSide) stuck() bool { return s.dirs == nil || s.frontier().IsEmpty() }

// runPath searches from both ends, the smaller frontier first, until they meet. The first meeting
// is on a shortest path: before it no node was in both.
func runPath(ctx context.Context, x *execution) error {
	var ends [2]layout.NodeID
	for i, set := range []lang.NodeSet{x.Operand.Nodes, x.Args["TO"].Nodes} {
		nodes, err := x.resolve(ctx, []string{"from", "to"}[i], set)
		if err != nil {
			return err
		}
		ends[i] = nodes[0]
	}
	via, err := x.edgeType()
	if err != nil {
		return err
	}
	forth, back, err := x.pathDirections()
	if err != nil {
		return err
	}
	x.header("step", "node")
	a, err := x.newPathSide("forth", forth, ends[0])
	if err != nil {
		return err
	}
	defer a.free()
	b, err := x.newPathSide("back", back, ends[1])
	if err != nil {
		return err
	}
	defer b.free()
	meeting, found := ends[0], ends[0] == ends[1]
	for most := x.IntOr("MAX", lang.PathMost); !found && int64(a.depth()+b.depth()) < most; {
		side, other := a, b
		if a.stuck() || !b.stuck() && b.width() < a.width() {
			side, other = b, a
		}
		if side.stuck() || a.frontier().IsEmpty() || b.frontier().IsEmpty() {
			return nil
		}
		if meeting, found, err = x.widen(ctx, side, other, via); err != nil {
			return err
		}
	}
	if !found {
		return nil
	}
	return x.pathRows(ctx, a, b, meeting, via)
}

// widen adds a level to a side; it stops at the first node that the other has visited.
func (x *execution) widen(ctx context.Context, s, other *pathSide, via int) (meeting layout.NodeID,
	found bool, err error) {
	next := graph.NewBits(x.engine.Budget)
	frontier := s.frontier()
	s.levels = append(s.levels, next)
	err = x.expand(ctx, s.op, s.dirs, via, frontier, func(nbrs []layout.NodeID) (bool, error) {
		if meeting, found = meets(nbrs, other.visited.Bitmap); found {
			return false, next.Add([]layout.NodeID{meeting})
		}
		return true, next.Add(nbrs)
	})
	if err != nil {
		return 0, false, err
	}
	next.AndNot(s.visited.Bitmap)
	x.emit(s.op, int(next.GetCardinality()), 0)
	return meeting, found, s.visited.Union(next)
}

// pathRows finds the nodes between the meeting and both ends, and shows the path.
func (x *execution) pathRows(ctx context.Context, a, b *pathSide, meeting layout.NodeID,
	via int) error {
	path, err := x.traceBack(ctx, a, meeting, via)
	if err != nil {
		return err
	}
	slices.Reverse(path)
	rest, err := x.traceBack(ctx, b, meeting, via)
	if err != nil {
		return err
	}
	path = append(append(path, meeting), rest...)
	x.emit("meet", 1, 0)
	x.emit("trace back", len(path), 0)
	step := 0
	return x.inBatches(ctx, path, func(_ []layout.NodeID, names []string) error {
		for _, name := range names {
			if err := x.row(step, name); err != nil {
				return err
			}
			step++
		}
		return nil
	})
}

// traceBack returns the nodes from the meeting, without it, to the end where s began. The node
// before is the first of the level before whose list holds the node: levels are read again, which
// needs no lists of the other direction and no memory for predecessors.
func (x *execution) traceBack(ctx context.Context, s *pathSide, meeting layout.NodeID,
	via int) (path []layout.NodeID, err error) {
	level := slices.IndexFunc(s.levels, func(l *graph.Bits) bool {
		return l.Contains(uint32(meeting))
	})
	for node := meeting; level > 0; level-- {
		before, found := layout.NodeID(0), false
		for _, dir := range s.dirs {
			err := s.levels[level-1].Each(func(nodes []layout.NodeID) (bool, error) {
				err := x.eachList(ctx, "trace back", dir, nodes, math.MaxInt64,
					func(part []layout.NodeID, l *listfile.Lists) (bool, error) {
						before, found = listWith(part, l, node, via)
						return !found, nil
					})
				return !found, err
			})
			if err != nil {
				return nil, err
			}
			if found {
				break
			}
		}
		if !found {
			return nil, fmt.Errorf("lists changed while the path was searched: no way to #%d", node)
		}
		path = append(path, before)
		node = before
	}
	return path, nil
}

// listWith returns the first node whose list holds nbr by an edge of the type via, or any.
func listWith(nodes []layout.NodeID, l *listfile.Lists, nbr layout.NodeID,
	via int) (layout.NodeID, bool) {
	for i, v := range nodes {
		list := l.Nbrs[l.Off[i]:l.Off[i+1]]
		at, _ := slices.BinarySearch(list, nbr)
		for ; at < len(list) && list[at] == nbr; at++ {
			if via < 0 || int(l.Types[int(l.Off[i])+at]) == via {
				return v, true
			}
		}
	}
	return 0, false
}
