package train

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"gdb/blockdev"
	"gdb/internal/tables"
	"gdb/layout"
	"gdb/sample"
	"gdb/train/exact"
	"gdb/train/export"
	"gdb/train/setting"
	"gdb/train/task"
)

// PredictConfig says what to predict.
type PredictConfig struct {
	Limits
	// Run is the run whose best weights predict.
	Run string
	// Split is train, val, test, or a stored set by its whole name; "" is every node, of a typed
	// store every node of the type that has labels, and of a run of edges every edge.
	Split string
	// Probabilities asks for the probability of each class in addition.
	Probabilities bool
	// Out is the file to write, in the format of its extension: see export.Table. Its columns are
	// id, or src and dst of a run of edges, prediction and, with Probabilities, p:LABEL for each
	// class.
	Out string
}

// Predict computes the predictions for the nodes of a split, or for all nodes, exactly and in
// bounded memory, and writes them under the user's own ids and labels.
func Predict(ctx context.Context, store *layout.Store, dev blockdev.Device,
	c PredictConfig) (err error) {
	if err := export.CheckPath("predictions", c.Out); err != nil {
		return fmt.Errorf("train: %w", err)
	}
	t, err := openTrained(ctx, store, dev, opening{run: c.Run, split: c.Split, limits: c.Limits,
		withIDs: true, labeledType: true})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, t.Close()) }()
	p, err := t.in.task.Predictions(c.Probabilities, filepath.Ext(c.Out) == ".npy")
	if err != nil {
		return fmt.Errorf("train: predict: %w", err)
	}
	table, err := export.CreateTable(ctx, export.TableSpec{FS: store.FS(), Path: c.Out,
		Nodes: t.set, Meta: t.in.Meta, Names: t.ids, Columns: p.Columns(), Ends: t.in.ends()})
	if err != nil {
		return fmt.Errorf("train: %w", err)
	}
	defer func() { err = errors.Join(err, table.Abort()) }()
	if err := t.in.Budget.Reserve("evaluation", exact.HeapBytes); err != nil {
		return err
	}
	defer t.in.Budget.Release(exact.HeapBytes)
	err = t.each(ctx, func(nodes []sample.NodeID, logits []float32) error {
		if err := task.CheckOutput(nodes, logits); err != nil {
			return err
		}
		n := t.in.task.Outputs()
		return table.Rows(ctx, nodes, func(i int, row tables.Writer) {
			p.Write(row, logits[i*n:(i+1)*n])
		})
	})
	if err == nil {
		err = table.Commit()
	}
	if err != nil {
		return fmt.Errorf("train: predict with run %s: %w", c.Run, err)
	}
	return nil
}

// ends returns what tells the ends of the edges that are seeds; nil where nodes are.
func (in *inputs) ends() func(edge sample.NodeID) (src, dst sample.NodeID) {
	if in.edges == nil {
		return nil
	}
	return in.edges.Ends
}

// each calls emit with the outputs of the nodes to predict, ascending: computed over whole lists,
// or from batches where the model has no other way, or seeds have times.
func (t *trained) each(ctx context.Context, emit exact.Emit) error {
	e := t.evaluator(predictJob)
	if t.cfg.EvalMode == setting.EvalSampled {
		return e.eachSampled(ctx, t.set, func(ids []sample.NodeID) (*sample.Order, error) {
			return sample.InOrder(ids, sampledEpoch, t.cfg.PartSeeds())
		}, emit)
	}
	f := t.inference(t.in, e.scratch)
	f.Hidden = t.hidden
	return f.Run(ctx, t.set, emit)
}
