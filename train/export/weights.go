package export

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"gdb/internal/message"
	"gdb/layout"
	"gdb/train/model"
	"gdb/train/runs"
)

// WriteWeights writes the weights of the best evaluation of a run that predicts nodes: each
// parameter under its name, (rows, cols), with the model and the run's settings as metadata. It
// leaves out learned vectors of nodes. For a run that predicts links it returns runs.ErrOtherTask.
// note is a remark for the user; "" for none.
func WriteWeights(ctx context.Context, store *layout.Store, run,
	out string) (note string, err error) {
	dir := runs.Open(store, run)
	file, err := dir.ReadFile()
	if err != nil {
		return "", err
	}
	params := model.Of(&file.Config).Spec(file.Dims).Layout()
	values := make([]float32, params.Total)
	_, note, err = dir.Whole(func(checkpoint string) error {
		return readWeights(ctx, dir, checkpoint, values)
	})
	if err != nil {
		return "", err
	}
	var tensors []tensor
	params.Each(func(name string, rows, cols, off int) {
		tensors = append(tensors, tensor{Name: name, Shape: []int{rows, cols},
			Values: values[off : off+rows*cols]})
	})
	words, err := wordsOf(run, &file)
	if err != nil {
		return "", err
	}
	return note, writeTensors(store.FS(), out, words, tensors)
}

// readWeights reads the weights of the best evaluation from a checkpoint.
func readWeights(ctx context.Context, dir runs.Dir, checkpoint string, to []float32) error {
	var position struct {
		HasBest bool `json:"has_best"`
	}
	state, err := dir.OpenState(checkpoint, &position)
	if err != nil {
		return err
	}
	name := "weights"
	if position.HasBest {
		name = "best weights"
	}
	if err = state.Check(ctx, name, len(to), to); err == nil {
		err = state.Read(name, 0, to)
	}
	return errors.Join(err, state.Close())
}

// wordsOf returns the metadata: what the file says of its run.
func wordsOf(run string, file *runs.File) (map[string]string, error) {
	words := map[string]string{"format": "pt", "made_by": message.Program, "run": run,
		"model": file.Config.Model, "store": file.Store}
	for name, value := range map[string]any{"config": file.Config, "dims": file.Dims} {
		text, err := json.Marshal(value)
		if err != nil {
			return nil, fmt.Errorf("safetensors: settings of run %s: %w", run, err)
		}
		words[name] = string(text)
	}
	return words, nil
}
