package store_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"gdb/layout/layouttest"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// TestPieces holds that groups that do not fit in memory at once are the same in pieces, and that
// those that cannot be made so are refused with the memory that they take.
func TestPieces(t *testing.T) {
	g := layouttest.Random(4, 60_000, 120_000)
	g.Both = true
	st := layouttest.Build(t, vfs.NewMem(), "s", g)
	const little = 12 << 20
	for _, stmt := range []string{
		"MATCH (a)-->(b) RETURN b.id, count(*) AS n ORDER BY n DESC, b.id LIMIT 20",
		"MATCH (a)-->()-->(b) RETURN b.id, count(*) AS n ORDER BY n DESC, b.id LIMIT 20",
		"MATCH (a)-->(b) WITH b, count(*) AS n RETURN count(*), sum(n * n)",
		"MATCH (a)-->()-->(b) WITH DISTINCT a, b RETURN count(*), sum(a.id % 7 * (b.id % 11))",
		"UNWIND range(0, 9999) AS i MATCH (a {id: i})-->()-->(b) WITH DISTINCT i, b " +
			"RETURN count(*), sum(i % 7 * (b.id % 11))",
		"UNWIND range(0, 9999) AS i MATCH (a {id: i})-->()-->(b) " +
			"RETURN i, count(DISTINCT b) AS n, max(b.id) AS m ORDER BY n DESC, i LIMIT 20",
		"MATCH (a)-->()-->(b) RETURN count(DISTINCT a), count(DISTINCT b)",
	} {
		want, err := answer(t, st, 0, stmt)
		if err != nil {
			t.Fatal(err)
		}
		got, err := answer(t, st, little, stmt)
		got, _, _ = strings.Cut(got, "; lists of neighbors are read")
		if err != nil || got != want {
			t.Errorf("%s: %.300s, %v; want %.300s", stmt, got, err, want)
		}
	}
	// Without ORDER BY, groups come piece by piece.
	const all = "MATCH (a)-->()-->(b) WITH b.id AS b, count(*) AS n WHERE n > 40 RETURN b, n"
	sorted := func(memory int64) string {
		got, err := answer(t, st, memory, all)
		got, _, _ = strings.Cut(got, "; lists of neighbors are read")
		rows := strings.Split(got, "; ")
		slices.Sort(rows)
		return fmt.Sprint(len(rows), rows, err)
	}
	if got, want := sorted(little), sorted(0); got != want || len(want) < 100 {
		t.Errorf("in pieces %.300s; want %.300s", got, want)
	}
	_, err := answer(t, st, little, "MATCH (a)-->(b) RETURN a.id + b.id AS s, count(*) AS n "+
		"ORDER BY n DESC LIMIT 3")
	if err == nil || !strings.Contains(err.Error(), "the groups of this statement take about ") {
		t.Errorf("groups by a sum: %v", err)
	}
}

// TestFirstRows holds that ORDER BY with a LIMIT keeps few rows where rows are made one by one.
func TestFirstRows(t *testing.T) {
	st := layouttest.Build(t, vfs.NewMem(), "s", layouttest.Random(1, 1000, 10))
	stmt := "UNWIND range(0, 300000) AS i RETURN i % 1000 AS k, i ORDER BY k DESC SKIP 299 LIMIT 3"
	got, err := answer(t, st, 16<<20, stmt)
	if want := "999 299999; 998 998; 998 1998"; err != nil || got != want {
		t.Errorf("%s, %v; want %s", got, err, want)
	}
}
