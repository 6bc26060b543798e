package ingest

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"gdb/kv"
	"gdb/layout/ingest/extsort"
	"gdb/layout/ingest/steps"

	"github.com/RoaringBitmap/roaring/v2"
)

// place makes the store exist: the finished files are renamed into their folders, and the catalog
// is created in one transaction, the last act. Killed in between, it is done again: a file that
// was renamed already is left where it is.
func (p *pipeline) place(ctx context.Context, r *results) (*kv.Meta, error) {
	sets := map[string]*roaring.Bitmap{}
	meta, err := p.meta(ctx, r, sets)
	if err != nil {
		return nil, err
	}
	// From here on the files of the store leave the temporary directory.
	if _, err := steps.Do(ctx, p.Work, "place", func(ctx context.Context, _ *struct{}) error {
		p.DropFiles(meta.Files)
		return p.rename(meta.Files)
	}); err != nil {
		return nil, err
	}
	if err := p.catalog().Create(ctx, meta, sets); err != nil {
		return nil, fmt.Errorf("ingest: %w", err)
	}
	return meta, nil
}

// rename moves the files to their folders.
func (p *pipeline) rename(files []kv.FileMeta) error {
	var dirs []string
	for _, f := range files {
		to := p.FS.PathJoin(p.Out, f.Path)
		if dir := p.FS.PathDir(to); !slices.Contains(dirs, dir) {
			dirs = append(dirs, dir)
			if err := p.FS.MkdirAll(dir, 0o755); err != nil {
				return fmt.Errorf("ingest: make %s: %w", dir, err)
			}
		}
		if _, err := p.FS.Stat(p.Path(f.Path)); isNotExist(err) {
			if info, err := p.FS.Stat(to); err == nil && info.Size() == f.Size {
				continue
			}
		}
		if err := p.FS.Rename(p.Path(f.Path), to); err != nil {
			return fmt.Errorf("ingest: rename %s: %w", f.Path, err)
		}
	}
	for _, dir := range append(dirs, p.Out) {
		if err := steps.SyncDir(p.FS, dir); err != nil {
			return err
		}
	}
	return nil
}

// meta returns the metadata of the store; sets gets the stored sets.
func (p *pipeline) meta(ctx context.Context, r *results, sets map[string]*roaring.Bitmap) (
	*kv.Meta, error) {
	format := kv.FormatVersion
	if p.info.Ranged {
		format = kv.TypedVersion
	}
	m := &kv.Meta{Format: format, Relations: p.info.Relations, UUID: p.Journal.UUID,
		Created:   p.Journal.Created,
		CreatedBy: p.opt.Version, Nodes: r.ids.Nodes,
		Edges: r.topology.Edges, Undirected: p.addsReverse(), Directions: []string{"in"},
		BlockBytes: p.opt.BlockBytes, Coded: true, NodeTypes: r.ids.Types,
		EdgeTypes:   r.scan.EdgeTypes,
		Weighted:    p.info.Weighted,
		Timestamped: p.info.Timed, Times: p.info.Times,
		IDs:         kv.IDsMeta{Kind: r.ids.Kind, HashSeed: r.ids.Seed},
		SplitColumn: -1, Partitioner: p.opt.Partitioner, Partitions: r.topology.Partitions,
		Stats: p.stats(r), Source: p.source(),
		EdgeSplits: r.divided.Splits,
		Files: slices.Concat(p.keysFound.Files, r.ids.Files, r.labels.Files, r.topology.Files,
			r.divided.Files)}
	if m.Partitioner == "" {
		m.Partitioner = "none"
	}
	if p.opt.Both {
		m.Directions = append(m.Directions, "out")
		m.Files = append(m.Files, r.out.Files...)
	}
	for _, f := range r.features {
		m.Features = append(m.Features, f.Meta)
		m.Files = append(m.Files, f.Files...)
	}
	p.tablesMeta(m, r)
	m.FeatureNames = p.featureNames()
	if f := p.info.Features; len(f) > 0 && f[0].Dims != nil {
		for i, columns := range f[0].OfTypes {
			m.NodeTypes[i].Features = columns
			m.NodeTypes[i].Encoding = r.features[0].Encodings[i]
		}
	}
	slices.SortFunc(m.Files, func(a, b kv.FileMeta) int { return strings.Compare(a.Path, b.Path) })
	m.Labels = r.labels.Meta
	var err error
	if m.Splits, err = p.splitSets(ctx, r.splits, sets); err != nil {
		return nil, err
	}
	for _, s := range m.Splits {
		if strings.Contains(s.Name, "@") {
			m.SplitColumn = p.opt.SplitColumn
		}
	}
	if r.labels.Meta != nil && r.labels.Meta.Kind == "multi" {
		if sets["labeled"], err = p.labeledSet(ctx, r.labels.Rows); err != nil {
			return nil, err
		}
	}
	if p.again != nil {
		inherit(m, p.again)
	}
	if p.into != nil {
		m.Below, sets[kv.LevelNodes] = p.level.Below, p.level.Set
	}
	return m, nil
}

