package sample

import (
	"sync/atomic"
	"time"
)

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
	Sampling, Gathering, Stepping Clock
	Nodes, Edges                  atomic.Uint64 // of the sampled batches
}

// Stats returns the counts so far, for this number of goroutines that sample.
func (c *Counters) Stats(workers int) PipelineStats {
	return PipelineStats{Nodes: c.Nodes.Load(), Edges: c.Edges.Load(), Stages: []StageStats{
		c.Sampling.Stats("sample", workers), c.Gathering.Stats("gather", 1),
		c.Stepping.Stats("step", 1)}}
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
