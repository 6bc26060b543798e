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
	spec := input.Spec{Columns: []input.Column{
		{Field: t.dst, Kind: endKind(t.dstKeys, input.Text), Nulls: true}}}
	time := -1
	if t.time >= 0 {
		time = len(spec.Columns)
		spec.Columns = append(spec.Columns, input.Column{Field: t.time, Kind: input.Time,
			Do: "leave the table without a time: none in the schema, or --time-col none"})
	}
	if !t.numbered {
		id := of.idField(s.idKind())
		if t.src >= 0 {
			id.Kind = endKind(t.srcKeys, id.Kind)
		}
		spec.Columns = append(spec.Columns, id)
	}
	c, number := &EdgeChunk{}, rowNumbers{}
	src := end{t.src, t.srcType, t.srcKeys, newPrefixer(t.srcType)}
	dst := end{t.dst, t.dstType, t.dstKeys, newPrefixer(t.dstType)}
	return s.tables.Each(ctx, t.Table, table.Skips, spec, func(b *input.Batch) (err error) {
		c.Where = b.Where
		switch last := &b.Columns[len(b.Columns)-1]; {
		case t.numbered || t.src < 0 && t.srcKeys != nil:
			c.SrcInt, c.SrcText = number.next(b.Rows), nil
		case t.src < 0:
			number.fill(last.Texts)
			fallthrough
		default:
			c.SrcInt, c.SrcText, err = s.ids(ctx, t, &src, last, &c.Where)
		}
		if err == nil {
			c.DstInt, c.DstText, err = s.ids(ctx, t, &dst, &b.Columns[0], &c.Where)
		}
		if time >= 0 {
			c.Time = b.Columns[time].Integers
		}
		if err != nil || c.dropNulls(t.dstType) == 0 {
			return err
		}
		return fn(c)
	})
}

// dropNulls leaves out edges without a destination, whose type is typ, and returns how many are
// left.
func (c *EdgeChunk) dropNulls(typ string) int {
	none := len(typ) + len(TypeSep) // letters of the text of a destination that is null
	if !slices.Contains(c.DstInt, input.NoKey) && !slices.ContainsFunc(c.DstText,
		func(id []byte) bool { return len(id) == none }) {
		return c.Len()
	}
	var lines []int64
	kept := 0
	for i := range c.Len() {
		if c.DstInt != nil && c.DstInt[i] == input.NoKey || c.DstInt == nil &&
			len(c.DstText[i]) == none {
			continue
		}
		lines = append(lines, c.Line(i))
		c.move(kept, i)
		kept++
	}
	c.Lines = lines
	c.truncate(kept)
	return kept
}

// move puts edge i into the place of another.
func (c *EdgeChunk) move(to, i int) {
	for _, ints := range [][]uint64{c.SrcInt, c.DstInt} {
		if ints != nil {
			ints[to] = ints[i]
		}
	}
	for _, text := range [][][]byte{c.SrcText, c.DstText} {
		if text != nil {
			text[to] = text[i]
		}
	}
	if c.Time != nil {
		c.Time[to] = c.Time[i]
	}
}

// truncate keeps the first edges.
func (c *EdgeChunk) truncate(n int) {
	c.SrcInt, c.DstInt = c.SrcInt[:min(n, len(c.SrcInt))], c.DstInt[:min(n, len(c.DstInt))]
	c.SrcText, c.DstText = c.SrcText[:min(n, len(c.SrcText))], c.DstText[:min(n, len(c.DstText))]
	c.Time = c.Time[:min(n, len(c.Time))]
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

// rowNumbers are the numbers of the rows of a table, in order.
type rowNumbers struct {
	first uint64
	ints  []uint64
	arena []byte
}

// next returns the next numbers, valid until the next call.
func (r *rowNumbers) next(n int) []uint64 {
	r.ints = slices.Grow(r.ints[:0], n)[:n]
	for i := range r.ints {
		r.ints[i] = r.first + uint64(i)
	}
	r.first += uint64(n)
	return r.ints
}

// fill puts the next numbers, as text, into ids, valid until the next call.
func (r *rowNumbers) fill(ids [][]byte) {
	const most = 20 // digits
	r.arena = slices.Grow(r.arena[:0], most*len(ids))
	for i, number := range r.next(len(ids)) {
		at := len(r.arena)
		r.arena = strconv.AppendUint(r.arena, number, 10)
		ids[i] = r.arena[at:len(r.arena):len(r.arena)]
	}
}
