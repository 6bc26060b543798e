package typedchange

import (
	"context"
	"fmt"
	"slices"

	"gdb/kv"
	"gdb/layout"
	"gdb/layout/ingest/input"
	"gdb/layout/ingest/source"
	"gdb/layout/rowfile"
)

// featureRows makes the rows of features of a type.
type featureRows struct {
	s        *Source
	typ, dim int
	encoding *kv.FeatureEncoding // of the store; nil if it is not recorded
	given    []bool              // by column of the encoding, whether the tables have it
	old      *rowfile.Reader
	more     *rowfile.Reader // nil if the tables have no columns of features
	values   []float32       // rows of the store
	others   []float32       // of the tables, without a scale
	allowNaN bool
}

// Features streams the rows of all types that have values.
func (s *Source) Features(ctx context.Context, name string,
	fn func(*source.RowChunk) error) error {
	old, err := s.old.Rows(ctx, s.meta.Features[0])
	if err != nil {
		return err
	}
	for typ, dim := range s.info.Features[0].Dims {
		if dim == 0 {
			continue
		}
		f := &featureRows{s: s, typ: typ, dim: dim, encoding: s.meta.NodeTypes[typ].Encoding,
			old: old, allowNaN: slices.Contains(s.meta.Source.Args, "--allow-nan")}
		if err := f.open(ctx); err != nil {
			return err
		}
		err := s.eachBlock(typ, func(b *block) error { return f.block(ctx, b, fn) })
		if err != nil {
			return fmt.Errorf("features of %s: %w", s.meta.NodeTypes[typ].Name, err)
		}
	}
	return ctx.Err()
}

// open opens the features of the tables.
func (f *featureRows) open(ctx context.Context) (err error) {
	rows := f.s.rowsType(f.typ)
	if rows == nil || rows.Nodes == 0 {
		return nil
	}
	if f.encoding == nil {
		return input.Usage("how features of %s were made was not recorded when the store was "+
			"ingested, so its nodes are not added or changed: ingest all tables anew",
			f.s.meta.NodeTypes[f.typ].Name)
	}
	f.given = make([]bool, len(f.encoding.Columns))
	if rows.Encoding == nil || len(rows.Encoding.Columns) == 0 {
		return nil
	}
	for i, c := range f.encoding.Columns {
		f.given[i] = slices.ContainsFunc(rows.Encoding.Columns, func(of kv.EncodedColumn) bool {
			return of.Name == c.Name
		})
	}
	f.more, err = f.s.new.Rows(ctx, f.s.rows.Features[0])
	return err
}

// block passes on the rows of a block.
func (f *featureRows) block(ctx context.Context, b *block,
	fn func(*source.RowChunk) error) error {
	out := &source.RowChunk{First: f.s.first[f.typ] + b.row, Type: f.typ, Where: f.s.where()}
	wide := f.old.Meta().Dim
	f.values = slices.Grow(f.values[:0], wide*b.n)[:wide*b.n]
	if err := f.old.Scan(ctx, layout.NodeID(b.first), b.n, f.values); err != nil {
		return err
	}
	wider := 0
	if f.more != nil {
		wider = f.more.Meta().Dim
		f.others = slices.Grow(f.others[:0], wider*len(b.rows))[:wider*len(b.rows)]
		if err := f.more.Gather(ctx, b.rows, nil, f.others); err != nil {
			return err
		}
	}
	for _, p := range b.pieces {
		for k := range p.count {
			var was []float32
			if p.from >= 0 {
				was = f.values[wide*(p.from+k):][:f.dim]
			}
			if p.row < 0 {
				out.Rows = append(out.Rows, was...)
				continue
			}
			var now []float32
			if f.more != nil {
				now = f.others[wider*p.row:][:f.dim]
			}
			row, err := f.row(was, now)
			if err != nil {
				return f.where(ctx, b.rows[p.row], err)
			}
			out.Rows = append(out.Rows, row...)
		}
	}
	return fn(out)
}

// where adds the node to an error.
func (f *featureRows) where(ctx context.Context, v layout.NodeID, missing error) error {
	dict, err := f.s.new.IDs(ctx, 0)
	if err != nil {
		return err
	}
	name, err := dict.External(ctx, []kv.NodeID{v}, nil)
	if err != nil {
		return err
	}
	return input.Wrong("node "+name[0], "give it one", "%v", missing)
}

// row makes the row of a node that has one in the tables: was is its row in the store, nil if it is
// new, and now that of the tables, nil if they have no columns of features.
func (f *featureRows) row(was, now []float32) ([]float32, error) {
	row := make([]float32, f.dim)
	at := 0
	for i := range f.encoding.Columns {
		c := &f.encoding.Columns[i]
		width := c.Width()
		to := row[at : at+width]
		if !f.given[i] && was != nil {
			copy(to, was[at:])
			at += width
			continue
		}
		var from []float32
		if f.given[i] {
			from = now[at : at+width]
		}
		if err := f.column(c, from, to); err != nil {
			return nil, err
		}
		if len(f.encoding.Mean) > 0 {
			for k := range to {
				to[k] = (to[k] - f.encoding.Mean[at+k]) * f.encoding.Inverse[at+k]
			}
		}
		at += width
	}
	return row, nil
}

// column sets the values of a column from those that the tables have; nil if they lack it.
func (f *featureRows) column(c *kv.EncodedColumn, from, to []float32) error {
	if from != nil {
		copy(to, from)
	}
	flag := c.Dim
	for k := range c.Dim {
		gap := from == nil || from[k] != from[k]
		if gap {
			switch {
			case len(c.Fill) > 0:
				to[k] = c.Fill[k]
			case f.allowNaN && from != nil:
			default:
				return fmt.Errorf("it has no number in the column %s, which features are made of",
					c.Name)
			}
		}
		if len(c.Gaps) > 0 && c.Gaps[k] {
			to[flag] = 0
			if gap {
				to[flag] = 1
			}
			flag++
		}
	}
	return nil
}
