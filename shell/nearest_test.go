package shell

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"gdb/blockdev"
	"gdb/internal/mem"
	"gdb/layout"
	"gdb/layout/layouttest"
	"gdb/shell/graph"
	"gdb/train/link/triples"
	"gdb/train/nearest"
	"gdb/train/runs"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// mustIndex makes the index of vectors of a store.
func mustIndex(t testing.TB, st *layout.Store, dev blockdev.Device, of triples.VectorsOf,
	by string) {
	t.Helper()
	_, err := nearest.Build(t.Context(), st, dev, nearest.Options{Of: of, By: by, Recall: 0.9,
		Threads: 2, Seed: 1, Budget: mem.NewBudget(128 << 20)})
	if err != nil {
		t.Fatal(err)
	}
}

// asked runs a statement with indexes, and returns its rows as CSV and what was noted.
func asked(t testing.TB, st *layout.Store, dev blockdev.Device, stmt string) (rows [][]string,
	notes string) {
	t.Helper()
	var out, notesTo strings.Builder
	for _, mode := range []string{"csv", "box"} { // notes stand below a box
		to := &out
		if mode == "box" {
			to = &notesTo
		}
		err := Run(t.Context(), Options{Store: st, Dev: dev, Vectors: openVectors,
			Nearest: graph.NearestBy(nearest.Open), Out: to, Err: &notesTo, Mode: mode,
			Script: stmt, Memory: 128 << 20})
		if err != nil {
			t.Fatalf("%s: %v", stmt, err)
		}
	}
	return mustCSV(t, out.String()), notesTo.String()
}

// TestNearestByIndex: with an index of a run, or of features, NEAREST gives the rows of EXACT but
// for a few; notes and EXPLAIN say whether the index is used.
func TestNearestByIndex(t *testing.T) {
	g := layouttest.Random(3, 4000, 9000)
	g.Dim = 6
	g.Features = layouttest.Features(g.Nodes, g.Dim)
	st, dev := layouttest.Build(t, vfs.NewMem(), "s", g), mustDevice(t)
	mustLinkRun(t, st, "transe", 6)
	name := st.Meta().Features[0].Name
	for of, clause := range map[triples.VectorsOf]string{{Run: "transe"}: "RUN transe",
		{Features: name}: "FEATURES " + name} {
		ask := "NEAREST 17 TOP 9 " + clause
		want, notes := asked(t, st, dev, ask)
		if strings.Contains(notes, "index") || len(want) != 10 {
			t.Errorf("%s without an index: %d rows, %s", ask, len(want), notes)
		}
		mustIndex(t, st, dev, of, "")
		got, notes := asked(t, st, dev, ask)
		if !strings.Contains(notes, "index of "+of.String()) || got[0][1] != want[0][1] {
			t.Errorf("%s: %v, %s", ask, got[0], notes)
		}
		same := 0
		for _, r := range got[1:] {
			if slices.ContainsFunc(want, func(w []string) bool { return slices.Equal(w, r) }) {
				same++
			}
		}
		if same < 7 {
			t.Errorf("%s: %d of 9 answers are those without index: %v, want %v", ask, same, got,
				want)
		}
		if exact, notes := asked(t, st, dev, ask+" EXACT"); fmt.Sprint(exact) !=
			fmt.Sprint(want) || strings.Contains(notes, "lists") {
			t.Errorf("%s EXACT: %v, want %v; %s", ask, exact, want, notes)
		}
		other, notes := asked(t, st, dev, ask+" BY dot")
		if len(other) != 10 || !strings.Contains(notes, "is not used: it is by "+want[0][1]) {
			t.Errorf("%s BY dot: %v %s", ask, other, notes)
		}
		plan, _ := asked(t, st, dev, "EXPLAIN "+ask)
		if !strings.Contains(fmt.Sprint(plan), "index of "+of.String()) {
			t.Errorf("EXPLAIN %s: %v", ask, plan)
		}
		among, _ := asked(t, st, dev, ask+" AMONG 5,6,7,17,3999")
		if got := column(among, 0); len(got) != 4 || slices.Contains(got, "17") ||
			!slices.Contains(got, "3999") {
			t.Errorf("%s AMONG: %v", ask, among)
		}
	}
}

