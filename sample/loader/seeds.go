package loader

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"gdb/internal/mem"
	"gdb/internal/message"
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

// Split is a set of nodes that was loaded, and the bytes of it in the budget that it was loaded
// with, for the caller to release. Err says why there is none: it wraps ErrNoSplit or
// ErrEmptySplit.
type Split struct {
	Set  *roaring.Bitmap
	Held int64
	Err  error
}

// LoadSplit loads a set of nodes, of multi-labels those that have labels; it must not be empty. It
// is counted in budget before it is loaded: held bytes, for the caller to release.
func LoadSplit(ctx context.Context, s *layout.Store, base, column string,
	budget *mem.Budget) (set *roaring.Bitmap, held int64, err error) {
	splits, err := LoadSplits(ctx, s, []string{base}, column, budget)
	if err != nil {
		return nil, 0, err
	}
	return splits[0].Set, splits[0].Held, splits[0].Err
}

// LoadSplits loads several sets as LoadSplit does, in one transaction: where they are replaced
// meanwhile, all are the old ones or all the new, so that no node to test is one to train on.
func LoadSplits(ctx context.Context, s *layout.Store, bases []string, column string,
	budget *mem.Budget) ([]Split, error) {
	var names []string
	most := int64(0)
	for _, base := range bases {
		names = append(names, s.Meta().SplitName(base, column))
	}
	read := names
	if isMulti(s.Meta()) {
		read = append(slices.Clone(names), labeledSet)
	}
	for _, name := range read {
		most += setBytesMost(s.Meta(), name)
	}
	what := strings.Join(names, ", ")
	if err := budget.Reserve("splits "+what, most); err != nil {
		return nil, fmt.Errorf("loader: load splits %s: %w", what, err)
	}
	sets, err := s.Splits(ctx, read...)
	if err == nil && len(read) > len(names) && sets[labeledSet] == nil {
		err = fmt.Errorf("which nodes have labels: %w", kv.ErrNotFound)
	}
	if err != nil {
		budget.Release(most)
		return nil, fmt.Errorf("loader: load splits %s: %w", what, err)
	}
	splits, held := make([]Split, len(names)), int64(0)
	for i, name := range names {
		splits[i] = newSplit(s, bases[i], name, sets)
		held += splits[i].Held
	}
	budget.Release(max(0, most-held))
	if held > most { // they were replaced by larger ones
		err = budget.Reserve("splits "+what, held-most)
	}
	return splits, err
}

// isMulti says whether nodes have several labels: a set says which have any.
func isMulti(m *kv.Meta) bool { return m.Labels != nil && m.Labels.Kind == "multi" }

// newSplit is the split of a name among sets that were loaded.
func newSplit(s *layout.Store, base, name string, sets map[string]*roaring.Bitmap) Split {
	set := sets[name]
	if set == nil {
		return Split{Err: fmt.Errorf("loader: %w: %q (the store has %s): %s", ErrNoSplit, name,
			splitList(s.Meta()), splitAdvice(s, base, name))}
	}
	if labeled := sets[labeledSet]; labeled != nil {
		set.And(labeled)
	}
	if set.IsEmpty() {
		return Split{Err: fmt.Errorf("loader: %w: %q has no node to train on or to compute a "+
			"metric over: choose another with --split", ErrEmptySplit, name)}
	}
	return Split{Set: set, Held: int64(set.GetSizeInBytes())}
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
		"--split %s=FILE", message.Program, s.Dir(), base)
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
	splits, err := LoadSplits(ctx, s, []string{base}, column, budget)
	if err != nil {
		return nil, err
	}
	return splits[0].Nodes(base, budget)
}

// Nodes lists the nodes of a split, ascending, and gives the set's memory back. They take 4 bytes
// each, counted in budget.
func (s *Split) Nodes(base string, budget *mem.Budget) ([]sample.NodeID, error) {
	if s.Err != nil {
		return nil, s.Err
	}
	defer budget.Release(s.Held)
	if err := budget.Reserve("nodes of "+base, 4*int64(s.Set.GetCardinality())); err != nil {
		return nil, fmt.Errorf("loader: %w", err)
	}
	return mem.View[sample.NodeID](mem.BytesOf(s.Set.ToArray())), nil
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
