package train

import (
	"context"
	"errors"
	"fmt"

	"gdb/blockdev"
	"gdb/internal/mem"
	"gdb/layout"
	"gdb/train/exact"
	"gdb/train/model"
	"gdb/train/plan"
	"gdb/train/probe"
	"gdb/train/runs"
	"gdb/train/setting"
	"gdb/train/task"
)

// MakePlan does only the planning of Run. It makes no run.
func MakePlan(ctx context.Context, store *layout.Store, dev blockdev.Device,
	cfg Config) (*plan.Plan, error) {
	t := newTrainer(store, dev, cfg, nil)
	err := t.Prepare(ctx)
	if err == nil {
		err = t.plans(ctx)
	}
	if err = errors.Join(err, t.Loop.Close()); err != nil {
		return nil, err
	}
	return t.plan, nil
}

// probed returns the configuration of the probe that plans the run.
func (t *trainer) probed() probe.Config {
	fanout, _ := model.Of(&t.cfg).Sampled()
	return probe.Config{Facts: t.facts(), Seeds: t.train, Fanout: fanout, Seed: t.cfg.Seed,
		StepName: fmt.Sprint(t.cfg.StepName(), t.dims), Remeasure: t.cfg.Remeasure,
		Profiles: t.cfg.Profiles}
}

// facts returns what is known of the run before batches are sampled.
func (t *trainer) facts() plan.Facts {
	c := &t.cfg
	f := plan.Facts{Memory: c.Memory, Model: modelBytes(c, t.dims), Settings: plan.SettingsOf(c)}
	if t.learned != nil {
		f.Vectors = t.learned.Bytes()
		f.VectorsDisk = runs.CheckpointsMost * t.learned.CheckpointBytes()
	}
	f.ReadsInPlace = model.Of(c).InPlace(t.dims)
	f.NodeBytes, f.EntryBytes = t.in.NodeBytes(), t.in.EntryBytes()
	f.DrawBytes = t.in.DrawBytes()
	f.InPlaceResident = model.Of(c).InPlaceResident(t.dims)
	f.Evaluates, f.EvalSampled = true, c.EvalMode == setting.EvalSampled
	f.EvalHeap, f.EvalBeside = exact.HeapBytes, scoreBytes(c)
	if t.in.Labels.Multi() {
		f.EvalBeside += task.ThresholdBytes(t.task.Outputs())
	}
	if f.EvalSampled {
		f.EvalArenas = exact.Bytes
		f.EvalBeside += mem.HeapCost(evalListBytes(t.evalMost))
	} else {
		f.EvalArenas = exact.Bytes + exact.SetsBytes(model.Of(c).Spec(t.dims), t.in.Meta.Nodes)
	}
	return f
}

// scoreBytes returns what the metric takes in an evaluation.
func scoreBytes(c *Config) int64 {
	if c.Metric == task.ROCAUC {
		return task.ScoreBytes
	}
	return 0
}
