package paged

import (
	"context"
	"errors"

	"gdb/train/link/entities"
	"gdb/train/link/triples"
)

// Rows gives access to the vectors of all entities, by partition, and to the edges that are
// known to be true.
type Rows struct {
	*entities.Table
	*entities.OnDisk
}

// Close frees the memory.
func (r *Rows) Close() error { return errors.Join(r.OnDisk.Close(), r.Table.Close()) }

// Rows returns the vectors of all entities: the current ones or, with best, those of the best
// evaluation. It empties the buffer, and uses its memory until the next Load. others are the edges
// of the splits besides train.
func (s *Source) Rows(ctx context.Context, others [][]triples.Triple, best bool) (*Rows, error) {
	if err := s.buf.Empty(context.WithoutCancel(ctx)); err != nil {
		return nil, err
	}
	s.set = -1
	dir := s.dir
	if best {
		dir = s.dir.Best()
	}
	t := entities.PagedIn(dir, s.buf.vectors())
	return &Rows{Table: t, OnDisk: entities.Bucketed(t, s.sets, others, s.cfg.Budget)}, nil
}
