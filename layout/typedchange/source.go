// Package typedchange streams a typed store with new nodes, other values, and without what is
// deleted, as ingest reads a source: the nodes of each type that stay keep their order, and new
// ones follow them.
package typedchange

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"

	"gdb/blockdev"
	"gdb/internal/mem"
	"gdb/kv"
	"gdb/kv/ids"
	"gdb/layout"
	"gdb/layout/ingest/input"
	"gdb/layout/ingest/keys"
	"gdb/layout/ingest/source"
	"gdb/layout/ingest/table"
	"gdb/layout/ingest/tables"
	"gdb/layout/openfiles"
	"gdb/layout/typedlevel"

	"github.com/RoaringBitmap/roaring/v2"
)

// Change says how a typed store changes.
type Change struct {
	Store *layout.Store
	// Rows are the tables of nodes that are new or have other values, ingested as a store of their
	// own for Store: see source.Options.Of. It is nil if there are none.
	Rows *layout.Store
	// Of has for each node of Rows the node of Store, or Absent.
	Of []uint32
	// Edges stream the edges of Store. If they are in splits, each chunk has the name of one. Stays
	// leaves out those of a chunk that go, besides those of nodes in Gone; nil if none do.
	Edges typedlevel.Edges
	Stays func(c *source.EdgeChunk) *source.EdgeChunk
	// More stream new edges, nil for none: ends are nodes of Store, and those of Rows as their
	// numbers behind these. Divider gives them their splits; nil if edges have none.
	More    typedlevel.Edges
	Divider *Divider
	Gone    *roaring.Bitmap // nodes of Store that are deleted; nil for none
}

// Source is a Change as ingest reads it.
type Source struct {
	Change
	meta, rows *kv.Meta // rows is nil without Rows
	dev        blockdev.Device
	budget     *mem.Budget
	old, new   *openfiles.Set // of Store and Rows
	info       source.Info
	numbers    numbers
	changed    []uint64 // node of Store<<32 | node of Rows, in order
	first      []uint64 // the first node of each type, once PlaceTypes told
	held       mem.Account
}

// chunk is how many ids, rows or edges come together.
const chunk = 8192

var (
	_ source.Source = (*Source)(nil)
	_ keys.Named    = (*Source)(nil)
	_ tables.Source = (*Source)(nil)
)

