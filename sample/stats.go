package sample

// PipelineStats count what was done so far to make batches.
type PipelineStats struct {
	// Stages include "sample", "gather" and "step", the consumer; a superbatch.Loader has more.
	Stages []StageStats
	// Nodes and Edges are summed over the sampled batches.
	Nodes, Edges uint64
}

// Stats returns what was done so far. It may be called at any time.
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
