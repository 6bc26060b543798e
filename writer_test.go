package gdb_test

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"gdb"
	"gdb/kv"
	"gdb/layout/ingest"
	"gdb/layout/ingest/source"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// writeFile writes a file.
func writeFile(t *testing.T, fs vfs.FS, name, text string) {
	t.Helper()
	f, err := fs.Create(name, vfs.WriteCategoryUnspecified)
	if err == nil {
		_, err = f.Write([]byte(text))
	}
	if err = errors.Join(err, f.Close()); err != nil {
		t.Fatal(err)
	}
}

// TestWriter: commits of a writer add edges and nodes with values, and replace values; who opened
// the store before reads what it had, and who opens it after reads all.
func TestWriter(t *testing.T) {
	fs := vfs.NewMem()
	writeFile(t, fs, "e.csv", "src,dst,weight\na,b,1\nb,c,2\n")
	writeFile(t, fs, "n.csv", "id,x,y,kind,part\na,1,2,old,train\nb,3,4,new,val\nc,5,6,old,train\n")
	opt := ingest.Options{Out: "s"}
	opt.Edges, opt.Nodes, opt.Memory = "e.csv", "n.csv", 1<<30
	opt.FeatureCols, opt.LabelCol, opt.SplitCol = "x,y", "kind", "part"
	if _, err := ingest.Run(t.Context(), fs, opt); err != nil {
		t.Fatal(err)
	}
	db, err := gdb.Open(t.Context(), "s", gdb.Options{FS: fs, Memory: 64 << 20})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	w := db.Writer()
	w.Memory = 1 << 30
	for why, err := range map[string]error{
		"2 edges with 1 weights": w.AddEdges(gdb.Edges{Src: []string{"a", "b"},
			Dst: []string{"b", "c"}, Weights: []float32{1}}),
		"edges with times": w.AddEdges(gdb.Edges{Src: []string{"a"}, Dst: []string{"b"},
			Weights: []float32{1}, Times: []int64{1}}),
		"3 values of features of 1 nodes": w.AddNodes(gdb.Nodes{IDs: []string{"d"},
			Features: []float32{1, 2, 3}}),
	} {
		if err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("%v, want %q", err, why)
		}
	}
	err = errors.Join(
		w.AddEdges(gdb.Edges{Src: []string{"d", "a"}, Dst: []string{"a", "d"},
			Weights: []float32{3, 4}}),
		w.AddNodes(gdb.Nodes{IDs: []string{"d", "b"}, Features: []float32{7, 8, 9, 10},
			Labels: []string{"new", "old"}, Splits: []string{"val", ""}}))
	if err != nil {
		t.Fatal(err)
	}
	added, err := w.Commit(t.Context())
	if err != nil || added.Nodes != 1 || added.Edges != 2 || added.Replaced != 1 {
		t.Fatalf("%+v, %v", added, err)
	}
	if err := w.AddEdges(gdb.Edges{Src: []string{"c"}, Dst: []string{"d"},
		Weights: []float32{5}}); err != nil {
		t.Fatal(err)
	}
	if added, err = w.Commit(t.Context()); err != nil || added.Edges != 1 || added.Snapshot != 2 {
		t.Fatalf("%+v, %v", added, err)
	}
	if n := db.Meta().Nodes; n != 3 {
		t.Errorf("the store that was open has %d nodes now", n)
	}
	now, err := gdb.Open(t.Context(), "s", gdb.Options{FS: fs, Memory: 64 << 20})
	if err != nil {
		t.Fatal(err)
	}
	defer now.Close()
	rows, _, err := now.Features(t.Context(), []kv.NodeID{0, 1, 2, 3})
	if want := []float32{1, 2, 9, 10, 5, 6, 7, 8}; err != nil || !reflect.DeepEqual(rows, want) {
		t.Errorf("features %v, want %v, %v", rows, want, err)
	}
	m := now.Meta()
	if m.Nodes != 4 || m.Edges != 5 || !reflect.DeepEqual(m.Labels.ClassCounts, []uint64{1, 3}) {
		t.Errorf("%d nodes, %d edges, labels %d", m.Nodes, m.Edges, m.Labels.ClassCounts)
	}
	for i, want := range []kv.SplitMeta{{Name: "train", Count: 2}, {Name: "val", Count: 2}} {
		if s := m.Splits[i]; s.Name != want.Name || s.Count != want.Count {
			t.Errorf("split %+v, want %+v", s, want)
		}
	}
}

// TestWriterTyped: a writer adds users and what they buy to a typed store, and the opened store is
// asked for them.
func TestWriterTyped(t *testing.T) {
	fs := vfs.NewMem()
	writeFile(t, fs, "u.csv", "id,age\n1,20\n2,30\n")
	writeFile(t, fs, "i.csv", "id,name\na,Pen\n")
	writeFile(t, fs, "b.csv", "user,item,n\n1,a,1\n")
	opt := ingest.Options{Out: "s"}
	opt.Memory = 1 << 30
	opt.NodeTables = []source.NodeTable{{Type: "user", File: "u.csv"},
		{Type: "item", File: "i.csv"}}
	opt.Relations = []source.Relation{{Src: "user", Name: "buys", Dst: "item", File: "b.csv"}}
	if _, err := ingest.Run(t.Context(), fs, opt); err != nil {
		t.Fatal(err)
	}
	db, err := gdb.Open(t.Context(), "s", gdb.Options{FS: fs, Memory: 64 << 20})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	w := db.Writer()
	w.Memory = 1 << 30
	err = errors.Join(
		w.AddNodes(gdb.Nodes{Type: "user", IDs: []string{"3", "1"},
			Columns: []gdb.Column{{Name: "age", Cells: []string{"40", "21"}}}}),
		w.AddEdges(gdb.Edges{Relation: "user:buys:item", Src: []string{"3"}, Dst: []string{"a"},
			Columns: []gdb.Column{{Name: "n", Cells: []string{"7"}}}}))
	if err != nil {
		t.Fatal(err)
	}
	added, err := w.Commit(t.Context())
	if err != nil || added.Nodes != 1 || added.Edges != 1 || added.Replaced != 1 {
		t.Fatalf("%+v, %v", added, err)
	}
	now, err := gdb.Open(t.Context(), "s", gdb.Options{FS: fs, Memory: 64 << 20})
	if err != nil {
		t.Fatal(err)
	}
	defer now.Close()
	got, err := now.Query(t.Context(), "MATCH (u:user)-[r:buys]->(i:item) RETURN u.id, u.age, r.n "+
		"ORDER BY u.id", nil)
	if err != nil {
		t.Fatal(err)
	}
	if rows, want := fmt.Sprint(got.Rows), "[[1 21 1] [3 40 7]]"; rows != want {
		t.Errorf("rows %s, want %s", rows, want)
	}
}
