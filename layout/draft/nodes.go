package draft

import (
	"context"
	"errors"
	"slices"
	"strings"

	"gdb/kv"
	"gdb/layout"
	"gdb/layout/ingest"
	"gdb/layout/ingest/input"
	"gdb/layout/ingest/source"
	"gdb/layout/live"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// Nodes is a store with nodes that are in none of its snapshots: a draft to which they were
// appended.
type Nodes struct {
	Store *layout.Store // the draft, open as of its last snapshot
	Since uint64        // the snapshot before the nodes came
	Added *live.Added

	draft  *Draft
	before *layout.Store // keeps that snapshot
}

// WithNodes returns a store as it would be if what opt.Sources hold was appended to it: new nodes,
// and edges of theirs. The store stays as it is. Of its runs the draft has one. It takes the memory
// and the disk of an append; where nodes have types that is the disk of another store. The caller
// calls Close.
func WithNodes(ctx context.Context, fs vfs.FS, s *layout.Store, run string,
	opt ingest.Options) (n *Nodes, err error) {
	appendable := *s.Meta()
	simplify(&appendable)
	if err := live.CheckStore(s.Dir(), &appendable); err != nil {
		return nil, err
	}
	n = &Nodes{}
	if n.draft, err = New(ctx, fs, s.Dir(), run); err != nil {
		return nil, err
	}
	if err := n.append(ctx, fs, opt); err != nil {
		return nil, errors.Join(err, n.Close())
	}
	return n, nil
}

func (n *Nodes) append(ctx context.Context, fs vfs.FS, opt ingest.Options) (err error) {
	dir := n.draft.Dir()
	if n.before, err = n.draft.simplified(ctx); err != nil {
		return err
	}
	m := n.before.Meta()
	n.Since = m.Snapshot
	if !m.Typed() {
		if strings.HasPrefix(opt.Fill, "mean") {
			return input.Usage("--fill %s: it would be the mean of the new nodes: give the number "+
				"that the ingest of the store took, or 0", opt.Fill)
		}
		asIngested(m, &opt.Options)
	}
	if n.Added, err = live.AppendNew(ctx, fs, dir, opt); err != nil {
		return err
	}
	if n.Added.Nodes == 0 {
		return errors.New("the files have no new node")
	}
	n.Store, err = layout.OpenAt(ctx, fs, dir, layout.Latest)
	return err
}

// simplified opens the draft without what keeps a store from being appended to.
func (d *Draft) simplified(ctx context.Context) (*layout.Store, error) {
	s, err := layout.OpenAt(ctx, d.fs, d.dir, layout.Latest)
	if err != nil {
		return nil, err
	}
	if m := *s.Meta(); !simplify(&m) {
		return s, nil
	}
	err = s.Catalog().Commit(ctx, nil, func(m *kv.Meta, _ func(string) (*roaring.Bitmap, error)) (
		map[string]*roaring.Bitmap, error) {
		simplify(m)
		return nil, nil
	})
	if err = errors.Join(err, s.Close()); err != nil {
		return nil, err
	}
	return layout.OpenAt(ctx, d.fs, d.dir, layout.Latest)
}

// simplify takes from a store of one type what keeps it from being appended to, and predictions do
// not read: columns of edges, and the default of several columns of splits. It reports whether
// there was any.
func simplify(m *kv.Meta) bool {
	if m.Typed() || len(m.EdgeTables) == 0 && m.SplitColumn < 0 {
		return false
	}
	m.Files = slices.DeleteFunc(slices.Clone(m.Files), func(f kv.FileMeta) bool {
		return m.IsEdgeColumn(f.Path)
	})
	m.EdgeTables, m.SplitColumn = nil, -1
	return true
}

// Close removes the draft.
func (n *Nodes) Close() error {
	return errors.Join(n.Store.Close(), n.before.Close(), n.draft.Close())
}

// asIngested names the columns that the ingest of a store was told, and features by their names,
// where opt does not; labels and splits of new nodes are not read. The means that filled what was
// missing are not recorded.
func asIngested(m *kv.Meta, opt *source.Options) {
	for flag, to := range map[string]*string{"id-col": &opt.IDCol, "src-col": &opt.SrcCol,
		"dst-col": &opt.DstCol, "rel-col": &opt.RelCol, "weight-col": &opt.WeightCol,
		"time-col": &opt.TimeCol, "na": &opt.NA, "fill": &opt.Fill,
		"feature-cols": &opt.FeatureCols} {
		i := slices.IndexFunc(m.Source.Args, func(arg string) bool {
			return strings.HasPrefix(arg, "--"+flag+"=")
		})
		if i < 0 || *to != "" {
			continue
		}
		value := strings.TrimPrefix(m.Source.Args[i], "--"+flag+"=")
		if flag != "fill" || !strings.HasPrefix(value, "mean") {
			*to = value
		}
	}
	if len(m.Features) == 0 {
		return
	}
	if opt.FeatureCols == "" || opt.FeatureCols == "*" {
		opt.FeatureCols = "*"
		names := m.FeatureColumns(m.Features[0])
		isPlain := func(name string) bool { return !strings.ContainsAny(name, ",:[*") }
		if all := names.Names(); names.Named() && !slices.ContainsFunc(all,
			func(name string) bool { return !isPlain(name) }) {
			opt.FeatureCols = strings.Join(all, ",")
		}
	}
	if opt.FeatureCols != "*" { // a feature may have a name that labels have elsewhere
		opt.LabelCol, opt.SplitCol = source.NoColumn, source.NoColumn
	}
}
