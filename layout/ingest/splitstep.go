package ingest

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"gdb/kv"
	"gdb/layout"
	"gdb/layout/ingest/extsort"
	"gdb/layout/ingest/input"
	"gdb/layout/ingest/source"
	"gdb/layout/ingest/steps"
	"gdb/layout/splits"

	"github.com/RoaringBitmap/roaring/v2"
)

// splitsResult is what the splits step gives: the sorted (node, split) pairs.
type splitsResult struct {
	Names []string
	Rows  []extsort.Run
}

func (p *pipeline) splits(ctx context.Context, m *nodeMap) (*splitsResult, error) {
	return steps.Do(ctx, p.Work, "splits", func(ctx context.Context,
		out *splitsResult) (err error) {
		if out.Names = p.info.Splits; len(out.Names) == 0 {
			return nil
		}
		if err := p.checkSplitColumn(out.Names); err != nil {
			return err
		}
		a := &attacher{p: p, m: m, name: "splits", what: "split member", stream: p.splitStream}
		if out.Rows, err = a.byNode(ctx); err != nil {
			return err
		}
		p.KeepRuns(out.Rows)
		return p.checkOverlap(ctx, a, out)
	})
}

// splitStream adapts the source's splits; the value of a row is the number of its split.
func (p *pipeline) splitStream(ctx context.Context, fn func(c *idRowsChunk) error) error {
	return p.src.Splits(ctx, func(c *source.SplitChunk) error {
		split := slices.Index(p.info.Splits, c.Name)
		if split < 0 {
			panic("BUG: ingest: the source streams a split that it does not list")
		}
		return fn(&idRowsChunk{ids: &c.IDs, n: c.IDs.Len(), where: &c.IDs.Where,
			value: func(int) (uint32, bool, error) { return uint32(split), true, nil }})
	})
}

// checkSplitColumn checks that the default column exists, if splits have columns.
func (p *pipeline) checkSplitColumn(names []string) error {
	columns := slices.ContainsFunc(names, func(n string) bool { return strings.Contains(n, "@") })
	want := fmt.Sprintf("@%d", p.opt.SplitColumn)
	if !columns && p.opt.SplitColumn != 0 {
		return input.Usage("--split-column %d: the splits have no columns: %s", p.opt.SplitColumn,
			strings.Join(names, ", "))
	}
	if !columns || slices.ContainsFunc(names, func(n string) bool {
		return strings.HasSuffix(n, want)
	}) {
		return nil
	}
	return input.Usage("--split-column %d: there is no such column, the splits are %s",
		p.opt.SplitColumn, strings.Join(names, ", "))
}

// exclusive returns the group of splits that may not share a node with this one: train, val and
// test of one column; "" for other splits, which may overlap.
func exclusive(name string) string {
	base, column, _ := strings.Cut(name, "@")
	if base == "train" || base == "val" || base == "test" {
		return "@" + column
	}
	return ""
}

// checkOverlap finds a node that is in two splits of one group: a test node that is trained on
// makes every figure wrong, so it is an error.
func (p *pipeline) checkOverlap(ctx context.Context, a *attacher, out *splitsResult) error {
	var seen []uint32 // splits of node
	node, bad, other := noRow, noRow, uint32(0)
	err := p.eachPair(ctx, "splits", out.Rows, func(n uint64, split uint32, seq uint64) error {
		if n != node {
			node, seen = n, seen[:0]
		}
		group := exclusive(out.Names[split])
		for _, s := range seen {
			if s != split && group != "" && exclusive(out.Names[s]) == group && seq < bad {
				bad, other = seq, s
			}
		}
		seen = append(seen, split)
		return nil
	})
	if err != nil || bad == noRow {
		return err
	}
	return a.at(ctx, bad, func(c *idRowsChunk, i int) error {
		split, _, _ := c.value(i)
		return input.Wrong(c.where.Position(i), "splits must not overlap",
			"node %s is in %s and in %s", c.id(i), out.Names[split], out.Names[other])
	})
}

// splitSets builds the stored sets of the splits.
func (p *pipeline) splitSets(ctx context.Context, r *splitsResult,
	sets map[string]*roaring.Bitmap) ([]kv.SplitMeta, error) {
	bitmaps := make([]*roaring.Bitmap, len(r.Names))
	for i := range bitmaps {
		bitmaps[i] = roaring.New()
	}
	err := p.eachPair(ctx, "splits", r.Rows, func(node uint64, split uint32, _ uint64) error {
		bitmaps[split].Add(uint32(node))
		return nil
	})
	var metas []kv.SplitMeta
	for i, name := range r.Names {
		bitmaps[i].RunOptimize()
		sets[name] = bitmaps[i]
		metas = append(metas, kv.SplitMeta{Name: name, Count: bitmaps[i].GetCardinality()})
	}
	return metas, err
}

// newEdgeSplit returns what --edge-split asks for.
func newEdgeSplit(opt *Options, info *source.Info) (s splits.EdgeSplit, err error) {
	if opt.EdgeSplit == "" {
		return s, nil
	}
	if len(info.EdgeSplits) > 0 {
		return s, input.Usage("--edge-split %s, but the source has splits of its edges: give "+
			"the files in a directory of other names, or leave the flag out", opt.EdgeSplit)
	}
	if s, err = splits.ParseEdgeSplit(opt.EdgeSplit, opt.Seed, info.Timed); err != nil {
		return s, input.Usage("--edge-split: %w", err)
	}
	return s, nil
}

// newDivider starts the files of the edges' splits; nil if there are none.
func (p *pipeline) newDivider(nodes uint64, types int) (*splits.EdgeDivider, error) {
	if names := p.edgeSplitNames(); len(names) > 0 {
		return splits.NewEdgeDivider(splits.EdgeOptions{FS: p.FS, Path: p.Path,
			UUID: p.Journal.UUID, Names: names, Nodes: nodes, Types: types, EdgeSplit: p.EdgeSplit})
	}
	return nil, nil
}

// edgeSplitNames returns the names of the splits of the edges.
func (p *pipeline) edgeSplitNames() []string {
	if names := p.EdgeSplit.Names(); len(names) > 0 {
		return names
	}
	return p.info.EdgeSplits
}

// edgeSplits counts what train has no edge of, and the edges whose reverse it has, and tells the
// user.
func (p *pipeline) edgeSplits(ctx context.Context, r *results, m *nodeMap) error {
	if p.again != nil && len(p.info.EdgeSplits) == 0 {
		return p.edgeSplitsAgain(ctx, r)
	}
	if len(r.topology.Divided.Splits) == 0 {
		return nil
	}
	out, err := steps.Do(ctx, p.Work, "edge-splits",
		func(ctx context.Context, out *splits.EdgeResult) error {
			*out = r.topology.Divided
			out.Splits = slices.Clone(out.Splits)
			s := layout.NewStore(p.FS, p.Dir, &kv.Meta{UUID: p.Journal.UUID, Nodes: m.nodes,
				EdgeTypes: r.scan.EdgeTypes, Files: out.Files})
			err := splits.CountUnseen(ctx, s, out.Splits, p.Memory.Sort, p.Budget)
			// A draw parts no edge from its reverse, and by time what came before is known. Stores
			// that are written anew have such splits.
			if err != nil || p.Draw != nil || p.Times != nil || p.again != nil {
				return err
			}
			return splits.CountReversed(ctx, s, out.Splits, p.Memory.Sort, p.Budget)
		})
	if err != nil {
		return err
	}
	r.divided = *out
	for _, note := range splits.EdgeNotes(out) {
		p.note("%s", note)
	}
	return nil
}
