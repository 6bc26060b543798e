package typedchange

import (
	"context"
	"errors"
	"fmt"

	"gdb/blockdev"
	"gdb/internal/mem"
	"gdb/kv"
	"gdb/layout"
	"gdb/layout/edgefile"
	"gdb/layout/ingest/source"
	"gdb/layout/rowfile"
	"gdb/layout/typedlevel"

	"github.com/RoaringBitmap/roaring/v2"
)

// PlainChange says how a store of one type of nodes changes. Rows are sources of edges and of
// values of nodes, and edges of Change are as the source had them: of an undirected store each
// once.
type PlainChange struct {
	Change
	// Lack are nodes of Rows without features, Valued those with features, a label or a split: the
	// others are at ends of edges alone. Both are nil without Rows.
	Lack, Valued *roaring.Bitmap
}

// Plain is a PlainChange as ingest reads it, as a store that is written anew: see ingest.Again.
type Plain struct {
	PlainChange
	s    *Source  // of the store and Rows as if they had one type
	was  *kv.Meta // of the store; its ids are no row numbers any more where nodes go
	info source.Info
}

// NewPlain returns the source of a change. It takes the memory that New takes. The caller calls
// Close.
func NewPlain(c PlainChange, dev blockdev.Device, budget *mem.Budget) (*Plain, error) {
	was := *c.Store.Meta()
	p := &Plain{PlainChange: c, s: newSource(c.Change, dev, budget), was: &was}
	p.s.first = []uint64{0}
	if p.s.meta = oneType(p.s.meta); p.s.rows != nil {
		p.s.rows = oneType(p.s.rows)
	}
	err := p.s.match(func(row uint32) bool { return c.Valued.Contains(row) })
	if err == nil {
		if was.IDs.Kind == kv.IDsDense && !p.s.numbers.all {
			was.IDs.Kind = kv.IDsInteger
		}
		err = p.describe()
	}
	if err != nil {
		return nil, errors.Join(err, p.Close())
	}
	return p, nil
}

// oneType returns the metadata of a store as if it had a type, of all nodes.
func oneType(m *kv.Meta) *kv.Meta {
	of := *m
	of.NodeTypes = []kv.NodeTypeMeta{{Nodes: m.Nodes}}
	return &of
}

// describe fills in what ingest is told.
func (p *Plain) describe() error {
	i, m := &p.info, p.s.meta
	list, _ := layout.TopologyPaths(layout.In)
	i.Format, i.Paths = "store", []string{p.Store.Base().Path(list)}
	i.RowIDs, i.Nodes = true, p.s.Count(0)
	i.Typed, i.EdgeTypes = len(m.EdgeTypes) > 0, m.EdgeTypes
	i.Weighted, i.Timed, i.Times = m.Weighted, m.Timestamped, m.Times
	i.EdgeTables = typedlevel.EdgeTables(m)
	for _, f := range m.Features {
		of := source.FeatureInfo{Name: f.Name, Dim: f.Dim, DType: f.DType, Rows: i.Nodes,
			Columns: m.FeatureNames[f.Name]}
		i.Features = append(i.Features, of)
	}
	for _, split := range m.Splits {
		i.Splits = append(i.Splits, split.Name)
	}
	for _, split := range m.EdgeSplits {
		i.EdgeSplits = append(i.EdgeSplits, split.Name)
	}
	if l := m.Labels; l != nil {
		i.Labels = &source.LabelInfo{Kind: l.Kind, Text: true, Classes: l.Classes}
	}
	p.s.info = *i
	return p.s.checkRows()
}

// Info describes the source, whose ids are row numbers.
func (p *Plain) Info() *source.Info { return &p.info }

// Fresh returns how many nodes are new, and Changed how many have other values.
func (p *Plain) Fresh() uint64 { return p.s.Fresh() }

// Changed returns how many nodes of the store get other values.
func (p *Plain) Changed() uint64 { return p.s.Changed() }

// Nodes streams nothing, since ids are row numbers.
func (p *Plain) Nodes(context.Context, func(*source.IDChunk) error) error { return nil }

// Edges streams the edges that stay, and whose ends do, then new ones.
func (p *Plain) Edges(ctx context.Context, fn func(*source.EdgeChunk) error) error {
	return p.s.oldAndNew(ctx, func(c *source.EdgeChunk) error {
		if c.Len() == 0 {
			return ctx.Err()
		}
		for i := range c.SrcInt {
			c.SrcInt[i] = p.s.numbers.row(0, c.SrcInt[i])
			c.DstInt[i] = p.s.numbers.row(0, c.DstInt[i])
		}
		return fn(c)
	})
}

