package ingest

import (
	"strings"
	"testing"

	"gdb/layout/ingest/source"
	"gdb/layout/layouttest"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// TestWeightsOfFloat32: a note counts the weights of all files that float32 changes, each once, and
// a sum beyond float32 is an error.
func TestWeightsOfFloat32(t *testing.T) {
	fs := vfs.NewMem()
	layouttest.WriteFile(t, fs, "a.csv", []byte("src,dst,weight\na,b,1\nb,c,16777217\n"))
	layouttest.WriteFile(t, fs, "b.csv",
		[]byte("src,dst,weight\nc,a,3e38\nc,b,33554433\na,c,3e38\n"))
	for _, c := range []struct {
		opt         Options
		note, wrong string
	}{
		{Options{}, "ingest: float32, in which weights are stored, changes 2 of 5; the first is " +
			"in a.csv line 3: 16777217 -> 16777216\n", ""},
		{Options{Undirected: true, Merge: "max"}, "changes 2 of 5;", ""},
		{Options{Undirected: true}, "changes 2 of 5;", "have weights whose sum is not a finite"},
		{Options{Options: source.Options{WeightCol: "none"}}, "", ""},
	} {
		var notes strings.Builder
		c.opt.Sources, c.opt.Edges, c.opt.Out = []string{"a.csv", "b.csv"}, "", "s"
		c.opt.Notes, c.opt.Memory, c.opt.Format = &notes, testMemory, "csv"
		_, err := Run(t.Context(), fs, c.opt)
		if (err == nil) != (c.wrong == "") ||
			err != nil && !strings.Contains(err.Error(), c.wrong) {
			t.Errorf("%+v: %v", c.opt, err)
		}
		if strings.Contains(notes.String(), "float32") != (c.note != "") ||
			!strings.Contains(notes.String(), c.note) {
			t.Errorf("want %q:\n%s", c.note, &notes)
		}
		if err := fs.RemoveAll("s"); err != nil {
			t.Fatal(err)
		}
	}
}
