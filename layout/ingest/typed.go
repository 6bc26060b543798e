package ingest

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"gdb/kv"
	"gdb/layout"
	"gdb/layout/ingest/extsort"
	"gdb/layout/ingest/input"
	"gdb/layout/ingest/source"
)

// typePlacer is what sources have whose types of nodes are ranges: they are told where each begins.
type typePlacer interface{ PlaceTypes(first []uint64) }

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

// typedLists returns the numbers of in-lists once all nodes are numbered, before the edges.
func (s *scanner) typedLists() (err error) {
	if s.lists == nil && s.p.info.Ranged && !s.out.Mode.joinsEdges() {
		for len(s.firsts) < len(s.p.info.NodeTypes) {
			s.firsts = append(s.firsts, s.known)
		}
		s.lists, err = s.p.listsOf(s.firsts, s.known, layout.In)
	}
	return err
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
	case opt.EdgeSplit != "":
		return input.Usage("--edge-split does not split the edges of tables of several types " +
			"so far")
	}
	return nil
}

// numbersOfRows checks that each row of a table got a number of its own: the next. It is for ids
// that are numbered as they come.
func (s *scanner) numbersOfRows(c *source.IDChunk, first uint64) error {
	for i, number := range s.src {
		if number < first+uint64(i) && !c.Repeats {
			return errTwoRows(c, i)
		}
		s.known = max(s.known, number+1)
	}
	return nil
}

// errTwoRows is the error of a row whose id another row has.
func errTwoRows(c *source.IDChunk, i int) error {
	return input.Wrong(c.Position(i), "a row is a node: give each an id of its own, and name the "+
		"column of ids by --id-col TYPE.COLUMN", "another row has the id %s too", idOf(c.Text[i]))
}

// idOf returns an id without the type before it.
func idOf(external []byte) string {
	_, id, _ := strings.Cut(string(external), source.TypeSep)
	return id
}

// numbersOfEnds checks that the ends of edges are known: of types with tables, by a row.
func (s *scanner) numbersOfEnds(c *source.EdgeChunk) error {
	for i, src := range s.src {
		if src >= s.known {
			return errNoRow(c, i, c.SrcText[i])
		}
		if s.dst[i] >= s.known {
			return errNoRow(c, i, c.DstText[i])
		}
	}
	return nil
}

// errNoRow is the error of an edge that names a node without a row.
func errNoRow(c *source.EdgeChunk, i int, external []byte) error {
	typ, id, _ := strings.Cut(string(external), source.TypeSep)
	return input.Wrong(c.Position(i), fmt.Sprintf("add the row, or leave out --nodes %s=…: then "+
		"the ids in edges are the nodes", typ), "%s %s has no row in the table of %s", typ, id, typ)
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
			return errTwoRows(c, int(place))
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
