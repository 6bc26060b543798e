package inspect

import (
	"strings"
	"testing"

	"gdb/kv"
	"gdb/layout"
	"gdb/layout/columnfile"
	"gdb/layout/ingest"
	"gdb/layout/ingest/source"
	"gdb/layout/layouttest"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// TestEdges finds every flipped bit of a file of edges, a file that is cut, lost, or too much.
func TestEdges(t *testing.T) {
	fs := vfs.NewMem()
	if err := fs.MkdirAll("kg", 0o755); err != nil {
		t.Fatal(err)
	}
	line := "a\tr\tb\nb\ts\tc\n"
	layouttest.WriteFile(t, fs, "kg/train.txt", []byte(strings.Repeat(line, 600)))
	layouttest.WriteFile(t, fs, "kg/test.txt", []byte(line))
	if _, err := ingest.Run(t.Context(), fs,
		ingest.Options{Options: source.Options{Sources: []string{"kg"}, Memory: 128 << 20},
			Out: "s"}); err != nil {
		t.Fatal(err)
	}
	s, err := layout.Open(t.Context(), fs, "s")
	if err != nil {
		t.Fatal(err)
	}
	dev := layouttest.Device(t)
	findings := func() (found []string) {
		t.Helper()
		r, err := Check(t.Context(), dev, s, CheckOptions{Full: true})
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range r.Findings {
			found = append(found, f.Path+": "+f.What)
		}
		return found
	}
	if f := findings(); len(f) > 0 {
		t.Fatal(f)
	}
	path := "s/edges/train.edges"
	whole := layouttest.ReadFile(t, fs, path)
	for off := int64(0); off < int64(len(whole)); off += 1500 {
		layouttest.Flip(t, fs, path, off, 1)
		if f := findings(); len(f) == 0 || !strings.HasPrefix(f[0], "edges/train.edges") {
			t.Errorf("bit at %d: %v", off, f)
		}
		layouttest.Flip(t, fs, path, off, 1)
	}
	layouttest.WriteFile(t, fs, path, whole[:len(whole)-layout.PageBytes])
	if f := findings(); len(f) == 0 {
		t.Error("a file that was cut is whole")
	}
	layouttest.WriteFile(t, fs, path, layouttest.ReadFile(t, fs, "s/edges/test.edges"))
	if f := findings(); len(f) == 0 {
		t.Error("test was taken for train")
	}
	layouttest.WriteFile(t, fs, path, whole)
	layouttest.WriteFile(t, fs, "s/edges/more.edges", whole)
	if f := findings(); len(f) != 1 || !strings.Contains(f[0], "does not list") {
		t.Error(f)
	}
}

// TestEdgeTables: columns of edges whose rows are not those of the lists are found.
func TestEdgeTables(t *testing.T) {
	fs, dev := vfs.NewMem(), layouttest.Device(t)
	layouttest.WriteFile(t, fs, "u.csv", []byte("id\n1\n2\n3\n"))
	layouttest.WriteFile(t, fs, "e.csv", []byte("src,dst,note\n1,2,a\n3,2,b\n3,1,c\n1,3,d\n"))
	if _, err := ingest.Run(t.Context(), fs, ingest.Options{Out: "s", Options: source.Options{
		NodeTables: []source.NodeTable{{Type: "u", File: "u.csv"}}, Memory: 128 << 20,
		Relations: []source.Relation{{Src: "u", Name: "to", Dst: "u", File: "e.csv"}},
		Reverse:   true}}); err != nil {
		t.Fatal(err)
	}
	s, err := layout.Open(t.Context(), fs, "s")
	if err != nil {
		t.Fatal(err)
	}
	findings := func() (found string) {
		t.Helper()
		r, err := Check(t.Context(), dev, s, CheckOptions{Full: true})
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range r.Findings {
			found += f.Path + ": " + f.What + "\n"
		}
		return found
	}
	if f := findings(); f != "" {
		t.Fatal(f)
	}
	back := s.Meta().EdgeTable(1)
	for _, c := range []struct {
		of   kv.TableColumn
		rows []int64 // instead of 0 1 3, of 0 2 2, and of 1 3 0 2
		want string
	}{{s.Meta().EdgeTable(0).Starts, []int64{0, 2, 3}, "node 1 begin at row 2, and its lists say"},
		{back.Starts, []int64{0, 0, 2}, "node 1 begin at row 0, and its lists say 2"},
		{back.Reverse.Rows, []int64{0, 3, 3, 3}, "some rows are there twice"},
		{back.Reverse.Rows, []int64{0, 9, 3, 0}, "entry 1 has row 9 of 4"}} {
		whole := layouttest.ReadFile(t, fs, "s/"+c.of.Path)
		w, err := columnfile.NewWriter(fs, "s/"+c.of.Path, columnfile.Spec{UUID: s.Meta().UUID,
			Name: c.of.Name, Path: c.of.Path, Type: c.of.Type})
		if err != nil {
			t.Fatal(err)
		}
		if err := w.Append(&columnfile.Values{Rows: len(c.rows), Ints: c.rows}); err != nil {
			t.Fatal(err)
		}
		if _, _, err := w.Finish(); err != nil {
			t.Fatal(err)
		}
		if f := findings(); !strings.Contains(f, c.want) {
			t.Errorf("%s: %q, want %q", c.of.Path, f, c.want)
		}
		layouttest.WriteFile(t, fs, "s/"+c.of.Path, whole)
	}
}
