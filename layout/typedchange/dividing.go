package typedchange

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"gdb/internal/mem"
	"gdb/kv"
	"gdb/layout/edgefile"
	"gdb/layout/ingest/input"
	"gdb/layout/ingest/source"
	"gdb/layout/splits"
	"gdb/layout/typedlevel"
)

// Divider gives new edges of a store whose edges are in splits a split each: the one of their time,
// or that of the edges that the store has between the same two nodes, of any relation and
// direction, else the one that the ingest would have drawn for the numbers that these nodes have
// from now on. So all edges between two nodes stay in one split, also when nodes are numbered anew.
type Divider struct {
	how   splits.EdgeSplit
	pairs []uint64 // two nodes of a new edge each, in order
	of    []uint8  // by pair: the split of edges of the store in edgefile.Splits, from 1; 0: none
	held  mem.Account
}

// NewDivider reads new edges, whose ends are as those of Change.Edges. It takes 9 bytes of memory
// for each. The caller calls Close.
func NewDivider(ctx context.Context, of *kv.Meta, edges typedlevel.Edges, budget *mem.Budget) (
	*Divider, error) {
	d := &Divider{held: mem.NewAccount(budget, "new edges")}
	var err error
	if d.how, err = splitOf(of); err != nil {
		return nil, err
	}
	err = edges(ctx, func(c *source.EdgeChunk) error {
		for i := range c.SrcInt {
			d.pairs = append(d.pairs, pairOf(c, i))
		}
		return d.held.AtLeast(9 * int64(cap(d.pairs)))
	})
	if err != nil {
		d.Close()
		return nil, err
	}
	slices.Sort(d.pairs)
	d.pairs = slices.Compact(d.pairs)
	d.of = make([]uint8, len(d.pairs))
	return d, nil
}

// Close frees the memory.
func (d *Divider) Close() { d.held.Release() }

// Empty reports whether there are no new edges.
func (d *Divider) Empty() bool { return len(d.pairs) == 0 }

// pairOf returns the ends of edge i of a chunk, the smaller one first.
func pairOf(c *source.EdgeChunk, i int) uint64 {
	return min(c.SrcInt[i], c.DstInt[i])<<32 | max(c.SrcInt[i], c.DstInt[i])
}

// splitOf returns how an ingest put the edges of a store in splits.
func splitOf(m *kv.Meta) (s splits.EdgeSplit, err error) {
	text, seed := "", uint64(0)
	for _, arg := range m.Source.Args {
		if value, is := strings.CutPrefix(arg, "--edge-split="); is {
			text = value
		}
		if value, is := strings.CutPrefix(arg, "--seed="); is {
			if seed, err = strconv.ParseUint(value, 10, 64); err != nil {
				return s, input.Usage("the seed of the splits of the edges: %w", err)
			}
		}
	}
	if text == "" {
		return s, input.Usage("the edges are in splits that were not drawn by chance, so new " +
			"ones are in none of them: ingest all sources anew")
	}
	if s, err = splits.ParseEdgeSplit(text, seed, m.Timestamped); err != nil {
		return s, input.Usage("--edge-split: %w", err)
	}
	return s, nil
}

// mark notes the split of edges of the store between nodes that new edges join.
func (d *Divider) mark(c *source.EdgeChunk) {
	split := uint8(1 + slices.Index(edgefile.Splits, c.Split))
	for i := range c.SrcInt {
		if at, found := slices.BinarySearch(d.pairs, pairOf(c, i)); found {
			d.of[at] = split
		}
	}
}

// divide calls fn with the edges of a chunk of new ones, by split. Those of the store were marked
// before.
func (s *Source) divide(c *source.EdgeChunk, fn func(c *source.EdgeChunk) error) error {
	if c.Len() == 0 {
		return nil
	}
	d, r := s.Divider, kv.RelationMeta{} // of a store of one type
	if len(s.meta.Relations) > 0 {
		r = s.meta.Relations[c.TypeInt[0]]
	}
	of := make([]string, c.Len())
	for i := range of {
		if d.how.Times != nil {
			of[i] = edgefile.Splits[d.how.Times.Split(c.Time[i])]
			continue
		}
		at, _ := slices.BinarySearch(d.pairs, pairOf(c, i))
		if d.of[at] > 0 {
			of[i] = edgefile.Splits[d.of[at]-1]
			continue
		}
		of[i] = d.how.Draw.Of(s.number(r.Src, c.SrcInt[i]), s.number(r.Dst, c.DstInt[i]))
	}
	for _, split := range d.how.Names() {
		some := *Select(c, func(i int) bool { return of[i] == split })
		if some.Split = split; some.Len() == 0 {
			continue
		}
		if err := fn(&some); err != nil {
			return err
		}
	}
	return nil
}

// number returns the node of the new store that an end of an edge is, which has a type.
func (s *Source) number(typ int, v uint64) uint32 {
	first := uint64(0)
	for before := range typ {
		first += s.Count(before)
	}
	return uint32(first + s.numbers.row(typ, v))
}

// AllEdges counts the edges of a store: those of its lists, and those of other splits than train,
// which no list has. Of a store of one type, whose lists may have edges both ways, it counts the
// edges of the splits, each once.
func AllEdges(m *kv.Meta) uint64 {
	n, listed := m.Edges, true
	if !m.Typed() && len(m.EdgeSplits) > 0 {
		n, listed = 0, false
	}
	for _, s := range m.EdgeSplits {
		if !listed || s.Name != edgefile.Splits[0] {
			n += s.Count
		}
	}
	return n
}
