package serve

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"gdb/internal/mem"
	"gdb/kv"
	"gdb/layout"
	"gdb/layout/ingest"
	"gdb/layout/ingest/source"
	"gdb/serve/protocol"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// splitStore has 40 edges, half of which are test edges.
func splitStore(t *testing.T) *layout.Store {
	t.Helper()
	fs := vfs.NewMem()
	f, err := fs.Create("edges.csv", vfs.WriteCategoryUnspecified)
	if err != nil {
		t.Fatal(err)
	}
	text := "source,target\n"
	for i := range 40 {
		text += fmt.Sprintf("%d,%d\n", i, i+1)
	}
	if _, err := f.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := ingest.Run(t.Context(), fs,
		ingest.Options{Options: source.Options{Sources: []string{"edges.csv"}, Memory: testMemory},
			Out: "s", EdgeSplit: "random=50/25/25", Seed: 1}); err != nil {
		t.Fatal(err)
	}
	st, err := layout.Open(t.Context(), fs, "s")
	if err != nil {
		t.Fatal(err)
	}
	return st
}

// TestEdges: edges of a split come as they stand in its file, up to its end and not beyond.
func TestEdges(t *testing.T) {
	st := splitStore(t)
	split := st.Meta().EdgeSplits[0]
	k := start(t, st, Options{}).connect(t)
	ask := func(first, count uint64) ([]uint32, error) {
		f, _, err := k.ask(protocol.KindEdges, protocol.Edges{Split: split.Name, First: first,
			Count: count}, nil)
		if err != nil {
			return nil, err
		}
		return slices.Clone(mem.View[uint32](f.Data)), nil
	}
	n := split.Count
	all, err := ask(0, n)
	if err != nil || uint64(len(all)) != 2*n || n < 3 {
		t.Fatalf("%d of %d edges, %v", len(all)/2, n, err)
	}
	for i, src := range all[:n] {
		if all[n:][i] != src+1 {
			t.Errorf("edge %d is %d to %d", i, src, all[n:][i])
		}
	}
	for _, c := range [][2]uint64{{1, 2}, {n - 1, 1}, {n, 0}, {0, 0}} {
		want := append(slices.Clone(all[c[0]:c[0]+c[1]]), all[n+c[0]:n+c[0]+c[1]]...)
		if got, err := ask(c[0], c[1]); err != nil || !slices.Equal(got, want) {
			t.Errorf("%d edges from %d on: %v, %v, want %v", c[1], c[0], got, err, want)
		}
	}
	for _, c := range [][2]uint64{{0, n + 1}, {1, n}, {n + 1, 0}, {n, 1},
		{math.MaxUint64, 2}, {math.MaxUint64, 0}, {2, math.MaxUint64},
		{0, protocol.EdgesMost + 1}} {
		want := fmt.Sprintf("usage: serve: %d edges of split %s from %d on: it has %d", c[1],
			split.Name, c[0], n)
		if _, err := ask(c[0], c[1]); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%d edges from %d on: %v", c[1], c[0], err)
		}
	}
}

// TestNotesOfStatements: what the rows of a statement do not show comes beside them.
func TestNotesOfStatements(t *testing.T) {
	k := start(t, splitStore(t), Options{}).connect(t)
	for statement, want := range map[string][]string{
		"DEGREES IN TOP 1": {"train edges; 20 of val and test are apart"}, "RUNS": nil} {
		var table protocol.Table
		f := k.must(protocol.KindQuery, protocol.Query{Statement: statement}, nil,
			protocol.KindTable)
		if err := f.Decode(&table); err != nil || !slices.Equal(table.Notes, want) {
			t.Errorf("%s: notes %q, want %q; %v", statement, table.Notes, want, err)
		}
	}
}

// TestFeatureNames: clients hear the names of the columns of features, one for each number of a
// row, and none where the source has none.
func TestFeatureNames(t *testing.T) {
	st := coraStore(t)
	m := *st.Meta()
	w := New(Options{Store: st, Memory: testMemory, Threads: 1}).welcome()
	if w.Store.FeatureNames != nil {
		t.Errorf("names %q of a source without any", w.Store.FeatureNames)
	}
	dim := m.Features[0].Dim
	st.Meta().FeatureNames = map[string][]kv.ColumnMeta{m.Features[0].Name: {{Name: "age"},
		{Name: "word", Dim: dim - 1}}}
	names := New(Options{Store: st, Memory: testMemory, Threads: 1}).welcome().Store.FeatureNames
	if len(names) != dim || names[0] != "age" || names[1] != "word[0]" ||
		names[dim-1] != fmt.Sprintf("word[%d]", dim-2) {
		t.Errorf("%d names: %q", len(names), names)
	}
}
