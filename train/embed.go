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

	"github.com/RoaringBitmap/roaring/v2"
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
	hidden, release, err := t.hiddenStates(c.Run)
	if err != nil {
		return err
	}
	defer release()
	var nodes *roaring.Bitmap // all, but for deleted ones
	if t.in.Meta.Deleted != "" {
		if nodes, err = nodesFrom(ctx, t.in.Store, 0); err != nil {
			return fmt.Errorf("train: vectors of run %s: %w", c.Run, err)
		}
	}
	if err := export.WriteVectors(ctx, export.TableSpec{FS: store.FS(), Path: c.Out,
		Nodes: nodes, Meta: t.in.Meta, Names: t.ids}, hidden); err != nil {
		return fmt.Errorf("train: vectors of run %s: %w", c.Run, err)
	}
	return nil
}

// hiddenStates returns what computes the vectors of nodes. The caller calls release when it is
// done.
func (t *trained) hiddenStates(run string) (hidden hiddenStates, release func(), err error) {
	if t.cfg.EvalMode == setting.EvalSampled {
		return hidden, nil, fmt.Errorf("train: vectors of run %s: it is computed from batches "+
			"alone, so no node has a hidden state of its own: take predict --probabilities, or "+
			"another model, without --time", run)
	}
	if err := t.in.Budget.Reserve("evaluation", exact.HeapBytes); err != nil {
		return hidden, nil, err
	}
	hidden = hiddenStates{t.inference(t.in, newScratch(t.in, t.dir, predictJob))}
	hidden.Layers = max(1, t.model.Spec().Layers()-1)
	return hidden, func() { t.in.Budget.Release(exact.HeapBytes) }, nil
}

// EmbedNodes calls emit with the vectors of some nodes, in ascending order of these. They are what
// Embed writes; c.Out is not read.
func EmbedNodes(ctx context.Context, store *layout.Store, dev blockdev.Device, c EmbedConfig,
	nodes *roaring.Bitmap, emit func(v layout.NodeID, row []float32)) (err error) {
	t, err := openTrained(ctx, store, dev, opening{run: c.Run, limits: c.Limits})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, t.Close()) }()
	hidden, release, err := t.hiddenStates(c.Run)
	if err != nil {
		return err
	}
	defer release()
	dim := hidden.Dim()
	// A hidden layer gives the rows that the layers after it need, and so some more.
	if err := hidden.Run(ctx, nodes, func(given []sample.NodeID, rows []float32) error {
		for i, v := range given {
			if nodes.Contains(uint32(v)) {
				emit(v, rows[i*dim:][:dim])
			}
		}
		return nil
	}); err != nil {
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
