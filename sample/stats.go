package sample

import "gdb/sample/stages"

// PipelineStats tell what was done so far to make batches.
type PipelineStats struct {
	// Stages are "sample", "gather" and "step", the consumer, and what else there is.
	Stages []stages.StageStats
	// Nodes and Edges are summed over the sampled batches.
	Nodes, Edges uint64
}

// Stats may be called at any time.
func (p *Pipeline) Stats() PipelineStats {
	return PipelineStats{
		Stages: []stages.StageStats{
			p.sampling.Stats("sample", p.cfg.Workers),
			p.gathering.Stats("gather", 1),
			p.stepping.Stats("step", 1),
		},
		Nodes: p.nodes.Load(), Edges: p.edges.Load(),
	}
}
