package topology

import (
	"context"
	"errors"
	"fmt"

	"gdb/internal/codec"
	"gdb/internal/pace"
	"gdb/layout"
	"gdb/layout/listfile"
)

// Attributes are what runs parallel to entries of lists; nil is what is not asked for.
type Attributes struct {
	Weights []float32
	Types   []uint32 // numbers of the edges' types
}

// AttributeReader is a Session that can read what runs parallel to entries. The sessions of both
// readers are; of a resident one as far as Options.Weights and Options.Types asked for it.
type AttributeReader interface {
	Session
	// GatherAttributes writes to what is asked for the values of the entries that Gather takes for
	// the same off and pos. It comes after Degrees, before or after Gather. The error wraps
	// ErrNoWeights or ErrNoTypes if edges have none.
	GatherAttributes(ctx context.Context, off, pos []uint32, to Attributes) error
}

// ErrNoTypes says that the edges of a store have no types.
var ErrNoTypes = errors.New("the edges have no types: ingest a source that has them")

// AttributeBytes is what Options.Weights, Types and Times add to ResidentBytes.
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

// lacks reports attributes that a file does not have.
func (a *Attributes) lacks(f *listfile.File) error {
	switch {
	case a.Weights != nil && !f.Shape.Weights:
		return fmt.Errorf("layout: read weights of %s: %w", f.Path, ErrNoWeights)
	case a.Types != nil && !f.Shape.Types:
		return fmt.Errorf("layout: read types of %s: %w", f.Path, ErrNoTypes)
	}
	return nil
}

// copy takes those of entry number entry of a block to place number at.
func (a *Attributes) copy(s *listfile.Shape, b *listfile.Block, entry, at uint32) {
	if a.Weights != nil {
		a.Weights[at] = s.Weight(b, entry)
	}
	if a.Types != nil {
		a.Types[at] = s.Type(b, entry)
	}
}

// GatherAttributes takes those of lists in pinned blocks, block by block, and then those of hubs
// and of blocks that did not stay, which are read in one batch, each block once. The neighbor cache
// has none; with it, the blocks of the lists that it had are read here.
func (s *pagedSession) GatherAttributes(ctx context.Context, off, pos []uint32,
	to Attributes) error {
	if err := to.lacks(s.p.f); err != nil {
		return err
	}
	if err := s.findUncached(ctx); err != nil {
		return err
	}
	s.refs = s.refs[:0]
	if err := s.roomFor(ctx, off); err != nil {
		return err
	}
	var steps pace.Steps
	for k := range s.need {
		if err := steps.Took(ctx, pace.Block+int(s.first[k+1]-s.first[k])); err != nil {
			return err
		}
		if err := s.gatherPinned(k, off, pos, &to); err != nil {
			return err
		}
	}
	if len(s.refs) == 0 {
		return s.checkTypes(ctx, off, to.Types)
	}
	if err := s.count.AtLeast(s.bytes()); err != nil {
		return err
	}
	err := s.each(ctx, func(b *listfile.Block, keys []uint64) error {
		for _, key := range keys {
			r := s.refs[uint32(key)]
			entry := (r.at - uint32(b.IDsAt)) / listfile.IDBytes
			if r.at < uint32(b.IDsAt) || entry >= b.Entries {
				return damagedRun(b)
			}
			to.copy(&s.p.f.Shape, b, entry, r.to)
		}
		return nil
	})
	if err != nil {
		return err
	}
	return s.checkTypes(ctx, off, to.Types)
}

// checkTypes reports types that the store does not have: who uses them looks no further.
func (s *pagedSession) checkTypes(ctx context.Context, off, types []uint32) error {
	if types != nil {
		types = types[off[0]:off[len(off)-1]]
		if most := codec.Max(types); len(types) > 0 && int(most) >= s.p.types {
			return s.p.f.Damage(-1, 0, "file has an edge of type %d of %d", most, s.p.types)
		}
	}
	return ctx.Err()
}

// gatherPinned takes what block need[k] has, or notes it where the block is not at hand.
func (s *pagedSession) gatherPinned(k int, off, pos []uint32, to *Attributes) error {
	h, block := &s.held[k], listfile.Block{}
	here := h.data != nil && !h.hub
	if here {
		var err error
		if block, err = s.get.parse(s.need[k], h.data); err != nil {
			return s.damage(s.need[k], err)
		}
	}
	for _, key := range s.order.Keys[s.first[k]:s.first[k+1]] {
		i := uint32(key)
		p, lo, hi := s.list[i], off[i], off[i+1]
		if lo == hi {
			continue
		}
		if !here {
			s.wantEntries(p, lo, pos[lo:hi])
			continue
		}
		first := (p.at - uint32(block.IDsAt)) / listfile.IDBytes
		for j, x := range pos[lo:hi] {
			to.copy(&s.p.f.Shape, &block, first+x, lo+uint32(j))
		}
	}
	return nil
}

// GatherAttributes copies from the arrays.
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
