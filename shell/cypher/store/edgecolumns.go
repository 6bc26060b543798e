package store

import (
	"context"
	"slices"

	"gdb/kv"
	"gdb/layout"
	"gdb/layout/columnfile"
	"gdb/layout/edgetable"
	"gdb/layout/listfile"
	"gdb/shell/cypher/adjacency"
	"gdb/shell/cypher/ast"
	"gdb/shell/cypher/engine"
	"gdb/shell/cypher/temporal"
	"gdb/shell/cypher/vector"
)

// edgeProperty writes a property of edges whose rows are in one table, if their in-lists are in
// memory: the place of an edge there, which is found in O(log degree), is its row.
func (s *source) edgeProperty(ctx context.Context, edges []vector.Edge, key string,
	out *vector.Vector) (bool, error) {
	if len(edges) == 0 || s.meta.Typed() && slices.ContainsFunc(edges, func(e vector.Edge) bool {
		return e.Type != edges[0].Type
	}) {
		return false, nil
	}
	typ := int(edges[0].Type)
	m, isColumn := s.edgeColumn(typ, key)
	if !isColumn && !s.isAttribute(key) {
		out.Reset(vector.Any)
		out.Const, out.Anys = true, append(out.Anys, nil)
		return true, nil
	}
	if isColumn && s.isAttribute(key) { // where the column is null, the attribute counts
		return false, nil
	}
	l, err := s.inLists(ctx, typ, len(edges))
	if l == nil || err != nil {
		return false, err
	}
	rows, err := entriesOf(l, edges)
	if err != nil {
		return false, err
	}
	if isColumn && len(s.g.Store.Levels()) > 0 {
		return s.mergedColumn(ctx, edges, l, rows, m, out)
	}
	if isColumn {
		return s.tableColumn(ctx, s.tableOf(typ), m, rows, out)
	}
	c, err := s.attribute(ctx, key, typ, len(l.Nbr))
	if c == nil || err != nil {
		return false, err
	}
	c.take(rows, out)
	return true, nil
}

// edgeColumn returns a column of the table of edges of a type.
func (s *source) edgeColumn(typ int, key string) (kv.TableColumn, bool) {
	columns := s.meta.EdgeColumns(s.tableOf(typ))
	i := slices.IndexFunc(columns, func(m kv.TableColumn) bool { return m.Name == key })
	if i < 0 {
		return kv.TableColumn{}, false
	}
	return columns[i], true
}

// isAttribute reports whether a property is beside the lists.
func (s *source) isAttribute(key string) bool {
	return key == "weight" && s.meta.Weighted || key == "time" && s.meta.Timestamped
}

// inLists returns the in-lists of edges of a type, in whose order the rows of their table are; nil
// if they do not fit in memory, or properties of too few edges were asked for.
func (s *source) inLists(ctx context.Context, typ, asked int) (*adjacency.Lists, error) {
	var types []string
	if s.meta.Typed() {
		types = []string{s.meta.EdgeTypes[typ]}
	}
	if name := listsName(ast.In, types); !s.g.Kept.Has(name) {
		s.mu.Lock()
		s.asked[name] += uint64(asked)
		lists := s.asked[name]
		s.mu.Unlock()
		n, bytes := s.listsBytes(ast.In, types)
		if lists*readShare < n || bytes > s.Free()/4*3 {
			return nil, nil
		}
	}
	l, err := s.Lists(ctx, ast.In, types)
	if l == nil || err != nil || l.Moved || s.meta.Typed() && l.Typ != nil {
		return nil, err
	}
	return l, nil
}

// entriesOf returns where edges are in lists of the nodes that they lead to.
func entriesOf(l *adjacency.Lists, edges []vector.Edge) ([]uint32, error) {
	rows := make([]uint32, len(edges))
	for i, e := range edges {
		lo, hi := l.Find(e.To, e.From)
		for lo < hi && l.TypeOf(lo) != e.Type {
			lo++
		}
		if lo += e.Number; lo >= hi {
			return nil, errNoEntry(layout.NodeID(e.From), layout.NodeID(e.To))
		}
		rows[i] = lo
	}
	return rows, nil
}

// tableColumn writes rows of a column of a table: from memory if it fits there, and else from the
// blocks that have them.
func (s *source) tableColumn(ctx context.Context, relation int, m kv.TableColumn, rows []uint32,
	out *vector.Vector) (bool, error) {
	if back := s.meta.EdgeTable(relation).Reverse; back != nil {
		var of vector.Vector
		if ok, err := s.rowsOf(ctx, back.Rows, rows, &of); !ok || err != nil {
			return false, err
		}
		for i := range rows {
			rows[i] = uint32(of.Ints[i])
		}
	}
	return s.rowsOf(ctx, m, rows, out)
}

