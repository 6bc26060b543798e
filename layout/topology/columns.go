package topology

import (
	"context"
	"errors"
	"fmt"

	"gdb/internal/codec"
	"gdb/internal/mem"
	"gdb/layout"
	"gdb/layout/listfile"
)

// ColumnReader is a Session that can read columns of whole lists: their weights or times. Sessions
// of all readers are; those of a resident reader need Options.Weights and Options.Times for it.
type ColumnReader interface {
	Session
	// Columns calls fn with parts of the lists of the last Degrees. A part's values are valid
	// during the call. A long list comes in parts, the same each time and in order, with parts of
	// other lists perhaps in between. Lists come in any order, empty ones not at all. An error of
	// fn ends it and is returned. The error wraps ErrNoWeights or ErrNoTimes if edges have none.
	Columns(ctx context.Context, want Columns, fn func(p Part) error) error
}

// Columns say what is read of lists.
type Columns struct {
	Weights, Times bool
	// Skip reports whether to leave out the part of list i of the last Degrees that begins at
	// position from; nil leaves none out. It is called before blocks are read again, and blocks are
	// read only for parts that are not left out.
	Skip func(i int, from uint32) bool
}

// Part is a run of entries of one list, with the columns asked for.
type Part struct {
	List    int    // index of its node in the nodes of Degrees
	From    uint32 // position of its first entry in the list
	Weights []float32
	Times   []int64
}

// ErrNoWeights is returned if the edges of a store have no weights.
var ErrNoWeights = errors.New("the edges have no weights: ingest a source that has them")

// ErrNoTimes is returned if the edges of a store have no times.
var ErrNoTimes = errors.New("the edges have no times: ingest a source that has them")

// lacks returns an error if columns are asked for that a file does not have.
func (c *Columns) lacks(f *listfile.File) error {
	switch {
	case c.Weights && !f.Shape.Weights:
		return fmt.Errorf("layout: read weights of %s: %w", f.Path, ErrNoWeights)
	case c.Times && !f.Shape.Times:
		return fmt.Errorf("layout: read times of %s: %w", f.Path, ErrNoTimes)
	}
	return nil
}

// skips reports whether a part of list i is left out.
func (c *Columns) skips(i, from uint32) bool { return c.Skip != nil && c.Skip(int(i), from) }

// columnBuffer holds the columns of a part, in memory that the next part takes too.
type columnBuffer struct {
	weights []float32
	times   []int64
}

func (c *columnBuffer) bytes() int64 { return 4*int64(cap(c.weights)) + 8*int64(cap(c.times)) }

// part decodes the wanted columns of what block b has of list i.
func (c *columnBuffer) part(shape *listfile.Shape, b *listfile.Block, p *listfile.Part, i int,
	want *Columns) Part {
	part := Part{List: i, From: p.Start}
	if want.Weights {
		c.weights = mem.Resize(c.weights, int(p.Count))
		shape.CopyWeights(b, int(p.Entry), c.weights)
		part.Weights = c.weights
	}
	if want.Times {
		c.times = mem.Resize(c.times, int(p.Count))
		shape.CopyTimes(b, int(p.Entry), c.times)
		part.Times = c.times
	}
	return part
}

// residentPart bounds the entries of a part that the resident reader passes.
const residentPart = 1 << 12

// Columns calls fn with parts of the arrays.
func (s *residentSession[P]) Columns(ctx context.Context, want Columns,
	fn func(p Part) error) error {
	if want.Weights && s.r.arenas[2] == nil {
		return errors.New("layout: this reader was opened without the weights of edges")
	}
	if want.Times && s.r.arenas[4] == nil {
		return errors.New("layout: this reader was opened without the times of edges")
	}
	for i, v := range s.nodes {
		first, end := s.start[i], s.r.ptr[int(v)+1]
		for at := first; at < end; at += min(residentPart, end-at) {
			p := Part{List: i, From: uint32(at - first)}
			if want.skips(uint32(i), p.From) {
				continue
			}
			to := at + min(residentPart, end-at)
			if want.Weights {
				p.Weights = s.r.weight[at:to]
			}
			if want.Times {
				p.Times = s.r.times[at:to]
			}
			if err := fn(p); err != nil {
				return err
			}
		}
	}
	return ctx.Err()
}

// Attributes are values parallel to entries of lists; those not asked for are nil.
type Attributes struct {
	Weights []float32
	Types   []uint32 // numbers of the edges' types
	Places  []uint32 // positions in whole lists, whatever entries of them the session reads
}

