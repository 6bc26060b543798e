package store

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"

	"gdb/internal/mem"
	"gdb/kv"
	"gdb/layout"
	"gdb/shell/cypher/adjacency"
	"gdb/shell/cypher/engine"
	"gdb/shell/cypher/value"
	"gdb/shell/cypher/vector"
)

// source is a store as the engine reads it: lists and columns are in memory while they are used,
// and are kept for later statements.
type source struct {
	*store
	held *mem.Account // of the statement
	mu   sync.Mutex
	used map[string]bool // of graph.Kept
	// asked counts the values of columns that were asked for before these are in memory.
	asked map[string]uint64
}

func newSource(s *store, held *mem.Account) *source {
	s.lists = &source{store: s, held: held, used: map[string]bool{},
		asked: map[string]uint64{}}
	return s.lists
}

// Close ends the use of what is kept.
func (s *source) Close() {
	for name := range s.used {
		s.g.Kept.Release(name)
	}
}

// Holds returns what gives up the lists that come into use from now on.
func (s *source) Holds() (release func()) {
	had := maps.Clone(s.used)
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		for name := range s.used {
			if !had[name] && strings.HasPrefix(name, listsPrefix) {
				s.g.Kept.Release(name)
				delete(s.used, name)
			}
		}
	}
}

// Grow counts memory until the statement ends.
func (s *source) Grow(bytes int64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.held.Add(bytes)
}

// keep returns a thing of graph.Kept, which is used until the statement ends; nil without memory.
func (s *source) keep(name string, build func(grow func(int64) error) (any, error)) (any, error) {
	s.mu.Lock()
	first := !s.used[name]
	s.used[name] = true
	s.mu.Unlock()
	v, err := s.g.Kept.Use(name, build)
	if !first {
		s.g.Kept.Release(name)
	}
	var short *mem.LimitError
	if errors.As(err, &short) || errors.Is(err, adjacency.ErrTooMany) {
		return nil, nil
	}
	return v, err
}

// Nodes returns how many nodes there are.
func (s *source) Nodes() uint64 { return s.meta.Nodes }

// Undirected says that edges have no direction.
func (s *source) Undirected() bool { return s.meta.Undirected }

// Threads returns the number of goroutines of a statement.
func (s *source) Threads() int { return s.g.Threads }

// Rel returns a relationship.
func (s *source) Rel(e vector.Edge) value.Rel {
	return value.Rel{ID: int64(e.Number), From: int64(e.From), To: int64(e.To),
		Type: s.typeName(e.Type), G: s.store}
}

// whole is the set of all nodes from … end-1.
func whole(from, end uint64) engine.Set {
	if from == end {
		return engine.Set{}
	}
	return engine.Set{Ranges: []engine.Range{{From: uint32(from), End: uint32(end)}}}
}

// Labeled returns the nodes of a type; false where types are in the ids alone.
func (s *source) Labeled(labels []string) (engine.Set, bool) {
	from, to := uint64(0), s.meta.Nodes
	for _, l := range labels {
		i := slices.IndexFunc(s.meta.NodeTypes, func(t kv.NodeTypeMeta) bool { return t.Name == l })
		if i < 0 {
			s.warnName("label", l, s.labels())
			return engine.Set{}, true
		}
		if !s.meta.Typed() {
			return engine.Set{}, false
		}
		t := s.meta.NodeTypes[i]
		from, to = max(from, t.First), min(to, t.First+t.Nodes)
	}
	set := whole(from, max(from, to))
	set.Bits = s.present
	return set, true
}

// Ends returns the types of nodes that relations join.
func (s *source) Ends(types []string) (from, to engine.Set) {
	wanted, ok := s.types(types)
	switch {
	case !ok:
		return engine.Set{}, engine.Set{}
	case !s.meta.Typed():
		return whole(0, s.meta.Nodes), whole(0, s.meta.Nodes)
	}
	for i, r := range s.meta.Relations {
		if wanted == nil || wanted[uint16(i)] {
			from, to = engine.Union(from, s.ofType(r.Src)), engine.Union(to, s.ofType(r.Dst))
		}
	}
	return from, to
}

// Find returns the node that has an id.
func (s *source) Find(ctx context.Context, labels []string, key string, v any) (nodes []uint32,
	ok bool, err error) {
	ok, err = s.store.Find(ctx, labels, key, v, func(n value.Node) error {
		nodes = append(nodes, uint32(n.ID))
		return nil
	})
	return nodes, ok, err
}

// Types returns the relations that names are of and that join nodes of two sets, by their own
// names, of which each has one.
func (s *source) Types(names []string, from, to engine.Set) (out []string) {
	wanted, ok := s.types(names)
	if !ok || len(s.meta.EdgeTypes) == 0 || len(names) == 0 && !s.meta.Typed() {
		return names
	}
	for t, name := range s.meta.EdgeTypes {
		if wanted != nil && !wanted[uint16(t)] {
			continue
		}
		if s.meta.Typed() {
			r := s.meta.Relations[t]
			if s.ofType(r.Src).Disjoint(from) || s.ofType(r.Dst).Disjoint(to) {
				continue
			}
		}
		out = append(out, name)
	}
	if len(out) == 0 { // none: the ends have no node in common with those of any
		return names
	}
	slices.Sort(out)
	return out
}

// Unique reports whether ids are asked for, of a store that is not typed or of one type of nodes.
func (s *source) Unique(key string, of engine.Set) bool {
	if len(of.Ranges) == 0 || !s.meta.Typed() {
		return key == "id" && len(s.meta.NodeTypes) == 0
	}
	first, end := span(of)
	t := s.meta.NodeTypes[s.meta.TypeOf(layout.NodeID(first))]
	return uint64(end) <= t.First+t.Nodes && t.IsID(key)
}

// ofType returns the nodes of a type.
func (s *source) ofType(t int) engine.Set {
	n := s.meta.NodeTypes[t]
	return whole(n.First, n.First+n.Nodes)
}

// columnOf returns a column of the nodes of a type in memory; nil if it is none, does not fit, or
// too little of it is wanted.
func (s *source) columnOf(ctx context.Context, of kv.NodeTypeMeta, key string,
	wanted int) (*resident, error) {
	for _, c := range of.Columns {
		if c.Name == key {
			if s.few(columnName(c), wanted, of.Nodes) {
				return nil, nil
			}
			return s.resident(ctx, c)
		}
	}
	if of.IsID(key) && (s.meta.Typed() || len(s.meta.NodeTypes) == 0) {
		if !s.g.DenseIDs() && s.few(idsName(of), wanted, of.Nodes) {
			return nil, nil
		}
		return s.ids(ctx, of)
	}
	switch {
	case key == "label" && s.meta.Labels != nil:
		return s.labelColumn(ctx, of, wanted)
	case !s.meta.Typed() && len(s.meta.Features) > 0:
		m := s.meta.Features[0]
		if at, ok := s.meta.FeatureColumns(m).Index(key); ok {
			return s.featureColumn(ctx, m, at, wanted)
		}
	}
	return nil, nil
}
