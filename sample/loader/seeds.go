package loader

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"gdb/internal/mem"
	"gdb/internal/program"
	"gdb/kv"
	"gdb/layout"
	"gdb/sample"

	"github.com/RoaringBitmap/roaring/v2"
)

// ErrNoSplit says that a store has no such split.
var ErrNoSplit = errors.New("no such split")

// ErrEmptySplit says that a split has no nodes, or none with a label where that is known.
var ErrEmptySplit = errors.New("empty split")

// labeledSet is the stored set of the nodes that have multi-labels, be they none.
const labeledSet = "labeled"

// LoadSplit loads a set of nodes, of multi-labels those that have labels; it must not be empty. It
// is counted in budget before it is loaded: held bytes, for the caller to release.
func LoadSplit(ctx context.Context, s *layout.Store, base, column string,
	budget *mem.Budget) (set *roaring.Bitmap, held int64, err error) {
	name := s.Meta().SplitName(base, column)
	most := setBytesMost(s.Meta(), name)
	if err := budget.Reserve("split "+name, most); err != nil {
		return nil, 0, fmt.Errorf("loader: load split %s: %w", name, err)
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

// splitAdvice says what to do about a split that is not there.
func splitAdvice(s *layout.Store, base, name string) string {
	if base != name {
		return "take one that is there; without @ it is the default"
	}
	if len(s.Meta().Splits) > 0 { // drawn ones would replace those that the user gave
		return fmt.Sprintf("take one that is there, or ingest again with --split %s=FILE", base)
	}
	return fmt.Sprintf("%s split %s --split random=60/20/20 draws some, ingest takes files with "+
		"--split %s=FILE", program.Name, s.Dir(), base)
}

func readSplit(ctx context.Context, s *layout.Store, base, name string,
	budget *mem.Budget) (*roaring.Bitmap, error) {
	set, err := s.Split(ctx, name)
	if errors.Is(err, kv.ErrNotFound) {
		return nil, fmt.Errorf("loader: %w: %q (the store has %s): %s", ErrNoSplit, name,
			splitList(s.Meta()), splitAdvice(s, base, name))
	}
	if err != nil {
		return nil, fmt.Errorf("loader: load split %s: %w", name, err)
	}
	if l := s.Meta().Labels; l != nil && l.Kind == "multi" {
		most := setBytesMost(s.Meta(), labeledSet)
		if err := budget.Reserve("the nodes with labels", most); err != nil {
			return nil, fmt.Errorf("loader: load which nodes have labels: %w", err)
		}
		defer budget.Release(most)
		labeled, err := s.Split(ctx, labeledSet)
		if err != nil {
			return nil, fmt.Errorf("loader: load which nodes have labels: %w", err)
		}
		set.And(labeled)
	}
	if set.IsEmpty() {
		return nil, fmt.Errorf("loader: %w: %q has no node to train on or to compute a metric "+
			"over: choose another with --split", ErrEmptySplit, name)
	}
	return set, nil
}

// TrainNodes are the nodes of the training split of a column, as SplitNodes has them.
func TrainNodes(ctx context.Context, s *layout.Store, column string,
	budget *mem.Budget) ([]sample.NodeID, error) {
	return SplitNodes(ctx, s, "train", column, budget)
}

// SplitNodes are the nodes, ascending, of a split of a column; "" is the store's default. They take
// 4 bytes each, counted in budget.
func SplitNodes(ctx context.Context, s *layout.Store, base, column string,
	budget *mem.Budget) ([]sample.NodeID, error) {
	set, held, err := LoadSplit(ctx, s, base, column, budget)
	if err != nil {
		return nil, err
	}
	defer budget.Release(held)
	if err := budget.Reserve("nodes of "+base, 4*int64(set.GetCardinality())); err != nil {
		return nil, fmt.Errorf("loader: %w", err)
	}
	return mem.View[sample.NodeID](mem.BytesOf(set.ToArray())), nil
}

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
