package vectors

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"gdb/compute/decoder"
	"gdb/internal/bug"
	"gdb/internal/codec"
	"gdb/internal/mem"
	"gdb/internal/trace"
	"gdb/layout"
	"gdb/train/link/triples"
	"gdb/train/runs"
)

// Rows reads the vectors of single nodes from a run's checkpoint. The checkpoint has one checksum
// of all vectors, which is not compared: who reads has checksums of single ones. It may be used
// from any goroutine.
type Rows struct {
	Run        string
	Count, Dim int
	// Distance says that the run's decoder scores by distances.
	Distance bool
	// About has the run's settings as text.
	About string
	// Tag tells these vectors from those that the run has after further training.
	Tag string

	state *runs.StateFile
	name  string
}

// OpenRows opens the vectors of a run of a store.
func OpenRows(store *layout.Store, run string) (*Rows, error) {
	dir := runs.Open(store, run)
	f, err := dir.ReadLink()
	if err == nil {
		err = dir.SameNumbers()
	}
	if err != nil {
		return nil, err
	}
	if f.Link.ScoredOnDisk() {
		return nil, fmt.Errorf("run %s: %w", run, triples.ErrPartitioned)
	}
	dec, err := decoder.New(f.Link.Decoder, f.Link.Dim, decoder.Options{Norm: f.Link.Norm})
	if err != nil {
		return nil, err
	}
	r := &Rows{Run: run, Count: int(store.Meta().Nodes), Dim: f.Link.Dim,
		Distance: dec.Measure().IsDistance(), About: f.Link.Text()}
	_, _, err = dir.Whole(func(checkpoint string) (err error) {
		var pos position
		if r.state, err = dir.OpenState(checkpoint, &pos); err != nil {
			return err
		}
		var values uint64
		var sum uint32
		if r.name, _, err = pos.arrays(f.Link, run); err == nil {
			values, sum, err = r.state.Sum(r.name)
		}
		if err == nil && values != uint64(r.Count*r.Dim) {
			err = fmt.Errorf("run %s has %d values for %d nodes: %w", run, values, r.Count,
				layout.ErrCorrupt)
		}
		if err != nil {
			return errors.Join(err, r.state.Close())
		}
		r.Tag = fmt.Sprintf("%s %08x of run %s", r.name, sum, run)
		return nil
	})
	return r, err
}

// Close closes the file.
func (r *Rows) Close() error { return r.state.Close() }

// readers is how many rows are read at a time.
const readers = 16

// Gather writes the vectors of nodes to to, and compares each with its checksum in sums.
func (r *Rows) Gather(ctx context.Context, nodes, sums []uint32, to []float32) error {
	trace.From(ctx).Read(len(nodes), 4*uint64(len(nodes)*r.Dim))
	errs := make([]error, min(readers, len(nodes)))
	var all sync.WaitGroup
	for w := range errs {
		all.Add(1)
		go func() {
			defer bug.Catch()
			defer all.Done()
			for i := w; i < len(nodes) && errs[w] == nil; i += len(errs) {
				errs[w] = r.one(nodes[i], sums[i], to[i*r.Dim:][:r.Dim])
			}
		}()
	}
	all.Wait()
	return errors.Join(append(errs, ctx.Err())...)
}

// one reads the vector of a node.
func (r *Rows) one(node, sum uint32, to []float32) error {
	if err := r.state.Read(r.name, int(node)*r.Dim, to); err != nil {
		return err
	}
	if got := codec.Checksum(mem.BytesOf(to)); got != sum {
		return fmt.Errorf("train: run %s: the vector of node %d: checksum %08x, want %08x: %w",
			r.Run, node, got, sum, layout.ErrCorrupt)
	}
	return nil
}

// Node reads the vector of a node, without a checksum to compare.
func (r *Rows) Node(node uint32, to []float32) error {
	return r.state.Read(r.name, int(node)*r.Dim, to)
}
