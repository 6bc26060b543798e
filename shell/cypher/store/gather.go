package store

import (
	"context"

	"gdb/kv"
	"gdb/layout"
	"gdb/shell/cypher/value"
	"gdb/shell/cypher/vector"
)

// run is nodes of a vector that follow one another and are of one type, or all null.
type run struct {
	from, to int
	first    uint32    // node of the type
	column   *resident // nil for a type without the property, and for null
}

// Property writes a property of relationships, a column of nodes, or their ids. It is false where
// these do not fit in memory and for columns of different types.
func (s *source) Property(ctx context.Context, nodes *vector.Vector, key string,
	out *vector.Vector) (bool, error) {
	if nodes.Kind == vector.Rel {
		return s.edgeProperty(ctx, nodes.Edges, key, out)
	}
	runs, err := s.runs(ctx, nodes.Nodes, key)
	if runs == nil || err != nil {
		return false, err
	}
	var like *resident
	nulls := false
	for _, r := range runs {
		switch {
		case r.column == nil:
			nulls = true
			continue
		case like != nil && like.kind != r.column.kind:
			return false, nil
		}
		like = r.column
		nulls = nulls || len(like.valid) > 0
	}
	if like == nil {
		return false, nil
	}
	out.Reset(like.kind)
	for _, r := range runs {
		if r.column == nil {
			appendNulls(out, r.to-r.from)
		} else {
			r.column.gather(nodes.Nodes[r.from:r.to], r.first, nulls, out)
		}
	}
	return true, nil
}

// runs returns the runs of nodes with the columns of a property; nil if one is to be read row by
// row.
func (s *source) runs(ctx context.Context, nodes []uint32, key string) (out []run, err error) {
	columns := map[uint64]*resident{} // by the first node of their types
	for i := 0; i < len(nodes); {
		r := run{from: i}
		if nodes[i] == vector.NoNode {
			for i < len(nodes) && nodes[i] == vector.NoNode {
				i++
			}
		} else {
			of := kv.NodeTypeMeta{Nodes: s.meta.Nodes}
			if s.meta.Typed() {
				of = s.meta.NodeTypes[s.meta.TypeOf(layout.NodeID(nodes[i]))]
			}
			r.first = uint32(of.First)
			for end := of.First + of.Nodes; i < len(nodes) && nodes[i] >= r.first &&
				uint64(nodes[i]) < end; {
				i++
			}
			var known bool
			if r.column, known = columns[of.First]; !known {
				r.column, err = s.columnOf(ctx, of, key, len(nodes))
				if err != nil || r.column == nil && !s.lacks(of, key) {
					return nil, err
				}
				columns[of.First] = r.column
			}
		}
		r.to = i
		out = append(out, r)
	}
	return out, nil
}

// lacks reports whether nodes of a type have null as a property.
func (s *source) lacks(of kv.NodeTypeMeta, key string) bool {
	return s.meta.Typed() && key != "label" && !of.IsID(key) && !hasColumn(of, key)
}

// appendNulls appends nulls to a vector.
func appendNulls(out *vector.Vector, n int) {
	for range n {
		switch out.Kind {
		case vector.Float:
			out.Floats = append(out.Floats, 0)
		case vector.String:
			out.Strings = append(out.Strings, "")
		case vector.Bool:
			out.Tris = append(out.Tris, value.Null)
			continue
		default:
			out.Ints = append(out.Ints, 0)
		}
		out.Null = append(out.Null, true)
	}
}
