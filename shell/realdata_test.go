package shell

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"gdb/internal/tables"
	"gdb/internal/testgraph"
	"gdb/kv/ids"
	"gdb/layout"
	"gdb/layout/ingest"
	"gdb/layout/ingest/source"
	"gdb/layout/layouttest"
	"gdb/layout/nodeids"
	"gdb/shell/graph"
	"gdb/shell/words"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// TestRealGraphs compares NEIGHBORS, DEGREES, PATH and MATCH on real graphs, ingested in both
// directions, with lists built straight from their sources. GDB_TEST_DATA names the directory that
// holds them.
func TestRealGraphs(t *testing.T) {
	root := os.Getenv("GDB_TEST_DATA")
	if root == "" {
		t.Skip("GDB_TEST_DATA names no directory of graphs")
	}
	for name, queries := range map[string]int{"cora": 1000, "fb15k-237": 1000,
		"web-notredame": 1000, "ldbc-snb-sample": 1000, "facebook-combined": 100,
		"ca-astroph-cc1": 100, "email-enron": 100, "soc-epinions1": 100} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(root, name)
			if _, err := os.Stat(dir); err != nil {
				t.Skipf("no graph %s: %v", name, err)
			}
			compareWithSource(t, dir, queries)
		})
	}
}

// TestEmbeddedGraph does it on the graph that the program holds.
func TestEmbeddedGraph(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "cora")
	if err := testgraph.WriteCora(vfs.Default, dir); err != nil {
		t.Fatal(err)
	}
	compareWithSource(t, dir, 200)
}

// compareWithSource draws queries queries for each statement; under -short it draws a tenth of
// them.
func compareWithSource(t *testing.T, dir string, queries int) {
	t.Helper()
	opt := ingest.Options{Options: source.Options{Sources: []string{dir}, Memory: 256 << 20},
		Out: filepath.Join(t.TempDir(), "s"), Both: true, KeepDuplicates: true, KeepSelfLoops: true}
	if _, err := ingest.Run(t.Context(), vfs.Default, opt); err != nil {
		t.Fatal(err)
	}
	store, err := layout.Open(t.Context(), vfs.Default, opt.Out)
	if err != nil {
		t.Fatal(err)
	}
	dev := mustDevice(t)
	ids, err := nodeids.Open(t.Context(), store, dev, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := ids.Close(); err != nil {
			t.Error(err)
		}
	}()
	e := graph.ForProcess(store, dev, 256<<20)
	if testing.Short() {
		queries /= 10
	}
	twinOf(sourceGraph(t, &opt, store, ids)).compare(t, e, queries)
	if err := e.Close(); err != nil {
		t.Error(err)
	}
}

// sourceGraph reads the edges of a source into memory; only the names of nodes are the store's.
func sourceGraph(t *testing.T, opt *ingest.Options, store *layout.Store,
	ids ids.Dictionary) *layouttest.Graph {
	t.Helper()
	ctx, nodes := context.Background(), int(store.Meta().Nodes)
	all := make([]layout.NodeID, nodes)
	for v := range all {
		all[v] = layout.NodeID(v)
	}
	names, err := ids.External(ctx, all, nil)
	if err != nil {
		t.Fatal(err)
	}
	number := map[string]layout.NodeID{}
	for v, name := range names {
		number[name] = layout.NodeID(v)
	}
	src, err := source.Open(ctx, vfs.Default, &source.Options{Sources: opt.Sources})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := src.Close(); err != nil {
			t.Error(err)
		}
	}()
	g := &layouttest.Graph{Nodes: nodes, Both: true, IDs: names, EdgeTypes: store.Meta().EdgeTypes}
	types := map[string]uint16{}
	for i, name := range g.EdgeTypes {
		types[name] = uint16(i)
	}
	err = src.Edges(ctx, func(c *source.EdgeChunk) error {
		if c.Split != "" && c.Split != "train" {
			return nil // lists hold the edges of train
		}
		for i := range c.Len() {
			g.Edges = append(g.Edges, sourceEdge(c, i, number, types))
		}
		return nil
	})
	if err != nil || len(g.Edges) == 0 || uint64(len(g.Edges)) != store.Meta().Edges {
		t.Fatalf("%d edges of %d: %v", len(g.Edges), store.Meta().Edges, err)
	}
	g.Labels, g.Classes = sourceLabels(t, opt.Sources[0], number)
	g.Splits = map[string][]layout.NodeID{}
	for _, name := range []string{"train", "val", "test"} {
		for _, id := range sourceArray(t, opt.Sources[0], name+"_idx.npy") {
			g.Splits[name] = append(g.Splits[name], number[words.Raw(int64(id))])
		}
		slices.Sort(g.Splits[name])
		if g.Splits[name] == nil {
			delete(g.Splits, name)
		}
	}
	return g
}

// sourceArray reads the integers of an array; nil if there is none.
func sourceArray(t *testing.T, dir, name string) []uint64 {
	t.Helper()
	a, err := tables.OpenArray(vfs.Default, filepath.Join(dir, name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	r, err := a.Stream(0)
	if err != nil {
		t.Fatal(err)
	}
	b, err := r.Next(t.Context(), int(a.Elements()))
	out := make([]uint64, a.Elements())
	a.DType.IDs(out, b, 0, 1)
	if err := errors.Join(err, r.Close()); err != nil {
		t.Fatal(err)
	}
	return out
}

// sourceLabels reads the classes of nodes; nil if there are none.
func sourceLabels(t *testing.T, dir string, number map[string]layout.NodeID) ([]int32, []string) {
	t.Helper()
	classes := sourceArray(t, dir, "labels.npy")
	if classes == nil {
		return nil, nil
	}
	labels, names := make([]int32, len(classes)), make([]string, slices.Max(classes)+1)
	for id, class := range classes {
		labels[number[words.Raw(id)]], names[class] = int32(class), words.Raw(class)
	}
	return labels, names
}

func sourceEdge(c *source.EdgeChunk, i int, number map[string]layout.NodeID,
	types map[string]uint16) (e layouttest.Edge) {
	if c.SrcText != nil {
		e.Src, e.Dst = number[string(c.SrcText[i])], number[string(c.DstText[i])]
	} else {
		e.Src, e.Dst = number[words.Raw(c.SrcInt[i])], number[words.Raw(c.DstInt[i])]
	}
	switch {
	case c.TypeText != nil:
		e.Type = types[string(c.TypeText[i])]
	case c.TypeInt != nil:
		e.Type = uint16(c.TypeInt[i])
		if t, ok := types[words.Raw(c.TypeInt[i])]; ok {
			e.Type = t
		}
	}
	return e
}
