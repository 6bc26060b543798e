package typedchange

import (
	"context"

	"gdb/kv"
	"gdb/layout/columnfile"
	"gdb/layout/ingest/source"
	"gdb/layout/typedlevel"
)

// Edges streams the edges that stay, and whose ends do, then new ones, and those of reverse
// relations behind each chunk.
func (s *Source) Edges(ctx context.Context, fn func(*source.EdgeChunk) error) error {
	all := s.oldAndNew
	return typedlevel.BothWays(ctx, s.meta, all, func(c *source.EdgeChunk, r kv.RelationMeta) {
		for i := range c.SrcInt {
			c.SrcInt[i] = s.numbers.row(r.Src, c.SrcInt[i])
			c.DstInt[i] = s.numbers.row(r.Dst, c.DstInt[i])
		}
	}, fn)
}

// oldAndNew streams the edges that stay, and whose ends do, then new ones, by the numbers that
// nodes had.
func (s *Source) oldAndNew(ctx context.Context, fn func(*source.EdgeChunk) error) error {
	err := s.Change.Edges(ctx, func(c *source.EdgeChunk) error {
		if s.Divider != nil {
			s.Divider.mark(c)
		}
		if s.Stays != nil {
			c = s.Stays(c)
		}
		return fn(s.present(c))
	})
	switch {
	case err != nil || s.More == nil:
		return err
	case s.Divider == nil:
		return s.More(ctx, fn)
	}
	return s.More(ctx, func(c *source.EdgeChunk) error { return s.divide(c, fn) })
}

// present returns the edges of a chunk whose ends stay.
func (s *Source) present(c *source.EdgeChunk) *source.EdgeChunk {
	if s.numbers.all {
		return c
	}
	stays := func(v uint64) bool { return v >= s.numbers.old || s.numbers.isKept(v) }
	return Select(c, func(i int) bool { return stays(c.SrcInt[i]) && stays(c.DstInt[i]) })
}

// Select returns the edges of a chunk of nodes that keep says stay: c itself if all do.
func Select(c *source.EdgeChunk, keep func(i int) bool) *source.EdgeChunk {
	var some []int
	for i := range c.SrcInt {
		if keep(i) {
			some = append(some, i)
		}
	}
	if len(some) == len(c.SrcInt) {
		return c
	}
	out := &source.EdgeChunk{Where: c.Where, Rounded: c.Rounded, Split: c.Split,
		Columns: make([]columnfile.Values, len(c.Columns))}
	for _, i := range some {
		out.SrcInt, out.DstInt = append(out.SrcInt, c.SrcInt[i]), append(out.DstInt, c.DstInt[i])
		if c.TypeInt != nil {
			out.TypeInt = append(out.TypeInt, c.TypeInt[i])
		}
		if c.Weight != nil {
			out.Weight = append(out.Weight, c.Weight[i])
		}
		if c.Time != nil {
			out.Time = append(out.Time, c.Time[i])
		}
		for k := range c.Columns {
			out.Columns[k].Append(&c.Columns[k], i, i+1)
		}
	}
	if len(c.Columns) == 0 {
		out.Columns = nil
	}
	return out
}
