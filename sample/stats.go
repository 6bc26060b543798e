package sample

import (
	"sync/atomic"
	"time"
)

// PipelineStats tell what was done so far to make batches.
type PipelineStats struct {
	// Stages are "sample", "gather" and "step", the consumer, and what else there is.
	Stages []StageStats
	// Nodes and Edges are summed over the sampled batches.
	Nodes, Edges uint64
}

// StageStats are the times of a stage, summed over its goroutines.
type StageStats struct {
	Name    string
	Workers int
	Done    uint64        // batches
	Busy    time.Duration // working
	Starved time.Duration // waiting for the stage before
	Blocked time.Duration // waiting for the stage after, which holds all memory
}

// Clock counts a stage's times, in nanoseconds. It may be used from any goroutine.
type Clock struct {
	Done                   atomic.Uint64 // batches
	Busy, Starved, Blocked atomic.Int64
}

// Ran counts one batch that was begun then.
func (c *Clock) Ran(begun time.Time) {
	c.Done.Add(1)
	c.Busy.Add(int64(time.Since(begun)))
}

// Stats are the times so far.
func (c *Clock) Stats(name string, workers int) StageStats {
	return StageStats{Name: name, Workers: workers, Done: c.Done.Load(),
		Busy:    time.Duration(c.Busy.Load()),
		Starved: time.Duration(c.Starved.Load()),
		Blocked: time.Duration(c.Blocked.Load())}
}

// Stats may be called at any time.
func (p *Pipeline) Stats() PipelineStats {
	return PipelineStats{
		Stages: []StageStats{
			p.sampling.Stats("sample", p.cfg.Workers),
			p.gathering.Stats("gather", 1),
			p.stepping.Stats("step", 1),
		},
		Nodes: p.nodes.Load(), Edges: p.edges.Load(),
	}
}
