// Package store shows a store to openCypher: types of nodes are labels, relations are types, and
// columns of tables are properties. It plans statements for package exec.
package store

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"gdb/internal/mem"
	"gdb/internal/message"
	"gdb/kv"
	"gdb/layout"
	"gdb/layout/listfile"
	"gdb/shell/cypher/adjacency"
	"gdb/shell/cypher/ast"
	"gdb/shell/cypher/value"
	"gdb/shell/exec"
	"gdb/shell/graph"
	"gdb/shell/lang"
	"gdb/shell/words"

	"github.com/RoaringBitmap/roaring/v2"
)

// anyType is the type of relationships in a store whose edges have none.
const anyType = "edge"

// store is a plain.Graph and value.Entities over a store, for one statement.
type store struct {
	ctx   context.Context
	x     *exec.Execution
	g     *graph.Graph
	meta  *kv.Meta
	root  *exec.Operator
	props properties
	// relations holds the types of relationships, by the numbers of meta.EdgeTypes.
	relations []string
	// lists are those in memory, and out the out-lists of a store that keeps none.
	lists *source
	out   *adjacency.Lists
	// deleted are nodes that statements do not see, and present has a bit for each other node; nil
	// if none were deleted.
	deleted *roaring.Bitmap
	present []uint64
}

// leaveOut leaves the nodes out that were deleted. It takes a bit of memory for each node.
func (s *store) leaveOut(held *mem.Account) (err error) {
	if s.deleted, err = s.g.Deleted(s.ctx); err != nil || s.deleted == nil {
		return err
	}
	words := (s.meta.Nodes + 63) / 64
	if err := held.Add(int64(8 * words)); err != nil {
		return err
	}
	s.present = slices.Repeat([]uint64{^uint64(0)}, int(words))
	for it := s.deleted.Iterator(); it.HasNext(); {
		v := it.Next()
		s.present[v>>6] &^= 1 << (v & 63)
	}
	return nil
}

// isDeleted reports whether a node was deleted.
func (s *store) isDeleted(v uint64) bool {
	return s.deleted != nil && s.deleted.Contains(uint32(v))
}

func newStore(ctx context.Context, x *exec.Execution, root *exec.Operator) *store {
	s := &store{ctx: ctx, x: x, g: x.Graph, meta: x.Graph.Meta(), root: root}
	s.props = newProperties(s)
	for i, name := range s.meta.EdgeTypes {
		s.relations = append(s.relations, relationName(s.meta, i, name))
	}
	return s
}

// relationName returns what the relationships of an edge type are called: a relation that joins
// several types of nodes has an edge type for each two, named after these too.
func relationName(m *kv.Meta, i int, name string) string {
	if !m.Typed() {
		return name
	}
	r := m.Relations[i]
	short, _ := strings.CutPrefix(name, m.NodeTypes[r.Src].Name+":")
	if short, ok := strings.CutSuffix(short, ":"+m.NodeTypes[r.Dst].Name); ok && short != "" {
		return short
	}
	return name
}

// Close closes the columns and gives memory back.
func (s *store) Close() error {
	return s.props.Close()
}

// Labels returns the type of a node. In a store that is not typed, ids may begin with it.
func (s *store) Labels(n int64) ([]string, error) {
	types := s.meta.NodeTypes
	switch {
	case len(types) == 0:
		return nil, nil
	case s.meta.Typed():
		return []string{types[s.meta.TypeOf(layout.NodeID(n))].Name}, nil
	}
	name, err := s.name(n)
	if label, _, ok := strings.Cut(name, ":"); ok {
		return []string{label}, err
	}
	return nil, err
}

// name returns the external id of a node.
func (s *store) name(n int64) (string, error) {
	names, err := s.g.Names(s.ctx, []layout.NodeID{layout.NodeID(n)})
	if err != nil {
		return "", err
	}
	return names[0], nil
}

