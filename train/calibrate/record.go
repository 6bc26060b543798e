package calibrate

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"

	"gdb/internal/message"
	"gdb/train/runs"
)

// fileName is the file of a run with its temperature, and fileBytesMost bounds its size.
const (
	fileName      = "calibration.json"
	fileBytesMost = 64 << 10
)

// Record is the temperature of a run, and what it was fitted on.
type Record struct {
	Temperature float64 `json:"temperature"`
	Split       string  `json:"split"`
	Nodes       uint64  `json:"nodes"`
	// Epoch is the epoch of the weights. Other weights need another temperature.
	Epoch int `json:"epoch"`
	// LossBefore and LossAfter are the mean losses of the split without the temperature and
	// with it.
	LossBefore float64 `json:"loss_before"`
	LossAfter  float64 `json:"loss_after"`
}

// Write keeps a record in a run, in the place of an earlier one.
func (r *Record) Write(dir runs.Dir) error {
	b, err := json.MarshalIndent(r, "", " ")
	if err != nil {
		return fmt.Errorf("train: %w", err)
	}
	return dir.WriteSmall(fileName, append(b, '\n'))
}

// Read returns the record of a run for the weights of an epoch; nil if it has none.
func Read(dir runs.Dir, epoch int) (*Record, error) {
	b, err := dir.ReadSmall(fileName, fileBytesMost)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	r := &Record{}
	if err := json.Unmarshal(b, r); err != nil || !(r.Temperature > 0) {
		return nil, fmt.Errorf("train: run %s: %w", dir.Name(), dir.Corrupt(fileName,
			fmt.Sprintf("temperature %g (%v)", r.Temperature, err)))
	}
	if r.Epoch != epoch {
		return nil, nil
	}
	return r, nil
}

// None is the error where a temperature is asked for and the run has none for its weights.
func None(run string) error {
	return fmt.Errorf("train: run %s has no temperature for its weights: %s eval STORE --run %s "+
		"--calibrate fits one on val", run, message.Program, run)
}
