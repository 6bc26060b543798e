package graph

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"gdb/internal/mem"
	"gdb/internal/pace"
	"gdb/internal/rng"
	"gdb/kv"
	"gdb/kv/ids"
	"gdb/layout"
	"gdb/layout/nodeids"
	"gdb/shell/lang"
	"gdb/shell/words"

	"github.com/RoaringBitmap/roaring/v2"
)

// FindBytes returns the memory that Find takes for a set.
func (g *Graph) FindBytes(s lang.NodeSet) int64 {
	if s.IDs.Count > 0 {
		return 4 * int64(s.IDs.Count)
	}
	n := uint64(s.Random)
	if s.Split != "" {
		for _, split := range g.Meta().Splits {
			if split.Name == s.Split {
				n = split.Count
			}
		}
		n += min(n, g.Meta().Nodes/8) / 2 // the bitmap of the split
	}
	return 4 * int64(min(n, 2*g.Meta().Nodes))
}

// Find turns a set of nodes into node ids. It takes 4 bytes for each, and at the same time the
// bitmap if the set is a split.
func (g *Graph) Find(ctx context.Context, s lang.NodeSet, seed uint64) ([]layout.NodeID,
	error) {
	switch {
	case s.Random > 0:
		return g.randomNodes(ctx, s.Random, seed)
	case s.Split != "":
		set, err := g.Store.Split(ctx, s.Split)
		if errors.Is(err, kv.ErrNotFound) {
			return nil, g.NoSplit(s.Split)
		}
		if err != nil {
			return nil, fmt.Errorf("split %q: %w", s.Split, err)
		}
		return g.members(ctx, set)
	}
	out := make([]layout.NodeID, 0, s.IDs.Count)
	for i, ref := range s.IDs.All() {
		if i%pace.Every == 0 && ctx.Err() != nil {
			return nil, ctx.Err()
		}
		v, err := g.node(ctx, ref)
		if err != nil {
			return nil, err
		}
		out = append(out, v)
	}
	return out, nil
}

// members returns the nodes of a bitmap.
func (g *Graph) members(ctx context.Context, set *roaring.Bitmap) ([]layout.NodeID, error) {
	out := make([]layout.NodeID, set.GetCardinality())
	for it, at := set.ManyIterator(), 0; ; {
		n := it.NextMany(numbers(out[at:min(len(out), at+pace.Every)]))
		if at += n; n == 0 {
			return out, ctx.Err()
		}
		if err := ctx.Err(); err != nil {
			return nil, err
		}
	}
}

// Split returns the record of a split of the store.
func (g *Graph) Split(name string) (kv.SplitMeta, error) {
	for _, s := range g.Meta().Splits {
		if s.Name == name {
			return s, nil
		}
	}
	return kv.SplitMeta{}, g.NoSplit(name)
}

// NoSplit returns the error of a split that the store does not have.
func (g *Graph) NoSplit(name string) error {
	return fmt.Errorf("no split %s%s; DESCRIBE lists the splits", words.Quoted(name),
		words.Near(name, g.splitNames()))
}

func (g *Graph) splitNames() (names []string) {
	for _, s := range g.Meta().Splits {
		names = append(names, s.Name)
	}
	return names
}

func (g *Graph) node(ctx context.Context, ref lang.NodeRef) (layout.NodeID, error) {
	if ref.Internal {
		if ref.ID >= g.Meta().Nodes {
			return 0, fmt.Errorf("node #%d: %w: %s", ref.ID, kv.ErrNotFound, g.internalIDs())
		}
		deleted, err := g.Deleted(ctx)
		if err != nil {
			return 0, err
		}
		if deleted != nil && deleted.Contains(uint32(ref.ID)) {
			return 0, fmt.Errorf("node #%d: %w: %w", ref.ID, kv.ErrNotFound, nodeids.ErrDeleted)
		}
		return layout.NodeID(ref.ID), nil
	}
	ids, err := g.dictionary(ctx)
	if err != nil {
		return 0, err
	}
	v, err := ids.Internal(ctx, ref.External)
	if errors.Is(err, kv.ErrNotFound) && !g.DenseIDs() {
		return 0, g.noNode(ctx, ids, ref.External, err)
	}
	return v, err
}

// internalIDs says which internal numbers the store has, for messages.
func (g *Graph) internalIDs() string {
	switch n := g.Meta().Nodes; n {
	case 0:
		return "the store has no nodes"
	case 1:
		return "the one internal number is #0"
	default:
		return fmt.Sprintf("internal numbers are #0 to #%d", n-1)
	}
}