// id returns the external id of a node as a value, without the type that it begins with.
func (s *store) id(n int64) (any, error) {
	name, err := s.name(n)
	if err != nil {
		return nil, err
	}
	return s.idOf(name), nil
}

// idOf returns an external id as a value.
func (s *store) idOf(name string) any {
	if len(s.meta.NodeTypes) > 0 {
		if _, id, ok := strings.Cut(name, ":"); ok {
			name = id
		}
	} else if s.meta.IDs.Kind == kv.IDsString {
		return name
	}
	if i, err := strconv.ParseInt(name, 10, 64); err == nil && strconv.FormatInt(i, 10) == name {
		return i
	}
	return name
}

// Nodes calls yield with the nodes of a label, in order.
func (s *store) Nodes(ctx context.Context, labels []string, yield func(value.Node) error) error {
	from, to := uint64(0), s.meta.Nodes
	for _, l := range labels {
		i := slices.IndexFunc(s.meta.NodeTypes, func(t kv.NodeTypeMeta) bool { return t.Name == l })
		if i < 0 {
			s.warnName("label", l, s.labels())
			return nil
		}
		if t := s.meta.NodeTypes[i]; s.meta.Typed() {
			from, to = max(from, t.First), min(to, t.First+t.Nodes)
		}
	}
	for v := from; v < to; v++ {
		if err := ctx.Err(); err != nil {
			return err
		}
		if s.isDeleted(v) {
			continue
		}
		if err := yield(value.Node{ID: int64(v), G: s}); err != nil {
			return err
		}
	}
	return nil
}

func (s *store) labels() (names []string) {
	for _, t := range s.meta.NodeTypes {
		names = append(names, t.Name)
	}
	return names
}

// warnName warns that nothing has a name that a pattern asks for.
func (s *store) warnName(kind, name string, among []string) {
	s.x.Warn("nothing in this store has the %s %s%s", kind, name, words.Near(name, among))
}

// FindsBy reports whether Find knows a property of nodes with labels: their external id, what has
// an index, or what is none. Without labels it may be the id of any type. Nodes are found by their
// numbers too.
func (s *store) FindsBy(key string, labels []string) bool {
	if key == ast.IDFunction {
		return !slices.ContainsFunc(labels, func(l string) bool {
			return !slices.Contains(s.labels(), l) // Nodes warns of it
		})
	}
	if s.isID(key, labels) {
		return true
	}
	r, err := s.index(s.ctx, key, labels)
	return r != nil && err == nil
}

// isID reports whether a property of nodes with labels is their external id, or is none.
func (s *store) isID(key string, labels []string) bool {
	switch {
	case len(s.meta.NodeTypes) == 0:
		return key == "id" && len(labels) == 0
	case len(labels) > 1 || len(labels) == 0 && !s.meta.Typed():
		return false
	}
	return len(s.prefixes(key, labels)) > 0 &&
		!slices.ContainsFunc(s.meta.NodeTypes, func(t kv.NodeTypeMeta) bool {
			return (len(labels) == 0 || t.Name == labels[0]) && hasColumn(t, key)
		})
}

func hasColumn(t kv.NodeTypeMeta, key string) bool {
	return slices.ContainsFunc(t.Columns, func(c kv.TableColumn) bool { return c.Name == key })
}

// prefixes returns what the external ids begin with of the types that have a property as their id.
func (s *store) prefixes(key string, labels []string) (out []string) {
	for _, t := range s.meta.NodeTypes {
		if (len(labels) == 0 || t.Name == labels[0]) && t.IsID(key) {
			out = append(out, t.Name+":")
		}
	}
	if len(s.meta.NodeTypes) == 0 {
		out = []string{""}
	}
	return out
}

