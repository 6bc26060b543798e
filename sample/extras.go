package sample

import (
	"context"
	"errors"

	"gdb/internal/mem"
	"gdb/layout/topology"
)

// Extras ask for more about a batch than nodes and neighbors. They are for samplers of one
// direction.
type Extras struct {
	// Degrees asks for the lengths of the lists of all nodes of a batch, also of those of the last
	// hop: for these, a paged reader reads blocks that nothing else needs.
	Degrees bool
	// EdgeWeights and EdgeTypes ask for the weights and types of the drawn edges. Sessions of the
	// topology must be topology.AttributeReaders.
	EdgeWeights, EdgeTypes bool
	// WeightSums asks for the sum of the weights of each node's whole list, for all nodes of a
	// batch: every entry of these lists is read. Sessions of the topology must be
	// topology.ColumnReaders.
	WeightSums bool
	// Places asks for where the drawn edges stand in their lists: see Dense.Places.
	Places bool
	// Columns, if it is not nil, reads columns of the drawn edges, which have their places then.
	// They are for samplers that draw each batch by itself.
	Columns EdgeColumns
}

// EdgeColumns reads columns of edges. It may be used from any goroutine.
type EdgeColumns interface {
	// Width is how many columns there are.
	Width() int
	// Fill writes Dense.Columns of a batch, all else of which is there.
	Fill(ctx context.Context, d *Dense) error
}

// NodeBytes returns how many bytes the extras take for each node of a batch.
func (x Extras) NodeBytes() (n int64) {
	for _, asked := range []bool{x.Degrees, x.WeightSums} {
		if asked {
			n += 4
		}
	}
	return n
}

// EntryBytes returns how many bytes the extras take for each drawn neighbor.
func (x Extras) EntryBytes() (n int64) {
	for _, asked := range []bool{x.EdgeWeights, x.EdgeTypes} {
		if asked {
			n += 4
		}
	}
	if x.places() {
		n += placeBytes
	}
	if x.Columns != nil {
		n += 4 * int64(x.Columns.Width())
	}
	return n
}

// places reports whether the drawn edges have their places.
func (x Extras) places() bool { return x.Places || x.Columns != nil }

// checkExtras returns an error if the topology cannot read an extra that was asked for.
func (s *Sampler) checkExtras() error {
	lists := s.sides[0].lists
	if _, ok := lists.(topology.AttributeReader); !ok &&
		(s.gathers() || s.cfg.places()) {
		return topology.Unread("weights and types")
	}
	if _, ok := lists.(topology.ColumnReader); !ok && s.cfg.WeightSums {
		return topology.Unread("weights")
	}
	return nil
}

// gathers reports whether something is read of each drawn edge besides its neighbor.
func (s *Sampler) gathers() bool { return s.cfg.EdgeTypes || s.gathersWeights() }

// gathersWeights reports whether weights are read for each drawn edge. Draws by weight and draws of
// layers read them anyway.
func (s *Sampler) gathersWeights() bool {
	return s.cfg.EdgeWeights && s.cfg.Draw != DrawWeighted && len(s.cfg.LayerSize) == 0
}

// gatherExtras reads the weights and types of the drawn entries, whose positions are in loc.
func (s *Sampler) gatherExtras(ctx context.Context, off []uint32) error {
	if s.cfg.places() {
		if err := s.gatherPlaces(ctx, off); err != nil {
			return err
		}
	}
	if !s.gathers() {
		return nil
	}
	var to topology.Attributes
	if s.gathersWeights() {
		if err := resize(&s.held, &s.weights, len(s.nbrs)); err != nil {
			return err
		}
		to.Weights = s.weights
	}
	if s.cfg.EdgeTypes {
		if err := resize(&s.held, &s.types, len(s.nbrs)); err != nil {
			return err
		}
		if to.Types = s.types; s.front.numbers != nil {
			s.front.types(s.types)
			to.Types = nil
		}
	}
	if to.Types == nil && to.Weights == nil {
		return nil
	}
	return s.sides[0].lists.(topology.AttributeReader).GatherAttributes(ctx, off, s.loc, to)
}

// gatherPlaces finds the places of the drawn entries, whose positions are in loc.
func (s *Sampler) gatherPlaces(ctx context.Context, off []uint32) error {
	err := errors.Join(resize(&s.held, &s.places, len(s.nbrs)),
		resize(&s.held, &s.at, len(s.nbrs)))
	if err != nil {
		return err
	}
	r := s.sides[0].lists.(topology.AttributeReader)
	if err := r.GatherAttributes(ctx, off, s.loc, topology.Attributes{Places: s.at}); err != nil {
		return err
	}
	for i, length := range s.deg {
		for e := off[i]; e < off[i+1]; e++ {
			s.places[e] = Place{At: s.at[e], Length: length}
		}
	}
	return ctx.Err()
}

// nodeExtras writes to d the degrees and weight sums of its nodes' whole lists, if asked for.
func (s *Sampler) nodeExtras(ctx context.Context, d *Dense) error {
	d.Degrees, d.WeightSums = d.Degrees[:0], d.WeightSums[:0]
	lists, deg := s.sides[0].lists, []uint32(nil)
	switch {
	case s.cfg.Degrees:
		d.Degrees = mem.Resize(d.Degrees, len(d.NodeIDs))
		deg = d.Degrees
	case s.cfg.WeightSums:
		if err := resize(&s.held, &s.deg, len(d.NodeIDs)); err != nil {
			return err
		}
		deg = s.deg
	default:
		return nil
	}
	if err := s.front.expand(&s.held, d.NodeIDs); err != nil {
		return err
	}
	if s.cfg.Seeding != nil {
		if err := s.asOf(d.Times); err != nil {
			return err
		}
	}
	if s.front.numbers != nil {
		if s.cfg.WeightSums {
			d.WeightSums = mem.Resize(d.WeightSums, len(d.NodeIDs))
		}
		return s.listExtras(ctx, deg, d.WeightSums)
	}
	if err := lists.Degrees(ctx, d.NodeIDs, deg); err != nil || !s.cfg.WeightSums {
		return err
	}
	d.WeightSums = mem.Resize(d.WeightSums, len(d.NodeIDs))
	return SumWeights(ctx, lists, d.WeightSums)
}

// listExtras writes degrees and, unless sums is empty, weight sums of nodes whose lists are the
// frontier.
func (s *Sampler) listExtras(ctx context.Context, degrees []uint32, sums []float32) error {
	lists := s.sides[0].lists
	deg := make([]uint32, len(s.front.lists))
	if err := lists.Degrees(ctx, s.front.lists, deg); err != nil {
		return err
	}
	fold(&s.front, deg, degrees)
	if len(sums) == 0 {
		return nil
	}
	of := make([]float32, len(s.front.lists))
	err := SumWeights(ctx, lists, of)
	fold(&s.front, of, sums)
	return err
}

// SumWeights writes the sum of the weights of each list that a session found last to sums. It adds
// in the order of the list, so that sums do not depend on how lists are read.
func SumWeights(ctx context.Context, lists topology.Session, sums []float32) error {
	r, ok := lists.(topology.ColumnReader)
	if !ok {
		return topology.Unread("weights")
	}
	clear(sums)
	return r.Columns(ctx, topology.Columns{Weights: true}, func(p topology.Part) error {
		sum := sums[p.List]
		for _, x := range p.Weights {
			sum += x
		}
		sums[p.List] = sum
		return nil
	})
}
