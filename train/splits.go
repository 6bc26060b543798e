package train

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"gdb/internal/mem"
	"gdb/kv"
	"gdb/layout"
	"gdb/sample"
	"gdb/train/task"

	"github.com/RoaringBitmap/roaring/v2"
)

// errNoSplit says that a store has no such split.
var errNoSplit = errors.New("no such split")

// labeledSet is the stored set of the nodes that have multi-labels, be they none.
const labeledSet = "labeled"

// loadSplit loads a set of nodes, of multi-labels those that have labels; it must not be empty. It
// is counted in budget before it is loaded: held bytes, for the caller to release.
func loadSplit(ctx context.Context, s *layout.Store, base, column string,
	budget *mem.Budget) (set *roaring.Bitmap, held int64, err error) {
	name := s.Meta().SplitName(base, column)
	most := setBytesMost(s.Meta(), name)
	if err := budget.Reserve("split "+name, most); err != nil {
		return nil, 0, fmt.Errorf("train: load split %s: %w", name, err)
	}
	if set, err = readSplit(ctx, s, base, name, budget); err == nil {
		held = min(most, int64(set.GetSizeInBytes()))
	}
	budget.Release(most - held)
	return set, held, err
}

// setBytesMost is the most that a stored set of nodes takes in memory: of each 65536 nodes, two
// bytes for each that is in it or a bit for each, and what a container takes.
func setBytesMost(m *kv.Meta, name string) int64 {
	count := m.Nodes // of a set that is no split
	for _, s := range m.Splits {
		if s.Name == name {
			count = s.Count
		}
	}
	const perContainer, bitmap = 64, 8 << 10
	containers := min(count, m.Nodes>>16+1)
	return int64(min(2*count, bitmap*containers) + perContainer*(containers+1))
}

func readSplit(ctx context.Context, s *layout.Store, base, name string,
	budget *mem.Budget) (*roaring.Bitmap, error) {
	set, err := s.Split(ctx, name)
	if errors.Is(err, kv.ErrNotFound) {
		return nil, fmt.Errorf("train: %w: %q (the store has %s): ingest it with --split %s=FILE, "+
			"or choose another with --split", errNoSplit, name, splitList(s.Meta()), base)
	}
	if err != nil {
		return nil, fmt.Errorf("train: load split %s: %w", name, err)
	}
	if l := s.Meta().Labels; l != nil && l.Kind == "multi" {
		most := setBytesMost(s.Meta(), labeledSet)
		if err := budget.Reserve("the nodes with labels", most); err != nil {
			return nil, fmt.Errorf("train: load which nodes have labels: %w", err)
		}
		defer budget.Release(most)
		labeled, err := s.Split(ctx, labeledSet)
		if err != nil {
			return nil, fmt.Errorf("train: load which nodes have labels: %w", err)
		}
		set.And(labeled)
	}
	if set.IsEmpty() {
		return nil, fmt.Errorf("train: split %q has no node to train on or to compute a metric "+
			"over: choose another with --split", name)
	}
	return set, nil
}

// TrainNodes are the nodes, ascending, that a run with Config.Split trains on: 4 bytes each,
// counted in budget.
func TrainNodes(ctx context.Context, s *layout.Store, column string,
	budget *mem.Budget) ([]sample.NodeID, error) {
	set, held, err := loadSplit(ctx, s, "train", column, budget)
	if err != nil {
		return nil, err
	}
	defer budget.Release(held)
	if err := budget.Reserve("nodes to train on", 4*int64(set.GetCardinality())); err != nil {
		return nil, fmt.Errorf("train: %w", err)
	}
	return mem.View[sample.NodeID](mem.BytesOf(set.ToArray())), nil
}

// evalListBytes is what sampled evaluation takes to list the nodes of a set.
func evalListBytes(nodes int64) int64 { return 4 * nodes }

func splitList(m *kv.Meta) string {
	if len(m.Splits) == 0 {
		return "none"
	}
	var names []string
	for _, s := range m.Splits {
		names = append(names, s.Name)
	}
	return strings.Join(names, ", ")
}

// checkTrainable reports what a store lacks for node classification.
func checkTrainable(m *kv.Meta) error {
	switch {
	case m.Nodes == 0:
		return errors.New("train: the store has no nodes")
	case len(m.Features) == 0:
		return errors.New("train: the store has no features, and sage needs an input vector for " +
			"every node: ingest again with features (--features FILE or --feature-cols), for " +
			"example one-hot degrees or random vectors")
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
		if multi {
			c.Metric = task.MicroF1
		}
	}
	return nil
}
