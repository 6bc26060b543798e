package graph

import (
	"context"

	"gdb/blockdev"
	"gdb/internal/mem"
	"gdb/layout"
	"gdb/train/link/triples"
)

// Vectors answers from what a run has learned of nodes and relations. Only one goroutine may use
// it.
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

// OpenVectors opens the vectors of a run of a store. budget counts their memory, and workers is the
// number of goroutines that compute. It is set by the program, so that programs without NEAREST and
// SCORE link no kernels.
type OpenVectors func(ctx context.Context, store *layout.Store, dev blockdev.Device, run string,
	budget *mem.Budget, workers int) (Vectors, error)

// VectorsBy turns a function that opens one type of Vectors into an OpenVectors.
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
