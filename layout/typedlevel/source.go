// Package typedlevel streams edges of typed stores as ingest reads them: those of tables that join
// nodes of a store, to make a level of them, and those of its base and levels, to write these as
// one.
package typedlevel

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"gdb/internal/mem"
	"gdb/kv"
	"gdb/layout"
	"gdb/layout/ingest/keys"
	"gdb/layout/ingest/source"
	"gdb/layout/ingest/table"

	"github.com/RoaringBitmap/roaring/v2"
)

// Edges streams edges by the nodes of a typed store. Each chunk is of one relation that is the
// reverse of no other, with the columns of its table in the order of the store.
type Edges func(ctx context.Context, fn func(c *source.EdgeChunk) error) error

// Source is a typed source for ingest that has edges of a store. It has the types and relations of
// the store; its ids are the numbers of nodes in their types.
type Source struct {
	of    *kv.Meta
	edges Edges
	info  source.Info
	ranks layout.Ranks // of the nodes of the store that the source has, unless it has all
	all   bool
	first []uint64 // by type, the first node of the source; the last is the number of all
	held  mem.Account
}

// chunk is how many ids or edges come together.
const chunk = 4096

var (
	_ source.Source = (*Source)(nil)
	_ keys.Named    = (*Source)(nil)
)

// New returns a source of edges of a store, whose lists are at path. It has some nodes of the
// store, or all where nodes is nil: then it takes no memory, else 3/16 byte for each node of the
// store. The caller calls Close.
func New(of *kv.Meta, path string, nodes *roaring.Bitmap, edges Edges,
	budget *mem.Budget) (*Source, error) {
	s := &Source{of: of, edges: edges, all: nodes == nil,
		held: mem.NewAccount(budget, "nodes of a level")}
	if !s.all {
		words := layout.RankWords(of.Nodes)
		if err := s.held.AtLeast(12 * int64(words)); err != nil {
			return nil, err
		}
		s.ranks = layout.NewRanks(make([]uint64, words), make([]uint32, words))
		some := make([]uint32, chunk)
		for it := nodes.ManyIterator(); ; {
			n := it.NextMany(some)
			if n == 0 {
				break
			}
			s.ranks.Add(some[:n])
		}
		s.ranks.Number()
	}
	for _, t := range of.NodeTypes {
		s.first = append(s.first, s.number(t.First))
		s.info.NodeTypes = append(s.info.NodeTypes, t.Name)
	}
	s.first = append(s.first, s.number(of.Nodes))
	s.describe(path)
	return s, nil
}

// describe fills in what ingest is told of the source.
func (s *Source) describe(path string) {
	i, m := &s.info, s.of
	i.Format, i.Paths = "store", []string{path}
	i.TextIDs, i.Typed, i.Ranged = true, true, true
	i.Weighted, i.Timed, i.Times = m.Weighted, m.Timestamped, m.Times
	i.EdgeTypes, i.Relations = m.EdgeTypes, m.Relations
	i.EdgeTables = EdgeTables(m)
}

// EdgeTables describes the tables of edges of a store, for ingest.
func EdgeTables(m *kv.Meta) (all []source.TableInfo) {
	for r := range max(1, Forward(m)) { // those of a store of one type are of no relation
		if m.EdgeTable(r) == nil {
			continue
		}
		of := source.TableInfo{Type: r}
		if m.EdgeTable(r).Rows > 0 {
			of.RowBytes = table.RowBytesOf(m.EdgeColumns(r))
		}
		for _, c := range m.EdgeColumns(r) {
			of.Columns = append(of.Columns, table.Stored{Name: c.Name, Type: c.Type})
		}
		if n := Forward(m); n < len(m.Relations) {
			of.Reverse = r + n
		}
		all = append(all, of)
	}
	return all
}

// Forward returns how many relations of a typed store are the reverse of no other. They come first,
// and where the store has reverse ones, these follow in the same order.
func Forward(m *kv.Meta) int {
	n := len(m.Relations)
	if slices.ContainsFunc(m.Source.Args, func(arg string) bool {
		name, value, _ := strings.Cut(arg, "=")
		return name == "--reverse" && value != "false"
	}) {
		n /= 2
	}
	return n
}

