package query

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"gdb/layout"
	"gdb/layout/listfile"
	"gdb/shell/exec"
	"gdb/shell/graph"
	"gdb/shell/lang"
)

// path runs PATH: it searches from both ends, the smaller frontier first, until the searches meet.
// The first meeting is on a shortest path, since no node was in both searches before it.
type path struct {
	x           *exec.Execution
	via         int
	forth, back *pathSide
	meet, trace *exec.Operator
	names       exec.Names
}

func planPath(x *exec.Execution) (*exec.Plan, error) {
	p := &path{x: x}
	x.WarnApart()
	var err error
	if p.via, err = x.EdgeType(); err != nil {
		return nil, err
	}
	from, err := x.Find("from", x.Operand.Nodes)
	if err != nil {
		return nil, err
	}
	to, err := x.Find("to", x.Args["TO"].Nodes)
	if err != nil {
		return nil, err
	}
	forth, back, err := pathDirections(x)
	if err != nil {
		return nil, err
	}
	p.forth, p.back = p.side("forth", forth, from), p.side("back", back, to)
	p.meet = x.Operator("meet", "expands the smaller side", -1, 0, p.forth.lists.Operator,
		p.back.lists.Operator)
	p.trace = x.Operator("trace back", "", -1, -1, p.meet)
	p.names = x.Names(p.trace)
	return &exec.Plan{Root: p.names.Operator, Run: p.run}, nil
}

// pathDirections returns the lists by which PATH steps from its first node and, backwards, from its
// last. A side is nil if the store keeps no such lists; then only the other side searches.
func pathDirections(x *exec.Execution) (forth, back []layout.Direction, err error) {
	g := x.Graph
	in, out := []layout.Direction{layout.In}, []layout.Direction{layout.Out}
	if g.Meta().Undirected || x.Has("BOTH") {
		both := []layout.Direction{layout.In, layout.Out}
		if g.Meta().Undirected {
			both = in // the lists of both directions are the same
		}
		return both, both, g.CheckDirections(both)
	}
	forth, back = out, in
	if x.Has("IN") {
		forth, back = in, out
	}
	if !g.HasDirection(forth[0]) {
		forth = nil
	}
	if !g.HasDirection(back[0]) {
		back = nil
	}
	return forth, back, nil
}

// pathSide is a breadth-first search from one end. It takes the memory of its levels, which are
// disjoint sets of nodes, and of their union.
type pathSide struct {
	end     *exec.Find
	lists   exec.Lists
	dirs    []layout.Direction
	levels  []*graph.Bits
	visited *graph.Bits
}

// side plans the search from one end.
func (p *path) side(name string, dirs []layout.Direction, end *exec.Find) *pathSide {
	detail, rows, blocks := "no such lists: the other side goes alone", 1.0, 0.0
	if dirs != nil {
		detail, rows, blocks = p.x.ListsDetail(dirs, p.via)+", hop by hop", -1, -1
	}
	return &pathSide{end: end, dirs: dirs,
		lists: exec.Lists{Operator: p.x.Operator(name, detail, rows, blocks, end.Operator)}}
}

// begin finds the node where the side begins.
func (s *pathSide) begin(ctx context.Context) (layout.NodeID, error) {
	nodes, err := s.end.Nodes(ctx)
	if err != nil {
		return 0, err
	}
	return nodes[0], nil
}

// start makes node the first level.
func (s *pathSide) start(x *exec.Execution, node layout.NodeID) error {
	s.visited, s.levels = graph.NewBits(x.Graph.Budget), []*graph.Bits{
		graph.NewBits(x.Graph.Budget)}
	return errors.Join(s.levels[0].Add([]layout.NodeID{node}),
		s.visited.Add([]layout.NodeID{node}))
}

func (s *pathSide) free() {
	if s.visited != nil {
		s.visited.Free()
	}
	for _, l := range s.levels {
		l.Free()
	}
}

func (s *pathSide) depth() int { return len(s.levels) - 1 }

func (s *pathSide) frontier() *graph.Bits { return s.levels[s.depth()] }

// width returns the number of nodes of the frontier.
func (s *pathSide) width() uint64 { return s.frontier().GetCardinality() }

// stuck reports whether no step from this side can find more nodes.
func (s *pathSide) stuck() bool { return s.dirs == nil || s.frontier().IsEmpty() }