// noNode adds to the error of an unknown id which id was probably meant, or how ids are written in
// this store.
func (g *Graph) noNode(ctx context.Context, d ids.Dictionary, id string, err error) error {
	meant, examples := ids.Alternatives(ctx, d, g.Meta(), id)
	if meant != "" {
		return fmt.Errorf("%w; did you mean %s?", err, lang.Literal(meant))
	}
	if len(examples) == 0 {
		return err
	}
	for i, name := range examples {
		examples[i] = lang.Literal(words.Truncated(name, words.QuotedMost))
	}
	return fmt.Errorf("%w: ids are written as in the source, such as %s; %s", err,
		strings.Join(examples, " or "), g.internalIDs())
}

// randomDomain keeps the draws of RANDOM apart from other draws with the same seed.
const randomDomain = 0x72616e646f6d // "random"

// randomNodes draws n distinct nodes, or all nodes if there are fewer, and none that was deleted.
// The same seed draws the same nodes.
func (g *Graph) randomNodes(ctx context.Context, n int, seed uint64) ([]layout.NodeID, error) {
	there, deleted, err := g.There(ctx)
	if err != nil {
		return nil, err
	}
	p := rng.NewPermutation(g.Meta().Nodes, rng.Key(randomDomain, seed))
	out := make([]layout.NodeID, 0, min(uint64(n), there))
	for i := uint64(0); len(out) < cap(out); i++ {
		if i%pace.EverySlow == 0 && ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if v := p.At(i); deleted == nil || !deleted.Contains(uint32(v)) {
			out = append(out, layout.NodeID(v))
		}
	}
	return out, nil
}

// Names returns the external ids of nodes.
func (g *Graph) Names(ctx context.Context, nodes []layout.NodeID) ([]string, error) {
	ids, err := g.dictionary(ctx)
	if err != nil {
		return nil, err
	}
	return ids.External(ctx, nodes, make([]string, 0, len(nodes)))
}

// NodeBatch bounds how many nodes are looked up or read at once while rows stream out.
const NodeBatch = 4096

// nameBatchBytes bounds the names that are in memory at once, if they are of usual length. Large
// batches are better: each batch reads a block of the dictionary only once.
const nameBatchBytes = 4 << 20

// NameBatch returns how many nodes are named at once.
func (g *Graph) NameBatch() int {
	const other = 40 // of the string, the node and its place
	each := other + 8
	if f, listed := g.Meta().File(ids.ReversePath); listed {
		each = other + int(f.Size/int64(max(g.Meta().Nodes, 1)))
	}
	return min(max(nameBatchBytes/each, NodeBatch), ListEntries)
}

// numbers returns nodes as the numbers that bitmaps take. It shares the memory of nodes.
func numbers(nodes []layout.NodeID) []uint32 { return mem.View[uint32](mem.BytesOf(nodes)) }

// Labeled returns the nodes that training would train on: for multi-labels only those that have
// labels.
func (g *Graph) Labeled(ctx context.Context, nodes []layout.NodeID) ([]layout.NodeID, error) {
	if l := g.Meta().Labels; l == nil || l.Kind != "multi" {
		return nodes, nil
	}
	labeled, err := g.Store.Split(ctx, "labeled")
	if err != nil {
		return nil, err
	}
	kept := nodes[:0]
	for i, v := range nodes {
		if i%pace.Every == 0 && ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if labeled.Contains(uint32(v)) {
			kept = append(kept, v)
		}
	}
	return kept, nil
}

// EdgeType returns the number of an edge type.
func (g *Graph) EdgeType(name string) (int, error) {
	types := g.Meta().EdgeTypes
	if i := slices.Index(types, name); i >= 0 {
		return i, nil
	}
	if len(types) == 0 {
		return 0, fmt.Errorf("%s: the edges of this store have no types", name)
	}
	return 0, fmt.Errorf("%s: no such edge type%s; DESCRIBE TYPES lists them", words.Quoted(name),
		words.Near(name, types))
}

// HopDirections returns the lists that a hop follows from the node on its left.
func (g *Graph) HopDirections(dir string) []layout.Direction {
	switch {
	case g.Meta().Undirected:
		return []layout.Direction{layout.In}
	case dir == "BOTH":
		return []layout.Direction{layout.In, layout.Out}
	case dir == "IN":
		return []layout.Direction{layout.In}
	}
	return []layout.Direction{layout.Out}
}
