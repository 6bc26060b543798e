package topology

import (
	"context"
	"errors"
	"fmt"

	"gdb/layout/listfile"
)

// ColumnReader is a Session that can read what runs parallel to the entries of whole lists. The
// sessions of both readers are; of a resident one as far as Options.Weights and Options.Times asked
// for it.
type ColumnReader interface {
	Session
	// Columns calls fn with parts of the lists of the nodes that Degrees was called with last. What
	// a part has is valid during the call. A long list comes in parts, the same ones each time and
	// in its order, other lists maybe between them; lists come in any order, empty ones not at all.
	// An error of fn ends it and is returned. The error wraps ErrNoWeights or ErrNoTimes if edges
	// have none.
	Columns(ctx context.Context, want Columns, fn func(p Part) error) error
}

// Columns say what is read of lists.
type Columns struct {
	Weights, Times bool
	// Skip says of the part of list i of the last Degrees that begins at a position that it is left
	// out; nil leaves none out. It is asked before blocks are read again, and these only for parts
	// that are not left out.
	Skip func(i int, from uint32) bool
}

// Part is a run of entries of one list, and what was asked for of them.
type Part struct {
	List    int    // the index of its node in those that Degrees was called with
	From    uint32 // the position of the first entry in the list
	Weights []float32
	Times   []int64
}

// ErrNoWeights says that the edges of a store have no weights.
var ErrNoWeights = errors.New("the edges have no weights: ingest a source that has them")

// ErrNoTimes says that the edges of a store have no times.
var ErrNoTimes = errors.New("the edges have no times: ingest a source that has them")

// lacks reports columns that a file does not have.
func (c *Columns) lacks(f *listfile.File) error {
	switch {
	case c.Weights && !f.Shape.Weights:
		return fmt.Errorf("layout: read weights of %s: %w", f.Path, ErrNoWeights)
	case c.Times && !f.Shape.Times:
		return fmt.Errorf("layout: read times of %s: %w", f.Path, ErrNoTimes)
	}
	return nil
}

// skips says whether a part of list i is left out.
func (c *Columns) skips(i, from uint32) bool { return c.Skip != nil && c.Skip(int(i), from) }

// residentPart is how many entries of a list the resident reader gives at a time.
const residentPart = 1 << 12

// Columns gives the lists' parts of the arrays.
func (s *residentSession[P]) Columns(ctx context.Context, want Columns,
	fn func(p Part) error) error {
	if want.Weights && s.r.arenas[2] == nil {
		return errors.New("layout: this reader was opened without the weights of edges")
	}
	if want.Times && s.r.arenas[4] == nil {
		return errors.New("layout: this reader was opened without the times of edges")
	}
	for i, v := range s.nodes {
		first, end := s.start[i], s.r.ptr[int(v)+1]
		for at := first; at < end; at += min(residentPart, end-at) {
			p := Part{List: i, From: uint32(at - first)}
			if want.skips(uint32(i), p.From) {
				continue
			}
			to := at + min(residentPart, end-at)
			if want.Weights {
				p.Weights = s.r.weight[at:to]
			}
			if want.Times {
				p.Times = s.r.times[at:to]
			}
			if err := fn(p); err != nil {
				return err
			}
		}
	}
	return ctx.Err()
}
