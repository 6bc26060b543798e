package exec

import (
	"context"
	"fmt"
	"strings"

	"gdb/internal/message"
	"gdb/layout"
	"gdb/layout/listfile"
	"gdb/layout/topology"
)

// Directions returns the directions that IN, OUT or BOTH name, or def if none of them was said.
func (x *Execution) Directions(def ...layout.Direction) []layout.Direction {
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

// ListDirection returns the default direction of NEIGHBORS and DEGREES: out-lists, or in-lists
// where the store has no out-lists or both are the same.
func (x *Execution) ListDirection() layout.Direction {
	if x.Graph.HasDirection(layout.Out) && !x.Graph.Meta().Undirected {
		return layout.Out
	}
	return layout.In
}

// WarnNoLists warns that empty of the nodes have nothing to show because the statement names no
// direction and therefore gets the lists of incoming edges: a store of directed edges keeps no
// other lists.
func (x *Execution) WarnNoLists(empty, nodes int) {
	if empty == 0 || x.Directions() != nil || x.Graph.Meta().Undirected ||
		x.Graph.HasDirection(layout.Out) {
		return
	}
	which := "the node has"
	if nodes > 1 {
		which = fmt.Sprintf("%d of %d nodes have", empty, nodes)
	}
	x.Warn("%s no in-edges, and this store keeps no out-lists: %s ingest --direction both "+
		"keeps the edges that leave a node too", which, message.Program)
}

// EdgeType returns the number of the type that VIA names, or -1 without VIA.
func (x *Execution) EdgeType() (int, error) {
	v, ok := x.Args["VIA"]
	if !ok {
		return -1, nil
	}
	n, err := x.Graph.EdgeType(v.Text)
	if err != nil {
		return 0, fmt.Errorf("VIA %w", err)
	}
	return n, nil
}

// ListsDetail returns text that says which lists are followed: the lists of these directions, along
// edges of the type via, or of all types if via is -1.
func (x *Execution) ListsDetail(dirs []layout.Direction, via int) string {
	var names []string
	for _, d := range dirs {
		names = append(names, d.String())
	}
	if via >= 0 {
		return strings.Join(names, " and ") + ", " + x.Graph.Meta().EdgeTypes[via]
	}
	if len(x.Graph.Meta().EdgeTypes) == 0 {
		return strings.Join(names, " and ")
	}
	return strings.Join(names, " and ") + ", all types"
}

// Lists is the operator that reads the lists of some nodes.
type Lists struct{ *Operator }

// Hop says how lists are followed: in these directions, along edges of the type Via, or of all
// types if Via is -1.
type Hop struct {
	Directions []layout.Direction
	Via        int
	// Met says that the nodes were met as neighbors themselves, so that they have more neighbors
	// than the mean.
	Met bool
	// Distinct says that each neighbor is handed on once; otherwise every entry of a list is handed
	// on.
	Distinct bool
}

// Lists adds an operator to the plan that follows the lists of the nodes that in hands on.
func (x *Execution) Lists(name string, h Hop, in *Operator) Lists {
	e := x.Estimates()
	rows, blocks := 0.0, 0.0
	for _, dir := range h.Directions {
		mean, met := e.Degree(dir)
		if h.Met {
			mean = met
		}
		entries := in.Rows * mean
		blocks += e.ListBlocks(dir, in.Rows, entries)
		rows += entries * e.share(h.Via)
	}
	if h.Distinct {
		rows = Distinct(rows, float64(e.meta.Nodes))
	}
	return Lists{x.Operator(name, x.ListsDetail(h.Directions, h.Via), rows, blocks, in)}
}

// Each calls fn with consecutive parts of nodes and their lists until it returns false, as
// graph.EachList does. fn runs as the last operator of the plan, which counts the rows.
func (l Lists) Each(ctx context.Context, dir layout.Direction, nodes []layout.NodeID, limit int64,
	fn func([]layout.NodeID, *listfile.Lists) (bool, error)) error {
	perEntry := l.x.Estimates().EntryBytes()
	return l.Run(ctx, func(ctx context.Context) error {
		return l.x.Graph.EachList(ctx, dir, nodes, limit, func(part []layout.NodeID,
			lists *listfile.Lists) (bool, error) {
			l.Emit(0, len(lists.Nbrs)*perEntry)
			return l.asRoot(func() (bool, error) { return fn(part, lists) })
		})
	})
}

// Scan is the operator that reads all lists in order.
type Scan struct{ *Operator }

// Scan adds an operator to the plan that reads all lists of some directions.
func (x *Execution) Scan(dirs []layout.Direction, via int) Scan {
	e, blocks := x.Estimates(), 0.0
	for _, dir := range dirs {
		path, _ := layout.TopologyPaths(dir)
		blocks += e.fileBlocks(path, e.meta.BlockBytes)
	}
	return Scan{x.Operator("scan", "whole file, "+x.ListsDetail(dirs, via),
		float64(e.meta.Nodes)*float64(len(dirs)), blocks)}
}

// Each calls fn with all lists of a direction in order. cont says that the first list goes on from
// the call before.
func (s Scan) Each(ctx context.Context, dir layout.Direction,
	fn func(first layout.NodeID, cont bool, l *listfile.Lists) error) error {
	g := s.x.Graph
	return s.Run(ctx, func(ctx context.Context) error {
		return topology.Scan(ctx, g.Store, g.Dev, dir,
			func(first layout.NodeID, cont bool, l *listfile.Lists) error {
				if err := fn(first, cont, l); err != nil {
					return err
				}
				s.Emit(len(l.Off)-1, 4*len(l.Nbrs))
				return ctx.Err()
			})
	})
}
