package train

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"

	"gdb/compute/backend"
	"gdb/compute/backend/cuda"
	"gdb/compute/kernel/bf16"
	"gdb/kv"
	"gdb/sample"
	"gdb/train/model"
	"gdb/train/setting"
	"gdb/train/task"

	"github.com/RoaringBitmap/roaring/v2"
)

// evalListBytes returns what sampled evaluation takes to list the nodes of a set.
func evalListBytes(nodes int64) int64 { return 4 * nodes }

// checkTrainable returns an error that says what a store lacks for predicting labels.
func checkTrainable(m *kv.Meta, c *Config) error {
	switch {
	case m.Nodes == 0:
		return errors.New("train: the store has no nodes")
	case len(m.Features) == 0 && c.NodeEmbedding == 0 && m.Labels == nil && len(m.EdgeSplits) > 0:
		return errors.New("train: the store has neither features nor labels, but splits of its " +
			"edges: --task link learns vectors that score them")
	case len(m.Features) == 0 && c.NodeEmbedding == 0 && m.Labels == nil:
		return errors.New("train: the store has neither labels to predict nor features: ingest " +
			"again with --nodes FILE --label-col COLUMN, or learn vectors that score edges " +
			"(ingest --edge-split random=85/5/10, then train --task link)")
	case len(m.Features) == 0 && c.NodeEmbedding == 0:
		return errors.New("train: the store has no features, and a model needs an input vector " +
			"for every node: learn one for each (train --node-embedding 64), or ingest again " +
			"with features (--features FILE or --feature-cols; --features degree makes them)")
	case m.Labels == nil:
		return errors.New("train: the store has no labels: ingest again with labels " +
			"(--labels FILE or --label-col)")
	case m.Labels.Kind == task.KindTarget:
		return nil
	case len(m.Labels.Classes) < 2:
		return fmt.Errorf("train: the labels have %d class: nothing to tell apart",
			len(m.Labels.Classes))
	}
	return nil
}

// resolve replaces auto by what it means for the labels of a store.
func resolve(c *Config, m *kv.Meta) error {
	if err := checkFeatureFlags(c, m); err != nil {
		return err
	}
	c.Resolve(m, task.KindOf(m.Labels, c.Loss))
	c.Backend = cuda.Chosen(c.Backend, c.Device)
	if c.Backend == backend.CUDA && m.Labels.Unknown > 0 {
		return fmt.Errorf("train: %d labels are unknown, and --backend cuda cannot leave them out "+
			"of the loss: use --backend cpu", m.Labels.Unknown)
	}
	if err := c.CheckPrecision(); err != nil {
		return err
	}
	c.ResolveProducts(bf16.Level() == bf16.AMX)
	if err := model.Of(c).FitEdges(m); err != nil {
		return err
	}
	kind := task.KindOf(m.Labels, c.Loss)
	if c.Metric == task.Auto && kind == task.KindClass && setting.Skewed(m.Labels.ClassCounts) {
		c.Metric = task.ROCAUC
	}
	if kind == task.KindTarget && c.ClassWeights == setting.WeightsBalanced {
		return errors.New("train: --class-weights is for classes, and the labels are numbers: " +
			"leave it out")
	}
	if err := task.Fit(kind, &c.Loss, &c.Metric); err != nil {
		return fmt.Errorf("train: %w", err)
	}
	return nil
}

// valShare sets how many nodes of train validate where the store has no val: one in valShare.
const valShare = 10

// takeVal takes validation nodes out of the nodes to train on, the same ones for the same seed. why
// is the reason that the user is told.
func (t *trainer) takeVal(why string) error {
	all := len(t.train)
	if err := t.in.Budget.Reserve("nodes to validate", int64(all)/valShare*8); err != nil {
		return fmt.Errorf("train: %w", err)
	}
	t.val = roaring.New()
	kept := t.train[:0]
	rnd := rand.New(rand.NewPCG(t.cfg.Seed, valShare))
	for i, v := range t.train {
		if rnd.IntN(all-i) < (all+valShare-1)/valShare-int(t.val.GetCardinality()) {
			t.val.Add(uint32(v))
			continue
		}
		kept = append(kept, v)
	}
	if t.train = kept; len(kept) == 0 {
		return fmt.Errorf("train: %s, and too few nodes to train on to take some from: ingest "+
			"again with --split val=FILE, or with more nodes in train", why)
	}
	t.valNote = fmt.Sprintf("%s: %d of the %d nodes to train on validate", why,
		t.val.GetCardinality(), all)
	return nil
}

// learnLabels finds what the task has to know of the training nodes' labels: class weights
// or their scale.
func (t *trainer) learnLabels(ctx context.Context) error {
	if err := t.checkVal(ctx); err != nil {
		return err
	}
	if c, ok := t.task.(*task.Classes); ok && c.Weights.Len() > 0 {
		w, err := task.Balanced(ctx, t.in.Labels, t.train)
		if err != nil {
			return err
		}
		t.be.Write(c.Weights, w)
	}
	if t.in.Labels.Numbers() {
		s, err := task.ScaleOf(ctx, t.in.Labels, t.train)
		if err != nil {
			return err
		}
		t.pos.Scale = &s
		t.useScale()
	}
	return nil
}

// valChunk is how many validation nodes are read at a time to find one with a label.
const valChunk = 4096

// checkVal returns an error if no node of val has a label, which would otherwise be found only
// after the first epoch. With multi-labels, splits have only labeled nodes.
func (t *trainer) checkVal(ctx context.Context) error {
	labels := t.in.Labels
	if t.val.IsEmpty() || labels.Multi() {
		return nil
	}
	nodes, it := make([]uint32, valChunk), t.val.ManyIterator()
	classes, numbers := make([]int32, valChunk), make([]float32, valChunk)
	for n := it.NextMany(nodes); n > 0; n = it.NextMany(nodes) {
		ids := make([]sample.NodeID, n)
		for i, v := range nodes[:n] {
			ids[i] = sample.NodeID(v)
		}
		known := func(i int) bool { return classes[i] >= 0 }
		err := error(nil)
		if labels.Numbers() {
			known = func(i int) bool { return numbers[i] == numbers[i] }
			err = labels.Values(ctx, ids, numbers)
		} else {
			err = labels.Of(ctx, ids, classes)
		}
		if err != nil {
			return fmt.Errorf("read labels: %w", err)
		}
		for i := range ids {
			if known(i) {
				return nil
			}
		}
	}
	return fmt.Errorf("none of the %d nodes of val has a label, so nothing tells which epoch is "+
		"best: %w: label some of them, or ingest without a split val, and some nodes of train "+
		"validate", t.val.GetCardinality(), task.ErrNothing)
}

// useScale sets the scale with which the task standardizes labels, if they are numbers.
func (t *trainer) useScale() {
	if n, ok := t.task.(*task.Numbers); ok && t.pos.Scale != nil {
		n.Scale = *t.pos.Scale
	}
}
