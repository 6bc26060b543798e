package sample

import (
	"context"
	"errors"
	"fmt"

	"gdb/layout/topology"
)

// Seeding says with which nodes a batch begins, where these are not just the seeds that it is given
// or are sampled as of a time. The nodes of a batch then are pairs of a node and a time: what is
// drawn for one is as of its time, and so are the nodes that are found so. So nothing of a batch is
// seen by seeds of an earlier time. A Seeding may be used from any goroutine.
type Seeding interface {
	// Expand writes the first nodes of a batch with these seeds to out. Pairs of node and time
	// stand there once.
	Expand(ctx context.Context, seeds []NodeID, out *Seeded) error
}

// Seeded are the first nodes of a batch, each with a time: entries of later times are not drawn.
// Ends, if seeds are edges, has for each of them the places of both of its ends in Nodes: those of
// seed i are 2·i and 2·i+1.
type Seeded struct {
	Nodes []NodeID
	Times []int64
	Ends  []uint32
}

// newSeeding checks that lists can be read as of times.
func (s *Sampler) newSeeding() error {
	for _, side := range s.sides {
		if _, ok := side.lists.(topology.TimedSession); !ok {
			return topology.Unread("times")
		}
	}
	switch {
	case s.cfg.Draw == DrawWeighted:
		return errors.New("sample: as of times neighbors are drawn uniformly or the latest are " +
			"taken, and not by weights")
	case len(s.cfg.LayerSize) > 0:
		return errors.New("sample: layers are drawn for all nodes of a hop together, and not as " +
			"of the time of each")
	case s.cfg.WeightSums || s.last != nil:
		return errors.New("sample: sums of weights, and lists of the last hop of their own, are " +
			"not those of a time")
	}
	return nil
}

// seed makes what seeds expand to the first delta, and checks it.
func (s *Sampler) seed(ctx context.Context, seeds []NodeID) error {
	to := &s.seeded
	to.Nodes, to.Times, to.Ends = to.Nodes[:0], to.Times[:0], to.Ends[:0]
	if err := s.cfg.Seeding.Expand(ctx, seeds, to); err != nil {
		return err
	}
	n := len(to.Nodes)
	if n == 0 || len(to.Times) != n {
		return fmt.Errorf("sample: %d seeds begin with %d nodes of %d times", len(seeds), n,
			len(to.Times))
	}
	if err := errors.Join(resize(&s.held, &s.nodes, n), resize(&s.held, &s.times, n)); err != nil {
		return err
	}
	copy(s.nodes, to.Nodes)
	copy(s.times, to.Times)
	return nil
}

// asOf has the lists of the frontier be read as of the times of its nodes.
func (s *Sampler) asOf(times []int64) error {
	f := &s.front
	if f.numbers == nil {
		f.times = times
	} else {
		if err := resize(&s.held, &f.times, len(f.lists)); err != nil {
			return err
		}
		at := uint32(0)
		for i, end := range f.ends {
			for ; at < end; at++ {
				f.times[at] = times[i]
			}
		}
	}
	for _, side := range s.sides {
		side.lists.(topology.TimedSession).AsOf(f.times)
	}
	return nil
}

// extendTimed appends the neighbors of nodes a … b-1 that are new, each with the time of the node
// whose neighbor it is. first is the first of these neighbors.
func (s *Sampler) extendTimed(ctx context.Context, a, b, first int) error {
	if err := reserve(&s.held, &s.times, b+len(s.nbrs)-first); err != nil {
		return err
	}
	var err error
	for i := a; i < b && err == nil; i++ {
		lo, hi := s.off[i], s.off[i+1]
		s.nodes, s.times, err = s.delta.ExtendTimed(ctx, s.nodes, s.times, s.times[i],
			s.nbrs[lo:hi], s.loc[lo:hi])
	}
	return err
}

// latest writes the positions of the last entries of each list to loc: as of a time they stand in
// the order of time.
func (s *Sampler) latest(off []uint32) {
	for i, d := range s.deg {
		take := s.loc[off[i]:off[i+1]]
		for j := range take {
			take[j] = d - uint32(len(take)-j)
		}
	}
}