// tablesMeta adds the tables of nodes and edges.
func (p *pipeline) tablesMeta(m *kv.Meta, r *results) {
	for i, c := range r.columns {
		if c != nil {
			m.NodeTypes[i].Columns = c.Columns
			m.Files = append(m.Files, c.Files...)
		}
	}
	if r.tables != nil {
		m.EdgeTables = r.tables.Tables
		m.Files = append(m.Files, r.tables.Files...)
	}
	for i := range p.info.Tables {
		if t := &p.info.Tables[i]; len(t.Roles) > 0 {
			m.NodeTypes[t.Type].Roles = t.Roles
		}
	}
	for i, name := range p.info.KeyNames {
		m.NodeTypes[i].KeyName = name
	}
}

// source says what the store is made from.
func (p *pipeline) source() kv.SourceMeta {
	if p.again != nil {
		return p.opt.orderedSource(p.again.Meta().Source)
	}
	return kv.SourceMeta{Format: p.info.Format, Paths: p.info.Paths, Args: p.opt.args()}
}

// featureNames returns the names of the columns of features that the source names.
func (p *pipeline) featureNames() map[string][]kv.ColumnMeta {
	names := map[string][]kv.ColumnMeta{}
	for _, f := range p.info.Features {
		if len(f.Columns) > 0 {
			names[f.Name] = f.Columns
		}
	}
	return names
}

// labeledSet returns the set of nodes that have a multi-label.
func (p *pipeline) labeledSet(ctx context.Context, runs []extsort.Run) (*roaring.Bitmap, error) {
	set := roaring.New()
	err := p.eachPair(ctx, "labels", runs, func(node uint64, _ uint32, _ uint64) error {
		set.Add(uint32(node))
		return nil
	})
	set.RunOptimize()
	return set, err
}

func (p *pipeline) stats(r *results) kv.GraphStats {
	t := r.topology
	s := kv.GraphStats{InHist: t.Hist, InMax: t.Max, OutHist: t.OutHist, OutMax: t.OutMax,
		SelfLoops: t.Loops, DroppedSelfLoops: r.scan.LoopsGone, DroppedDuplicates: t.Duplicates,
		EdgesRead: r.scan.Read, SkippedBadLines: r.scan.Skipped, TypeCounts: t.Types}
	s.SampledPairs, s.ReversedPairs = r.scan.Pairs.Pairs, r.scan.Pairs.Both
	s.SampledEnds, s.SharedEnds = r.scan.Pairs.Ends, r.scan.Pairs.Shared
	for _, f := range r.features {
		if f.Counts {
			s.CountFeatures = append(s.CountFeatures, f.Meta.Name)
		}
	}
	if r.out != nil {
		s.OutHist, s.OutMax = r.out.Hist, r.out.Max
	}
	return s
}