// New returns the source of a change. It takes 12 bytes of memory for each node that has other
// values, 3/16 byte for each row of the tables, as much for each node of the store if nodes are
// deleted, and readers of files. The caller calls Close.
func New(c Change, dev blockdev.Device, budget *mem.Budget) (*Source, error) {
	s := newSource(c, dev, budget)
	err := s.match(func(uint32) bool { return true })
	if err == nil {
		err = s.describe()
	}
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

func newSource(c Change, dev blockdev.Device, budget *mem.Budget) *Source {
	s := &Source{Change: c, meta: c.Store.Meta(), dev: dev, budget: budget,
		old:  openfiles.New(c.Store, dev, budget),
		held: mem.NewAccount(budget, "nodes with other values")}
	if c.Rows != nil {
		s.rows, s.new = c.Rows.Meta(), openfiles.New(c.Rows, dev, budget)
	}
	s.numbers.held = mem.NewAccount(budget, "numbers of nodes")
	return s
}

// match numbers the nodes, and notes those of the store that get values of a node of the tables,
// which has some.
func (s *Source) match(hasValues func(row uint32) bool) error {
	err := s.numbers.number(s.meta, s.rows, s.Of, s.Gone)
	for v, node := range s.Of {
		if node != Absent && err == nil && hasValues(uint32(v)) {
			s.changed = append(s.changed, uint64(node)<<32|uint64(v))
			err = s.held.AtLeast(8 * int64(cap(s.changed)))
		}
	}
	slices.Sort(s.changed)
	return err
}

// describe fills in what ingest is told, and finds what the store cannot take.
func (s *Source) describe() error {
	i, m := &s.info, s.meta
	list, _ := layout.TopologyPaths(layout.In)
	i.Format, i.Paths = "store", []string{s.Store.Base().Path(list)}
	i.TextIDs, i.Typed, i.Ranged = true, true, true
	i.Weighted, i.Timed, i.Times = m.Weighted, m.Timestamped, m.Times
	i.EdgeTypes, i.Relations = m.EdgeTypes, m.Relations
	i.EdgeTables = typedlevel.EdgeTables(m)
	for t := range m.NodeTypes {
		of := &m.NodeTypes[t]
		i.NodeTypes, i.KeyNames = append(i.NodeTypes, of.Name), append(i.KeyNames, of.KeyName)
		if len(of.Columns) == 0 {
			continue
		}
		info := source.TableInfo{Type: t, Roles: of.Roles}
		for _, c := range of.Columns {
			info.Columns = append(info.Columns, table.Stored{Name: c.Name, Type: c.Type})
		}
		i.Tables = append(i.Tables, info)
	}
	s.describeFeatures()
	for _, split := range m.Splits {
		i.Splits = append(i.Splits, split.Name)
	}
	for _, split := range m.EdgeSplits {
		i.EdgeSplits = append(i.EdgeSplits, split.Name)
	}
	if l := m.Labels; l != nil {
		i.Labels = &source.LabelInfo{Kind: l.Kind, OfType: l.OfType, Text: l.Kind != "target",
			Classes: l.Classes}
	}
	return s.checkRows()
}

// describeFeatures tells of the features, which are as the store has them.
func (s *Source) describeFeatures() {
	if len(s.meta.Features) == 0 {
		return
	}
	m := &s.meta.Features[0]
	f := source.FeatureInfo{Name: m.Name, Dim: m.Dim, DType: m.DType}
	for t := range s.meta.NodeTypes {
		of := &s.meta.NodeTypes[t]
		f.Dims = append(f.Dims, m.Sections[t].Dim)
		f.OfTypes = append(f.OfTypes, of.Features)
		f.Encodings = append(f.Encodings, of.Encoding)
	}
	s.info.Features = []source.FeatureInfo{f}
}

// checkRows finds labels and splits of the tables that the store does not know.
func (s *Source) checkRows() error {
	if s.rows == nil {
		return nil
	}
	for _, split := range s.rows.Splits {
		if !slices.Contains(s.info.Splits, split.Name) && split.Count > 0 {
			return input.Usage("the tables have a split %q, which the store lacks: it has %s",
				split.Name, strings.Join(s.info.Splits, ", "))
		}
	}
	l, was := s.rows.Labels, s.meta.Labels
	if l == nil || l.Labeled == 0 {
		return nil
	}
	if was == nil || l.Kind != was.Kind {
		return input.Usage("labels of the tables are of the kind %s, and those of the store not",
			l.Kind)
	}
	for _, class := range l.Classes {
		if !slices.Contains(was.Classes, class) {
			return input.Usage("the tables have a label %q, which is no class of the store: it "+
				"has %s", class, strings.Join(was.Classes, ", "))
		}
	}
	return nil
}

// Info describes the source.
func (s *Source) Info() *source.Info { return &s.info }

// Fresh returns how many nodes are new, and Changed how many have other values.
func (s *Source) Fresh() (n uint64) {
	for _, t := range s.numbers.types {
		n += t.fresh
	}
	return n
}

// Changed returns how many nodes of the store have a row in the tables.
func (s *Source) Changed() uint64 { return uint64(len(s.changed)) }

// PlaceTypes tells the first node of each type.
func (s *Source) PlaceTypes(first []uint64) { s.first = first }

// UseKeys does nothing: ends of edges are rows.
func (s *Source) UseKeys([]source.KeyIndex) {}

// IntegerKeys returns the types whose ids are integers.
func (s *Source) IntegerKeys() (types []int) {
	for i := range s.meta.NodeTypes {
		if s.meta.NodeTypes[i].Keys != nil {
			types = append(types, i)
		}
	}
	return types
}

// Keys streams the ids of a type as integers.
func (s *Source) Keys(ctx context.Context, typ int, fn func(*source.IDChunk) error) error {
	c := &source.IDChunk{Type: typ, Where: s.where()}
	return s.eachName(ctx, typ, func(names []string) error {
		c.Ints = c.Ints[:0]
		for _, name := range names {
			_, id, _ := strings.Cut(name, source.TypeSep)
			n, ok := input.ParseID([]byte(id))
			if !ok || n > 1<<63-1 || strconv.FormatUint(n, 10) != id {
				n = input.NotKey
			}
			c.Ints = append(c.Ints, n)
		}
		return fn(c)
	})
}

// Count returns the number of nodes of a type.
func (s *Source) Count(typ int) uint64 {
	t := &s.numbers.types[typ]
	return t.kept + t.fresh
}

// Names calls fn with the ids of the nodes of a type in the order of its rows.
func (s *Source) Names(ctx context.Context, typ int, fn func(external []byte) error) error {
	return s.eachName(ctx, typ, func(names []string) error {
		for _, name := range names {
			if err := fn([]byte(name)); err != nil {
				return err
			}
		}
		return nil
	})
}

// Nodes streams nothing: see Names.
func (s *Source) Nodes(context.Context, func(*source.IDChunk) error) error { return nil }

// where names the store, for messages.
func (s *Source) where() source.Where { return source.Where{File: s.Store.Dir(), Unit: "node"} }

// eachName streams the ids of a type in the order of its rows.
func (s *Source) eachName(ctx context.Context, typ int, fn func(names []string) error) error {
	dict, err := s.old.IDs(ctx, 0)
	if err != nil {
		return err
	}
	var names []string
	err = s.eachBlock(typ, func(b *block) error {
		some, d := b.kept(), dict
		if b.n == 0 {
			if some = b.rows; len(some) == 0 {
				return nil
			}
			if d, err = s.new.IDs(ctx, 0); err != nil {
				return err
			}
		}
		if names, err = d.External(ctx, some, names[:0]); err != nil {
			return err
		}
		return errors.Join(fn(names), ctx.Err())
	})
	return err
}

// Close frees the memory and closes the files.
func (s *Source) Close() error {
	s.held.Release()
	s.numbers.held.Release()
	err := s.old.Close()
	if s.new != nil {
		err = errors.Join(err, s.new.Close())
	}
	return err
}

// IDs is a dictionary of the nodes of a store and, behind them, of those of tables.
type IDs struct {
	ids.Dictionary // of the store
	Rows           ids.Dictionary
	Nodes          uint64 // of the store
}

// InternalMany implements ids.Many.
func (d *IDs) InternalMany(ctx context.Context, external []string, nodes []int64) error {
	if err := ids.InternalMany(ctx, d.Dictionary, external, nodes); err != nil {
		return err
	}
	var names []string
	var at []int
	for i, v := range nodes {
		if v < 0 {
			names, at = append(names, external[i]), append(at, i)
		}
	}
	found := make([]int64, len(names))
	if err := ids.InternalMany(ctx, d.Rows, names, found); err != nil {
		return err
	}
	for k, v := range found {
		if v >= 0 {
			nodes[at[k]] = int64(d.Nodes) + v
		}
	}
	return nil
}