func (p *path) run(ctx context.Context) error {
	from, err := p.forth.begin(ctx)
	if err != nil {
		return err
	}
	to, err := p.back.begin(ctx)
	if err != nil {
		return err
	}
	p.x.Header("step", "node")
	defer p.forth.free()
	defer p.back.free()
	if err := p.forth.start(p.x, from); err != nil {
		return err
	}
	if err := p.back.start(p.x, to); err != nil {
		return err
	}
	meeting, found, err := p.search(ctx, from, to)
	if err != nil || !found {
		return err
	}
	return p.rows(ctx, meeting)
}

// search widens the sides until they meet, or until one side has no nodes left to go on from.
func (p *path) search(ctx context.Context, from, to layout.NodeID) (meeting layout.NodeID,
	found bool, err error) {
	a, b := p.forth, p.back
	meeting, found = from, from == to
	most := p.x.IntOr("MAX", lang.PathMost)
	for !found && int64(a.depth()+b.depth()) < most {
		side, other := a, b
		if a.stuck() || !b.stuck() && b.width() < a.width() {
			side, other = b, a
		}
		if side.stuck() || a.frontier().IsEmpty() || b.frontier().IsEmpty() {
			return 0, false, nil
		}
		if meeting, found, err = p.widen(ctx, side, other); err != nil {
			return 0, false, err
		}
	}
	return meeting, found, nil
}

// widen adds a level to a side. It stops at the first node that the other side has visited.
func (p *path) widen(ctx context.Context, s, other *pathSide) (meeting layout.NodeID, found bool,
	err error) {
	next := graph.NewBits(p.x.Graph.Budget)
	frontier := s.frontier()
	s.levels = append(s.levels, next)
	err = expand(ctx, s.lists, s.dirs, p.via, frontier, func(nbrs []layout.NodeID) (bool, error) {
		if meeting, found = meets(nbrs, other.visited.Bitmap); found {
			return false, next.Add([]layout.NodeID{meeting})
		}
		return true, next.Add(nbrs)
	})
	if err != nil {
		return 0, false, err
	}
	next.AndNot(s.visited.Bitmap)
	s.lists.Emit(int(next.GetCardinality()), 0)
	return meeting, found, s.visited.Union(next)
}

// rows finds the nodes between the meeting and both ends, and shows the path.
func (p *path) rows(ctx context.Context, meeting layout.NodeID) error {
	nodes, err := p.traceBack(ctx, p.forth, meeting)
	if err != nil {
		return err
	}
	slices.Reverse(nodes)
	after, err := p.traceBack(ctx, p.back, meeting)
	if err != nil {
		return err
	}
	nodes = append(append(nodes, meeting), after...)
	p.meet.Emit(1, 0)
	p.trace.Emit(len(nodes), 0)
	step := 0
	return p.names.InBatches(ctx, nodes, func(_ []layout.NodeID, names []string) error {
		for _, name := range names {
			p.x.Row(step, name)
			step++
		}
		return p.x.Err()
	})
}

// traceBack returns the nodes from the meeting to the end where s began, without the meeting
// itself. It steps back to the first node of the level before whose list holds the current node. It
// reads the lists of each level again, so it needs no lists of the other direction and no memory
// for predecessors.
func (p *path) traceBack(ctx context.Context, s *pathSide,
	meeting layout.NodeID) (nodes []layout.NodeID, err error) {
	level := slices.IndexFunc(s.levels, func(l *graph.Bits) bool {
		return l.Contains(uint32(meeting))
	})
	for node := meeting; level > 0; level-- {
		before, found, err := p.before(ctx, s, level, node)
		if err != nil {
			return nil, err
		}
		if !found {
			return nil, fmt.Errorf("lists changed while the path was searched: no way to #%d", node)
		}
		nodes = append(nodes, before)
		node = before
	}
	return nodes, nil
}

// before returns the first node of the level before whose list holds node.
func (p *path) before(ctx context.Context, s *pathSide, level int,
	node layout.NodeID) (before layout.NodeID, found bool, err error) {
	lists := exec.Lists{Operator: p.trace}
	for _, dir := range s.dirs {
		err := s.levels[level-1].Each(func(nodes []layout.NodeID) (bool, error) {
			err := lists.Each(ctx, dir, nodes, math.MaxInt64,
				func(part []layout.NodeID, l *listfile.Lists) (bool, error) {
					before, found = listWith(part, l, node, p.via)
					return !found, nil
				})
			return !found, err
		})
		if err != nil || found {
			return before, found, err
		}
	}
	return 0, false, nil
}

// listWith returns the first node whose list holds nbr, by an edge of the type via or of any type
// if via is -1.
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
