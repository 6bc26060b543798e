package sample

import (
	"context"
	"errors"
	"sync"
)

// Drawer draws the neighborhoods of the batches of a pipeline. What is drawn depends on the batch
// alone, so a batch that was given up can be drawn again. Several goroutines may use it.
type Drawer interface {
	// Draw writes the neighborhood of the seeds of a batch to its Dense, whose memory it reuses.
	// worker is the number of a worker of the pipeline.
	Draw(ctx context.Context, worker int, b *Batch) error
	// Begins reports whether Draw of this batch frees rows that were read for earlier batches. If
	// so, Draw is called only once these are gathered.
	Begins(epoch, batch uint64) bool
	// Shrink frees the scratch memory of a worker unless it is in use, and returns whether it freed
	// any.
	Shrink(worker int) (freed bool)
	Close() error
}

// Samplers draw each batch by itself, each worker with a sampler of its own.
type Samplers struct{ workers []sharedSampler }

// sharedSampler is the sampler of a worker. The gatherer uses it too, for a batch that was given
// up.
type sharedSampler struct {
	mu      sync.Mutex
	sampler *Sampler
}

// NewSamplers returns samplers for a number of workers. open returns a new sampler.
func NewSamplers(workers int, open func() (*Sampler, error)) (*Samplers, error) {
	s := &Samplers{workers: make([]sharedSampler, workers)}
	for i := range s.workers {
		var err error
		if s.workers[i].sampler, err = open(); err != nil {
			return nil, errors.Join(err, s.Close())
		}
	}
	return s, nil
}

// Draw samples a batch.
func (s *Samplers) Draw(ctx context.Context, worker int, b *Batch) error {
	w := &s.workers[worker]
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.sampler.Sample(ctx, b.Epoch, b.Index, b.Seeds, &b.Dense)
}

// Begins returns false, since no rows are read ahead.
func (s *Samplers) Begins(uint64, uint64) bool { return false }

// Shrink frees the scratch memory of a sampler unless it is in use.
func (s *Samplers) Shrink(worker int) (freed bool) {
	w := &s.workers[worker]
	if !w.mu.TryLock() {
		return false
	}
	defer w.mu.Unlock()
	return w.sampler.shrink()
}

// Close releases the lists and the memory.
func (s *Samplers) Close() error {
	for i := range s.workers {
		if w := s.workers[i].sampler; w != nil {
			w.Close()
		}
	}
	return nil
}
