package sample

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"gdb/internal/bug"
)

// StageGroup is the goroutines of a pipeline. The first error of one stops all.
type StageGroup struct {
	ctx    context.Context
	cancel context.CancelCauseFunc
	wg     sync.WaitGroup
}

// NewStageGroup returns a group without goroutines, which stops when ctx is cancelled.
func NewStageGroup(ctx context.Context) *StageGroup {
	g := &StageGroup{}
	g.ctx, g.cancel = context.WithCancelCause(ctx)
	return g
}

// Start starts a stage.
func (g *StageGroup) Start(work func() error) {
	g.wg.Go(func() {
		defer bug.Catch()
		if err := work(); err != nil {
			g.cancel(err)
		}
	})
}

// Context returns a context that is cancelled when the stages must stop.
func (g *StageGroup) Context() context.Context { return g.ctx }

// Done returns a channel that is closed when the stages must stop.
func (g *StageGroup) Done() <-chan struct{} { return g.ctx.Done() }

// Err returns why the stages must stop, or nil while they need not.
func (g *StageGroup) Err() error { return context.Cause(g.ctx) }

// Stop makes the stages stop, for this reason if there was none before, and waits for them.
func (g *StageGroup) Stop(why error) {
	g.cancel(why)
	g.wg.Wait()
}

// Receive receives from c, and adds the nanoseconds that it waits to wait. It returns false if the
// stages stop first.
func Receive[T any](g *StageGroup, c <-chan T, wait *atomic.Int64) (v T, ok bool) {
	select {
	case v = <-c:
		return v, true
	default:
	}
	begun := time.Now()
	defer func() { wait.Add(int64(time.Since(begun))) }()
	select {
	case v = <-c:
		return v, true
	case <-g.ctx.Done():
		return v, false
	}
}

// StageStats are the times of a stage, summed over its goroutines.
type StageStats struct {
	Name    string
	Workers int
	Done    uint64        // number of batches
	Busy    time.Duration // working
	Starved time.Duration // waiting for the stage before
	Blocked time.Duration // waiting for the stage after, which holds all memory
}

// PipelineStats count what was done so far to make batches.
type PipelineStats struct {
	// Stages include "sample", "gather" and "step", the consumer; a superbatch.Loader has more.
	Stages []StageStats
	// Nodes and Edges are summed over the sampled batches.
	Nodes, Edges uint64
}

// Counters count what pipelines do that follow each other. They may be read at any time.
type Counters struct {
	// Preparing is a part of Sampling: see PipelineConfig.Prepare.
	Sampling, Preparing, Gathering, Stepping Clock
	Nodes, Edges                             atomic.Uint64 // of the sampled batches
}

// Stats returns the counts so far, for this number of goroutines that sample.
func (c *Counters) Stats(workers int) PipelineStats {
	s := PipelineStats{Nodes: c.Nodes.Load(), Edges: c.Edges.Load(), Stages: []StageStats{
		c.Sampling.Stats("sample", workers), c.Gathering.Stats("gather", 1),
		c.Stepping.Stats("step", 1)}}
	if c.Preparing.Done.Load() > 0 {
		s.Stages = append(s.Stages, c.Preparing.Stats("prepare", workers))
	}
	return s
}

// Clock counts a stage's times, in nanoseconds. It may be used from any goroutine.
type Clock struct {
	Done                   atomic.Uint64 // number of batches
	Busy, Starved, Blocked atomic.Int64
}

// Ran counts one batch, which was begun at this time.
func (c *Clock) Ran(begun time.Time) {
	c.Done.Add(1)
	c.Busy.Add(int64(time.Since(begun)))
}

// Stats returns the times so far.
func (c *Clock) Stats(name string, workers int) StageStats {
	return StageStats{Name: name, Workers: workers, Done: c.Done.Load(),
		Busy:    time.Duration(c.Busy.Load()),
		Starved: time.Duration(c.Starved.Load()),
		Blocked: time.Duration(c.Blocked.Load())}
}
