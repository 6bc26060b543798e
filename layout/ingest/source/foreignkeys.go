package source

import (
	"context"
	"slices"
	"strconv"

	"gdb/layout/ingest/input"
	"gdb/layout/ingest/table"
)

// keyOf returns the column of a relation's foreign key: that which a schema names, or, where the
// edges of a type are in its table of nodes, the column that has the relation's name.
func (s *typedGraph) keyOf(r *Relation, of *NodeTable) string {
	switch named := s.columnsOf(s.opt.SrcCol, r.Name) + s.columnsOf(s.opt.DstCol, r.Name); {
	case r.Src != of.Type || r.File != of.File:
		return ""
	case r.Key != "":
		return r.Key
	case named != "":
		return ""
	}
	t, err := s.sub(s.opt).tables.Open(of.File, table.Hints{Known: nodeNames,
		Header: s.opt.Header})
	if err != nil || !slices.Contains(t.Names, r.Name) {
		return "" // what is wrong with the table is found when it is read
	}
	return r.Name
}

// keysIn sets the keys of relations that are columns of a table of nodes, and returns them, and the
// times of a schema, with what they are.
func (s *typedGraph) keysIn(of *NodeTable) map[string]string {
	keys := map[string]string{}
	for _, r := range s.relations {
		if key := s.keyOf(&r.Relation, of); key != "" {
			r.Key, keys[key] = key, "key of "+r.Dst
			if r.Time != "" && r.Time != NoColumn {
				keys[r.Time] = "time"
			}
		}
	}
	return keys
}

// openKey opens the edges of a relation that is a foreign key of a table of nodes.
func (s *typedGraph) openKey(ctx context.Context, r *relationEdges) (isKey bool, err error) {
	if r.Key == "" {
		return false, nil
	}
	nodes := s.types[r.src].table.opened
	t := &edgeTable{Table: nodes.Table, src: nodes.id, rel: -1, weight: -1, time: -1,
		relation: r.Name, srcType: r.Src, dstType: r.Dst, key: true}
	if t.dst, err = t.Column("key of "+r.Dst, r.Key); err != nil {
		return true, err
	}
	flag, time := "--time-col", s.columnsOf(s.opt.TimeCol, r.Name)
	if r.Time != "" {
		flag, time = s.opt.Schema+", time", r.Time
	}
	switch {
	case time == "":
		t.time = t.Named(TimeNames, t.src, t.dst)
	case !isNone(t.Table, time):
		if t.time, err = t.Column(flag, time); err != nil {
			return true, err
		}
	}
	r.graph = s.sub(s.opt)
	r.graph.edges = append(r.graph.edges, t)
	s.addTime(t)
	s.info.EdgesAbout += t.Lines
	return true, s.readsAs(ctx, t.Table, t.time, input.Time, flag)
}

// streamKeys streams an edge for each row of a table of nodes whose foreign key is not null.
func (s *textGraph) streamKeys(ctx context.Context, t *edgeTable,
	fn func(*EdgeChunk) error) error {
	of := nodeTable{Table: t.Table, id: t.src}
	spec := input.Spec{Columns: []input.Column{of.idField(s.idKind()),
		{Field: t.dst, Kind: input.Text}}}
	if t.time >= 0 {
		spec.Columns = append(spec.Columns, input.Column{Field: t.time, Kind: input.Time,
			Do: "leave the table without a time: none in the schema, or --time-col none"})
	}
	c, number := &EdgeChunk{}, rowNumbers{}
	src, dst := newPrefixer(t.srcType), newPrefixer(t.dstType)
	return s.tables.Each(ctx, t.Table, table.Skips, spec, func(b *input.Batch) error {
		c.Where, c.SrcText, c.DstText = b.Where, b.Columns[0].Texts, b.Columns[1].Texts
		if t.src < 0 {
			number.fill(c.SrcText)
		}
		if t.time >= 0 {
			c.Time = b.Columns[2].Integers
		}
		if c.dropNulls(); len(c.DstText) == 0 {
			return nil
		}
		src.apply(c.SrcText)
		dst.apply(c.DstText)
		return fn(c)
	})
}

// dropNulls leaves out edges without a destination.
func (c *EdgeChunk) dropNulls() {
	if !slices.ContainsFunc(c.DstText, func(id []byte) bool { return len(id) == 0 }) {
		return
	}
	var lines []int64
	kept := 0
	for i, id := range c.DstText {
		if len(id) == 0 {
			continue
		}
		lines = append(lines, c.Line(i))
		c.SrcText[kept], c.DstText[kept] = c.SrcText[i], id
		if c.Time != nil {
			c.Time[kept] = c.Time[i]
		}
		kept++
	}
	c.SrcText, c.DstText, c.Lines = c.SrcText[:kept], c.DstText[:kept], lines
	if c.Time != nil {
		c.Time = c.Time[:kept]
	}
}

// idField returns the column that the ids of a table are read from. Without one, a column is read
// to count its rows.
func (n *nodeTable) idField(kind input.Kind) input.Column {
	if n.id >= 0 {
		return input.Column{Field: n.id, Kind: kind}
	}
	any := 0
	for any < n.Width-1 && (n.List(any) || n.Kind(any) == table.Unread) {
		any++
	}
	return input.Column{Field: any, Kind: input.Text}
}

// rowNumbers are the ids of the rows of a table that has no column of them.
type rowNumbers struct {
	next  uint64
	arena []byte
}

// fill puts the next numbers into ids, valid until the next call.
func (r *rowNumbers) fill(ids [][]byte) {
	const most = 20 // digits
	r.arena = slices.Grow(r.arena[:0], most*len(ids))
	for i := range ids {
		at := len(r.arena)
		r.arena = strconv.AppendUint(r.arena, r.next, 10)
		ids[i] = r.arena[at:len(r.arena):len(r.arena)]
		r.next++
	}
}
