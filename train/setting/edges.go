package setting

import (
	"strconv"

	"gdb/sample"
)

// The values of Node.Sample.
const (
	SampleUniform  = "uniform"
	SampleWeighted = "weighted"
	SampleLatest   = "latest"
)

// Draw is how a sampler draws as Sample says.
func (c *Node) Draw() sample.Draw {
	switch c.Sample {
	case SampleWeighted:
		return sample.DrawWeighted
	case SampleLatest:
		return sample.DrawLatest
	}
	return sample.DrawUniform
}

// Limit is Before as a word.
func (c *Node) Limit() string {
	if c.Before == nil {
		return "none"
	}
	return strconv.FormatInt(*c.Before, 10)
}
