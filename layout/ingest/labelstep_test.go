package ingest

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"gdb/internal/mem"
	"gdb/internal/tables"
	"gdb/layout/ingest/source"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// mustArray writes an array file.
func mustArray[T mem.Scalar](t *testing.T, fs vfs.FS, path, descr string, v []T, shape ...uint64) {
	t.Helper()
	w, err := tables.CreateArray(fs, path, descr, shape...)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(mem.BytesOf(v)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestMultiHotZeros: in rows of zeros and ones, a node of no class is labeled all the same; a row
// of -1 or NaN is no label.
func TestMultiHotZeros(t *testing.T) {
	fs := vfs.NewMem()
	if err := fs.MkdirAll("d", 0o755); err != nil {
		t.Fatal(err)
	}
	mustArray(t, fs, "d/edges.npy", "<i8", []uint64{0, 1, 1, 2, 2, 3}, 3, 2)
	const none = ^uint64(0)
	mustArray(t, fs, "d/labels.npy", "<i8", []uint64{1, 1, 0, 0, none, none, 0, 1}, 4, 2)
	meta, err := Run(t.Context(), fs, Options{Options: source.Options{Sources: []string{"d"},
		Memory: 128 << 20}, Out: "s"})
	if err != nil {
		t.Fatal(err)
	}
	if l := meta.Labels; l == nil || l.Labeled != 3 ||
		!slices.Equal(l.Classes, []string{"0", "1"}) ||
		!slices.Equal(l.ClassCounts, []uint64{1, 2}) {
		t.Errorf("labels %+v, want 3 labeled, of class 0 one and of class 1 two", l)
	}
	r := open(t, fs, "s")
	set, err := r.store.Split(t.Context(), "labeled")
	if err != nil || !slices.Equal(set.ToArray(), []uint32{0, 1, 3}) {
		t.Errorf("labeled %v, %v, want 0, 1 and 3", set, err)
	}
	if got := r.raw(meta.Labels.Rows)[:4]; !slices.Equal(got, []byte{3, 0, 0, 2}) {
		t.Errorf("rows %v", got)
	}
}

// TestUnknownLabels: of labels in several columns, those that are NaN, -1 or -100 are kept as
// unknown, behind the bits of the others; a row of them is unlabeled, and where all are known a row
// has no more bits than labels.
func TestUnknownLabels(t *testing.T) {
	nan := float32(math.NaN())
	fs := vfs.NewMem()
	if err := fs.MkdirAll("d", 0o755); err != nil {
		t.Fatal(err)
	}
	mustArray(t, fs, "d/edges.npy", "<i8", []uint64{0, 1, 1, 2, 2, 3, 3, 4}, 4, 2)
	mustArray(t, fs, "d/labels.npy", "<f4", []float32{1, nan, 1, nan, nan, nan, 0, 0, 0, 0, -100, 0,
		-1, 1, 1}, 5, 3)
	meta, err := Run(t.Context(), fs, Options{Options: source.Options{Sources: []string{"d"},
		Memory: 128 << 20}, Out: "s"})
	if err != nil {
		t.Fatal(err)
	}
	if l := meta.Labels; l.Labeled != 4 || l.Unknown != 3 ||
		!slices.Equal(l.Classes, []string{"0", "1", "2"}) ||
		!slices.Equal(l.ClassCounts, []uint64{1, 1, 2}) {
		t.Errorf("labels %+v, want 4 labeled and 3 of theirs unknown", l)
	}
	r := open(t, fs, "s")
	if got := r.raw(meta.Labels.Rows)[:10]; !slices.Equal(got,
		[]byte{0b101, 0b101, 0, 0, 0, 0b111, 0, 0b101, 0b110, 0b110}) {
		t.Errorf("rows %08b", got)
	}
	set, err := r.store.Split(t.Context(), "labeled")
	if err != nil || !slices.Equal(set.ToArray(), []uint32{0, 2, 3, 4}) {
		t.Errorf("labeled %v, %v, want 0, 2, 3 and 4", set, err)
	}
}

// TestTextLabels: what labels of text are is decided by all of them, not by the first rows.
func TestTextLabels(t *testing.T) {
	const rows = 1500 // more than are looked at to open the file
	for name, c := range map[string]struct {
		label   func(i int) string
		kind    string
		labeled uint64
		classes []string
	}{
		"-1 first": {kind: "class", labeled: 300, classes: []string{"2", "3"},
			label: func(i int) string {
				if i < 1200 {
					return "-1"
				}
				return fmt.Sprint(2 + i%2)
			}},
		"-1.0 and three": {kind: "class", labeled: 1000, classes: []string{"0.0", "1.0"},
			label: func(i int) string { return fmt.Sprintf("%d.0", i%3-1) }},
		"signs": {kind: "class", labeled: rows, classes: []string{"-1", "1"},
			label: func(i int) string { return fmt.Sprint(2*(i%2) - 1) }},
		"-1 among words": {kind: "class", labeled: rows, classes: []string{"-1", "7", "late"},
			label: func(i int) string {
				if i < 1200 {
					return []string{"-1", "7"}[i%2]
				}
				return "late"
			}},
		"fractions last": {kind: "target", labeled: rows,
			label: func(i int) string {
				if i < 1200 {
					return fmt.Sprint(i % 2)
				}
				return fmt.Sprintf("%d.5", i)
			}},
	} {
		t.Run(name, func(t *testing.T) {
			fs := vfs.NewMem()
			edges, nodes := &strings.Builder{}, &strings.Builder{}
			nodes.WriteString("id,label\n")
			for i := range rows {
				fmt.Fprintf(edges, "%d,%d\n", i, (i+1)%rows)
				fmt.Fprintf(nodes, "%d,%s\n", i, c.label(i))
			}
			mustText(t, fs, "edges.csv", edges.String())
			mustText(t, fs, "nodes.csv", nodes.String())
			meta, err := Run(t.Context(), fs, Options{Options: source.Options{Edges: "edges.csv",
				Nodes: "nodes.csv", Memory: 128 << 20}, Out: "s"})
			if err != nil {
				t.Fatal(err)
			}
			if l := meta.Labels; l.Kind != c.kind || l.Labeled != c.labeled ||
				!slices.Equal(l.Classes, c.classes) {
				t.Errorf("%+v, want kind %s, %d labeled, classes %q", l, c.kind, c.labeled,
					c.classes)
			}
		})
	}
}

func mustText(t *testing.T, fs vfs.FS, name, content string) {
	t.Helper()
	f, err := fs.Create(name, vfs.WriteCategoryUnspecified)
	if err == nil {
		_, err = f.Write([]byte(content))
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestLateText: an id that is no integer behind the first rows makes all ids text, and is told.
func TestLateText(t *testing.T) {
	fs, notes, edges := vfs.NewMem(), &strings.Builder{}, &strings.Builder{}
	for i := range 1500 {
		fmt.Fprintf(edges, "%d,%d\n", i, i+1)
	}
	mustText(t, fs, "e.csv", edges.String()+"7,007\n")
	meta, err := Run(t.Context(), fs, Options{Options: source.Options{Sources: []string{"e.csv"},
		Notes: notes, Memory: 128 << 20}, Out: "s"})
	if err != nil {
		t.Fatal(err)
	}
	const want = `all ids are read as text, since e.csv line 1501: id "007" is not an integer`
	if meta.Nodes != 1502 || !strings.Contains(notes.String(), want) {
		t.Errorf("%d nodes, notes %s", meta.Nodes, notes)
	}
}
