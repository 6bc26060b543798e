package cachesim

import (
	"context"
	"errors"
	"fmt"

	"gdb/internal/mem"
	"gdb/sample"
)

// Record holds the nodes that batches ask for, 4 bytes per request, outside the Go heap. The zero
// value is ready to use, as is one with a Budget.
type Record struct {
	// Budget counts the memory; nil counts none.
	Budget *mem.Budget

	batches [][]sample.NodeID
	arenas  []*mem.Arena
	free    []sample.NodeID // the rest of the last arena
}

// recordArenaBytes is how much memory a record takes at once, in bytes.
const recordArenaBytes = 4 << 20

// Add records one batch.
func (r *Record) Add(nodes []sample.NodeID) error {
	if len(nodes) > len(r.free) {
		arena, err := mem.NewArena(r.Budget, "trace of a cache simulation",
			max(recordArenaBytes, int64(len(nodes))*4))
		if err != nil {
			return fmt.Errorf("cachesim: record batch %d: %w; or replay fewer batches",
				len(r.batches), err)
		}
		r.arenas = append(r.arenas, arena)
		r.free = mem.View[sample.NodeID](arena.Bytes())
	}
	n := copy(r.free, nodes)
	r.batches = append(r.batches, r.free[:n:n])
	r.free = r.free[n:]
	return nil
}

// Trace returns the batches as those of a graph with this number of nodes. It is valid until Close.
func (r *Record) Trace(nodes uint64) Trace {
	return Trace{Nodes: nodes, Each: func(fn func(nodes []sample.NodeID) error) error {
		for _, b := range r.batches {
			if err := fn(b); err != nil {
				return err
			}
		}
		return nil
	}}
}

// Batches returns the recorded batches, valid until Close.
func (r *Record) Batches() [][]sample.NodeID { return r.batches }

// Close frees the memory.
func (r *Record) Close() error {
	var err error
	for _, a := range r.arenas {
		err = errors.Join(err, a.Free())
	}
	*r = Record{Budget: r.Budget}
	return err
}

// Sampled samples the batches of an epoch, and calls fn with the nodes of each, whose features
// training would ask for.
func Sampled(ctx context.Context, s *sample.Sampler, order *sample.Order,
	fn func(nodes []sample.NodeID) error) error {
	var d sample.Dense
	var seeds []sample.NodeID
	for i := range order.Batches() {
		seeds = order.Seeds(i, seeds[:0])
		if err := s.Sample(ctx, order.Epoch(), i, seeds, &d); err != nil {
			return err
		}
		if err := fn(d.NodeIDs); err != nil {
			return err
		}
	}
	return nil
}
