package train

import (
	"errors"
	"fmt"
	"math/rand/v2"

	"github.com/RoaringBitmap/roaring/v2"

	"gdb/internal/program"
	"gdb/kv"
	"gdb/train/task"
)

// evalListBytes is what sampled evaluation takes to list the nodes of a set.
func evalListBytes(nodes int64) int64 { return 4 * nodes }

// checkTrainable reports what a store lacks for node classification.
func checkTrainable(m *kv.Meta) error {
	switch {
	case m.Nodes == 0:
		return errors.New("train: the store has no nodes")
	case len(m.Features) == 0:
		return errors.New("train: the store has no features, and a model needs an input vector " +
			"for every node: ingest again with features (--features FILE or --feature-cols), or " +
			"with --features degree, which makes them")
	case m.Labels == nil:
		return errors.New("train: the store has no labels: ingest again with labels " +
			"(--labels FILE or --label-col)")
	case m.Labels.Kind != "class" && m.Labels.Kind != "multi":
		return fmt.Errorf("train: the labels are of kind %q: node classification needs classes",
			m.Labels.Kind)
	case len(m.Labels.Classes) < 2:
		return fmt.Errorf("train: the labels have %d class: nothing to tell apart",
			len(m.Labels.Classes))
	}
	return nil
}

// resolve replaces auto by what it means for the labels of a store.
func resolve(c *Config, m *kv.Meta) error {
	c.Resolve(m)
	multi := m.Labels.Kind == "multi"
	if c.Loss == "auto" {
		c.Loss = "softmax"
		if multi {
			c.Loss = "bce"
		}
	}
	if multi != (c.Loss == "bce") {
		return fmt.Errorf("train: loss %s does not fit labels of kind %q: use --loss auto",
			c.Loss, m.Labels.Kind)
	}
	if c.Metric == "auto" {
		c.Metric = task.Accuracy
		switch {
		case multi:
			c.Metric = task.MicroF1
		case skewed(m.Labels.ClassCounts):
			c.Metric = task.ROCAUC
		}
	}
	return nil
}

// skewed says whether of two classes one has a quarter of the nodes or less: always to say the
// other is right more often than not, so accuracy tells little.
func skewed(counts []uint64) bool {
	return len(counts) == 2 && 4*min(counts[0], counts[1]) <= counts[0]+counts[1]
}

// unused is what a store has that no model reads.
func unused(m *kv.Meta) (names []string) {
	if m.Weighted {
		names = append(names, "edge weights")
	}
	if m.Timestamped {
		names = append(names, "edge times")
	}
	if len(m.EdgeTypes) > 1 {
		names = append(names, "edge types")
	}
	for _, f := range m.Features[1:] {
		names = append(names, "features "+f.Name)
	}
	return names
}

// valShare is the share of train that validates where the store has no val: one in so many.
const valShare = 10

// takeVal takes validation nodes from those to train on, the same for the same seed.
func (t *trainer) takeVal() error {
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
		return errors.New("train: the store has no val, and too few nodes to train on to take " +
			"some from: " + program.Name + " split STORE --split random=60/20/20")
	}
	t.valNote = fmt.Sprintf("the store has no val: %d of the %d nodes to train on validate",
		t.val.GetCardinality(), all)
	return nil
}
