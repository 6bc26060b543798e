package topology

import (
	"context"
	"errors"
	"fmt"

	"gdb/internal/codec"
	"gdb/layout"
	"gdb/layout/listfile"
)

// Attributes are values parallel to entries of lists; those not asked for are nil.
type Attributes struct {
	Weights []float32
	Types   []uint32 // numbers of the edges' types
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
	if opt.Types {
		n += listfile.TypeBytes
	}
	if opt.Times {
		n += listfile.TimeBytes
	}
	return n * int64(s.Meta().Edges)
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
	if err := to.lacks(s.p.f); err != nil {
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
