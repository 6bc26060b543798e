package typedlevel

import (
	"context"
	"slices"
	"strings"

	"gdb/kv"
	"gdb/kv/ids"
	"gdb/layout/columnfile"
	"gdb/layout/ingest/input"
	"gdb/layout/ingest/source"

	"github.com/RoaringBitmap/roaring/v2"
)

// Files are tables of edges that join nodes of a typed store, whose ids are looked up there.
type Files struct {
	src  source.Source
	of   *kv.Meta
	dict ids.Dictionary
	// By relation of the tables: that of the store, and which of their columns each of its columns
	// is, or -1.
	relations []int
	columns   [][]int
}

// NewFiles returns opened tables as edges of a store. It finds what the store cannot take.
func NewFiles(src source.Source, of *kv.Meta, dict ids.Dictionary) (*Files, error) {
	f := &Files{src: src, of: of, dict: dict}
	info := src.Info()
	number := func(t kv.TimeForm) bool { return t == kv.TimeNumber }
	switch {
	case info.Weighted && !of.Weighted:
		return nil, input.Usage("a table has a column of weights, and edges of the store have " +
			"none: --weight-col none leaves it out")
	case info.Timed && !of.Timestamped:
		return nil, input.Usage("a table has a column of times, and edges of the store have " +
			"none: --time-col none leaves it out")
	case info.Timed && number(info.Times) != number(of.Times):
		return nil, input.Usage("times of edges: of the tables and of the store some are " +
			"numbers, and others dates")
	}
	read := &kv.Meta{EdgeTypes: info.EdgeTypes, Relations: info.Relations}
	for _, name := range info.NodeTypes {
		read.NodeTypes = append(read.NodeTypes, kv.NodeTypeMeta{Name: name})
	}
	for r := range info.Relations {
		if err := f.relation(read, r); err != nil {
			return nil, err
		}
	}
	return f, nil
}

// relation finds a relation of the tables in the store.
func (f *Files) relation(read *kv.Meta, r int) error {
	name, src, dst := source.RelationEnds(read, r)
	at := -1
	var known []string
	for i := range Forward(f.of) {
		n, s, d := source.RelationEnds(f.of, i)
		if known = append(known, s+":"+n+":"+d); n == name && s == src && d == dst {
			at = i
		}
	}
	if at < 0 {
		return input.Usage("--edges %s:%s:%s: the store has no such relation, and new ones are "+
			"not taken so far; it has %v", src, name, dst, known)
	}
	f.relations = append(f.relations, at)
	stored := f.of.EdgeColumns(at)
	columns := make([]int, len(stored))
	for i := range columns {
		columns[i] = -1
	}
	for _, t := range f.src.Info().EdgeTables {
		if t.Type != r {
			continue
		}
		for k, c := range t.Columns {
			to := slices.IndexFunc(stored, func(m kv.TableColumn) bool { return m.Name == c.Name })
			if to < 0 {
				return input.Usage("the table of %s:%s:%s has a column %s, which edges of the "+
					"store do not have: leave it out of the file", src, name, dst, c.Name)
			}
			columns[to] = k
		}
	}
	f.columns = append(f.columns, columns)
	return nil
}

// Nodes reads all edges, and returns their ends and their number.
func (f *Files) Nodes(ctx context.Context) (nodes *roaring.Bitmap, edges uint64, err error) {
	nodes = roaring.New()
	var some []uint32
	err = f.Each(ctx, func(c *source.EdgeChunk) error {
		some = some[:0]
		for i := range c.SrcInt {
			some = append(some, uint32(c.SrcInt[i]), uint32(c.DstInt[i]))
		}
		nodes.AddMany(some)
		edges += uint64(len(c.SrcInt))
		return nil
	})
	nodes.RunOptimize()
	return nodes, edges, err
}

