package setting

import (
	"errors"
	"slices"

	"gdb/sample"
)

// The values of Node.Sampler.
const (
	SamplerNeighbor = "neighbor"
	SamplerLayer    = "layer"
)

// Hops is the number of hops that the model reaches: what is summed up before a training is of
// them.
func (c *Node) Hops() int { return max(len(c.Fanout), len(c.LayerSize)) }

// Sampling says how neighbors are drawn at each hop.
func (c *Node) Sampling() string {
	if c.Sampler == SamplerLayer {
		return "layers of " + sample.FormatFanout(c.LayerSize)
	}
	return "fanout " + sample.FormatFanoutBy(c.Fanout, c.FanoutBy)
}

// validateSampler reports settings of sampling that do not go together.
func (c *Node) validateSampler() error {
	layers := c.Sampler == SamplerLayer
	switch {
	case c.Sampler != "" && !slices.Contains(Choices("sampler"), c.Sampler):
		return nil // reported as all settings with a few values are
	case layers && len(c.Fanout) > 0:
		return errors.New("--fanout draws the neighbors of each node apart, and --sampler layer " +
			"those of a hop together: leave --fanout out, and give --layer-size, or take " +
			"--sampler neighbor")
	case layers && len(c.LayerSize) == 0:
		return errors.New("--sampler layer: give --layer-size, about how many nodes each hop " +
			"draws, the first next to the seeds, such as 512,512")
	case !layers && len(c.LayerSize) > 0:
		return errors.New("--layer-size is read by --sampler layer only: add it, or give " +
			"--fanout in its place")
	case !layers && len(c.Fanout) == 0:
		return errors.New("no fanout: give one number a hop, such as 10,10")
	case layers && c.MacroBatch > 1:
		return errors.New("--macro-batch draws the neighbors of each node apart, and --sampler " +
			"layer those of a hop of a batch together: leave one of both out")
	case layers && c.Sample == SampleWeighted:
		return errors.New("--sample weighted draws the neighbors of each node apart, and " +
			"--sampler layer those of a hop together, by what they are to the sums over lists: " +
			"leave --sample out, and have weights count with --edge-weight")
	case layers && c.Sample == SampleLatest:
		return errors.New("--sample latest takes the neighbors of each node apart, and " +
			"--sampler layer draws those of a hop together, by what they are to the sums over " +
			"lists: leave --sample out, and have only earlier edges count with --before")
	}
	return sample.Config{Fanout: c.Fanout, LayerSize: c.LayerSize}.Validate()
}

// LongestList bounds the lists of batches, where rows are read in place: those of layers never are.
func (c *Node) LongestList() int {
	if len(c.Fanout) == 0 {
		return 0
	}
	return slices.Max(c.Fanout)
}
