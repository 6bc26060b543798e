package ingest

import (
	"context"
	"errors"
	"strconv"
	"strings"

	"gdb/kv"
	"gdb/layout"
	"gdb/layout/ingest/extsort"
	"gdb/layout/ingest/input"
	"gdb/layout/ingest/keys"
	"gdb/layout/ingest/source"
	"gdb/layout/ingest/steps"
)

// typePlacer is what sources have whose types of nodes are ranges: they are told where each begins.
type typePlacer interface{ PlaceTypes(first []uint64) }

// typeRanges sets the types of a source whose types are ranges, of which the dictionary has counted
// those with text ids, and all of them if edges are joined with it.
func (p *pipeline) typeRanges(out *idsResult) {
	if !p.info.Ranged {
		return
	}
	if out.Types == nil {
		for _, name := range p.info.NodeTypes {
			out.Types = append(out.Types, kv.NodeTypeMeta{Name: name})
		}
	}
	out.Nodes = 0
	for i := range out.Types {
		t := &out.Types[i]
		if k := p.keysFound.Of(i); k != nil {
			t.Nodes, t.Keys, out.Kind = k.Rows, &k.Meta, kv.IDsTyped
			p.DropRuns(k.Runs)
		}
		t.First = out.Nodes
		out.Nodes += t.Nodes
	}
}

// numberNamed writes the dictionary of a source whose nodes are known, of the types whose ids are
// text.
func (p *pipeline) numberNamed(ctx context.Context, out *idsResult) (err error) {
	var texts []int
	for typ := range p.info.NodeTypes {
		if p.keysFound.Of(typ) == nil {
			texts, out.Nodes = append(texts, typ), out.Nodes+p.named.Count(typ)
		}
	}
	if out.Kind = kv.IDsString; out.Nodes > 0 {
		err = p.writeDictionary(ctx, out, false, func(add func(external []byte) error) error {
			for _, typ := range texts {
				if err := p.named.Names(ctx, typ, add); err != nil {
					return err
				}
			}
			return nil
		})
	}
	if p.typeRanges(out); err == nil && out.Nodes == 0 {
		err = p.errEmpty()
	}
	return err
}

// findKeys finds out how integer ids are kept, of a source whose types are ranges.
func (p *pipeline) findKeys(ctx context.Context) (*keys.Found, error) {
	return steps.Do(ctx, p.Work, "keys", func(ctx context.Context, out *keys.Found) error {
		src, ok := p.src.(keys.Source)
		if !ok || !p.info.Ranged {
			return nil
		}
		found, err := keys.Find(ctx, p.Work, src, p.info.NodeTypes, p.note)
		if err == nil {
			*out = *found
		}
		return err
	})
}

// integers says which types have integer ids, for the dictionary.
func (p *pipeline) integers() []bool {
	if len(p.keysFound.Types) == 0 {
		return nil
	}
	is := make([]bool, len(p.info.NodeTypes))
	for i := range is {
		is[i] = p.keysFound.Of(i) != nil
	}
	return is
}

// firsts returns the first node of each type.
func (r *idsResult) firsts() (first []uint64) {
	for _, t := range r.Types {
		first = append(first, t.First)
	}
	return first
}

// listsOf returns the numbers of the lists of a direction, given the first node of each type; nil
// if each node has one list.
func (p *pipeline) listsOf(first []uint64, nodes uint64, dir layout.Direction) (*layout.NodeLists,
	error) {
	if !p.info.Ranged {
		return nil, nil
	}
	m := &kv.Meta{Format: kv.TypedVersion, Nodes: nodes, Relations: p.info.Relations}
	for i, begin := range first {
		end := nodes
		if i+1 < len(first) {
			end = first[i+1]
		}
		m.NodeTypes = append(m.NodeTypes, kv.NodeTypeMeta{First: begin, Nodes: end - begin})
	}
	l := layout.ListsOf(m, dir)
	if l.Count() > nodesMax {
		return nil, input.Wrong(p.info.Paths[0], "a store has at most 4294967296 lists",
			"each node has a list of %s-edges for each relation of its type, %d in all", dir,
			l.Count())
	}
	return l, nil
}