// Find calls yield with the nodes that have an external id, if a property is that, or that may have
// a value by an index.
func (s *store) Find(ctx context.Context, labels []string, key string, v any,
	yield func(value.Node) error) (bool, error) {
	switch {
	case key == ast.IDFunction:
		if !s.FindsBy(key, labels) {
			return false, nil
		}
		return true, s.numbered(labels, v, yield)
	case !s.isID(key, labels):
		return s.findIndexed(ctx, labels, key, v, yield)
	}
	name, ok := v.(string)
	if n, is := v.(int64); is {
		name, ok = strconv.FormatInt(n, 10), true
	}
	if !ok {
		return false, nil
	}
	for _, prefix := range s.prefixes(key, labels) {
		set := lang.NodeSet{IDs: lang.OneNode(lang.NodeRef{External: prefix + name})}
		nodes, err := s.g.Find(ctx, set, 0)
		if errors.Is(err, kv.ErrNotFound) {
			continue
		}
		if err == nil {
			err = yield(value.Node{ID: int64(nodes[0]), G: s})
		}
		if err != nil {
			return true, err
		}
	}
	return true, nil
}

// numbered calls yield with the node that has a number, if there is one and it has the labels.
func (s *store) numbered(labels []string, v any, yield func(value.Node) error) error {
	n, ok := v.(int64)
	if f, is := v.(float64); is && f >= 0 && f < math.MaxUint32 {
		n, ok = int64(f), float64(int64(f)) == f
	}
	if !ok || n < 0 || uint64(n) >= s.meta.Nodes || s.isDeleted(uint64(n)) {
		return nil
	}
	if len(labels) > 0 {
		has, err := s.Labels(n)
		if err != nil {
			return err
		}
		for _, l := range labels {
			if !slices.Contains(has, l) {
				return nil
			}
		}
	}
	return yield(value.Node{ID: n, G: s})
}

// Keeps reports whether the store has the lists of a direction.
func (s *store) Keeps(dir ast.Direction) bool {
	return s.meta.Undirected || dir == ast.In || s.g.HasDirection(layout.Out)
}

// entry is an edge of a node's list: the other end, its type, and which of several equal edges.
type entry struct {
	other  layout.NodeID
	typ    uint16
	number uint32
}

// Rels calls yield with the relationships of a node. The edges of an undirected store lead both
// ways.
func (s *store) Rels(ctx context.Context, n value.Node, dir ast.Direction, types []string,
	yield func(value.Rel, value.Node) error) error {
	wanted, ok := s.types(types)
	if !ok {
		return nil
	}
	dirs := []ast.Direction{dir}
	switch {
	case s.meta.Undirected:
		dirs[0] = ast.In
	case dir == ast.Both:
		dirs = []ast.Direction{ast.Out, ast.In}
	}
	for _, d := range dirs {
		list, err := s.list(ctx, layout.NodeID(n.ID), d)
		if err != nil {
			return err
		}
		bytes := entryBytes * int64(len(list))
		if err := s.g.Budget.Reserve("a list of neighbors", bytes); err != nil {
			return err
		}
		err = s.each(n, list, d, dir, wanted, yield)
		s.g.Budget.Release(bytes)
		if err != nil {
			return err
		}
	}
	return nil
}

// entryBytes is the memory of an entry of a list.
const entryBytes = 12

// each calls yield with the wanted entries of a node's list of a direction, of those asked for.
func (s *store) each(n value.Node, list []entry, d, asked ast.Direction, wanted map[uint16]bool,
	yield func(value.Rel, value.Node) error) error {
	for _, e := range list {
		if wanted != nil && !wanted[e.typ] || d == ast.In && asked == ast.Both &&
			!s.meta.Undirected && int64(e.other) == n.ID {
			continue
		}
		if err := yield(s.rel(n.ID, e, d), value.Node{ID: int64(e.other), G: s}); err != nil {
			return err
		}
	}
	return nil
}

