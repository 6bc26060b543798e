package sample

import (
	"context"
	"errors"
	"fmt"
	"math"

	"gdb/internal/mem"
	"gdb/layout/topology"
	"gdb/sample/draw"
)

// layers draws the neighbors of all nodes of a hop together: see draw.LayerDrawer.
type layers struct {
	drawer *draw.LayerDrawer // largest number of candidates of a hop in the last batch
	most   int               // candidates that a hop of the batch had
}

func (s *Sampler) newLayers() error {
	lists := s.sides[0].lists
	_, sums := lists.(topology.ColumnReader)
	_, entries := lists.(topology.AttributeReader)
	if s.cfg.EdgeWeights && !(sums && entries) {
		return topology.Unread("weights")
	}
	s.layers = &layers{drawer: draw.NewLayerDrawer(s.cfg.Budget)}
	return nil
}

// LayerBytes returns the memory that drawing the layers of the last batch took, in bytes and with a
// little to spare. It is 0 if neighbors are drawn node by node.
func (s *Sampler) LayerBytes() int64 {
	if s.layers == nil || len(s.starts) < 2 {
		return 0
	}
	return int64(s.layers.most)*draw.CandidateBytes +
		int64(s.starts[len(s.starts)-2])*draw.FrontierBytes + draw.PartBytes
}

// drawLayer draws about size neighbors of the nodes a … b-1 together, with their positions and
// weights.
func (s *Sampler) drawLayer(ctx context.Context, key uint64, a, b, size int) error {
	drawer := s.layers.drawer
	drawn, err := drawer.Draw(ctx, key, s.listsOf(s.nodes[a:b]), size)
	s.layers.most = max(s.layers.most, drawer.Candidates())
	var full *mem.LimitError
	if errors.As(err, &full) {
		return fmt.Errorf("a layer is drawn from all neighbors of %d nodes, %d so far: %w, or "+
			"take a smaller batch or smaller layers", b-a, drawer.Candidates(), err)
	}
	if err == nil {
		err = resize(&s.held, &s.off, b+1)
	}
	if err != nil {
		return err
	}
	counts := s.off[a+1:]
	clear(counts)
	if err := drawer.Each(ctx, func(p *draw.LayerPart) error {
		return s.takeDrawn(p, counts)
	}); err != nil {
		return err
	}
	at := s.off[a]
	for i, n := range counts {
		at += n
		counts[i] = at
	}
	return reserve(&s.held, &s.nodes, b+drawn)
}

// listsOf returns how the drawer reads the lists of the frontier, which the sessions found before.
func (s *Sampler) listsOf(front []NodeID) draw.LayerLists {
	l := draw.LayerLists{Degrees: s.deg, Gather: s.gather}
	if !s.cfg.EdgeWeights {
		return l
	}
	lists := s.sides[0].lists
	l.Sums = func(ctx context.Context, sums []float64) error {
		clear(sums)
		return lists.(topology.ColumnReader).Columns(ctx, topology.Columns{Weights: true},
			func(p topology.Part) error {
				sum := sums[p.List]
				for j, x := range p.Weights {
					if !(x >= 0 && x <= math.MaxFloat32) {
						return weightError(front[p.List], p.From+uint32(j), x)
					}
					sum += float64(x)
				}
				sums[p.List] = sum
				return nil
			})
	}
	l.GatherWeights = func(ctx context.Context, off, pos []uint32, weights []float32) error {
		return lists.(topology.AttributeReader).GatherAttributes(ctx, off, pos,
			topology.Attributes{Weights: weights})
	}
	return l
}

// takeDrawn adds those entries of a part whose node was drawn to the batch, and counts them for
// each list.
func (s *Sampler) takeDrawn(p *draw.LayerPart, counts []uint32) error {
	k := len(s.nbrs)
	edges := k + p.Drawn()
	if uint64(edges) >= math.MaxUint32 {
		return fmt.Errorf("the batch has %d edges or more, the most is %d: take smaller layers or "+
			"a smaller batch", edges, uint32(math.MaxUint32)-1)
	}
	if err := errors.Join(resize(&s.held, &s.nbrs, edges), resize(&s.held, &s.loc, edges),
		resize(&s.held, &s.weights, edges)); err != nil {
		return err
	}
	for i := range counts {
		for e := p.Off[i]; e < p.Off[i+1]; e++ {
			w, drawn := p.Weight(e)
			if !drawn {
				continue
			}
			s.nbrs[k], s.loc[k], s.weights[k] = p.Nbrs[e], p.Pos[e], w
			k++
			counts[i]++
		}
	}
	return nil
}
