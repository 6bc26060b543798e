package sample

import (
	"context"
	"errors"

	"gdb/layout/topology"
)

// checkExtras reports what the topology cannot read.
func (s *Sampler) checkExtras() error {
	lists := s.sides[0].lists
	if _, ok := lists.(topology.AttributeReader); !ok && s.gathers() {
		return errors.New("sample: this topology cannot read the weights and types of edges")
	}
	if _, ok := lists.(topology.ColumnReader); !ok && s.cfg.WeightSums {
		return errors.New("sample: this topology cannot read the weights of edges")
	}
	return nil
}

// gathers says whether anything has to be read of the edges drawn beside the neighbors.
func (s *Sampler) gathers() bool { return s.cfg.EdgeTypes || s.gathersWeights() }

// gathersWeights says whether weights have to be: those of weighted draws and of layers are known
// from drawing.
func (s *Sampler) gathersWeights() bool {
	return s.cfg.EdgeWeights && s.cfg.Draw != DrawWeighted && len(s.cfg.LayerSize) == 0
}

// gatherExtras reads the weights and types of the entries at the positions in loc.
func (s *Sampler) gatherExtras(ctx context.Context, off []uint32) error {
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
		to.Types = s.types
	}
	return s.sides[0].lists.(topology.AttributeReader).GatherAttributes(ctx, off, s.loc, to)
}

// nodeExtras fills in what is asked for of the whole lists of a batch's nodes.
func (s *Sampler) nodeExtras(ctx context.Context, d *Dense) error {
	d.Degrees, d.WeightSums = d.Degrees[:0], d.WeightSums[:0]
	lists, deg := s.sides[0].lists, []uint32(nil)
	switch {
	case s.cfg.Degrees:
		d.Degrees = sized(d.Degrees, len(d.NodeIDs))
		deg = d.Degrees
	case s.cfg.WeightSums:
		if err := resize(&s.held, &s.deg, len(d.NodeIDs)); err != nil {
			return err
		}
		deg = s.deg
	default:
		return nil
	}
	if err := lists.Degrees(ctx, d.NodeIDs, deg); err != nil || !s.cfg.WeightSums {
		return err
	}
	d.WeightSums = sized(d.WeightSums, len(d.NodeIDs))
	return SumWeights(ctx, lists, d.WeightSums)
}

// SumWeights writes the sums of the weights of the lists that a session found last to sums, one
// each: in the order of the lists, so that they do not depend on how these are read.
func SumWeights(ctx context.Context, lists topology.Session, sums []float32) error {
	r, ok := lists.(topology.ColumnReader)
	if !ok {
		return errors.New("sample: this topology cannot read the weights of edges")
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
