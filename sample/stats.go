package sample

import (
	"sync/atomic"
	"time"
)

// PipelineStats tell what a pipeline did so far.
type PipelineStats struct {
	// Stages are "sample", "gather" and "step", the consumer.
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

// clock counts a stage's times, in nanoseconds.
type clock struct {
	done                   atomic.Uint64
	busy, starved, blocked atomic.Int64
}

// ran counts one batch that was begun then.
func (c *clock) ran(begun time.Time) {
	c.done.Add(1)
	c.busy.Add(int64(time.Since(begun)))
}

func (c *clock) stats(name string, workers int) StageStats {
	return StageStats{Name: name, Workers: workers, Done: c.done.Load(),
		Busy:    time.Duration(c.busy.Load()),
		Starved: time.Duration(c.starved.Load()),
		Blocked: time.Duration(c.blocked.Load())}
}

// Stats may be called at any time.
func (p *Pipeline) Stats() PipelineStats {
	return PipelineStats{
		Stages: []StageStats{
			p.sampling.stats("sample", p.cfg.Workers),
			p.gathering.stats("gather", p.cfg.Gatherers),
			p.stepping.stats("step", 1),
		},
		Nodes: p.nodes.Load(), Edges: p.edges.Load(),
	}
}
