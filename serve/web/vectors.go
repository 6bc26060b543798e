package web

import (
	"context"

	"gdb/blockdev"
	"gdb/internal/mem"
	"gdb/layout"
	"gdb/shell/graph"
	"gdb/train/runs/vectors"
)

// keptRun is a run that predicts links, whose vectors are open. One statement uses them at a time.
type keptRun struct {
	name    string
	vectors graph.Vectors
	turn    chan struct{} // has an element while a statement uses them
}

// keep opens the vectors of a run.
func (s *Service) keep(ctx context.Context, name string, budget *mem.Budget) error {
	v, err := vectors.Open(ctx, s.opt.Store, s.opt.Device, name, budget, s.opt.Threads)
	if err != nil {
		return err
	}
	if v.Note != "" {
		s.opt.Notes(v.Note)
	}
	s.links = append(s.links, &keptRun{name: name, vectors: v, turn: make(chan struct{}, 1)})
	return nil
}

// linkRun returns the run of links of a name; of "" the first.
func (s *Service) linkRun(name string) (*keptRun, error) {
	var names []string
	for _, r := range s.links {
		if r.name == name || name == "" {
			return r, nil
		}
		names = append(names, r.name)
	}
	return nil, noRun(name, "links", names)
}

// vectorsOf is a graph.OpenVectors: it waits for a run's turn, and Close gives the turn back.
//
//lint:parameters it is a graph.OpenVectors of package shell
func (s *Service) vectorsOf(ctx context.Context, _ *layout.Store, _ blockdev.Device, run string,
	_ *mem.Budget, _ int) (graph.Vectors, error) {
	r, err := s.linkRun(run)
	if err != nil {
		return nil, err
	}
	select {
	case r.turn <- struct{}{}:
		return lentVectors{r.vectors, r.turn}, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// lentVectors are vectors during a statement.
type lentVectors struct {
	graph.Vectors
	turn chan struct{}
}

// Close ends the turn. The vectors stay open.
func (v lentVectors) Close() error {
	<-v.turn
	return nil
}
