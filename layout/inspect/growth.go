package inspect

import (
	"context"

	"gdb/kv"
	"gdb/layout"
	"gdb/layout/topology"
)

// Growth tells what the levels of a store cost, and what a compaction would give.
type Growth struct {
	Levels       int    // with the small commits, which are one level
	Nodes, Edges uint64 // that they add
	Gone         uint64 // edges that they take away
	Deleted      uint64 // nodes without edges, which keep their numbers
	// Bytes is what base and levels take on disk, and Compacted what the same content would as one,
	// by the bytes of the base for each of its nodes and edges.
	Bytes, Compacted int64
	// Memory is what the lists of levels take at most in all directions, once these are open.
	Memory int64
	// Pieces is of how many pieces a list is merged, as a mean.
	Pieces float64
}

// GrowthOf returns what the levels of a store cost; nil for a store that has none.
func GrowthOf(ctx context.Context, s *layout.Store) (*Growth, error) {
	m, base := s.Meta(), s.Base().Meta()
	if len(s.Levels()) == 0 && m.Deleted == "" {
		return nil, nil
	}
	g := &Growth{Levels: len(s.Levels()), Bytes: filesBytes(base), Pieces: 1}
	lists, pieces := uint64(0), m.Nodes
	for _, l := range s.Levels() {
		if g.Nodes += l.Of.Nodes; l.Of.Gone {
			g.Gone += l.Of.Removed
		} else {
			g.Edges += l.Of.Edges
		}
		if g.Bytes += l.Of.Bytes; l.Of.Rows == "" {
			pieces += l.Meta().Nodes - l.Of.Nodes
		}
	}
	if m.Nodes > 0 {
		g.Pieces = float64(pieces) / float64(m.Nodes)
	}
	for _, name := range m.Directions {
		dir := layout.In
		if name == layout.Out.String() {
			dir = layout.Out
		}
		g.Memory += topology.PagedBytes(s, dir, 0) - topology.PagedBytes(s.Base(), dir, 0)
		lists += uint64(topology.FileBytes(s.Base(), dir))
	}
	rest := int64(0)
	if base.Nodes > 0 {
		rest = int64(float64(uint64(filesBytes(base))-lists) / float64(base.Nodes) *
			float64(m.Nodes))
	}
	g.Compacted = rest + int64(float64(lists)/float64(max(base.Edges, 1))*float64(m.Edges))
	set, err := s.Deleted(ctx)
	if err == nil && set != nil {
		g.Deleted = set.GetCardinality()
	}
	return g, err
}

// filesBytes returns what the files of a base take.
func filesBytes(m *kv.Meta) (n int64) {
	for _, f := range m.Files {
		n += f.Size
	}
	return n
}
