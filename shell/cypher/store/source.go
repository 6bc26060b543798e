package store

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"

	"gdb/internal/mem"
	"gdb/kv"
	"gdb/layout"
	"gdb/layout/listfile"
	"gdb/shell/cypher/adjacency"
	"gdb/shell/cypher/ast"
	"gdb/shell/cypher/engine"
	"gdb/shell/cypher/value"
	"gdb/shell/graph"
)

// source is a store as the engine reads it: lists and columns are in memory while they are used,
// and are kept for later statements.
type source struct {
	*store
	held *mem.Account // of the statement
	mu   sync.Mutex
	used map[string]bool // of graph.Kept
}

func newSource(s *store, held *mem.Account) *source {
	s.lists = &source{store: s, held: held, used: map[string]bool{}}
	return s.lists
}

// Close ends the use of what is kept.
func (s *source) Close() {
	for name := range s.used {
		s.g.Kept.Release(name)
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

// Threads returns the number of processors.
func (s *source) Threads() int { return runtime.GOMAXPROCS(0) }

// Rel returns a relationship.
func (s *source) Rel(from, to uint32, typ uint16, number uint32) value.Rel {
	return value.Rel{ID: int64(number), From: int64(from), To: int64(to), Type: s.typeName(typ),
		G: s.store}
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
	return whole(from, max(from, to)), true
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

// Lists returns lists in memory; nil if there is none for them.
func (s *source) Lists(ctx context.Context, dir ast.Direction, types []string) (*adjacency.Lists,
	error) {
	wanted, ok := s.types(types)
	if !ok {
		return &adjacency.Lists{Off: []uint32{0}}, nil
	}
	if s.meta.Undirected {
		dir = ast.In
	}
	sorted := slices.Sorted(slices.Values(types))
	name := fmt.Sprintf("lists %d %s", dir, strings.Join(sorted, "|"))
	v, err := s.keep(name, func(grow func(int64) error) (any, error) {
		switch {
		case dir == ast.Both:
			return s.both(ctx, types, grow)
		case dir == ast.Out && !s.g.HasDirection(layout.Out):
			return s.turn(ctx, types, wanted, grow)
		}
		return s.read(ctx, dir, types, wanted, grow)
	})
	l, _ := v.(*adjacency.Lists)
	if l == nil && err == nil {
		s.x.Warn("the lists of edges do not fit in memory, and are read row by row, which takes " +
			"long: give the statement more with --memory")
	}
	return l, err
}

// errShort says that the lists of which others are made do not fit.
var errShort = &mem.LimitError{}

func (s *source) both(ctx context.Context, types []string, grow func(int64) error) (any, error) {
	out, err := s.Lists(ctx, ast.Out, types)
	if err != nil {
		return nil, err
	}
	in, err := s.Lists(ctx, ast.In, types)
	if err != nil {
		return nil, err
	}
	if out == nil || in == nil {
		return nil, errShort
	}
	return adjacency.Both(out, in, grow)
}

// turn makes out-lists of the in-lists, in two passes over these.
func (s *source) turn(ctx context.Context, types []string, wanted map[uint16]bool,
	grow func(int64) error) (any, error) {
	from, to := s.Ends(types)
	first, end := span(from)
	return adjacency.Turn(first, end, s.several(wanted),
		func(edge func(owner, nbr uint32, typ uint16)) error {
			return s.scan(ctx, layout.In, to, wanted, func(owner, nbr uint32, typ uint16) error {
				edge(owner, nbr, typ)
				return nil
			})
		}, grow)
}

// several reports whether edges of some relations, or of all for nil, have several types.
func (s *source) several(wanted map[uint16]bool) bool {
	return len(wanted) != 1 && len(s.meta.EdgeTypes) > 1
}

// span returns the first node of a set, and the one behind the last.
func span(s engine.Set) (first, end uint32) {
	if len(s.Ranges) == 0 {
		return 0, 0
	}
	return s.Ranges[0].From, s.Ranges[len(s.Ranges)-1].End
}

// read reads the lists of a direction.
func (s *source) read(ctx context.Context, dir ast.Direction, types []string,
	wanted map[uint16]bool, grow func(int64) error) (any, error) {
	from, to := s.Ends(types)
	d := layout.Out
	if dir == ast.In {
		d, from = layout.In, to
	}
	first, end := span(from)
	b, err := adjacency.NewBuilder(first, end, s.several(wanted), grow)
	if err != nil {
		return nil, err
	}
	if err := s.scan(ctx, d, from, wanted, b.Add); err != nil {
		return nil, err
	}
	return b.Lists()
}

// scan calls fn with the entries of the wanted types in the lists of some nodes, in order.
func (s *source) scan(ctx context.Context, d layout.Direction, of engine.Set,
	wanted map[uint16]bool, fn func(owner, nbr uint32, typ uint16) error) error {
	each := func(owner layout.NodeID, l *listfile.Lists, i int) error {
		for k := l.Off[i]; k < l.Off[i+1]; k++ {
			typ := uint16(0)
			if len(l.Types) > 0 {
				typ = l.Types[k]
			}
			if wanted != nil && !wanted[typ] {
				continue
			}
			if err := fn(uint32(owner), uint32(l.Nbrs[k]), typ); err != nil {
				return err
			}
		}
		return nil
	}
	first, end := span(of)
	nodes := make([]layout.NodeID, 0, graph.NodeBatch)
	for v := uint64(first); v < uint64(end); v += uint64(len(nodes)) {
		nodes = nodes[:0]
		for u := v; u < min(v+graph.NodeBatch, uint64(end)); u++ {
			nodes = append(nodes, layout.NodeID(u))
		}
		err := s.g.EachList(ctx, d, nodes, graph.ListEntries,
			func(part []layout.NodeID, l *listfile.Lists) (bool, error) {
				for i, owner := range part {
					if err := each(owner, l, i); err != nil {
						return false, err
					}
				}
				return true, ctx.Err()
			})
		if err != nil {
			return err
		}
	}
	return nil
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

// columnOf returns a column of the nodes of a type in memory; nil if it is none, or does not fit.
func (s *source) columnOf(ctx context.Context, of kv.NodeTypeMeta, key string) (*resident, error) {
	for _, c := range of.Columns {
		if c.Name == key {
			return s.resident(ctx, c)
		}
	}
	if of.IsID(key) && (s.meta.Typed() || len(s.meta.NodeTypes) == 0) {
		return s.ids(ctx, of)
	}
	return nil, nil
}
