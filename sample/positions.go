package sample

import (
	"context"

	"gdb/internal/pace"
	"gdb/internal/rng"
	"gdb/sample/draw"
)

// positions writes to loc which entries of each list of the frontier are taken: all in order if the
// fanout covers them, else a uniform choice without replacement. The choice for a node depends only
// on the key of the hop and on its id.
func (s *Sampler) positions(ctx context.Context, key uint64, front []NodeID,
	off []uint32) error {
	pos := s.loc
	var steps pace.Steps
	for i, v := range front {
		take, d := pos[off[i]:off[i+1]], s.deg[i]
		if err := steps.Took(ctx, 1+len(take)); err != nil {
			return err
		}
		slots := draw.ChooseSlots(len(take))
		if slots > 0 && uint32(len(take)) < d {
			if err := resize(&s.held, &s.chosen, slots); err != nil {
				return err
			}
		}
		draw.Choose(rng.Sub(key, uint64(v)), d, take, s.chosen)
	}
	return nil
}