// TestOldIndex: an index is not used after the run was trained on, or its file is gone, and a note
// says why; a damaged one is an error that names it.
func TestOldIndex(t *testing.T) {
	g := layouttest.Random(3, 1000, 3000)
	fs := vfs.NewMem()
	st, dev := layouttest.Build(t, fs, "s", g), mustDevice(t)
	mustLinkRun(t, st, "transe", 6)
	of := triples.VectorsOf{Run: "transe"}
	mustIndex(t, st, dev, of, "")
	all, err := st.Catalog().Indexes(t.Context())
	if err != nil || len(all) != 1 || all[0].Name() != "run transe" {
		t.Fatal(all, err)
	}
	path := st.Path(all[0].Path)
	info, err := fs.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	layouttest.Flip(t, fs, path, info.Size()-20000, 4)
	var out strings.Builder
	err = Run(t.Context(), Options{Store: st, Dev: dev, Vectors: openVectors,
		Nearest: graph.NearestBy(nearest.Open), Out: &out, Err: &out,
		Script: "NEAREST 3 TOP 900", Memory: 128 << 20})
	if err == nil || !strings.Contains(err.Error(), "checksum") ||
		!strings.Contains(err.Error(), "index STORE vectors --run transe makes it again") {
		t.Errorf("a damaged index: %v", err)
	}
	if err := fs.Remove(path); err != nil {
		t.Fatal(err)
	}
	if _, notes := asked(t, st, dev, "NEAREST 3"); !strings.Contains(notes, "its file is gone") {
		t.Errorf("a removed file: %s", notes)
	}
	mustIndex(t, st, dev, of, "")
	retrain(t, st, "transe", 6)
	if _, notes := asked(t, st, dev, "NEAREST 3"); !strings.Contains(notes, "was trained on") {
		t.Errorf("a run that went on: %s", notes)
	}
	if err := nearest.Drop(t.Context(), st, of); err != nil {
		t.Fatal(err)
	}
	if _, notes := asked(t, st, dev, "NEAREST 3"); strings.Contains(notes, "not used") {
		t.Errorf("a dropped index: %s", notes)
	}
}

// TestNearestOpensOnce: a statement opens the vectors of a run once, without an index and with one,
// also where the index has stayed open.
func TestNearestOpensOnce(t *testing.T) {
	opens := 0
	fs := vfs.WithLogging(vfs.NewMem(), func(format string, args ...any) {
		line := fmt.Sprintf(format, args...)
		if strings.HasPrefix(line, "open: ") && strings.HasSuffix(line, "/"+runs.StateName) {
			opens++
		}
	})
	st, dev := layouttest.Build(t, fs, "s", layouttest.Random(3, 1000, 3000)), mustDevice(t)
	mustLinkRun(t, st, "transe", 6)
	for _, stmt := range []string{"NEAREST 3", "NEAREST 3; NEAREST 4; NEAREST 5"} {
		if strings.Contains(stmt, ";") {
			mustIndex(t, st, dev, triples.VectorsOf{Run: "transe"}, "")
		}
		opens = 0
		var out strings.Builder
		if err := Run(t.Context(), Options{Store: st, Dev: dev, Vectors: openVectors,
			Nearest: graph.NearestBy(nearest.Open), Out: &out, Err: &out, Script: stmt,
			Memory: 128 << 20}); err != nil {
			t.Fatal(err)
		}
		if want := 1 + strings.Count(stmt, ";"); opens != want {
			t.Errorf("%s: the run was opened %d times, want %d: %s", stmt, opens, want, &out)
		}
	}
}

// retrain writes another checkpoint of a run.
func retrain(t testing.TB, st *layout.Store, run string, dim int) {
	t.Helper()
	values := make([]float32, int(st.Meta().Nodes)*dim)
	for i := range values {
		values[i] = float32(i % 7)
	}
	err := runs.Open(st, run).WriteState(map[string]any{"has_best": true, "best_epoch": 4},
		[]runs.Array{{Name: runs.BestEntitiesName, Values: values},
			{Name: runs.BestRelationsName, Values: make([]float32, dim)}}, nil)
	if err != nil {
		t.Fatal(err)
	}
}
