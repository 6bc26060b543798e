package store

import (
	"fmt"
	"sort"

	"gdb/internal/mem"
	"gdb/kv"
	"gdb/layout"
	"gdb/layout/columnfile"
	"gdb/layout/edgetable"
	"gdb/layout/listfile"
	"gdb/shell/cypher/temporal"
	"gdb/shell/cypher/value"
	"gdb/shell/cypher/vector"
	"gdb/shell/graph"
)

// RelProps returns the properties of a relationship.
func (s *store) RelProps(r value.Rel) (value.Map, error) {
	keys := []string{"weight", "time"}
	for _, m := range s.meta.EdgeColumns(s.tableOf(s.relationOf(r))) {
		keys = append(keys, m.Name)
	}
	out := value.Map{}
	for _, key := range keys {
		v, err := s.RelProp(r, key)
		if err != nil {
			return nil, err
		}
		if v != nil {
			out[key] = v
		}
	}
	return out, nil
}

// RelProp returns a property of a relationship: a column of the table of its relation, or else its
// weight or time.
func (s *store) RelProp(r value.Rel, key string) (any, error) {
	typ := s.relationOf(r)
	var v vector.Vector
	e := vector.Edge{From: uint32(r.From), To: uint32(r.To), Number: uint32(r.ID),
		Type: uint16(typ)}
	ok, err := s.lists.edgeProperty(s.ctx, []vector.Edge{e}, key, &v)
	if err != nil {
		return nil, err
	}
	if ok {
		return v.At(0), nil
	}
	l, err := s.props.listOf(layout.NodeID(r.To))
	if err != nil {
		return nil, err
	}
	i, place, err := l.find(layout.NodeID(r.From), uint16(typ), r.ID, s.meta.Typed())
	if err != nil {
		return nil, err
	}
	for k, m := range s.meta.EdgeColumns(s.tableOf(typ)) {
		if m.Name != key {
			continue
		}
		if v, err := s.cellOf(r, s.tableOf(typ), place, k); v != nil || err != nil {
			return v, err
		}
	}
	switch {
	case key == "weight" && len(l.Weights) > 0:
		return float64(l.Weights[i]), nil
	case key == "time" && len(l.Times) > 0:
		return s.timeOf(l.Times[i]), nil
	}
	return nil, nil
}

// tableOf returns the relation that has the table of edges of a type.
func (s *store) tableOf(typ int) int {
	if s.meta.Typed() {
		return typ
	}
	return 0
}

// relationOf returns the edge type of a relationship. Of those of one name, the ends tell.
func (s *store) relationOf(r value.Rel) int {
	for i, name := range s.relations {
		if name == r.Type && (!s.meta.Typed() || s.meta.Relations[i] == kv.RelationMeta{
			Src: s.meta.TypeOf(layout.NodeID(r.From)), Dst: s.meta.TypeOf(layout.NodeID(r.To))}) {
			return i
		}
	}
	return 0
}

// timeOf returns the time of an edge: a date or a time in UTC where the source wrote these, else
// the number; nil where an edge of a typed store has none.
func (s *store) timeOf(t int64) any {
	const day = 24 * 60 * 60
	if t == kv.NoTime || s.meta.Times == kv.TimeNumber {
		return s.g.TimeOf(t)
	}
	if s.meta.Times == kv.TimeDate && t%day == 0 {
		return temporal.FromEpochDay(t / day)
	}
	v, err := temporal.FromEpoch(t, 0)
	if err != nil { // past the years that values have
		return t
	}
	return v
}

// cellOf returns the value of column k in the row of the entry at a place of a list.
func (s *store) cellOf(r value.Rel, relation int, place uint32, k int) (any, error) {
	t, err := s.props.table(relation)
	if err != nil {
		return nil, err
	}
	rows, err := t.Rows(s.ctx, []edgetable.Entry{{Node: layout.NodeID(r.To), Place: place}}, nil)
	if err != nil {
		return nil, err
	}
	if t.IsMerged() {
		var v columnfile.Values
		if err := t.Gather(s.ctx, rows, k, &v); err != nil {
			return nil, err
		}
		return cell(t.Columns()[k].Type, &v, 0), nil
	}
	c, err := s.props.open(s.ctx, t.Columns()[k])
	if err != nil {
		return nil, err
	}
	return c.at(s.ctx, rows[0])
}

// table opens the table of the edges of a relation, once. Any goroutine may call it.
func (p *properties) table(relation int) (*edgetable.Table, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	t := p.tables[relation]
	if t == nil {
		var err error
		g := p.s.g
		if t, err = edgetable.Open(p.s.ctx, g.Store, g.Dev, relation, g.Budget); err != nil {
			return nil, err
		}
		p.tables[relation] = t
	}
	return t, nil
}

// inList is the in-list that was read last.
type inList struct {
	listfile.Lists
	node layout.NodeID
	read bool
	held mem.Account
}

// listOf returns the in-list of a node, with its types, weights and times.
func (p *properties) listOf(n layout.NodeID) (*inList, error) {
	l := &p.list
	if l.read && l.node == n {
		return l, nil
	}
	l.Nbrs, l.Types, l.Weights, l.Times = l.Nbrs[:0], l.Types[:0], l.Weights[:0], l.Times[:0]
	l.node = n
	err := p.s.g.EachList(p.s.ctx, layout.In, []layout.NodeID{n}, graph.ListEntries,
		func(_ []layout.NodeID, part *listfile.Lists) (bool, error) {
			l.Nbrs = append(l.Nbrs, part.Nbrs...)
			l.Types = append(l.Types, part.Types...)
			l.Weights = append(l.Weights, part.Weights...)
			l.Times = append(l.Times, part.Times...)
			return true, l.held.AtLeast(4*int64(cap(l.Nbrs)+cap(l.Weights)) +
				2*int64(cap(l.Types)) + 8*int64(cap(l.Times)))
		})
	l.read = err == nil
	return l, err
}

// find returns the entry of an edge, of those with its ends and type the n-th, and its place in the
// list, or among the entries of its type if each type has a list of its own.
func (l *inList) find(from layout.NodeID, typ uint16, n int64, apart bool) (at int, place uint32,
	err error) {
	lo, hi := 0, len(l.Nbrs)
	if apart {
		lo = sort.Search(hi, func(i int) bool { return l.Types[i] >= typ })
		hi = sort.Search(hi, func(i int) bool { return l.Types[i] > typ })
	}
	at = lo + sort.Search(hi-lo, func(i int) bool { return l.Nbrs[lo+i] >= from })
	for ; at < hi && l.Nbrs[at] == from; at++ {
		if len(l.Types) > 0 && l.Types[at] != typ {
			continue
		}
		if n == 0 {
			return at, uint32(at - lo), nil
		}
		n--
	}
	return 0, 0, errNoEntry(from, l.node)
}

func errNoEntry(from, to layout.NodeID) error {
	return fmt.Errorf("an edge from node #%d to #%d is in no in-list", from, to)
}