// number returns the number of a node of the store in the source, and of one that it lacks the
// number of the next.
func (s *Source) number(v uint64) uint64 {
	if s.all {
		return v
	}
	n, _ := s.ranks.Rank(layout.NodeID(v))
	return uint64(n)
}

// Info describes the source.
func (s *Source) Info() *source.Info { return &s.info }

// Edges streams the edges, and those of reverse relations behind them.
func (s *Source) Edges(ctx context.Context, fn func(*source.EdgeChunk) error) error {
	return BothWays(ctx, s.of, s.edges, func(c *source.EdgeChunk, r kv.RelationMeta) {
		src, dst := s.first[r.Src], s.first[r.Dst]
		for i := range c.SrcInt {
			c.SrcInt[i] = s.number(c.SrcInt[i]) - src
			c.DstInt[i] = s.number(c.DstInt[i]) - dst
		}
	}, fn)
}

// BothWays streams the edges of a typed store, whose ends toRows sets to rows of their types, and
// behind each chunk the edges of the reverse relation, if the store has reverse ones.
func BothWays(ctx context.Context, of *kv.Meta, edges Edges,
	toRows func(c *source.EdgeChunk, r kv.RelationMeta),
	fn func(*source.EdgeChunk) error) error {
	back := 0 // from a relation to its reverse
	if n := Forward(of); n < len(of.Relations) {
		back = n
	}
	var types []uint32
	return edges(ctx, func(c *source.EdgeChunk) error {
		if c.Len() == 0 {
			return ctx.Err()
		}
		relation := int(c.TypeInt[0])
		toRows(c, of.Relations[relation])
		if err := fn(c); err != nil || back == 0 {
			return err
		}
		types = types[:0]
		for range c.SrcInt {
			types = append(types, uint32(relation+back))
		}
		reverse := *c
		reverse.SrcInt, reverse.DstInt = c.DstInt, c.SrcInt
		reverse.TypeInt, reverse.Columns = types, nil
		reverse.Rounded = source.RoundedWeights{}
		return fn(&reverse)
	})
}

// IntegerKeys returns all types.
func (s *Source) IntegerKeys() (types []int) {
	for i := range s.of.NodeTypes {
		types = append(types, i)
	}
	return types
}

// Keys streams the numbers of the nodes of a type.
func (s *Source) Keys(ctx context.Context, typ int, fn func(*source.IDChunk) error) error {
	n := s.Count(typ)
	c := &source.IDChunk{Type: typ, Where: source.Where{File: s.info.Paths[0], Unit: "node"}}
	for v := uint64(0); v < n; v += chunk {
		c.Ints = c.Ints[:0]
		for i := v; i < min(v+chunk, n); i++ {
			c.Ints = append(c.Ints, i)
		}
		if err := fn(c); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// Count returns the number of nodes of a type.
func (s *Source) Count(typ int) uint64 { return s.first[typ+1] - s.first[typ] }

// Names calls fn with the numbers of the nodes of a type, in words.
func (s *Source) Names(ctx context.Context, typ int, fn func(external []byte) error) error {
	name := []byte(s.info.NodeTypes[typ] + source.TypeSep)
	for row := range s.Count(typ) {
		if err := fn(strconv.AppendUint(name, row, 10)); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// UseKeys does nothing: ends of edges are rows.
func (s *Source) UseKeys([]source.KeyIndex) {}

// PlaceTypes does nothing.
func (s *Source) PlaceTypes([]uint64) {}

// Nodes streams nothing: see Names.
func (s *Source) Nodes(context.Context, func(*source.IDChunk) error) error { return nil }

// Features streams nothing, as Labels and Splits do.
func (s *Source) Features(context.Context, string, func(*source.RowChunk) error) error {
	return nil
}

// Labels streams nothing.
func (s *Source) Labels(context.Context, func(*source.LabelChunk) error) error { return nil }

// Splits streams nothing.
func (s *Source) Splits(context.Context, func(*source.SplitChunk) error) error { return nil }

// Close frees the memory.
func (s *Source) Close() error {
	s.held.Release()
	return nil
}