// pairOf returns the word by which an edge is sorted: the list and the node in it.
func pairOf(lists *layout.NodeLists, node, nbr uint64, relation uint16) (uint64, error) {
	if lists == nil {
		return node<<32 | nbr, nil
	}
	list, err := lists.List(layout.NodeID(node), relation)
	return uint64(list)<<32 | nbr, err
}

// rangedNodes are the numbers of nodes of a source whose types are ranges, while it is scanned. The
// ids of some types are in the table of text ids, and have numbers of their own there.
type rangedNodes struct {
	keys  *keys.Indexes
	known uint64   // text ids of nodes before the edges
	texts []uint64 // of these, the first of each type
	first []uint64 // the first node of each type, once all are known
	shift []uint64 // what the nodes of a type are above their numbers among the text ids
}

// begin notes that text ids of a type come next.
func (r *rangedNodes) begin(typ int) {
	for len(r.texts) <= typ {
		r.texts = append(r.texts, r.known)
	}
}

// place sets where types begin, once all text ids are known.
func (r *rangedNodes) place(found *keys.Found) {
	types := len(found.Types)
	r.begin(types)
	node := uint64(0)
	for i := range types {
		r.first = append(r.first, node)
		r.shift = append(r.shift, node-r.texts[i])
		if k := found.Of(i); k != nil {
			node += k.Rows
		} else {
			node += r.texts[i+1] - r.texts[i]
		}
	}
	r.first = append(r.first, node)
}

// typedLists returns the numbers of in-lists once all nodes are numbered, before the edges.
func (s *scanner) typedLists() (err error) {
	if s.lists == nil && s.p.info.Ranged && !s.out.Mode.joinsEdges() {
		if s.p.named != nil {
			s.ranged.first = keys.Firsts(s.p.named, len(s.p.info.NodeTypes))
		} else {
			s.ranged.place(s.p.keysFound)
		}
		last := len(s.ranged.first) - 1
		s.lists, err = s.p.listsOf(s.ranged.first[:last], s.ranged.first[last], layout.In)
	}
	return err
}

// rangedEnds turns the ends of edges of one relation to nodes: rows, and text ids.
func (s *scanner) rangedEnds(c *source.EdgeChunk) error {
	rel := s.p.info.Relations[c.TypeInt[0]]
	err := s.textEnd(c.SrcInt, c.SrcText, s.src)
	if err == nil {
		err = s.textEnd(c.DstInt, c.DstText, s.dst)
	}
	if err == nil {
		err = s.nodesOf(c, rel.Src, c.SrcText, s.src)
	}
	if err == nil {
		err = s.nodesOf(c, rel.Dst, c.DstText, s.dst)
	}
	return err
}

// textEnd numbers one end of edges; rows are their numbers already.
func (s *scanner) textEnd(rows []uint64, text [][]byte, out []uint64) error {
	if text == nil {
		copy(out, rows)
		return nil
	}
	return s.ids.keys(idColumn{text: text}, idColumn{}, out, nil)
}

// nodesOf adds where nodes of a type begin to their numbers. Text ids must be known: of types with
// tables, by a row.
func (s *scanner) nodesOf(c *source.EdgeChunk, typ int, text [][]byte, ends []uint64) error {
	begin := s.ranged.first[typ]
	if text != nil {
		begin = s.ranged.shift[typ]
	}
	for i, number := range ends {
		if text != nil && number >= s.ranged.known {
			return errNoRow(c, i, text[i])
		}
		ends[i] = begin + number
	}
	return nil
}

// checkTypedOptions finds options that typed sources do not go with, and one that is for them.
func checkTypedOptions(opt *Options, info *source.Info) error {
	switch {
	case opt.Reverse && !info.Ranged:
		return input.Usage("--reverse gives relations of tables reverse ones: name the tables by " +
			"--nodes TYPE=FILE, or use --undirected")
	case !info.Ranged:
		return nil
	case opt.Undirected:
		return input.Usage("--undirected, but edges join two types of nodes: --reverse adds a " +
			"relation the other way for each")
	case opt.Partitioner != "" && opt.Partitioner != "none" && opt.Partitioner != "range":
		return input.Usage("--partitioner %s puts nodes into an order of its own, and here those "+
			"of a type follow each other: leave it out", opt.Partitioner)
	case opt.Normalize == "zscore" || opt.Normalize == "row":
		return input.Usage("--normalize %s: columns of tables of several types are scaled as "+
			"--normalize auto does, each type by itself; none leaves them as they are",
			opt.Normalize)
	}
	return nil
}

