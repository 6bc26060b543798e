package shell

import (
	"context"
	"fmt"
	"math"
	"slices"

	"gdb/layout/listfile"
	"gdb/shell/graph"

	"gdb/internal/pace"
	"gdb/layout"
)

// directions returns what IN, OUT or BOTH ask for; def is used without them.
func (x *execution) directions(def ...layout.Direction) []layout.Direction {
	switch {
	case x.Has("BOTH"):
		return []layout.Direction{layout.In, layout.Out}
	case x.Has("IN"):
		return []layout.Direction{layout.In}
	case x.Has("OUT"):
		return []layout.Direction{layout.Out}
	}
	return def
}

// listDirection is the default of NEIGHBORS and DEGREES: out-lists, or in-lists where the store
// has no others or both are the same.
func (x *execution) listDirection() layout.Direction {
	if x.engine.HasDirection(layout.Out) && !x.engine.Meta().Undirected {
		return layout.Out
	}
	return layout.In
}

// edgeType returns the number of the type VIA names, or -1 without VIA.
func (x *execution) edgeType() (int, error) {
	v, ok := x.Args["VIA"]
	if !ok {
		return -1, nil
	}
	n, err := x.engine.EdgeType(v.Text)
	if err != nil {
		return 0, fmt.Errorf("VIA %w", err)
	}
	return n, nil
}

func planNeighbors(x *execution) (*operator, error) {
	via, err := x.edgeType()
	if err != nil {
		return nil, err
	}
	nodes, err := x.opNodes("nodes", x.Operand.Nodes)
	if err != nil {
		return nil, err
	}
	dirs := x.directions(x.listDirection())
	if err := x.engine.CheckDirections(dirs); err != nil {
		return nil, err
	}
	if !x.Has("HOPS") && !x.Has("COUNT") {
		return x.opNames(x.opHops(func(int) string { return "neighbors" }, 1, dirs, via, false,
			nodes)), nil
	}
	hops := x.IntOr("HOPS", 1)
	met := x.opHops(hopOperator, int(hops), dirs, via, true, nodes)
	if x.Has("COUNT") {
		return newOperator("distinct count", "", float64(hops), 0, met), nil
	}
	return x.opNames(met), nil
}

func runNeighbors(ctx context.Context, x *execution) error {
	nodes, err := x.resolve(ctx, "nodes", x.Operand.Nodes)
	if err != nil {
		return err
	}
	via, err := x.edgeType()
	if err != nil {
		return err
	}
	if !x.Has("HOPS") && !x.Has("COUNT") {
		return x.lists(ctx, nodes, via)
	}
	visited := graph.NewBits(x.engine.Budget)
	defer visited.Free()
	for part := range slices.Chunk(nodes, pace.Every) {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := visited.Add(part); err != nil {
			return err
		}
	}
	return x.hops(ctx, visited, via)
}

// lists shows the neighbors of each node with what runs parallel to them.
func (x *execution) lists(ctx context.Context, nodes []layout.NodeID, via int) error {
	m, limit := x.engine.Meta(), x.IntOr("LIMIT", math.MaxInt64)
	cols := []string{"node", "direction", "neighbor"}
	for _, c := range []struct {
		name string
		has  bool
	}{{"type", len(m.EdgeTypes) > 0}, {"weight", m.Weighted}, {"time", m.Timestamped}} {
		if c.has {
			cols = append(cols, c.name)
		}
	}
	x.header(cols...)
	for _, dir := range x.directions(x.listDirection()) {
		err := x.eachList(ctx, "neighbors", dir, nodes, limit, func(part []layout.NodeID,
			l *listfile.Lists) (bool, error) {
			return x.listRows(ctx, part, l, dir, via, limit)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// listRows shows the lists l of nodes until there are limit rows; it returns whether to go on.
func (x *execution) listRows(ctx context.Context, nodes []layout.NodeID, l *listfile.Lists,
	dir layout.Direction, via int, limit int64) (bool, error) {
	names, err := x.names(ctx, nodes)
	if err != nil {
		return false, err
	}
	i, end, batch := 0, uint64(len(l.Nbrs)), uint64(x.engine.NameBatch())
	for from := uint64(0); from < end && int64(x.rows) < limit; from += batch {
		nbrs, err := x.names(ctx, l.Nbrs[from:min(from+batch, end)])
		if err != nil {
			return false, err
		}
		for j, nbr := range nbrs {
			k := from + uint64(j)
			for k >= l.Off[i+1] {
				i++
			}
			if via >= 0 && int(l.Types[k]) != via {
				continue
			}
			if int64(x.rows) >= limit {
				break
			}
			x.emit("neighbors", 1, 0)
			if err := x.row(x.edgeCells(names[i], dir, nbr, l, int(k))...); err != nil {
				return false, err
			}
		}
	}
	return int64(x.rows) < limit, nil
}

func (x *execution) edgeCells(node string, dir layout.Direction, nbr string, l *listfile.Lists,
	k int) []any {
	cells := []any{node, dir.String(), nbr}
	if l.Types != nil {
		cells = append(cells, x.engine.Meta().EdgeTypes[l.Types[k]])
	}
	if l.Weights != nil {
		cells = append(cells, l.Weights[k])
	}
	if l.Times != nil {
		cells = append(cells, l.Times[k])
	}
	return cells
}
