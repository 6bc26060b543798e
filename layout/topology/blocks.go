package topology

import (
	"context"
	"slices"

	"gdb/internal/pace"
	"gdb/layout"
	"gdb/layout/listfile"
)

// blockLists reads whole lists and attributes for a session whose blocks are in memory.
type blockLists struct {
	f     *listfile.File
	types int             // number of edge types
	nodes []layout.NodeID // the frontier
	of    listBlocks

	whole   listfile.Lists
	columns columnBuffer
}

// listBlocks finds the lists of a frontier in blocks.
type listBlocks interface {
	// span returns the first and the last block that may have some of list i; last is below first
	// if there are none.
	span(i int) (first, last int, err error)
	// blockAt returns the block that has the entry at a position of list i.
	blockAt(i int, pos uint32) int
	// part returns a block, and the part of list i in it, whose Count may be 0.
	part(i, block int) (*listfile.Block, listfile.Part, error)
}

// each calls fn with the parts of list i of the frontier, in order.
func (l *blockLists) each(i int, fn func(b *listfile.Block, p *listfile.Part) error) error {
	first, last, err := l.of.span(i)
	for n := first; n <= last && err == nil; n++ {
		var b *listfile.Block
		var p listfile.Part
		if b, p, err = l.of.part(i, n); err == nil && p.Count > 0 {
			err = fn(b, &p)
		}
	}
	return err
}

// lists decodes the whole lists of the frontier. They are valid until the next call.
func (l *blockLists) lists(ctx context.Context) (*listfile.Lists, error) {
	shape, w := &l.f.Shape, &l.whole
	w.Off = append(w.Off[:0], 0)
	w.Nbrs = w.Nbrs[:0]
	shape.SizeAttributes(w, 0)
	var steps pace.Steps
	for i := range l.nodes {
		err := l.each(i, func(b *listfile.Block, p *listfile.Part) error {
			at, n := len(w.Nbrs), int(p.Count)
			w.Nbrs = grown(w.Nbrs, n)
			if err := p.Decode(shape, w.Nbrs[at:]); err != nil {
				return l.damage(err)
			}
			if shape.Types {
				w.Types = grown(w.Types, n)
			}
			if shape.Weights {
				w.Weights = grown(w.Weights, n)
			}
			if shape.Times {
				w.Times = grown(w.Times, n)
			}
			shape.CopyAttributes(b, int(p.Entry), int(p.Entry)+n, w, uint64(at))
			return steps.Took(ctx, n)
		})
		if err != nil {
			return nil, err
		}
		w.Off = append(w.Off, uint64(len(w.Nbrs)))
	}
	return w, ctx.Err()
}

// grown returns s with n more elements.
func grown[T any](s []T, n int) []T { return slices.Grow(s, n)[:len(s)+n] }

// Columns decodes columns of the lists, block by block.
func (l *blockLists) Columns(ctx context.Context, want Columns, fn func(p Part) error) error {
	if err := want.lacks(l.f); err != nil {
		return err
	}
	for i := range l.nodes {
		err := l.each(i, func(b *listfile.Block, p *listfile.Part) error {
			if want.skips(uint32(i), p.Start) {
				return nil
			}
			return fn(l.columns.part(&l.f.Shape, b, p, i, &want))
		})
		if err != nil {
			return err
		}
	}
	return ctx.Err()
}

// GatherAttributes decodes the attributes of entries.
func (l *blockLists) GatherAttributes(ctx context.Context, off, pos []uint32,
	to Attributes) error {
	if err := to.lacks(l.f); err != nil || !to.place(off, pos) {
		return err
	}
	var steps pace.Steps
	for i := range l.nodes {
		lo, hi := off[i], off[i+1]
		if err := steps.Took(ctx, 1+int(hi-lo)); err != nil {
			return err
		}
		if err := l.gatherAttributes(i, lo, pos[lo:hi], &to); err != nil {
			return err
		}
	}
	return checkTypes(ctx, l.f, l.types, off, to.Types)
}

// gatherAttributes decodes the attributes of entries of list i to the places from at on.
func (l *blockLists) gatherAttributes(i int, at uint32, pos []uint32, to *Attributes) (err error) {
	var block *listfile.Block
	var part listfile.Part
	now := -1
	for j, x := range pos {
		if n := l.of.blockAt(i, x); n != now {
			if block, part, err = l.of.part(i, n); err != nil {
				return err
			}
			now = n
		}
		err := to.take(&l.f.Shape, block, &part, pos[j:j+1], at+uint32(j))
		if err != nil {
			return l.damage(err)
		}
	}
	return nil
}

// damage returns err as damage of the file.
func (l *blockLists) damage(err error) error { return l.f.Damage(-1, 0, "%v", err) }