// numbersOfRows checks that each row of a table got a number of its own: the next. It is for ids
// that are numbered as they come.
func (s *scanner) numbersOfRows(c *source.IDChunk, first uint64) error {
	for i, number := range s.src {
		if number < first+uint64(i) && !c.Repeats {
			return keys.ErrTwoRows(c.Position(i), idOf(c.Text[i]))
		}
		s.ranged.known = max(s.ranged.known, number+1)
	}
	return nil
}

// idOf returns an id without the type before it.
func idOf(external []byte) string {
	_, id, _ := strings.Cut(string(external), source.TypeSep)
	return id
}

// errNoRow is the error of an edge that names a node without a row.
func errNoRow(c *source.EdgeChunk, i int, external []byte) error {
	typ, id, _ := strings.Cut(string(external), source.TypeSep)
	return source.ErrNoRow(c.Position(i), typ, id)
}

// typedExternal returns the id of a node of a source whose types are ranges: it is counted, read
// from its table, or searched in the dictionary.
func (m *nodeMap) typedExternal(ctx context.Context, node uint32) (text string, ok bool) {
	typ, number := 0, uint64(node)
	for i, first := range m.p.firsts {
		if first <= uint64(node) {
			typ = i
		}
	}
	if m.p.named != nil {
		return keys.NameOf(ctx, m.p.named, typ, number-m.p.firsts[typ])
	}
	for i := range typ {
		if k := m.p.keysFound.Of(i); k != nil && m.mode == idTable {
			number -= k.Rows
		}
	}
	k, row := m.p.keysFound.Of(typ), uint64(node)-m.p.firsts[typ]
	if k == nil {
		return m.search(ctx, uint32(number))
	}
	id, found := k.Meta.Base+row, k.Meta.Rows == nil
	if !found {
		err := m.p.src.(keys.Source).Keys(ctx, typ, func(c *source.IDChunk) error {
			if row < uint64(c.Len()) && !found {
				id, found = c.Ints[row], true
			}
			row -= uint64(c.Len())
			return nil
		})
		if err != nil || !found {
			return "", false
		}
	}
	return m.p.info.NodeTypes[typ] + source.TypeSep + strconv.FormatUint(id, 10), true
}

// checkPlaces returns what checks the ids of a source whose types are ranges in the order of their
// numbers, when they were sorted: rows of tables are the first ids that were met, so a row that is
// not the next is there twice, and what comes behind them and is of a type with a table has no row.
func (p *pipeline) checkPlaces(s *scanResult) func(context.Context, *extsort.Entry) error {
	if !p.info.Ranged || s.Mode != idText {
		return func(context.Context, *extsort.Entry) error { return nil }
	}
	number, tables := uint64(0), map[string]bool{}
	for _, t := range p.opt.NodeTables {
		tables[t.Type] = true
	}
	return func(ctx context.Context, e *extsort.Entry) error {
		typ, _, _ := strings.Cut(string(e.Text), source.TypeSep)
		switch {
		case number < s.NodeRows && e.Key != number:
			return p.findRow(ctx, number)
		case number >= s.NodeRows && tables[typ]:
			return p.findEnd(ctx, string(e.Text))
		}
		number++
		return nil
	}
}

// findRow returns the error of the row at a place of the tables, whose id an earlier row has.
func (p *pipeline) findRow(ctx context.Context, place uint64) error {
	err := p.src.Nodes(ctx, func(c *source.IDChunk) error {
		if place < uint64(c.Len()) {
			return keys.ErrTwoRows(c.Position(int(place)), idOf(c.Text[place]))
		}
		place -= uint64(c.Len())
		return nil
	})
	if err == nil {
		err = errors.New("ingest: a table changed while it was read")
	}
	return err
}

// findEnd returns the error of the first edge that names a node without a row.
func (p *pipeline) findEnd(ctx context.Context, external string) error {
	err := p.src.Edges(ctx, func(c *source.EdgeChunk) error {
		for i := range c.Len() {
			for _, end := range [][]byte{c.SrcText[i], c.DstText[i]} {
				if string(end) == external {
					return errNoRow(c, i, end)
				}
			}
		}
		return nil
	})
	if err == nil {
		err = errors.New("ingest: a table changed while it was read")
	}
	return err
}