// Each streams the edges by the nodes of the store, all of whose ends must be such.
func (f *Files) Each(ctx context.Context, fn func(c *source.EdgeChunk) error) error {
	return f.each(ctx, func(c, out *source.EdgeChunk, names []string, nodes []int64) error {
		for i := range c.SrcText {
			for k := range 2 {
				if v := nodes[2*i+k]; v < 0 {
					return lacks(c.Position(i), names[2*i+k], v)
				}
			}
			f.add(out, c, nodes, i)
		}
		f.values(c, out, int(c.TypeInt[0]))
		return fn(out)
	})
}

// EachKnown streams the edges both of whose ends the store has, and their times alone; lost counts
// the others of a chunk.
func (f *Files) EachKnown(ctx context.Context,
	fn func(c *source.EdgeChunk, lost uint64) error) error {
	return f.each(ctx, func(c, out *source.EdgeChunk, _ []string, nodes []int64) error {
		lost := uint64(0)
		out.Time = nil
		for i := range c.SrcText {
			if nodes[2*i] < 0 || nodes[2*i+1] < 0 {
				lost++
				continue
			}
			f.add(out, c, nodes, i)
			if c.Time != nil {
				out.Time = append(out.Time, c.Time[i])
			}
		}
		return fn(out, lost)
	})
}

// add adds the ends and the relation of edge i of a chunk.
func (f *Files) add(out, c *source.EdgeChunk, nodes []int64, i int) {
	out.SrcInt = append(out.SrcInt, uint64(nodes[2*i]))
	out.DstInt = append(out.DstInt, uint64(nodes[2*i+1]))
	out.TypeInt = append(out.TypeInt, uint32(f.relations[c.TypeInt[0]]))
}

// each calls fn with chunks of the files, an empty chunk to fill, and the ids of the ends with
// their nodes, two for each edge.
func (f *Files) each(ctx context.Context, fn func(c, out *source.EdgeChunk, names []string,
	nodes []int64) error) error {
	var names []string
	var nodes []int64
	out := &source.EdgeChunk{}
	return f.src.Edges(ctx, func(c *source.EdgeChunk) error {
		names = names[:0]
		for i := range c.SrcText {
			names = append(names, string(c.SrcText[i]), string(c.DstText[i]))
		}
		nodes = slices.Grow(nodes[:0], len(names))[:len(names)]
		if err := ids.InternalMany(ctx, f.dict, names, nodes); err != nil {
			return err
		}
		out.Where, out.Rounded = c.Where, c.Rounded
		out.SrcInt, out.DstInt, out.TypeInt = out.SrcInt[:0], out.DstInt[:0], out.TypeInt[:0]
		return fn(c, out, names, nodes)
	})
}

// lacks returns the error of an end of an edge that is no node of the store.
func lacks(where, name string, node int64) error {
	if node == ids.Deleted {
		return input.Wrong(where, "leave the edge out", "node %s was deleted", name)
	}
	typ, _, _ := strings.Cut(name, source.TypeSep)
	return input.Wrong(where, "leave the edge out, or add the node by --nodes "+typ+"=FILE",
		"the store has no node %s", name)
}

// values sets what edges carry.
func (f *Files) values(c, out *source.EdgeChunk, relation int) {
	n := len(out.SrcInt)
	out.Weight, out.Time = nil, nil
	if f.of.Weighted {
		if out.Weight = c.Weight; out.Weight == nil {
			out.Weight = slices.Repeat([]float32{1}, n)
		}
	}
	if f.of.Timestamped {
		if out.Time = c.Time; out.Time == nil {
			out.Time = slices.Repeat([]int64{kv.NoTime}, n)
		}
	}
	out.Columns = out.Columns[:0]
	stored := f.of.EdgeColumns(f.relations[relation])
	for k, from := range f.columns[relation] {
		if from >= 0 {
			out.Columns = append(out.Columns, c.Columns[from])
			continue
		}
		out.Columns = append(out.Columns, Nulls(stored[k].Type, n))
	}
}

// Nulls returns n values of a column that all are null.
func Nulls(typ string, n int) (none columnfile.Values) {
	for range n {
		none.AddNull(typ)
	}
	return none
}
