package sample

import (
	"context"

	"gdb/internal/pace"
	"gdb/internal/rng"
	"gdb/sample/draw"
)

// positions writes to loc which entries of each list of the frontier are taken: all in order if the
// fanout covers them, else a uniform choice without replacement. The choice for a node depends only
// on the key of the hop, on its id and, with a Seeding, on its time.
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
		of := rng.Sub(key, uint64(v))
		if s.cfg.Seeding != nil {
			of = rng.Sub(of, uint64(s.front.times[i]))
		}
		draw.Choose(of, d, take, s.chosen)
	}
	return nil
}

// splitPositions splits positions in joined lists into positions in the two lists.
func splitPositions(ctx context.Context, in, out *side, off, pos []uint32) error {
	i, o := uint32(0), uint32(0)
	var steps pace.Steps
	for k := range len(off) - 1 {
		d := in.deg[k]
		if err := steps.Took(ctx, 1+int(off[k+1]-off[k])); err != nil {
			return err
		}
		in.off[k], out.off[k] = i, o
		for _, p := range pos[off[k]:off[k+1]] {
			if p < d {
				in.pos[i] = p
				i++
			} else {
				out.pos[o] = p - d
				o++
			}
		}
	}
	in.off[len(off)-1], out.off[len(off)-1] = i, o
	return nil
}
