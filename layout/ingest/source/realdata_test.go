package source_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"gdb/layout/ingest/source"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// TestRealGraphs streams every graph of a directory of real ones, named by GDB_TEST_DATA, and
// compares the counts with those published for a few.
func TestRealGraphs(t *testing.T) {
	root := os.Getenv("GDB_TEST_DATA")
	if root == "" {
		t.Skip("GDB_TEST_DATA names no directory of graphs")
	}
	dirs, err := filepath.Glob(filepath.Join(root, "*"))
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]content{
		"cora": {edges: 5278, nodes: 2708, dim: 1433, rows: 2708, labels: 2708,
			members: 1640},
		"amazon-photo": {edges: 143663, nodes: 7650, dim: 745, rows: 7650, labels: 7650,
			members: 74870},
		"blogcatalog-multilabel": {edges: 333983, labels: 14476},
		"com-dblp":               {edges: 1049866},
		"fb15k-237":              {edges: 310116},
		"ldbc-snb-sample":        {edges: 787074, nodes: 190376},
		"coauthor-cs": {edges: 81894, nodes: 18333, dim: 6805, rows: 18333, labels: 18333,
			members: -1},
	}
	for _, dir := range dirs {
		t.Run(filepath.Base(dir), func(t *testing.T) {
			t.Parallel()
			src, err := source.Open(context.Background(), vfs.Default,
				&source.Options{Sources: []string{dir}})
			if err != nil {
				t.Fatal(err)
			}
			defer src.Close()
			got := count(t, src)
			t.Logf("%s %+v %q", src.Info().Format, got, src.Info().Notes)
			w, ok := want[filepath.Base(dir)]
			if w.members < 0 {
				w.members = got.members
			}
			if ok && got != w {
				t.Errorf("got %+v, want %+v", got, w)
			}
			if got.edges == 0 {
				t.Error("no edges")
			}
		})
	}
}

// content is what a source streams, counted.
type content struct {
	edges, rows, dim, labels, members int
	nodes                             uint64
}

func count(t *testing.T, src source.Source) (c content) {
	t.Helper()
	ctx, info := context.Background(), src.Info()
	c.nodes = info.Nodes
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	check(src.Edges(ctx, func(e *source.EdgeChunk) error {
		c.edges += e.Len()
		return nil
	}))
	for _, f := range info.Features {
		c.dim = f.Dim
		check(src.Features(ctx, f.Name, func(r *source.RowChunk) error {
			c.rows += len(r.Rows) / f.Dim
			return nil
		}))
	}
	check(src.Labels(ctx, func(l *source.LabelChunk) error {
		c.labels += max(len(l.Class), len(l.Text), len(l.Target))
		return nil
	}))
	check(src.Splits(ctx, func(s *source.SplitChunk) error {
		c.members += s.IDs.Len()
		return nil
	}))
	return c
}
