package train

import (
	"fmt"
	"io/fs"
	"path"

	"gdb/internal/codec"
	"gdb/train/runs"
	"gdb/train/task"
)

const (
	// checkpointVectorsMax are the arrays that have a value for each parameter, or fewer.
	checkpointVectorsMax = 5
	// positionBytesMax bounds the position: it takes some hundred bytes.
	positionBytesMax = 64 << 10
)

// errNotExist is the error of a missing file.
var errNotExist = fs.ErrNotExist

// position is where a run stands: all that a checkpoint holds besides arrays. Epochs and batches
// are counted from 0; Batch is the next one of Epoch, and may be one past the last.
type position struct {
	Seed  uint64 `json:"seed"`
	Epoch uint64 `json:"epoch"`
	Batch uint64 `json:"batch"`
	Steps int    `json:"steps"` // of the optimizer

	Sums epochSums `json:"sums"` // of the epoch so far

	HasBest   bool    `json:"has_best"`
	Best      float64 `json:"best"`
	BestEpoch int     `json:"best_epoch"` // counted from 1
	SinceBest int     `json:"since_best"` // evaluations since
	// Plateau is evaluations since the best one or the last halving of the rate, of which there
	// were so many.
	Plateau  int `json:"plateau,omitempty"`
	Halvings int `json:"halvings,omitempty"`

	// Scale is that of the labels, if they are numbers.
	Scale *task.Scale `json:"scale,omitempty"`

	Done bool     `json:"done"`
	Test *float64 `json:"test,omitempty"`
}

// checkpoint is one that was read: the name of its directory, and for the user that CURRENT was not
// there, if it was not.
type checkpoint struct {
	pos        position
	arrays     []array
	name, note string
}

// array is a named vector of a checkpoint.
type array = runs.Array

// writeCheckpoint writes where a run stands; beside is as in runs.Dir.WriteState.
func writeCheckpoint(r runs.Dir, p position, arrays []array,
	beside func(dir string) error) error {
	parts, err := runs.EncodeState(r.UUID(), p, arrays)
	if err != nil {
		return err
	}
	return r.WriteState(beside, parts...)
}

// readCheckpoint reads the current checkpoint of a model with so many parameters.
func readCheckpoint(r runs.Dir, params int) (c checkpoint, err error) {
	b, file, note, err := r.ReadState(stateBytesMax(params))
	if err != nil {
		return c, err
	}
	if c.arrays, err = runs.DecodeState(r.UUID(), b, &c.pos); err != nil {
		return c, fmt.Errorf("train: run %s: %w", r.Name(), r.Corrupt(file, err.Error()))
	}
	c.name, c.note = path.Dir(file), note
	return c, nil
}

// stateBytesMax is the most that a checkpoint of so many parameters takes: weights, the best ones,
// and what the optimizer keeps, thresholds, beside header and position.
func stateBytesMax(params int) int64 {
	return codec.HeaderBytes + positionBytesMax + checkpointVectorsMax*4*int64(params)
}
