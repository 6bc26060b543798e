package typedlevel

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"gdb/blockdev"
	"gdb/kv"
	"gdb/layout"
	"gdb/layout/edgefile"
	"gdb/layout/ingest/source"
)

// WithSplits streams the edges of a base whose edges are in splits, each chunk with the name of its
// split: those of train, which the lists have, and those of other splits from their files. These
// have no weights, times and columns, which come as 1, no time and null, and go nowhere: lists and
// tables do not have these edges.
func WithSplits(train Edges, base *layout.Store, dev blockdev.Device) Edges {
	return func(ctx context.Context, fn func(c *source.EdgeChunk) error) error {
		for _, s := range base.Meta().EdgeSplits {
			r := &splitReader{meta: base.Meta(), split: s.Name, fn: fn}
			var err error
			if s.Name == edgefile.Splits[0] {
				err = train(ctx, func(c *source.EdgeChunk) error {
					c.Split = s.Name
					return fn(c)
				})
			} else {
				err = r.read(ctx, base, dev)
			}
			if err != nil {
				return fmt.Errorf("edges of %s: %w", s.Name, err)
			}
		}
		return nil
	}
}

// splitReader reads the file of a split.
type splitReader struct {
	meta      *kv.Meta
	split     string
	fn        func(c *source.EdgeChunk) error
	relations []source.EdgeChunk // edges that wait, of those that are the reverse of no other
}

func (r *splitReader) read(ctx context.Context, base *layout.Store, dev blockdev.Device) error {
	f, err := edgefile.Open(ctx, base, dev, r.split)
	if err != nil {
		return err
	}
	r.relations = make([]source.EdgeChunk, Forward(r.meta))
	err = f.Stream(ctx, 0, f.Count(), func(_ uint64, e edgefile.Edges) error {
		for i, relation := range e.Rel {
			if int(relation) >= len(r.relations) {
				continue // its reverse is read
			}
			c := &r.relations[relation]
			c.SrcInt = append(c.SrcInt, uint64(e.Src[i]))
			c.DstInt = append(c.DstInt, uint64(e.Dst[i]))
			if c.TypeInt = append(c.TypeInt, uint32(relation)); len(c.TypeInt) < chunk {
				continue
			}
			if err := r.flush(c); err != nil {
				return err
			}
		}
		return nil
	})
	for i := range r.relations {
		if err == nil {
			err = r.flush(&r.relations[i])
		}
	}
	return errors.Join(err, f.Close())
}

// flush passes the edges of a relation on that wait.
func (r *splitReader) flush(c *source.EdgeChunk) error {
	n := len(c.TypeInt)
	if n == 0 {
		return nil
	}
	c.Split, c.Where = r.split, source.Where{File: edgefile.Path(r.split), Unit: "edge"}
	if r.meta.Weighted {
		c.Weight = slices.Repeat([]float32{1}, n)
	}
	if r.meta.Timestamped {
		c.Time = slices.Repeat([]int64{kv.NoTime}, n)
	}
	c.Columns = c.Columns[:0]
	for _, of := range r.meta.EdgeColumns(int(c.TypeInt[0])) {
		c.Columns = append(c.Columns, Nulls(of.Type, n))
	}
	err := r.fn(c)
	c.SrcInt, c.DstInt, c.TypeInt = c.SrcInt[:0], c.DstInt[:0], c.TypeInt[:0]
	return err
}