// place writes Places, given positions in whole lists, and reports whether more is asked for.
func (a *Attributes) place(off, pos []uint32) (more bool) {
	if a.Places != nil {
		copy(a.Places[off[0]:off[len(off)-1]], pos[off[0]:])
	}
	return a.Weights != nil || a.Types != nil
}

// AttributeReader is a Session that can read attributes of entries. Sessions of all readers are;
// those of a resident reader need Options.Weights and Options.Types for it.
type AttributeReader interface {
	Session
	// GatherAttributes writes the attributes asked for of the entries that Gather takes for the
	// same off and pos. It comes after Degrees, before or after Gather. The error wraps
	// ErrNoWeights or ErrNoTypes if edges have none.
	GatherAttributes(ctx context.Context, off, pos []uint32, to Attributes) error
}

// ErrNoTypes is returned if the edges of a store have no types.
var ErrNoTypes = errors.New("the edges have no types: ingest a source that has them")

// AttributeBytes returns what Options.Weights, Types and Times add to ResidentBytes.
func AttributeBytes(s *layout.Store, opt Options) (n int64) {
	if opt.Weights {
		n += listfile.WeightBytes
	}
	if opt.Types && !s.Meta().Typed() {
		n += listfile.TypeBytes
	}
	if opt.Times {
		n += listfile.TimeBytes
	}
	return n * int64(mergedMeta(s).Edges)
}

// lacks returns an error if attributes are asked for that a file does not have.
func (a *Attributes) lacks(f *listfile.File) error {
	switch {
	case a.Weights != nil && !f.Shape.Weights:
		return fmt.Errorf("layout: read weights of %s: %w", f.Path, ErrNoWeights)
	case a.Types != nil && !f.Shape.Types:
		return fmt.Errorf("layout: read types of %s: %w", f.Path, ErrNoTypes)
	}
	return nil
}

// take writes the attributes of the entries at positions of a list to places from at on.
func (a *Attributes) take(s *listfile.Shape, b *listfile.Block, p *listfile.Part, pos []uint32,
	at uint32) error {
	for j, x := range pos {
		entry, err := p.EntryAt(x)
		if err != nil {
			return err
		}
		if a.Weights != nil {
			a.Weights[at+uint32(j)] = s.Weight(b, entry)
		}
		if a.Types != nil {
			a.Types[at+uint32(j)] = s.Type(b, entry)
		}
	}
	return nil
}

// GatherAttributes reads attributes in pinned blocks first, block by block, and then those in other
// blocks, which are read in one batch, each block once. The neighbor cache has no attributes, so
// the blocks of lists found there are read here.
func (s *pagedSession) GatherAttributes(ctx context.Context, off, pos []uint32,
	to Attributes) error {
	if err := to.lacks(s.p.f); err != nil || !to.place(off, pos) {
		return err
	}
	if err := s.findUncached(ctx); err != nil {
		return err
	}
	err := s.gather(ctx, off, pos, func(b *listfile.Block, p *listfile.Part, pos []uint32,
		at uint32) error {
		return to.take(&s.p.f.Shape, b, p, pos, at)
	})
	if err != nil {
		return err
	}
	return checkTypes(ctx, s.p.f, s.p.types, off, to.Types)
}

// checkTypes returns an error if a type is not one of the store's kinds types. Callers need not
// check types again.
func checkTypes(ctx context.Context, f *listfile.File, kinds int, off, types []uint32) error {
	if types != nil {
		types = types[off[0]:off[len(off)-1]]
		if most := codec.Max(types); len(types) > 0 && int(most) >= kinds {
			return f.Damage(-1, 0, "file has an edge of type %d of %d", most, kinds)
		}
	}
	return ctx.Err()
}

// GatherAttributes copies values from the arrays.
func (s *residentSession[P]) GatherAttributes(ctx context.Context, off, pos []uint32,
	to Attributes) error {
	r := s.r
	if to.Weights != nil && r.arenas[2] == nil {
		return errors.New("layout: this reader was opened without the weights of edges")
	}
	if to.Types != nil && r.arenas[3] == nil {
		return errors.New("layout: this reader was opened without the types of edges")
	}
	if !to.place(off, pos) {
		return ctx.Err()
	}
	for i, at := range s.start {
		lo, hi := off[i], off[i+1]
		if to.Weights != nil {
			for j, x := range pos[lo:hi] {
				to.Weights[lo+uint32(j)] = r.weight[at+P(x)]
			}
		}
		if to.Types != nil {
			for j, x := range pos[lo:hi] {
				to.Types[lo+uint32(j)] = uint32(r.types[at+P(x)])
			}
		}
	}
	return ctx.Err()
}
