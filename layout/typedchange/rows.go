package typedchange

import (
	"context"
	"encoding/binary"
	"errors"
	"math"
	"slices"

	"gdb/kv"
	"gdb/layout"
	"gdb/layout/columnfile"
	"gdb/layout/ingest/source"
	"gdb/layout/rowfile"

	"github.com/RoaringBitmap/roaring/v2"
)

// block are nodes that follow each other in the new store: of the store, some of which may be gone
// or have a row in the tables, or new ones.
type block struct {
	first  uint64          // node of the store; n follow each other from it on
	n      int             // 0: new nodes
	pieces []piece         // in order
	rows   []layout.NodeID // nodes of the tables, by piece.row
	row    uint64          // of the first node in its type of the new store
}

// piece are nodes of a block: count of the store from number from on, with the values that they
// have, or one that has those of a row of the tables; from is -1 if it is new.
type piece struct {
	from, count int
	row         int // -1: none
}

// kept returns the nodes of the store in a block.
func (b *block) kept() (nodes []layout.NodeID) {
	for _, p := range b.pieces {
		for k := range p.count {
			nodes = append(nodes, layout.NodeID(b.first)+layout.NodeID(p.from+k))
		}
	}
	return nodes
}

// len returns how many nodes of the new store a block has.
func (b *block) len() (n int) {
	for _, p := range b.pieces {
		n += p.count
	}
	return n
}

// eachBlock calls fn with the nodes of a type in order.
func (s *Source) eachBlock(typ int, fn func(b *block) error) error {
	of, t := &s.meta.NodeTypes[typ], &s.numbers.types[typ]
	row := uint64(0)
	for v := uint64(0); v < of.Nodes; v += chunk {
		b := &block{first: of.First + v, n: int(min(chunk, of.Nodes-v)), row: row}
		s.fill(b)
		if row += uint64(b.len()); len(b.pieces) == 0 {
			continue
		}
		if err := fn(b); err != nil {
			return err
		}
	}
	for v := t.firstRow; v < t.firstRow+t.rows; {
		b := &block{row: row}
		for ; v < t.firstRow+t.rows && len(b.rows) < chunk; v++ {
			if s.Of[v] == Absent {
				b.pieces = append(b.pieces, piece{from: -1, count: 1, row: len(b.rows)})
				b.rows = append(b.rows, layout.NodeID(v))
			}
		}
		if row += uint64(b.len()); len(b.pieces) == 0 {
			continue
		}
		if err := fn(b); err != nil {
			return err
		}
	}
	return nil
}

// fill finds which nodes of a block stay, and which have a row in the tables.
func (s *Source) fill(b *block) {
	at, _ := slices.BinarySearch(s.changed, b.first<<32)
	if s.numbers.all && (at == len(s.changed) || s.changed[at]>>32 >= b.first+uint64(b.n)) {
		b.pieces = append(b.pieces, piece{count: b.n, row: -1})
		return
	}
	for i := range b.n {
		v := b.first + uint64(i)
		changed := at < len(s.changed) && s.changed[at]>>32 == v
		if changed {
			at++
		}
		switch last := len(b.pieces) - 1; {
		case !s.numbers.isKept(v):
		case changed:
			b.pieces = append(b.pieces, piece{from: i, count: 1, row: len(b.rows)})
			b.rows = append(b.rows, layout.NodeID(uint32(s.changed[at-1])))
		case last >= 0 && b.pieces[last].row < 0 && b.pieces[last].from+b.pieces[last].count == i:
			b.pieces[last].count++
		default:
			b.pieces = append(b.pieces, piece{from: i, count: 1, row: -1})
		}
	}
}

// rowsType returns the type of the tables that is one of the store, or nil.
func (s *Source) rowsType(typ int) *kv.NodeTypeMeta {
	for i := 0; s.rows != nil && i < len(s.rows.NodeTypes); i++ {
		if t := &s.rows.NodeTypes[i]; t.Name == s.meta.NodeTypes[typ].Name {
			return t
		}
	}
	return nil
}

// columnReader reads a column of the store and of the tables.
type columnReader struct {
	kv.TableColumn
	old, rows *columnfile.Reader // rows is nil if the tables lack it
	values    columnfile.Values
	more      columnfile.Values
}

// TableColumns streams some columns of a type.
func (s *Source) TableColumns(ctx context.Context, t *source.TableInfo, columns []int,
	fn func(*source.ColumnChunk) error) (err error) {
	shared := columnfile.NewFeatures(s.Store, s.dev, s.budget)
	var sharedRows *columnfile.Features
	if s.Rows != nil {
		sharedRows = columnfile.NewFeatures(s.Rows, s.dev, s.budget)
	}
	var open []*columnReader
	defer func() {
		for _, c := range open {
			err = errors.Join(err, c.close())
		}
		err = errors.Join(err, shared.Close())
		if sharedRows != nil {
			err = errors.Join(err, sharedRows.Close())
		}
	}()
	of, rows := &s.meta.NodeTypes[t.Type], s.rowsType(t.Type)
	for _, k := range columns {
		c := &columnReader{TableColumn: of.Columns[k]}
		open = append(open, c)
		if c.old, err = shared.Open(ctx, c.TableColumn); err != nil {
			return err
		}
		for i := 0; rows != nil && i < len(rows.Columns); i++ {
			if rows.Columns[i].Name == c.Name {
				if c.rows, err = sharedRows.Open(ctx, rows.Columns[i]); err != nil {
					return err
				}
			}
		}
	}
	out := &source.ColumnChunk{Columns: make([]columnfile.Values, len(columns)), Where: s.where()}
	return s.eachBlock(t.Type, func(b *block) error {
		for k, c := range open {
			if err := c.read(ctx, b, of, rows, &out.Columns[k]); err != nil {
				return err
			}
		}
		return fn(out)
	})
}

