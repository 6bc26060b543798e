package topology

import (
	"context"
	"fmt"

	"gdb/internal/mem"
	"gdb/internal/pace"
	"gdb/layout"
	"gdb/layout/listfile"
)

// eachPart calls fn with the parts of a node's list, in order, until fn returns an error.
func (c *compact) eachPart(v layout.NodeID,
	fn func(b *listfile.Block, p *listfile.Part) error) error {
	if uint64(v) >= c.f.Nodes {
		return layout.OutOfRange(v, c.f.Nodes)
	}
	head, ok := c.held.Head(v)
	if !ok {
		return nil
	}
	last := c.held.Last(v, head)
	for n := head; n <= last; n++ {
		b, err := c.held.Block(n)
		if err != nil {
			return c.damage(err)
		}
		slot := uint32(v) - uint32(b.First)
		if slot >= b.Slots {
			return nil // between blocks: it has no neighbors
		}
		p, err := c.f.Shape.Part(&b, slot)
		if err != nil {
			return c.damage(err)
		}
		if p.Count == 0 {
			continue
		}
		if err := fn(&b, &p); err != nil {
			return err
		}
	}
	return nil
}

// Lists decodes the whole lists of nodes. They are valid until the next call.
func (s *compactSession) Lists(ctx context.Context, nodes []layout.NodeID) (*listfile.Lists,
	error) {
	s.draw.Forget()
	err := decodeLists(ctx, &s.c.f.Shape, &s.whole, len(nodes), s.c.damage,
		func(i int, fn func(b *listfile.Block, p *listfile.Part) error) error {
			return s.c.eachPart(nodes[i], fn)
		})
	return &s.whole, err
}

// listParts calls fn with the parts of list i, in order.
type listParts func(i int, fn func(b *listfile.Block, p *listfile.Part) error) error

// decodeLists decodes n whole lists to l, whose memory it reuses. damage turns an error of a block
// into one of its file.
func decodeLists(ctx context.Context, shape *listfile.Shape, l *listfile.Lists, n int,
	damage func(error) error, parts listParts) error {
	l.Off = append(l.Off[:0], 0)
	l.Nbrs = l.Nbrs[:0]
	shape.SizeAttributes(l, 0)
	var steps pace.Steps
	for i := range n {
		err := parts(i, func(b *listfile.Block, p *listfile.Part) error {
			at, n := len(l.Nbrs), int(p.Count)
			l.Nbrs = grown(l.Nbrs, n)
			if err := p.Decode(shape, l.Nbrs[at:]); err != nil {
				return damage(err)
			}
			if shape.HasAttributes() {
				growAttributes(shape, l, n)
				shape.CopyAttributes(b, int(p.Entry), int(p.Entry)+n, l, uint64(at))
			}
			return steps.Took(ctx, n)
		})
		if err != nil {
			return err
		}
		l.Off = append(l.Off, uint64(len(l.Nbrs)))
	}
	return ctx.Err()
}

// grown returns s with n more elements.
func grown[T any](s []T, n int) []T {
	if len(s)+n <= cap(s) {
		return s[:len(s)+n]
	}
	return append(s, make([]T, n)...)
}

func growAttributes(shape *listfile.Shape, l *listfile.Lists, n int) {
	if shape.Types {
		l.Types = grown(l.Types, n)
	}
	if shape.Weights {
		l.Weights = grown(l.Weights, n)
	}
	if shape.Times {
		l.Times = grown(l.Times, n)
	}
}

// Columns decodes columns of the lists, block by block.
func (s *compactSession) Columns(ctx context.Context, want Columns,
	fn func(p Part) error) error {
	if err := want.lacks(&s.c.f); err != nil {
		return err
	}
	c := columnParts{shape: &s.c.f.Shape, want: want, weight: s.weight, times: s.times}
	defer func() { s.weight, s.times = c.weight, c.times }()
	nodes := s.draw.Nodes()
	return c.each(ctx, len(nodes),
		func(i int, fn func(b *listfile.Block, p *listfile.Part) error) error {
			return s.c.eachPart(nodes[i], fn)
		}, fn)
}

// columnParts decodes columns of lists part by part, to memory that is reused.
type columnParts struct {
	shape  *listfile.Shape
	want   Columns
	weight []float32
	times  []int64
}

// each calls fn with the wanted parts of n lists.
func (c *columnParts) each(ctx context.Context, n int, parts listParts,
	fn func(p Part) error) error {
	for i := range n {
		err := parts(i, func(b *listfile.Block, p *listfile.Part) error {
			if c.want.skips(uint32(i), p.Start) {
				return nil
			}
			part := Part{List: i, From: p.Start}
			if c.want.Weights {
				c.weight = mem.Resize(c.weight, int(p.Count))
				c.shape.CopyWeights(b, int(p.Entry), c.weight)
				part.Weights = c.weight
			}
			if c.want.Times {
				c.times = mem.Resize(c.times, int(p.Count))
				c.shape.CopyTimes(b, int(p.Entry), c.times)
				part.Times = c.times
			}
			return fn(part)
		})
		if err != nil {
			return err
		}
	}
	return ctx.Err()
}

// GatherAttributes decodes the attributes of entries.
func (s *compactSession) GatherAttributes(ctx context.Context, off, pos []uint32,
	to Attributes) error {
	c := s.c
	if err := to.lacks(&c.f); err != nil {
		return err
	}
	var steps pace.Steps
	for i, v := range s.draw.Nodes() {
		lo, hi := off[i], off[i+1]
		if err := steps.Took(ctx, 1+int(hi-lo)); err != nil {
			return err
		}
		if err := s.gatherAttributes(i, v, lo, pos[lo:hi], &to); err != nil {
			return c.damage(err)
		}
	}
	return checkTypes(ctx, &c.f, c.kinds, off, to.Types)
}

// gatherAttributes decodes the attributes of entries of one list.
func (s *compactSession) gatherAttributes(i int, v layout.NodeID, at uint32, pos []uint32,
	to *Attributes) error {
	c := s.c
	block, now := listfile.Block{}, -1
	var part listfile.Part
	for j := range pos {
		if n := s.draw.Block(i, pos[j]); n != now {
			var err error
			if block, err = c.held.Block(n); err != nil {
				return err
			}
			slot := uint32(v) - uint32(block.First)
			if slot >= block.Slots {
				return fmt.Errorf("%w has no list of node %d", listfile.ErrBlock, v)
			}
			if part, err = c.f.Shape.Part(&block, slot); err != nil {
				return err
			}
			now = n
		}
		if err := to.take(&c.f.Shape, &block, &part, pos[j:j+1], at+uint32(j)); err != nil {
			return err
		}
	}
	return nil
}
