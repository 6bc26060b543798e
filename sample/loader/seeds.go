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

// ErrNoSplit is returned if a store has no split of that name.
var ErrNoSplit = errors.New("no such split")

// ErrEmptySplit is returned if a split has no nodes, or none that is known to have a label.
var ErrEmptySplit = errors.New("empty split")

// labeledSet is the stored set of nodes that have multi-labels.
const labeledSet = "labeled"

// Split is a set of nodes that was loaded. Held is its bytes in the budget, which the caller
// releases. Err says why there is no set, and wraps ErrNoSplit or ErrEmptySplit.
type Split struct {
	Set  *roaring.Bitmap
	Held int64
	Err  error
}

// LoadSplit loads a split, without nodes that have no label if nodes have several labels. An empty
// split is an error. The set is counted in budget; the caller releases held bytes.
func LoadSplit(ctx context.Context, s *layout.Store, base, column string,
	budget *mem.Budget) (set *roaring.Bitmap, held int64, err error) {
	splits, err := LoadSplits(ctx, s, []string{base}, column, budget)
	if err != nil {
		return nil, 0, err
	}
	return splits[0].Set, splits[0].Held, splits[0].Err
}

// LoadSplits loads several splits as LoadSplit does, in one transaction: if they are replaced
// meanwhile, either all are old or all are new, so that no test node is among the training nodes.
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

// isMulti reports whether nodes have several labels; the set labeledSet then says which have any.
func isMulti(m *kv.Meta) bool { return m.Labels != nil && m.Labels.Kind == "multi" }

// newSplit returns the split of this name from the sets that were loaded.
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

// setBytesMost bounds the memory of a stored set of nodes: for each 65536 nodes a container, with 2
// bytes for each of them in the set or one bit for each.
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

// splitAdvice says what to do if the store does not have a split.
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

// TrainNodes returns the nodes of the training split of a column: see SplitNodes.
func TrainNodes(ctx context.Context, s *layout.Store, column string,
	budget *mem.Budget) ([]sample.NodeID, error) {
	return SplitNodes(ctx, s, "train", column, budget)
}

// SplitNodes returns the nodes of a split of a column, ascending; "" is the store's default column.
// They take 4 bytes each, counted in budget.
func SplitNodes(ctx context.Context, s *layout.Store, base, column string,
	budget *mem.Budget) ([]sample.NodeID, error) {
	splits, err := LoadSplits(ctx, s, []string{base}, column, budget)
	if err != nil {
		return nil, err
	}
	return splits[0].Nodes(base, budget)
}

// Nodes returns the nodes of the split, ascending, and releases the memory of the set. They take 4
// bytes each, counted in budget.
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
