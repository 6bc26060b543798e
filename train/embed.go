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
	"gdb/train/setting"
)

// EmbedConfig says whose vectors to write.
type EmbedConfig struct {
	Limits
	// Run is the run whose best weights compute the vectors.
	Run string
	// Out is the file to write: see export.WriteVectors.
	Out string
}

// Embed writes a vector for each node, under the user's own ids: the output of the last hidden
// layer of a model, computed exactly and in bounded memory. For a model with one layer, which has
// no hidden one, it writes the output of that layer.
func Embed(ctx context.Context, store *layout.Store, dev blockdev.Device,
	c EmbedConfig) (err error) {
	if err := export.CheckPath("vectors", c.Out); err != nil {
		return fmt.Errorf("train: %w", err)
	}
	t, err := openTrained(ctx, store, dev, opening{run: c.Run, limits: c.Limits, withIDs: true})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, t.Close()) }()
	if t.cfg.EvalMode == setting.EvalSampled {
		return fmt.Errorf("train: vectors of run %s: it is computed from batches alone, so no "+
			"node has a hidden state of its own: take predict --probabilities, or another model, "+
			"without --time", c.Run)
	}
	if err := t.in.Budget.Reserve("evaluation", exact.HeapBytes); err != nil {
		return err
	}
	defer t.in.Budget.Release(exact.HeapBytes)
	hidden := hiddenStates{t.inference(t.in, newScratch(t.in, t.dir, predictJob))}
	hidden.Layers = max(1, t.model.Spec().Layers()-1)
	if err := export.WriteVectors(ctx, export.TableSpec{FS: store.FS(), Path: c.Out,
		Meta: t.in.Meta, Names: t.ids}, hidden); err != nil {
		return fmt.Errorf("train: vectors of run %s: %w", c.Run, err)
	}
	return nil
}

// hiddenStates computes the output of a hidden layer for all nodes.
type hiddenStates struct{ *exact.Inference }

// Dim returns the width of that output.
func (h hiddenStates) Dim() int { return h.Model.Dims()[h.Layers] }

// Each computes the vectors, and calls fn with some rows at a time.
func (h hiddenStates) Each(ctx context.Context, fn func(first int, rows []float32) error) error {
	return h.Run(ctx, nil, func(nodes []sample.NodeID, rows []float32) error {
		return fn(int(nodes[0]), rows)
	})
}
