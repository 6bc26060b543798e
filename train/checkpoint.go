package train

import (
	"gdb/internal/codec"
	"gdb/train/run"
	"gdb/train/runs"
	"gdb/train/task"
)

const (
	// checkpointVectorsMax is the most arrays in a checkpoint. None has more values than there
	// are parameters.
	checkpointVectorsMax = 5
	// positionBytesMax bounds the encoded position, which usually takes some hundred bytes.
	positionBytesMax = 64 << 10
)

// position says how far a run has come: all that a checkpoint holds besides arrays.
type position struct {
	run.Position
	Sums epochSums `json:"sums"` // of the epoch so far
	// Scale is the scale of the labels, if they are numbers.
	Scale *task.Scale `json:"scale,omitempty"`
	Test  *float64    `json:"test,omitempty"`
}

// checkpoint is a checkpoint that was read, with the name of its directory.
type checkpoint struct {
	pos    position
	arrays []array
	name   string
}

// predicting returns the weights to predict with, of a model with params parameters: those of the
// best evaluation, if there was one.
func (c *checkpoint) predicting(params int) ([]float32, error) {
	name := "weights"
	if c.pos.HasBest {
		name = "best weights"
	}
	return runs.FindArray(c.arrays, name, params)
}

// array is a named vector of a checkpoint.
type array = runs.Array

// readCheckpoint reads a checkpoint of a model with params parameters.
func readCheckpoint(r runs.Dir, name string, params int) (c checkpoint, err error) {
	c.name = name
	c.arrays, err = r.ReadState(name, stateBytesMax(params), &c.pos)
	return c, err
}

// useCheckpoint calls use with the current checkpoint of a model with params parameters. If that is
// damaged, or use finds that it is, it takes the newest one that is not. It returns the
// checkpoint's name, and a note that tells the user why it is not the current one.
func useCheckpoint(r runs.Dir, params int, use func(c *checkpoint) error) (name, note string,
	err error) {
	return r.Whole(func(name string) error {
		c, err := readCheckpoint(r, name, params)
		if err != nil {
			return err
		}
		return use(&c)
	})
}

// stateBytesMax returns the most that a checkpoint with params parameters takes: weights, the best
// weights, the optimizer's state and thresholds, besides the header and the position.
func stateBytesMax(params int) int64 {
	return codec.HeaderBytes + positionBytesMax + checkpointVectorsMax*4*int64(params)
}

// thresholdsName is the name of the array in a checkpoint that holds the thresholds of
// the best weights.
const thresholdsName = "thresholds"

// thresholdsOf returns the thresholds in a checkpoint; nil if it has none.
func thresholdsOf(labels task.Task, arrays []array) ([]float32, error) {
	for _, a := range arrays {
		if a.Name == thresholdsName {
			return runs.FindArray(arrays, thresholdsName, labels.Outputs())
		}
	}
	return nil, nil
}

// useThresholds sets the thresholds from a checkpoint, if it has any.
func useThresholds(labels task.Task, arrays []array) (err error) {
	if c, ok := labels.(*task.Classes); ok {
		c.Thresholds, err = thresholdsOf(labels, arrays)
	}
	return err
}
