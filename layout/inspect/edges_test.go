package inspect

import (
	"strings"
	"testing"

	"gdb/layout"
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
