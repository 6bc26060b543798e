package store

import (
	"context"
	"errors"
	"slices"
	"strings"

	"gdb/kv"
	"gdb/layout"
	"gdb/layout/columnfile"
	"gdb/shell/cypher/value"
	"gdb/shell/cypher/vector"
)

// resident is a column in memory: 8 bytes a row, or 4 and the text of strings.
type resident struct {
	kind   vector.Kind
	ints   []int64
	floats []float64
	text   string // string i is text[off[i]:off[i+1]]
	off    []uint32
	valid  []uint64 // as in columnfile.Values
	dense  bool     // the integers are the numbers of the nodes, and not there
}

// kinds are the kinds of the types of columns.
var kinds = map[string]vector.Kind{columnfile.Int64: vector.Int, columnfile.Float64: vector.Float,
	columnfile.Bool: vector.Bool, columnfile.String: vector.String, columnfile.Date: vector.Date,
	columnfile.Timestamp: vector.Timestamp}

// columnShare is how many rows are read into memory in the time in which a row is read by itself.
const columnShare = 256

// few reports whether so few values of a column were asked for that it is not worth reading it into
// memory. It counts these.
func (s *source) few(name string, asked int, rows uint64) bool {
	if s.g.Kept.Has(name) {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked[name] += uint64(asked)
	return s.asked[name]*columnShare < rows
}

// resident returns a column in memory; nil if there is none for it.
func (s *source) resident(ctx context.Context, m kv.TableColumn) (*resident, error) {
	kind, ok := kinds[m.Type]
	if !ok {
		return nil, nil
	}
	v, err := s.keep(columnName(m), func(grow func(int64) error) (c any, err error) {
		r, err := columnfile.Open(ctx, s.g.Store, s.g.Dev, m, s.g.Budget)
		if err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, r.Close()) }()
		return readColumn(ctx, r, kind, grow)
	})
	c, _ := v.(*resident)
	return c, err
}

// columnName and idsName are what columns and ids are called in graph.Kept.
func columnName(m kv.TableColumn) string { return "column " + m.Path }

func idsName(of kv.NodeTypeMeta) string { return "ids " + of.Name }

// ids returns the external ids of the nodes of a type, if they are all integers, or all text.
func (s *source) ids(ctx context.Context, of kv.NodeTypeMeta) (*resident, error) {
	if s.g.DenseIDs() && len(s.meta.NodeTypes) == 0 {
		return &resident{kind: vector.Int, dense: true}, nil
	}
	v, err := s.keep(idsName(of), func(grow func(int64) error) (any, error) {
		return s.readIDs(ctx, of, grow)
	})
	c, _ := v.(*resident)
	return c, err
}

func (s *source) readIDs(ctx context.Context, of kv.NodeTypeMeta,
	grow func(int64) error) (any, error) {
	if err := grow(8 * int64(of.Nodes)); err != nil {
		return nil, err
	}
	out := &resident{kind: vector.Int, ints: make([]int64, 0, of.Nodes)}
	var text strings.Builder
	var nodes []layout.NodeID
	for v := uint64(0); v < of.Nodes; v += uint64(len(nodes)) {
		nodes = nodes[:0]
		for u := v; u < min(v+uint64(s.g.NameBatch()), of.Nodes); u++ {
			nodes = append(nodes, layout.NodeID(of.First+u))
		}
		names, err := s.g.Names(ctx, nodes)
		if err != nil {
			return nil, err
		}
		for _, name := range names {
			switch id := s.idOf(name).(type) {
			case int64:
				out.ints = append(out.ints, id)
			case string:
				if err := grow(int64(len(id))); err != nil {
					return nil, err
				}
				out.off = append(out.off, uint32(text.Len()))
				text.WriteString(id)
			}
		}
	}
	if len(out.off) == 0 {
		return out, nil
	}
	out.kind, out.off, out.text = vector.String, append(out.off, uint32(text.Len())), text.String()
	if len(out.ints) > 0 { // some are text, and some are not
		return nil, nil
	}
	return out, nil
}

func readColumn(ctx context.Context, r *columnfile.Reader, kind vector.Kind,
	grow func(int64) error) (*resident, error) {
	out := &resident{kind: kind}
	if err := grow(8*int64(r.Rows) + int64(r.Rows)/8); err != nil {
		return nil, err
	}
	var all columnfile.Values
	var text strings.Builder
	switch kind { // at once: slices that grow leave their former selves to the collector
	case vector.String:
		out.off = append(make([]uint32, 0, r.Rows+1), 0)
	case vector.Float:
		all.Floats = make([]float64, 0, r.Rows)
	default:
		all.Ints = make([]int64, 0, r.Rows)
	}
	err := r.Scan(ctx, 0, r.Rows, nil, func(_ uint64, got *columnfile.Values) error {
		if kind != vector.String {
			all.Append(got, 0, got.Rows)
			return nil
		}
		if err := grow(int64(len(got.Strings.Bytes))); err != nil {
			return err
		}
		for i := range got.Rows {
			if !got.Null(i) {
				text.Write(got.Strings.At(i))
			}
			out.off = append(out.off, uint32(text.Len()))
			all.AddRow(!got.Null(i))
		}
		return nil
	})
	out.ints, out.floats, out.valid, out.text = all.Ints, all.Floats, all.Valid, text.String()
	return out, err
}

func (c *resident) null(row uint32) bool {
	return len(c.valid) > 0 && c.valid[row>>6]>>(row&63)&1 == 0
}

func (c *resident) tri(row uint32) value.Tri {
	if c.null(row) {
		return value.Null
	}
	return value.Of(c.ints[row] != 0)
}

// gather appends the values of some nodes of a type that begins at first. nulls says that some of
// the vector are null.
func (c *resident) gather(nodes []uint32, first uint32, nulls bool, out *vector.Vector) {
	if nulls && c.kind != vector.Bool {
		out.Null = slices.Grow(out.Null, len(nodes))
		for _, v := range nodes {
			out.Null = append(out.Null, c.null(v-first))
		}
	}
	switch c.kind {
	case vector.Float:
		out.Floats = slices.Grow(out.Floats, len(nodes))
		for _, v := range nodes {
			out.Floats = append(out.Floats, c.floats[v-first])
		}
	case vector.String:
		out.Strings = slices.Grow(out.Strings, len(nodes))
		for _, v := range nodes {
			i := v - first
			out.Strings = append(out.Strings, c.text[c.off[i]:c.off[i+1]])
		}
	case vector.Bool:
		for _, v := range nodes {
			out.Tris = append(out.Tris, c.tri(v-first))
		}
	default:
		out.Ints = slices.Grow(out.Ints, len(nodes))
		for _, v := range nodes {
			if c.dense {
				out.Ints = append(out.Ints, int64(v))
				continue
			}
			out.Ints = append(out.Ints, c.ints[v-first])
		}
	}
}
