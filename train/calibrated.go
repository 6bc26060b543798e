package train

import (
	"context"
	"errors"
	"fmt"

	"gdb/blockdev"
	"gdb/layout"
	"gdb/sample"
	"gdb/train/calibrate"
	"gdb/train/exact"
	"gdb/train/task"
)

// Calibrate fits the temperature of a run on its val split, and keeps it in the run.
func Calibrate(ctx context.Context, store *layout.Store, dev blockdev.Device,
	c EvalConfig) (r *calibrate.Record, err error) {
	t, err := openTrained(ctx, store, dev, opening{run: c.Run, split: "val", mode: c.Mode,
		limits: c.Limits})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, t.Close()) }()
	if _, ok := t.in.task.(*task.Classes); !ok {
		return nil, fmt.Errorf("train: run %s predicts numbers, which have no probabilities: "+
			"leave --calibrate out", c.Run)
	}
	scratch := newScratch(t.in, t.dir, predictJob)
	o := &calibrate.Outputs{Nodes: t.set, Labels: t.in.Labels}
	o.Rows, err = t.keptOutputs(ctx, exact.Place{Source: t.in.Source, Dir: scratch.dir,
		Claim: scratch.claim})
	if err != nil {
		return nil, fmt.Errorf("train: calibrate run %s: %w", c.Run, err)
	}
	defer func() {
		err = errors.Join(err, o.Rows.Close(), t.in.Store.FS().RemoveAll(
			t.in.Store.Path(scratch.dir)))
	}()
	r = &calibrate.Record{Split: "val", Nodes: t.set.GetCardinality(), Epoch: t.pos.BestEpoch}
	if r.Temperature, r.LossBefore, r.LossAfter, err = calibrate.Fit(ctx, o); err != nil {
		return nil, fmt.Errorf("train: calibrate run %s: %w", c.Run, err)
	}
	return r, r.Write(t.dir)
}

// keptOutputs computes and keeps the outputs of the nodes that are predicted.
func (t *trained) keptOutputs(ctx context.Context, place exact.Place) (*exact.Table, error) {
	if err := t.in.Budget.Reserve("evaluation", exact.HeapBytes); err != nil {
		return nil, err
	}
	defer t.in.Budget.Release(exact.HeapBytes)
	out, err := place.Begin("outputs", int(t.set.GetCardinality()), t.in.task.Outputs())
	if err != nil {
		return nil, err
	}
	err = t.each(ctx, func(nodes []sample.NodeID, logits []float32) error {
		return errors.Join(task.CheckOutput(nodes, logits), out.Add(logits))
	})
	if err != nil {
		return nil, errors.Join(err, out.Abort())
	}
	table, err := out.Finish(ctx)
	if err != nil {
		return nil, errors.Join(err, out.Abort())
	}
	return table, nil
}

// useTemperature has probabilities be by the run's temperature, if it has one and is asked to.
func (t *trained) useTemperature(asked bool) error {
	classes, ok := t.in.task.(*task.Classes)
	if !ok || !asked {
		return nil
	}
	r, err := calibrate.Read(t.dir, t.pos.BestEpoch)
	if r != nil {
		classes.Temperature = r.Temperature
	}
	return err
}

// checkCalibrated returns an error if a temperature is asked for that the run does not have.
func (t *trained) checkCalibrated(asked bool) error {
	if classes, ok := t.in.task.(*task.Classes); asked && (!ok || classes.Temperature == 0) {
		return calibrate.None(t.dir.Name())
	}
	return nil
}
