package train

import (
	"context"
	"errors"
	"fmt"

	"gdb/blockdev"
	"gdb/layout"
	"gdb/sample"
	"gdb/train/exact"
	"gdb/train/export"
)

// EmbedConfig says whose vectors are written.
type EmbedConfig struct {
	Limits
	// Run is the run whose best weights compute them.
	Run string
	// Out is the file: see export.WriteVectors.
	Out string
}

// Embed writes a vector for each node, under the user's own ids: what the last hidden layer of a
// model gives, computed exactly and in bounded memory. A model of one layer has none, and what it
// gives is written instead.
func Embed(ctx context.Context, store *layout.Store, dev blockdev.Device,
	c EmbedConfig) (err error) {
	if err := export.CheckVectors(c.Out); err != nil {
		return fmt.Errorf("train: %w", err)
	}
	t, err := openTrained(ctx, store, dev, opening{run: c.Run, limits: c.Limits, withIDs: true})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, t.Close()) }()
	if err := t.in.Budget.Reserve("evaluation", exact.HeapBytes); err != nil {
		return err
	}
	defer t.in.Budget.Release(exact.HeapBytes)
	hidden := hiddenStates{t.in.inference(t.be, t.model, t.scratchDir(predictJob))}
	hidden.Layers = max(1, t.model.Spec().Layers()-1)
	if err := export.WriteVectors(ctx, store.FS(), c.Out, t.ids, t.in.Meta, hidden); err != nil {
		return fmt.Errorf("train: vectors of run %s: %w", c.Run, err)
	}
	return nil
}

// hiddenStates are those of some layers of a model.
type hiddenStates struct{ *exact.Inference }

// Dim is the width of the last of the layers.
func (h hiddenStates) Dim() int { return h.Model.Dims()[h.Layers] }

// Each computes them.
func (h hiddenStates) Each(ctx context.Context, fn func(first int, rows []float32) error) error {
	return h.Run(ctx, nil, func(nodes []sample.NodeID, rows []float32) error {
		return fn(int(nodes[0]), rows)
	})
}
