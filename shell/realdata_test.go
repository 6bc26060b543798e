package shell

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"gdb/internal/testgraph"
	"gdb/kv"
	"gdb/layout"
	"gdb/layout/ingest"
	"gdb/layout/layouttest"

	"github.com/cockroachdb/pebble/v2/vfs"
	"pgregory.net/rapid"
)

// TestRealGraphs compares NEIGHBORS, DEGREES, PATH and MATCH on real graphs, ingested in both
// directions, with lists built straight from their sources. GDB_TEST_DATA names the directory that
// holds them; -rapid.checks says how many queries are drawn.
func TestRealGraphs(t *testing.T) {
	root := os.Getenv("GDB_TEST_DATA")
	if root == "" {
		t.Skip("GDB_TEST_DATA names no directory of graphs")
	}
	for _, name := range []string{"cora", "facebook-combined", "ca-astroph-cc1", "email-enron",
		"soc-epinions1", "fb15k-237", "web-notredame", "ldbc-snb-sample"} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(root, name)
			if _, err := os.Stat(dir); err != nil {
				t.Skipf("no graph %s: %v", name, err)
			}
			compareWithSource(t, dir)
		})
	}
}

// TestEmbeddedGraph does it on the graph that the program holds.
func TestEmbeddedGraph(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "cora")
	if err := testgraph.WriteCora(vfs.Default, dir); err != nil {
		t.Fatal(err)
	}
	compareWithSource(t, dir)
}

func compareWithSource(t *testing.T, dir string) {
	t.Helper()
	opt := ingest.Options{Sources: []string{dir}, Out: filepath.Join(t.TempDir(), "s"),
		Both: true, KeepDuplicates: true, KeepSelfLoops: true, Memory: 256 << 20}
	if _, err := ingest.Run(t.Context(), vfs.Default, opt); err != nil {
		t.Fatal(err)
	}
	store, err := layout.Open(t.Context(), vfs.Default, opt.Out)
	if err != nil {
		t.Fatal(err)
	}
	dev := mustDevice(t)
	ids, err := store.IDs(t.Context(), dev)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := ids.Close(); err != nil {
			t.Error(err)
		}
	}()
	w := twinOf(sourceGraph(t, &opt, store, ids))
	rapid.Check(t, func(rt *rapid.T) { w.check(rt, store, dev) })
}

// sourceGraph reads the edges of a source into memory; only the names of nodes are the store's.
func sourceGraph(t *testing.T, opt *ingest.Options, store *layout.Store,
	ids kv.IDs) *layouttest.Graph {
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
	src, err := ingest.Open(ctx, vfs.Default, opt)
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
	err = src.Edges(ctx, func(c *ingest.EdgeChunk) error {
		for i := range c.Len() {
			g.Edges = append(g.Edges, sourceEdge(c, i, number, types))
		}
		return nil
	})
	if err != nil || len(g.Edges) == 0 || uint64(len(g.Edges)) != store.Meta().Edges {
		t.Fatalf("%d edges of %d: %v", len(g.Edges), store.Meta().Edges, err)
	}
	return g
}

func sourceEdge(c *ingest.EdgeChunk, i int, number map[string]layout.NodeID,
	types map[string]uint16) (e layouttest.Edge) {
	if c.SrcText != nil {
		e.Src, e.Dst = number[string(c.SrcText[i])], number[string(c.DstText[i])]
	} else {
		e.Src, e.Dst = number[raw(c.SrcInt[i])], number[raw(c.DstInt[i])]
	}
	switch {
	case c.TypeText != nil:
		e.Type = types[string(c.TypeText[i])]
	case c.TypeInt != nil:
		e.Type = uint16(c.TypeInt[i])
		if t, ok := types[raw(c.TypeInt[i])]; ok {
			e.Type = t
		}
	}
	return e
}
