package runs

import (
	"errors"
	"fmt"
	"strconv"

	"gdb/kv"
	"gdb/sample"
)

// The values of Settings.Sample.
const (
	SampleUniform  = "uniform"
	SampleWeighted = "weighted"
	SampleLatest   = "latest"
)

// Draw is how a sampler draws as Sample says.
func (c *Settings) Draw() sample.Draw {
	switch c.Sample {
	case SampleWeighted:
		return sample.DrawWeighted
	case SampleLatest:
		return sample.DrawLatest
	}
	return sample.DrawUniform
}

// Limit is Before as a word.
func (c *Settings) Limit() string {
	if c.Before == nil {
		return "none"
	}
	return strconv.FormatInt(*c.Before, 10)
}

// FitEdges completes what the model has to know of a store's edges, and reports what it needs of
// them and they do not have.
func (c *Settings) FitEdges(m *kv.Meta) error {
	spec := c.Spec(c.Dims(c.Precomputed().Parts(), 1))
	c.Relations = 0
	reads := spec.Extras()
	switch {
	case reads.EdgeTypes && len(m.EdgeTypes) == 0:
		return errors.New("train: --model " + c.Model + " has a weight matrix for each type of " +
			"edges, and those of this store have no types: ingest with types (--rel-col, or " +
			"triples), or take another model")
	case c.EdgeWeight && !m.Weighted:
		return errors.New("train: --edge-weight: the edges of this store have no weights: ingest " +
			"with weights (--weight-col), or leave the flag out")
	case c.Sample == SampleWeighted && !m.Weighted:
		return errors.New("train: --sample weighted: the edges of this store have no weights: " +
			"ingest with weights (--weight-col), or leave the flag out")
	case c.Sample == SampleLatest && !m.Timestamped:
		return errors.New("train: --sample latest: the edges of this store have no times: " +
			"ingest with times (--time-col), or leave the flag out")
	case c.Before != nil && !m.Timestamped:
		return errors.New("train: --before: the edges of this store have no times: ingest with " +
			"times (--time-col), or leave the flag out")
	}
	if reads.EdgeTypes {
		c.Relations = len(m.EdgeTypes)
	}
	if err := c.Spec(c.Dims(c.Precomputed().Parts(), 1)).Validate(); err != nil {
		return fmt.Errorf("train: %w", err)
	}
	return nil
}

// Unused is what a store has that a run does not read.
func (c *Settings) Unused(m *kv.Meta) (names []string) {
	reads := c.Spec(c.Dims(c.Precomputed().Parts(), 1)).Extras()
	if m.Weighted && !c.EdgeWeight && c.Sample != SampleWeighted {
		names = append(names, "edge weights")
	}
	if m.Timestamped && c.Sample != SampleLatest && c.Before == nil {
		names = append(names, "edge times")
	}
	if len(m.EdgeTypes) > 1 && !reads.EdgeTypes {
		names = append(names, "edge types")
	}
	for _, f := range m.Features[min(1, len(m.Features)):] {
		names = append(names, "features "+f.Name)
	}
	return names
}
