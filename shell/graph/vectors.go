package graph

import (
	"context"

	"gdb/blockdev"
	"gdb/internal/mem"
	"gdb/layout"
	"gdb/train/link/triples"
)

// Vectors is what a run has learned of nodes and relations, as statements ask for it. It is for one
// goroutine.
type Vectors interface {
	// About returns the run's settings as text, and a note for the user or "".
	About() (settings, note string)
	// Closeness returns the way to compare vectors that fits the run.
	Closeness() string
	// Nearest returns the n nodes whose vectors are closest to a node's, the closest first.
	Nearest(ctx context.Context, node layout.NodeID, by string, n int) ([]triples.Answer, error)
	// Score returns the score of an edge.
	Score(ctx context.Context, e triples.Triple) (float32, error)
	// Complete returns the n best answers to a query without those in skip, which ascends.
	Complete(ctx context.Context, q triples.Query, n int, skip []uint32) ([]triples.Answer, error)
	Close() error
}

// OpenVectors opens the vectors of a run of a store: budget counts what is in memory, and workers
// compute. It is given from above, so that a program whose statements need no vectors links no
// kernels.
type OpenVectors func(ctx context.Context, store *layout.Store, dev blockdev.Device, run string,
	budget *mem.Budget, workers int) (Vectors, error)

// VectorsBy returns a function that opens vectors of one type as one that opens any.
func VectorsBy[V Vectors](open func(context.Context, *layout.Store, blockdev.Device, string,
	*mem.Budget, int) (V, error)) OpenVectors {
	return func(ctx context.Context, store *layout.Store, dev blockdev.Device, run string,
		budget *mem.Budget, workers int) (Vectors, error) {
		v, err := open(ctx, store, dev, run, budget, workers)
		if err != nil {
			return nil, err
		}
		return v, nil
	}
}
