package paged

import (
	"context"
	"errors"
	"fmt"

	"gdb/layout/partition"
	"gdb/train/link/entities"
	"gdb/train/link/triples"
)

// Rows gives access to the vectors of all entities, by partition, and to the edges that are
// known to be true.
type Rows struct {
	*entities.Table
	*entities.OnDisk
	sets *partition.Buckets // closed by Close; nil if they belong to another
}

// Close frees the memory.
func (r *Rows) Close() error {
	err := errors.Join(r.OnDisk.Close(), r.Table.Close())
	if r.sets != nil {
		err = errors.Join(err, r.sets.Close())
	}
	return err
}

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

// rowsFrames is how many partitions OpenRows has in memory: one is used while the other is read.
const rowsFrames = 2

// OpenRows opens the vectors of a record for reading. Edges are sorted into buckets if they are not
// yet, which note tells the user. others are the edges of the splits besides train.
func OpenRows(ctx context.Context, cfg Config, record []byte,
	others [][]triples.Triple) (r *Rows, note string, err error) {
	spec, err := cfg.Plan.spec(cfg.Store.Meta())
	if err != nil {
		return nil, "", err
	}
	spec.Init = cfg.Init
	dir, err := entities.ViewFiles(cfg.Store.FS(), cfg.Path, cfg.Device, spec, record)
	if err != nil {
		return nil, "", err
	}
	sets, note, err := openBuckets(ctx, &cfg)
	if err != nil {
		return nil, "", err
	}
	t, err := entities.Paged(dir, entities.Memory{Frames: rowsFrames, Budget: cfg.Budget}, nil)
	if err != nil {
		return nil, "", errors.Join(fmt.Errorf("train: %w", err), sets.Close())
	}
	return &Rows{Table: t, OnDisk: entities.Bucketed(t, sets, others, cfg.Budget), sets: sets},
		note, nil
}