// Features streams the rows of all nodes.
func (p *Plain) Features(ctx context.Context, _ string, fn func(*source.RowChunk) error) error {
	old, err := p.s.old.Rows(ctx, p.was.Features[0])
	if err != nil {
		return err
	}
	var more *rowfile.Reader
	if p.s.rows != nil && len(p.s.rows.Features) > 0 {
		if more, err = p.s.new.Rows(ctx, p.s.rows.Features[0]); err != nil {
			return err
		}
	}
	dim := old.Meta().Dim
	var values, others []float32
	return p.s.eachBlock(0, func(b *block) error {
		values = mem.Resize(values, dim*b.n)
		if err := old.Scan(ctx, layout.NodeID(b.first), b.n, values); err != nil {
			return fmt.Errorf("features: %w", err)
		}
		others = mem.Resize(others, dim*len(b.rows))
		if more != nil {
			if err := more.Gather(ctx, b.rows, nil, others); err != nil {
				return fmt.Errorf("features: %w", err)
			}
		}
		c := &source.RowChunk{First: b.row, Where: p.s.where()}
		for _, piece := range b.pieces {
			has := more != nil && piece.row >= 0 && !p.Lack.Contains(uint32(b.rows[piece.row]))
			switch {
			case has:
				c.Rows = append(c.Rows, others[dim*piece.row:dim*(piece.row+1)]...)
			case piece.from < 0:
				panic("BUG: typedchange: a new node has no features")
			default:
				c.Rows = append(c.Rows, values[dim*piece.from:dim*(piece.from+piece.count)]...)
			}
		}
		return fn(c)
	})
}

// Labels streams the labels of all nodes that have one. A node without a label in the sources
// keeps its own.
func (p *Plain) Labels(ctx context.Context, fn func(*source.LabelChunk) error) error {
	l := p.was.Labels
	old, err := p.s.old.Rows(ctx, l.Rows)
	if err != nil {
		return err
	}
	var of *kv.LabelsMeta
	var more *rowfile.Reader
	if p.s.rows != nil && p.s.rows.Labels != nil {
		of = p.s.rows.Labels
		if more, err = p.s.new.Rows(ctx, of.Rows); err != nil {
			return err
		}
	}
	return p.s.eachBlock(0, func(b *block) error {
		values, others := make([]byte, 4*b.n), make([]byte, 4*len(b.rows))
		if err := old.ScanRaw(ctx, layout.NodeID(b.first), b.n, values); err != nil {
			return fmt.Errorf("labels: %w", err)
		}
		if more != nil {
			if err := more.GatherRaw(ctx, b.rows, nil, others); err != nil {
				return fmt.Errorf("labels: %w", err)
			}
		}
		c := &source.LabelChunk{IDs: &source.IDChunk{Where: p.s.where()}, Where: p.s.where()}
		node := b.row
		for _, piece := range b.pieces {
			for k := range piece.count {
				switch {
				case more != nil && piece.row >= 0 &&
					addLabel(c, node, of, others[4*piece.row:]):
				case piece.from >= 0:
					addLabel(c, node, l, values[4*(piece.from+k):])
				}
				node++
			}
		}
		return fn(c)
	})
}

// Splits streams the members of all splits of nodes. A node that is in one of the sources is in
// those of the sources alone.
func (p *Plain) Splits(ctx context.Context, fn func(*source.SplitChunk) error) error {
	given, sets := roaring.New(), map[string]*roaring.Bitmap{}
	for i := 0; p.s.rows != nil && i < len(p.s.rows.Splits); i++ {
		name := p.s.rows.Splits[i].Name
		set, err := p.Rows.Split(ctx, name)
		if err != nil {
			return err
		}
		given.Or(set)
		sets[name] = set
	}
	for _, split := range p.was.Splits {
		was, err := p.Store.Split(ctx, split.Name)
		if err != nil {
			return err
		}
		more := sets[split.Name]
		err = p.s.eachBlock(0, func(b *block) error {
			c := &source.SplitChunk{Name: split.Name, IDs: source.IDChunk{Where: p.s.where()}}
			node := b.row
			for _, piece := range b.pieces {
				for k := range piece.count {
					is := piece.from >= 0 && was.Contains(uint32(b.first)+uint32(piece.from+k))
					if piece.row >= 0 && given.Contains(uint32(b.rows[piece.row])) {
						is = more != nil && more.Contains(uint32(b.rows[piece.row]))
					}
					if is {
						c.IDs.Ints = append(c.IDs.Ints, node)
					}
					node++
				}
			}
			if len(c.IDs.Ints) == 0 {
				return ctx.Err()
			}
			return fn(c)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// Names streams the external ids.
func (p *Plain) Names(ctx context.Context, fn func(external []byte) error) error {
	return p.s.Names(ctx, 0, fn)
}

// Meta returns the metadata of the store.
func (p *Plain) Meta() *kv.Meta { return p.was }

// Parts returns nil: the nodes are in no partitions.
func (p *Plain) Parts() []kv.Partition { return nil }

// EdgeCut is not known.
func (p *Plain) EdgeCut() float64 { return 0 }

// At returns v: edges come with the numbers that their nodes have from now on.
func (p *Plain) At(v uint64) uint64 { return v }

// Inverse returns v.
func (p *Plain) Inverse(v uint64) uint64 { return v }

// Sum identifies the store and the sources.
func (p *Plain) Sum() string {
	sum := fmt.Sprintf("%s %d", p.was.UUID, p.was.Snapshot)
	if p.s.rows != nil {
		sum += fmt.Sprintf(" %s", p.s.rows.UUID)
	}
	return sum
}

// SplitEdges streams nothing: Edges has the edges of all splits.
func (p *Plain) SplitEdges(context.Context, string, func(edgefile.Edges) error) error {
	return nil
}

// Close frees the memory and closes the files.
func (p *Plain) Close() error { return p.s.Close() }
