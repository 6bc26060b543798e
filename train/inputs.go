package train

import (
	"context"
	"fmt"
	"math"

	"gdb/blockdev"
	"gdb/internal/mem"
	"gdb/layout"
	"gdb/layout/ingest/stats"
	"gdb/layout/rowfile"
	"gdb/sample"
	"gdb/sample/loader"
	"gdb/train/embedding"
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

	vectors *embedding.Table // of nodes, behind their features; nil for none

	claims string // the file to lock before hidden states are written, if any
}

// newInputs returns those of a store, of which nothing is open yet.
func newInputs(store *layout.Store, dev blockdev.Device, c *Config) *inputs {
	src := loader.NewSource(store, dev, mem.NewProcessBudget(c.Memory))
	src.NormalizeRows = c.Normalize == runs.NormalizeRow && !c.Precompute
	src.Extras = c.Spec(c.Dims(c.Inputs(store.Meta()), 1)).Extras()
	src.Draw, src.Before = c.Draw(), c.Before
	_, src.LayerSize = c.Sampled()
	return &inputs{Source: src}
}

// scaleRows is how many rows the scale of columns is measured on.
const scaleRows = 4096

// openRows opens the features, and finds how their columns are scaled if the settings leave it to
// them: by rows that lie evenly over all nodes. note says what was chosen, "" for nothing.
func (in *inputs) openRows(ctx context.Context, c *Config) (note string, err error) {
	if err := in.OpenRows(ctx); err != nil {
		return "", err
	}
	note, err = in.scaleColumns(ctx, c)
	if err == nil && in.Rows != nil && c.PacksFeatures() {
		in.Rows.Pack()
	}
	return note, err
}

// scaleColumns has columns scaled, if they are.
func (in *inputs) scaleColumns(ctx context.Context, c *Config) (note string, err error) {
	if c.Precompute { // rows were scaled before they were summed up
		return "", nil
	}
	if in.Rows == nil { // there are none to scale
		c.Normalize = "none"
	}
	if c.Normalize != "auto" && c.Normalize != runs.NormalizeColumns {
		return "", nil
	}
	auto := c.Normalize == "auto"
	if c.Scale == nil {
		measured, err := in.measureColumns(ctx)
		if err != nil {
			return "", fmt.Errorf("train: measure the columns of the features: %w", err)
		}
		if c.Normalize = "none"; auto && !measured.Uneven() {
			return "", nil
		}
		c.Normalize, c.Scale = runs.NormalizeColumns, &rowfile.Scale{}
		c.Scale.Mean, c.Scale.Inverse = measured.Statistics()
		if err := checkScale(c.Scale); err != nil {
			return "", err
		}
	}
	in.Rows.ScaleColumns(c.Scale)
	if auto {
		note = "features have very different or large ranges: they are scaled to mean 0 and " +
			"deviation 1 as they are read (--normalize none does not)"
	}
	return note, nil
}

// checkScale reports a column that cannot be scaled.
func checkScale(s *rowfile.Scale) error {
	for k := range s.Mean {
		if x := float64(s.Mean[k]) + float64(s.Inverse[k]); math.IsNaN(x) || math.IsInf(x, 0) {
			return fmt.Errorf("train: column %d of the features has values that are not finite: "+
				"ingest again without them, or --normalize none", k+1)
		}
	}
	return nil
}

// measureColumns measures columns on some rows.
func (in *inputs) measureColumns(ctx context.Context) (*stats.Scaling, error) {
	n := min(in.Meta.Nodes, scaleRows)
	nodes := make([]sample.NodeID, n)
	for i := range nodes {
		nodes[i] = sample.NodeID(uint64(i) * in.Meta.Nodes / n)
	}
	dim := in.Rows.Meta().Dim
	s, row := stats.NewScaling(runs.NormalizeColumns, dim), make([]float32, 64*dim)
	for len(nodes) > 0 {
		part := nodes[:min(64, len(nodes))]
		if err := in.Rows.Gather(ctx, part, nil, row[:len(part)*dim]); err != nil {
			return nil, err
		}
		s.Observe(row[:len(part)*dim])
		nodes = nodes[len(part):]
	}
	s.Finish()
	return s, nil
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
		Threads: plan.CopyThreads(threads), Staged: p.Staged()})
}

// checkLeast reports a memory that is too small whatever the batches are.
func (in *inputs) checkLeast(c *Config, training bool) error {
	extra := mem.HeapCost(exact.HeapBytes) + exact.Bytes
	learned := learnedVectors(c, in.Meta, training)
	if learned != nil {
		extra += learned.Bytes()
	}
	err := probe.CheckLeast(in.Source, c.Memory, extra)
	if err != nil {
		err = fmt.Errorf("train: %w", explained(err, learned))
	}
	return err
}
