package typedchange

import (
	"context"

	"gdb/kv"
	"gdb/kv/ids"
	"gdb/layout/columnfile"
	"gdb/layout/ingest/source"
	"gdb/layout/typedlevel"
)

// Edges streams the edges, and those of reverse relations behind them.
func (s *Source) Edges(ctx context.Context, fn func(*source.EdgeChunk) error) error {
	back := 0 // from a relation to its reverse
	if n := typedlevel.Forward(s.meta); n < len(s.meta.Relations) {
		back = n
	}
	return s.Change.Edges(ctx, func(c *source.EdgeChunk) error {
		c = s.present(c)
		if c.Len() == 0 {
			return ctx.Err()
		}
		relation := int(c.TypeInt[0])
		out := *c
		r := s.meta.Relations[relation]
		if err := s.ends(ctx, &out, r); err != nil {
			return err
		}
		if err := fn(&out); err != nil || back == 0 {
			return err
		}
		reverse := out
		reverse.SrcInt, reverse.DstInt = out.DstInt, out.SrcInt
		reverse.SrcText, reverse.DstText = out.DstText, out.SrcText
		reverse.TypeInt, reverse.Columns = nil, nil
		for range out.Len() {
			reverse.TypeInt = append(reverse.TypeInt, uint32(relation+back))
		}
		reverse.Rounded = source.RoundedWeights{}
		return fn(&reverse)
	})
}

// ends sets the ends of edges to rows of their types, or to ids.
func (s *Source) ends(ctx context.Context, c *source.EdgeChunk, r kv.RelationMeta) error {
	if s.asRows {
		src, dst := make([]uint64, len(c.SrcInt)), make([]uint64, len(c.DstInt))
		for i := range src {
			src[i], dst[i] = s.numbers.row(r.Src, c.SrcInt[i]), s.numbers.row(r.Dst, c.DstInt[i])
		}
		c.SrcInt, c.DstInt = src, dst
		return nil
	}
	var err error
	if c.SrcText, err = s.names(ctx, c.SrcInt); err == nil {
		c.DstText, err = s.names(ctx, c.DstInt)
	}
	c.SrcInt, c.DstInt = nil, nil
	return err
}

// names returns the ids of nodes of the store, and of the tables behind them.
func (s *Source) names(ctx context.Context, nodes []uint64) ([][]byte, error) {
	out := make([][]byte, len(nodes))
	find := func(d ids.Dictionary, first, end uint64) error {
		var some []kv.NodeID
		var at []int
		for i, v := range nodes {
			if v >= first && v < end {
				some, at = append(some, kv.NodeID(v-first)), append(at, i)
			}
		}
		names, err := d.External(ctx, some, nil)
		for k, name := range names {
			out[at[k]] = []byte(name)
		}
		return err
	}
	dict, err := s.old.IDs(ctx, 0)
	if err == nil {
		err = find(dict, 0, s.numbers.old)
	}
	if err != nil || s.new == nil {
		return out, err
	}
	if dict, err = s.new.IDs(ctx, 0); err == nil {
		err = find(dict, s.numbers.old, 1<<63)
	}
	return out, err
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
	out := &source.EdgeChunk{Where: c.Where, Rounded: c.Rounded,
		Columns: make([]columnfile.Values, len(c.Columns))}
	for _, i := range some {
		out.SrcInt, out.DstInt = append(out.SrcInt, c.SrcInt[i]), append(out.DstInt, c.DstInt[i])
		out.TypeInt = append(out.TypeInt, c.TypeInt[i])
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
