package ingest

import (
	"context"
	"slices"

	"gdb/kv"
	"gdb/layout"
	"gdb/layout/ingest/input"
	"gdb/layout/ingest/source"
	"gdb/layout/ingest/steps"
	"gdb/layout/splits"
)

// edgeDraw is the draw that --edge-split asks for; nil without it.
func edgeDraw(opt *Options, info *source.Info) (*splits.EdgeDraw, error) {
	if opt.EdgeSplit == "" {
		return nil, nil
	}
	shares, err := splits.ParseEdgeShares(opt.EdgeSplit)
	if err != nil {
		return nil, input.Usage("--edge-split: %w", err)
	}
	if len(info.EdgeSplits) > 0 {
		return nil, input.Usage("--edge-split %s, but the source has splits of its edges: give "+
			"the files in a directory of other names, or leave the flag out", opt.EdgeSplit)
	}
	return splits.NewEdgeDraw(shares, opt.Seed), nil
}

// newDivider starts the files of the edges' splits; nil if there are none.
func (p *pipeline) newDivider(nodes uint64, types int) (*splits.EdgeDivider, error) {
	if names := p.edgeSplitNames(); len(names) > 0 {
		return splits.NewEdgeDivider(splits.EdgeOptions{FS: p.FS, Path: p.Path,
			UUID: p.Journal.UUID, Names: names, Nodes: nodes, Types: types, Draw: p.draw})
	}
	return nil, nil
}

// edgeSplitNames are the splits of the edges.
func (p *pipeline) edgeSplitNames() []string {
	if p.draw != nil {
		return p.draw.Names()
	}
	return p.info.EdgeSplits
}

// edgeSplits counts what train has no edge of, and the edges whose reverse it has, and tells the
// user.
func (p *pipeline) edgeSplits(ctx context.Context, r *results, m *nodeMap) error {
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
			if err != nil || p.draw != nil { // a draw parts no edge from its reverse
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