func (c *columnReader) close() (err error) {
	for _, r := range []*columnfile.Reader{c.old, c.rows} {
		if r != nil {
			err = errors.Join(err, r.Close())
		}
	}
	return err
}

// read sets out to the values of a block.
//
//lint:parameters a block of nodes, its type in the store and in the tables
func (c *columnReader) read(ctx context.Context, b *block, of, rows *kv.NodeTypeMeta,
	out *columnfile.Values) error {
	c.values.Reset()
	if b.n > 0 {
		err := c.old.Scan(ctx, b.first-of.First, uint64(b.n), nil,
			func(_ uint64, v *columnfile.Values) error {
				c.values.Append(v, 0, v.Rows)
				return nil
			})
		if err != nil {
			return err
		}
	}
	if c.rows != nil && len(b.rows) > 0 {
		at := make([]uint64, len(b.rows))
		for i, v := range b.rows {
			at[i] = uint64(v) - rows.First
		}
		if err := c.rows.Gather(ctx, at, &c.more); err != nil {
			return err
		}
	}
	out.Reset()
	for _, p := range b.pieces {
		switch {
		case p.row >= 0 && c.rows != nil:
			out.Append(&c.more, p.row, p.row+1)
		case p.from < 0:
			out.AddNull(c.Type)
		default:
			out.Append(&c.values, p.from, p.from+p.count)
		}
	}
	return nil
}

// Labels streams the labels of the type that has them.
func (s *Source) Labels(ctx context.Context, fn func(*source.LabelChunk) error) error {
	l := s.meta.Labels
	typ := slices.IndexFunc(s.meta.NodeTypes, func(t kv.NodeTypeMeta) bool {
		return t.Name == l.OfType
	})
	old, err := s.old.Rows(ctx, l.Rows)
	if err != nil || typ < 0 {
		return err
	}
	var more *rowfile.Reader
	if rows := s.rowsType(typ); rows != nil && s.rows.Labels != nil &&
		s.rows.Labels.OfType == l.OfType {
		if more, err = s.new.Rows(ctx, s.rows.Labels.Rows); err != nil {
			return err
		}
	}
	return s.eachBlock(typ, func(b *block) error {
		values, others := make([]byte, 4*b.n), make([]byte, 4*len(b.rows))
		if err := old.ScanRaw(ctx, layout.NodeID(b.first), b.n, values); err != nil {
			return err
		}
		if more != nil {
			if err := more.GatherRaw(ctx, b.rows, nil, others); err != nil {
				return err
			}
		}
		c := &source.LabelChunk{IDs: &source.IDChunk{Where: s.where()}, Where: s.where()}
		node := s.first[typ] + b.row
		for _, p := range b.pieces {
			for k := range p.count {
				switch {
				case p.row >= 0 && more != nil:
					addLabel(c, node, s.rows.Labels, others[4*p.row:])
				case p.from >= 0:
					addLabel(c, node, l, values[4*(p.from+k):])
				}
				node++
			}
		}
		return fn(c)
	})
}

// addLabel adds the label of a node, and returns whether it has one.
func addLabel(c *source.LabelChunk, node uint64, of *kv.LabelsMeta, row []byte) bool {
	word := binary.LittleEndian.Uint32(row)
	if of.Kind == "target" {
		x := math.Float32frombits(word)
		if x != x {
			return false
		}
		c.Target = append(c.Target, x)
	} else {
		if int32(word) < 0 {
			return false
		}
		c.Text = append(c.Text, []byte(of.Classes[word]))
	}
	c.IDs.Ints = append(c.IDs.Ints, node)
	return true
}

// Splits streams the members of all splits.
func (s *Source) Splits(ctx context.Context, fn func(*source.SplitChunk) error) error {
	for _, split := range s.meta.Splits {
		set, err := s.Store.Split(ctx, split.Name)
		if err != nil {
			return err
		}
		more := roaring.New()
		if s.rows != nil && slices.ContainsFunc(s.rows.Splits, func(of kv.SplitMeta) bool {
			return of.Name == split.Name
		}) {
			if more, err = s.Rows.Split(ctx, split.Name); err != nil {
				return err
			}
		}
		for typ := range s.meta.NodeTypes {
			if err := s.splitOf(typ, split.Name, set, more, fn); err != nil {
				return err
			}
		}
	}
	return ctx.Err()
}

// splitOf streams the nodes of a type that are in a split: of set in the store, of more in the
// tables.
func (s *Source) splitOf(typ int, name string, set, more *roaring.Bitmap,
	fn func(*source.SplitChunk) error) error {
	says := s.saysSplits(typ)
	return s.eachBlock(typ, func(b *block) error {
		c := &source.SplitChunk{Name: name, IDs: source.IDChunk{Where: s.where(), Type: typ}}
		node := s.first[typ] + b.row
		for _, p := range b.pieces {
			for k := range p.count {
				is := p.from >= 0 && set.Contains(uint32(b.first)+uint32(p.from+k))
				if p.row >= 0 && says {
					is = more.Contains(uint32(b.rows[p.row]))
				}
				if is {
					c.IDs.Ints = append(c.IDs.Ints, node)
				}
				node++
			}
		}
		if len(c.IDs.Ints) == 0 {
			return nil
		}
		return fn(c)
	})
}

// saysSplits reports whether the table of a type has a column of splits.
func (s *Source) saysSplits(typ int) bool {
	rows := s.rowsType(typ)
	return rows != nil && slices.ContainsFunc(rows.Columns, func(c kv.TableColumn) bool {
		return s.meta.NodeTypes[typ].Roles[c.Name] == "split"
	})
}