// rel returns the relationship of an entry. An undirected one leads from the lesser node.
func (s *store) rel(n int64, e entry, dir ast.Direction) value.Rel {
	r := value.Rel{ID: int64(e.number), From: n, To: int64(e.other), Type: s.typeName(e.typ), G: s}
	if dir == ast.In && !s.meta.Undirected || s.meta.Undirected && r.From > r.To {
		r.From, r.To = r.To, r.From
	}
	return r
}

func (s *store) typeName(t uint16) string {
	if int(t) < len(s.relations) {
		return s.relations[t]
	}
	return anyType
}

// types returns which types are wanted; nil for all, and false for none of the store's. It warns of
// those that are not there.
func (s *store) types(names []string) (wanted map[uint16]bool, ok bool) {
	wanted, missing := s.typeSet(names)
	for _, name := range missing {
		s.warnName("type of edges", name, s.relations)
	}
	return wanted, len(names) == 0 || len(missing) < len(names)
}

// typeSet returns the types that names are of, nil for all, and the names that are of none.
func (s *store) typeSet(names []string) (wanted map[uint16]bool, missing []string) {
	if len(names) == 0 {
		return nil, nil
	}
	wanted = map[uint16]bool{}
	for _, name := range names {
		found := name == anyType && len(s.relations) == 0
		if found {
			wanted[0] = true
		}
		for i, relation := range s.relations {
			if name == relation || name == s.meta.EdgeTypes[i] {
				wanted[uint16(i)], found = true, true
			}
		}
		if !found {
			missing = append(missing, name)
		}
	}
	return wanted, missing
}

// list returns the list of a node.
func (s *store) list(ctx context.Context, n layout.NodeID, dir ast.Direction) ([]entry, error) {
	if dir == ast.Out && !s.g.HasDirection(layout.Out) {
		return s.made(ctx, n)
	}
	d := layout.In
	if dir == ast.Out {
		d = layout.Out
	}
	var out []entry
	err := s.g.EachList(ctx, d, []layout.NodeID{n}, graph.ListEntries,
		func(_ []layout.NodeID, l *listfile.Lists) (bool, error) {
			for i, other := range l.Nbrs {
				e := entry{other: other}
				if len(l.Types) > 0 {
					e.typ = l.Types[i]
				}
				out = append(out, e)
			}
			return true, ctx.Err()
		})
	if err != nil {
		return nil, fmt.Errorf("list of node #%d: %w", n, err)
	}
	number(out)
	return out, nil
}

// made returns the out-list of a node of a store that keeps none.
func (s *store) made(ctx context.Context, n layout.NodeID) (out []entry, err error) {
	if s.out == nil {
		s.x.Warn("this store keeps no out-lists: the statement makes them in memory; %s ingest "+
			"--direction both keeps them", message.Program)
		if s.out, err = s.lists.Lists(ctx, ast.Out, nil); err != nil {
			return nil, err
		}
		if s.out == nil {
			_, bytes := s.lists.listsBytes(ast.Out, nil)
			return nil, fmt.Errorf("this store keeps no out-lists, and they take %s, of which %s "+
				"are free: raise --memory, or %s ingest --direction both", mem.FormatSize(bytes),
				mem.FormatSize(s.lists.Free()), message.Program)
		}
	}
	lo, hi := s.out.Of(uint32(n))
	for i := lo; i < hi; i++ {
		number, _ := s.out.NumberOf(i)
		out = append(out, entry{layout.NodeID(s.out.Nbr[i]), s.out.TypeOf(i), number})
	}
	return out, nil
}

// number numbers the edges of a list that have the same end and type.
func number(list []entry) {
	type key struct {
		other layout.NodeID
		typ   uint16
	}
	var seen map[key]uint32
	for i := range list {
		if i+1 < len(list) && list[i+1].other == list[i].other ||
			i > 0 && list[i-1].other == list[i].other {
			if seen == nil {
				seen = map[key]uint32{}
			}
			k := key{list[i].other, list[i].typ}
			list[i].number = seen[k]
			seen[k]++
		}
	}
}