// mergedColumn writes a column of edges of base and levels, which are at places of in-lists: its
// rows are found by these.
func (s *source) mergedColumn(ctx context.Context, edges []vector.Edge, l *adjacency.Lists,
	places []uint32, m kv.TableColumn, out *vector.Vector) (bool, error) {
	kind, ok := kinds[m.Type]
	if !ok {
		return false, nil
	}
	relation := s.tableOf(int(edges[0].Type))
	t, err := s.props.table(relation)
	if err != nil {
		return false, err
	}
	entries, all := make([]edgetable.Entry, len(edges)), make([]uint32, len(edges))
	for i, e := range edges {
		first, _ := l.Of(e.To)
		entries[i] = edgetable.Entry{Node: layout.NodeID(e.To), Place: places[i] - first}
		all[i] = uint32(i)
	}
	rows, err := t.Rows(ctx, entries, nil)
	if err != nil {
		return false, err
	}
	var v columnfile.Values
	k := slices.IndexFunc(t.Columns(), func(c kv.TableColumn) bool { return c.Name == m.Name })
	if err := t.Gather(ctx, rows, k, &v); err != nil {
		return false, err
	}
	residentOf(kind, &v).take(all, out)
	return true, nil
}

// rowsOf writes rows of a column: from memory, or a few from their blocks.
func (s *source) rowsOf(ctx context.Context, m kv.TableColumn, rows []uint32,
	out *vector.Vector) (bool, error) {
	kind, ok := kinds[m.Type]
	if !ok {
		return false, nil
	}
	if !s.few(columnName(m), len(rows), m.Rows) {
		c, err := s.resident(ctx, m)
		if err != nil {
			return false, err
		}
		if c != nil {
			c.take(rows, out)
			return true, nil
		}
	}
	r, err := s.props.open(ctx, m)
	if err != nil {
		return false, err
	}
	wide, all := make([]uint64, len(rows)), make([]uint32, len(rows))
	for i, row := range rows {
		wide[i], all[i] = uint64(row), uint32(i)
	}
	var v columnfile.Values
	if err := r.Gather(ctx, wide, &v); err != nil {
		return false, err
	}
	residentOf(kind, &v).take(all, out)
	return true, nil
}

// take writes rows.
func (c *resident) take(rows []uint32, out *vector.Vector) {
	out.Reset(c.kind)
	c.gather(rows, 0, len(c.valid) > 0, out)
}

// residentOf returns values as a column.
func residentOf(kind vector.Kind, v *columnfile.Values) *resident {
	off := v.Strings.Off
	if len(off) == 0 {
		off = make([]uint32, v.Rows+1)
	}
	return &resident{kind: kind, ints: v.Ints, floats: v.Floats, text: string(v.Strings.Bytes),
		off: off, valid: v.Valid}
}

// attribute returns the weights or times of the n edges of a type in memory, by their place in the
// in-lists of the type; nil if there is none for them.
func (s *source) attribute(ctx context.Context, key string, typ, n int) (*resident, error) {
	name, wanted, to := key+" of all", map[uint16]bool(nil), whole(0, s.meta.Nodes)
	if s.meta.Typed() {
		name = key + " of " + s.meta.EdgeTypes[typ]
		wanted, to = map[uint16]bool{uint16(typ): true}, s.ofType(s.meta.Relations[typ].Dst)
	}
	v, err := s.keep(name, func(grow func(int64) error) (any, error) {
		if err := grow(8*int64(n) + int64(n)/8); err != nil {
			return nil, err
		}
		if key == "time" {
			return s.times(ctx, to, wanted, n)
		}
		out := &resident{kind: vector.Float, floats: make([]float64, 0, n)}
		return out, s.eachEntry(ctx, layout.In, to, wanted,
			func(_ layout.NodeID, l *listfile.Lists, k uint64) error {
				out.floats = append(out.floats, float64(l.Weights[k]))
				return nil
			})
	})
	c, _ := v.(*resident)
	return c, err
}

// times returns times of edges as values of one kind, as timeOf gives them; nil if they are of
// several.
func (s *source) times(ctx context.Context, to engine.Set, wanted map[uint16]bool, n int) (any,
	error) {
	out, null, mixed := &resident{ints: make([]int64, 0, n)}, 0, false
	valid := make([]uint64, n/64+1)
	err := s.eachEntry(ctx, layout.In, to, wanted,
		func(_ layout.NodeID, l *listfile.Lists, k uint64) error {
			t, i := l.Times[k], len(out.ints)
			v, kind, ok := s.timeIn(t)
			switch {
			case ok && (out.kind == vector.Any || kind == out.kind):
				out.kind = kind
				valid[i>>6] |= 1 << (i & 63)
			case t == kv.NoTime && s.meta.Typed():
				null++
			default:
				mixed = true
			}
			out.ints = append(out.ints, v)
			return nil
		})
	if err != nil || mixed || out.kind == vector.Any {
		return nil, err
	}
	if null > 0 {
		out.valid = valid
	}
	return out, nil
}

// timeIn returns the time of an edge as a value of a vector; false if it is none.
func (s *source) timeIn(t int64) (int64, vector.Kind, bool) {
	switch v := s.timeOf(t).(type) {
	case int64:
		return v, vector.Int, s.meta.Times == kv.TimeNumber
	case temporal.Instant:
		if v.Kind() == temporal.KindDate {
			return t / (24 * 60 * 60), vector.Date, true
		}
		return t * 1e6, vector.Timestamp, t > -timeMost && t < timeMost
	}
	return 0, vector.Any, false
}

// timeMost bounds seconds that fit a column as microseconds.
const timeMost = 1 << 43
