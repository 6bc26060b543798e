package setting

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Node are the settings of a training of nodes. Start from Default.
type Node struct {
	Identity
	Architecture
	Neighbors
	Timing
	Data
	PartitionSettings
	Learning
	NodeLearning
	Schedule
	Evaluation
	Caching
	Place
	Process
}

// Default returns the settings that the command line starts from.
func Default() (c Node) {
	fill(&c)
	return c
}

// Validate reports the first setting that makes no sense, and what would; model.Chosen does so of
// what its model needs too.
func (c *Node) Validate() error {
	if err := c.validateSampler(); err != nil {
		return fmt.Errorf("train: %w", err)
	}
	if k := len(c.Widths); k > 0 && (k != c.Hops()-1 || slices.Min(c.Widths) < 1) {
		return fmt.Errorf("train: hidden %v: give one width, or one of each of the %d layers "+
			"before the last (--fanout or --layer-size says how many there are)", c.Widths,
			c.Hops()-1)
	}
	if err := ValidName(c.Run); err != nil {
		return err
	}
	if err := checkRows(c); err != nil {
		return err
	}
	if c.Memory < 0 || c.FeatureCache < 0 || c.NeighborCache < NeighborAuto ||
		c.DeviceCache < DeviceCacheAuto || c.DeviceMemory < 0 {
		return errors.New("train: a size is negative: give memory and feature-cache in bytes")
	}
	err := errors.Join(c.validatePartitions(), c.validateDevices(), c.validateTimes())
	if err == nil && len(c.EdgeFeatures) > 0 {
		err = c.batchByBatch("--edge-features")
	}
	return err
}

// ValidName keeps run names usable as directory names everywhere.
func ValidName(name string) error {
	for _, r := range name {
		if !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' ||
			strings.ContainsRune("._-", r)) {
			return fmt.Errorf("train: run name %q: use letters, digits, '.', '_' and '-'", name)
		}
	}
	if strings.HasPrefix(name, ".") || strings.HasPrefix(name, "-") || len(name) > 100 {
		return fmt.Errorf("train: run name %q: begin with a letter or digit, 100 at most", name)
	}
	return nil
}

// SameResult reports the first setting by which a resumed run would not be the same run, but for
// rounding: it may go on with another backend.
func (c *Node) SameResult(old *Node) error { return sameRows(c, old, old.Run) }

// SameModel reports the first setting by which the weights of a run do not fit.
func (c *Node) SameModel(old *Node) error { return sameModel(c, old, old.Run) }
