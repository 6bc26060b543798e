package train

import (
	"context"

	"gdb/blockdev"
	"gdb/internal/mem"
	"gdb/layout"
	"gdb/sample/loader"
	"gdb/train/exact"
	"gdb/train/plan"
	"gdb/train/probe"
	"gdb/train/runs"
	"gdb/train/task"
)

// inputs are what a training reads, and what it learns of it.
type inputs struct {
	*loader.Source
	task task.Task

	claims string // the file to lock before hidden states are written, if any
}

// newInputs returns those of a store, of which nothing is open yet.
func newInputs(store *layout.Store, dev blockdev.Device, c *Config) *inputs {
	src := loader.NewSource(store, dev, mem.NewProcessBudget(c.Memory))
	src.NormalizeRows = c.Normalize == runs.NormalizeRow
	src.Degrees = c.Spec(c.Dims(store.Meta().Features[0].Dim, 1)).Degrees()
	return &inputs{Source: src}
}

// openLabels opens the labels, and with them the task.
func (in *inputs) openLabels(ctx context.Context, c *Config) error {
	if err := in.OpenLabels(ctx); err != nil {
		return err
	}
	if task.KindOf(in.Meta.Labels, c.Loss) == task.KindTarget && !in.Labels.Numbers() {
		in.Labels.UseNumbers(task.ClassNumbers(in.Meta.Labels.Classes))
	}
	in.task = task.New(in.Meta.Labels, c.Loss)
	return nil
}

// openFeatures puts the cache of a plan before the features. Superbatches have their own.
func (in *inputs) openFeatures(ctx context.Context, p *plan.Plan, threads int) error {
	policy := p.Cache
	if policy == plan.CacheBelady {
		policy = "none"
	}
	return in.OpenFeatures(ctx, loader.Cache{Policy: policy, Bytes: p.Features,
		Threads: plan.CopyThreads(threads)})
}

// checkLeast reports a memory that is too small whatever the batches are.
func (in *inputs) checkLeast(memory int64) error {
	return probe.CheckLeast(in.Source, memory, mem.HeapCost(exact.HeapBytes)+exact.Bytes)
}

// room is what is left of the memory.
func (in *inputs) room() int64 { return in.Budget.Limit() - in.Budget.Used() }
