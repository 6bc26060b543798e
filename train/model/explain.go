package model

import (
	"errors"
	"slices"

	"gdb/compute/backend"
	"gdb/sample"
	"gdb/train/setting"
)

// Explaining returns the specification of the same model as it is explained: with a mask of edges,
// see program.Options.Explain, in float32, and without what only trainings need. Both have the same
// weights. It returns an error, with why, for a model that a mask does not explain.
func (s *Spec) Explaining() (*Spec, error) {
	switch {
	case s.Precompute:
		return nil, errors.New("its sums over neighbors were computed before the training " +
			"(--precompute), so no step sees an edge: explain a run without --precompute")
	case s.EdgeOutputs > 0:
		return nil, errors.New("it predicts edges (--task edge), and predictions of nodes are " +
			"explained alone so far")
	case s.Aggregate == "max":
		return nil, errors.New("--aggregate max takes the largest of neighbors, which a mask of " +
			"edges does not explain: explain a run with mean or sum")
	}
	t := *s
	t.Explain, t.Halo, t.Half, t.FuseAttention, t.SparseWords = true, false, false, false, 0
	return &t, nil
}

// GradMask returns the gradient of Step.Mask after Backward, of a model that is explained: a tensor
// without rows where the model reads no neighbors.
func (m *Model) GradMask() backend.Tensor { return m.machine.GradMask() }

// Explain changes settings to those with which a run is explained: in float32 on the CPU and, with
// whole, from whole lists of neighbors in place of lists that are drawn.
func (c Chosen) Explain(whole bool) {
	c.Precision, c.Backend = setting.Float32, setting.BackendCPU
	if !whole {
		return
	}
	c.Fanout, c.FanoutBy = slices.Repeat([]int{sample.All}, c.Hops()), nil
	c.Sampler, c.LayerSize, c.Sample = setting.SamplerNeighbor, nil, setting.SampleUniform
}
